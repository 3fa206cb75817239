package replay_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/judges/replay"
	"github.com/joinery-sdk/joinery/examples/judges/scenario"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling/gang"
)

// groupsOf makes groups of one to five apps of a scenario, some with pods that they can do without and some in one domain.
func groupsOf(s scenario.Scenario) []gang.Group {
	r := rand.New(rand.NewPCG(s.Seed, 47))
	var apps []string
	size := map[string]int{}
	for _, p := range s.Pods {
		app := p.Labels["app"]
		if size[app]++; size[app] == 1 && app != "" {
			apps = append(apps, app)
		}
	}
	slices.Sort(apps)
	r.Shuffle(len(apps), func(i, j int) { apps[i], apps[j] = apps[j], apps[i] })
	var out []gang.Group
	for _, app := range apps[:min(len(apps), 1+r.IntN(5))] {
		g := gang.Group{Name: app, Member: func(p *corev1.Pod) bool { return p.Labels["app"] == app }}
		if r.IntN(2) == 0 {
			g.Minimum = 1 + r.IntN(size[app])
		}
		g.Key = []string{"", "", "", corev1.LabelTopologyZone, corev1.LabelTopologyZone, corev1.LabelHostname, "karpenter.sh/capacity-type", corev1.LabelInstanceTypeStable}[r.IntN(8)]
		out = append(out, g)
	}
	return out
}

// No group is there in part, groups with a key are in one domain, kube-scheduler accepts what is placed, and its own plugin for gangs lets it run.
func TestGangsAreAcceptedAndWhole(t *testing.T) {
	n := *scenarios / 10
	outcomes, whole, waiting := make([]outcome, n), make([]int, n), make([]int, n)
	inParallel(n, func(i int) {
		s := drawn(*from + uint64(i))
		groups := groupsOf(s)
		var made *plan.Plan
		outcomes[i] = judgeOf(t.Context(), s, func(ctx context.Context, s scenario.Scenario) (*plan.Plan, error) {
			snapshot, err := replay.Snapshot(s)
			if err == nil {
				made, err = plan.Make(ctx, snapshot, &plan.Options{Groups: groups})
			}
			return made, err
		})
		if made == nil {
			return
		}
		assert.NoError(t, letRun(t.Context(), made, groups), "seed %d", s.Seed)
		for _, g := range groups {
			bound, running, all := 0, 0, 0
			for _, b := range made.Bindings() {
				if g.Member(b.Pod) && b.Replaces == nil {
					bound++
				}
			}
			for _, p := range made.Problem.Snapshot().Pods {
				if !g.Member(p) || p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
					continue
				}
				if all++; p.Spec.NodeName != "" {
					running++
				}
			}
			need := g.Minimum
			if need == 0 {
				need = all
			}
			if g.Key != "" {
				fresh, old := domains(made, g)
				assert.LessOrEqual(t, len(fresh), 1, "seed %d: group %s by %s", s.Seed, g.Name, g.Key)
				for v := range fresh {
					assert.True(t, len(old) == 0 || old[v], "seed %d: group %s by %s", s.Seed, g.Name, g.Key)
				}
			}
			switch {
			case bound == 0 && running < need:
				waiting[i]++
			default:
				whole[i]++
				assert.GreaterOrEqual(t, bound+running, need, "seed %d: group %s", s.Seed, g.Name)
			}
		}
	})
	sum := [3]int{}
	for i := range outcomes {
		sum[0], sum[1], sum[2] = sum[0]+outcomes[i].placed, sum[1]+whole[i], sum[2]+waiting[i]
		assert.False(t, outcomes[i].refused(), "%s\n%v\n%s", outcomes[i].scenario, outcomes[i].err, outcomes[i].verdict)
	}
	require.Positive(t, sum[1], "or the test is hollow")
	fmt.Printf("%d scenarios, %d pods placed, %d groups whole or running, %d waiting\n", n, sum[0], sum[1], sum[2])
}

// domains are the values that nodes of a group have of its key: those of its placed pods, and those of its running ones.
func domains(p *plan.Plan, g gang.Group) (fresh, old map[string]bool) {
	labels := map[string]map[string]string{}
	for _, n := range p.Problem.Existing {
		labels[n.Node.Name] = n.Labels.Labels()
	}
	for _, n := range p.NewNodes() {
		own := map[string]string{corev1.LabelHostname: n.Name}
		maps.Copy(own, n.Labels)
		labels[n.Name] = own
	}
	fresh, old = map[string]bool{}, map[string]bool{}
	add := func(to map[string]bool, node string) {
		if known, ok := labels[node]; ok {
			to[known[g.Key]] = true
		}
	}
	moved := map[*corev1.Pod]bool{}
	for _, b := range p.Bindings() {
		if g.Member(b.Pod) {
			add(fresh, b.Node)
			moved[b.Replaces] = true
		}
	}
	for _, pod := range p.Problem.Snapshot().Pods {
		if g.Member(pod) && pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && !moved[pod] && pod.Status.Phase == corev1.PodRunning {
			add(old, pod.Spec.NodeName)
		}
	}
	return fresh, old
}
