package replay_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/examples/judges/replay"
	"github.com/joinery-sdk/joinery/examples/judges/scenario"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/survive"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
)

// struck says by the names of the labels alone whether a node is lost.
func struck(n *corev1.Node, f survive.Failure) bool {
	typ, zone := n.Labels[corev1.LabelInstanceTypeStable], n.Labels[corev1.LabelTopologyZone]
	switch f.Kind {
	case survive.Zone:
		return zone == f.Name
	case survive.Node:
		return n.Name == f.Name
	case survive.SpotPool:
		return n.Labels[instancetypes.LabelCapacityType] == instancetypes.CapacityTypeSpot && typ+" in "+zone == f.Name
	case survive.Reservation:
		return n.Labels[instancetypes.LabelReservationID] == f.Name
	case survive.Family:
		family, _, _ := strings.Cut(typ, ".")
		if label := n.Labels["karpenter.k8s.aws/instance-family"]; label != "" {
			family = label
		}
		return family == f.Name
	}
	return false
}

// afterLoss is the cluster once the nodes of a failure are gone: what ran there is pending, and daemons are gone with their node.
func afterLoss(s scenario.Scenario, cluster scheduling.Snapshot, f survive.Failure) scenario.Scenario {
	s.Nodes, s.Running, s.Pods, s.Ready, s.Leaving = nil, nil, nil, nil, nil
	lost := map[string]bool{}
	for _, n := range cluster.Nodes {
		if lost[n.Name] = struck(n, f); !lost[n.Name] {
			s.Nodes = append(s.Nodes, n)
		}
	}
	for _, p := range cluster.Pods {
		if !lost[p.Spec.NodeName] {
			s.Running = append(s.Running, p)
			continue
		}
		p = p.DeepCopy()
		p.UID, p.Spec.NodeName, p.Status = "", "", corev1.PodStatus{Phase: corev1.PodPending}
		s.Pods = append(s.Pods, p)
	}
	return s
}

// rehearsed is what kube-scheduler says of the failures that a cluster is said to live through.
type rehearsed struct {
	failures, bound, free int // failures judged, pods bound in them, and failures in which kube-scheduler finds places by itself
	refused               []string
}

// rehearseAll has each failure of the kind carried out: what remains and the headroom must take the pods that are said to have places there at
// once, and with what is for sale beside it and without headroom all pods that are not lost.
func rehearseAll(ctx context.Context, s scenario.Scenario, kinds []survive.Kind) (out rehearsed, err error) {
	snapshot, err := replay.Snapshot(s)
	if err != nil {
		return out, err
	}
	p, err := plan.Make(ctx, snapshot, nil)
	if err != nil {
		return out, err
	}
	report, err := survive.Of(ctx, p, nil, kinds)
	if err != nil {
		return out, err
	}
	for i := range report.Failures {
		o := &report.Failures[i]
		if slices.Contains(report.Headroom.Unmet, o.Failure) {
			continue
		}
		places, err := report.Headroom.Places(ctx, o.Failure)
		if err != nil {
			return out, err
		}
		if len(places)+len(o.Lost)+len(o.Ignored) < o.Displaced {
			out.refused = append(out.refused, fmt.Sprintf("%s: %d of %d pods have places", o.Failure, len(places), o.Displaced))
		}
		after := afterLoss(s, report.Headroom.Cluster(), o.Failure)
		var order []kubejudge.Binding
		var pods []types.NamespacedName
		for _, b := range places {
			pods = append(pods, types.NamespacedName{Namespace: b.Pod.Namespace, Name: b.Pod.Name})
			order = append(order, kubejudge.Binding{Pod: pods[len(pods)-1], Node: b.Node})
		}
		cluster, all, err := after.Planned(ctx, nil, nil, order)
		if err != nil {
			return out, err
		}
		verdict, err := kubejudge.Judge(ctx, cluster, all)
		if err != nil {
			return out, err
		}
		if !verdict.Valid() {
			out.refused = append(out.refused, fmt.Sprintf("%s: %s", o.Failure, verdict))
		}
		alone, err := kubejudge.Free(ctx, cluster, pods)
		if err != nil {
			return out, err
		}
		if out.failures, out.bound = out.failures+1, out.bound+len(places); alone.Valid() {
			out.free++
		}
	}
	return out, nil
}

// Each failure that a cluster is said to live through, with headroom where that is needed, is rehearsed by kube-scheduler: the nodes are removed,
// and it binds every pod that they held and that is not lost to what remains.
func TestKubeSchedulerRehearsesFailures(t *testing.T) {
	n := max(*scenarios/10, 1)
	results, errs := make([]rehearsed, n), make([]error, n)
	inParallel(n, func(i int) {
		seed := *from + uint64(i)
		s := scenario.Generate(seed, scenario.Options{Pods: 5 + int(seed*37%60), Density: *density, NoVolumes: true, Limits: seed%4 == 0})
		if len(s.Leaving)+len(s.Ready) == 0 {
			kinds := [][]survive.Kind{{survive.Zone}, {survive.Node}, {survive.Family}, {survive.SpotPool, survive.Zone}, survive.Kinds()}[seed%5]
			results[i], errs[i] = rehearseAll(t.Context(), s, kinds)
		}
	})
	var sum rehearsed
	clusters := 0
	for i := range results {
		require.NoError(t, errs[i], "seed %d", *from+uint64(i))
		assert.Empty(t, results[i].refused, "seed %d", *from+uint64(i))
		sum.failures, sum.bound, sum.free = sum.failures+results[i].failures, sum.bound+results[i].bound, sum.free+results[i].free
		if results[i].failures > 0 {
			clusters++
		}
	}
	fmt.Printf("%d clusters, %d failures rehearsed, %d pods bound; in %d failures kube-scheduler finds places by itself\n", clusters, sum.failures, sum.bound, sum.free)
	require.Positive(t, sum.bound)
}
