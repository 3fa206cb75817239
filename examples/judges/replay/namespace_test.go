package replay_test

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/judges/replay"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
)

// An API server puts an object without a namespace into "default", so a cluster in which some objects lack theirs has the same plan.
func TestNoNamespaceIsDefault(t *testing.T) {
	for seed := *from; seed < *from+20; seed++ {
		s := drawn(seed)
		given, err := replay.Snapshot(s)
		require.NoError(t, err)
		without, err := replay.Snapshot(s)
		require.NoError(t, err)
		blanked := blank(without)
		require.Positive(t, blanked, "seed %d", seed)
		want, err := plan.Make(t.Context(), given, nil)
		require.NoError(t, err)
		got, err := plan.Make(t.Context(), without, nil)
		require.NoError(t, err)
		require.Equal(t, places(want), places(got), "seed %d", seed)
	}
}

// blank takes the namespace off every second object of namespace default, and counts them.
func blank(s scheduling.Snapshot) int {
	k, blanked := 0, 0
	drop := func(namespace *string) {
		if k++; *namespace == corev1.NamespaceDefault && k%2 == 0 {
			*namespace = ""
			blanked++
		}
	}
	for _, o := range s.Pods {
		drop(&o.Namespace)
	}
	for _, o := range s.DaemonSets {
		drop(&o.Namespace)
	}
	for _, o := range s.PersistentVolumeClaims {
		drop(&o.Namespace)
	}
	for _, o := range s.LimitRanges {
		drop(&o.Namespace)
	}
	return blanked
}

// places are the nodes of all pods by name.
func places(p *plan.Plan) map[string]string {
	out := map[string]string{}
	for _, b := range p.Bindings() {
		out[cmp.Or(b.Pod.Namespace, corev1.NamespaceDefault)+"/"+b.Pod.Name] = b.Node
	}
	return out
}
