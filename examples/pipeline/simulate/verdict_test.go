package simulate_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// newTangled is a small cluster whose plan often takes several rounds, so that one round would give back what an earlier one buys: rules between pods
// and zones keep the commands of a round from its state, and budgets hold nodes back. The names of the nodes that a plan buys begin with that of the
// pool, and are before, among or after those of the cluster.
func newTangled(seed uint64) *cramped {
	r, x := rand.New(rand.NewPCG(seed, 43)), &cramped{}
	var types []instancetypes.InstanceType
	for i, dollars := range []float64{0.1, 0.19, 0.4} {
		offerings := []instancetypes.Offering{instancetypes.Offer("a", "on-demand", dollars), instancetypes.Offer("b", "on-demand", dollars)}
		types = append(types, instancetypes.New(fmt.Sprintf("t%d", i), nil, cores(2<<i), offerings...))
	}
	pool := nodepool.New([]string{"a", "n3x", "p"}[r.IntN(3)])
	switch r.IntN(4) {
	case 0:
		pool.Disruption.Budgets = []nodepool.Budget{{Nodes: 1 + r.IntN(3)}}
	case 1:
		pool.Disruption.Budgets = []nodepool.Budget{{Nodes: 50, Percent: true}, {Nodes: r.IntN(2), Reasons: []nodepool.Reason{nodepool.Empty}}}
	default:
		pool.Disruption.Budgets = []nodepool.Budget{{Nodes: 100, Percent: true}}
	}
	x.s.Pools = []scheduling.Pool{{NodePool: pool, Types: types}}
	apps, at := []string{"w", "x", "y"}, func(n int) bool { return r.IntN(12) == n }
	for i, d := range []struct{ size, zone int }{{2, 0}, {1, 0}, {1, 1}, {1, 0}, {1, 1}, {1, 1}} {
		if at(0) {
			d.size = r.IntN(3)
		}
		if at(1) {
			d.zone = r.IntN(2)
		}
		x.node(fmt.Sprintf("n%d", i), pool.Name, types[d.size], d.zone)
		x.s.Nodes[i].CreationTimestamp = metav1.NewTime(crampedNow().Add(-time.Duration(16+r.IntN(110)) * time.Hour))
	}
	var free []int
	for _, n := range x.s.Nodes {
		free = append(free, int(n.Status.Allocatable.Cpu().MilliValue()))
	}
	for _, d := range []struct{ node, app, milli, rule int }{
		{0, 0, 1000, 1}, {0, 1, 250, 2}, {1, 2, 1000, 3}, {1, 1, 1250, 0}, {2, 2, 250, 4}, {3, 2, 1000, 0}, {4, 1, 1000, 0}, {5, 0, 500, 0}, {5, 1, 1000, 3},
	} {
		if at(0) {
			d.node = r.IntN(6)
		}
		if at(1) {
			d.app = r.IntN(3)
		}
		if at(2) {
			d.milli = 250 * (1 + r.IntN(6))
		}
		if at(3) {
			d.rule = r.IntN(5)
		}
		if free[d.node] < d.milli || at(4) {
			continue
		}
		free[d.node] -= d.milli
		p := x.pod(x.s.Nodes[d.node].Name, apps[d.app], d.milli)
		own := &metav1.LabelSelector{MatchLabels: p.Labels}
		switch d.rule {
		case 1, 2:
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: int32(d.rule), TopologyKey: []string{corev1.LabelTopologyZone, corev1.LabelHostname}[d.rule-1], WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: own,
			}}
		case 3:
			p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: x.s.Nodes[d.node].Labels[corev1.LabelTopologyZone]}
		case 4:
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: own,
			}}}}
		}
	}
	return x
}

// The reasons that a verdict names other nodes for are those of the cluster, not those that the plan itself buys, and they are true: a node that
// another is kept for or that goes later has a verdict that says so.
func TestVerdictsNameNodesOfTheCluster(t *testing.T) {
	from, clusters := 0, 1200
	if testing.Short() { // the last quarter of them, where each reason is given
		from = 900
	}
	if n, err := strconv.Atoi(os.Getenv("JOINERY_DRAWS")); err == nil {
		from, clusters = 0, n
	}
	kept := regexp.MustCompile(`^it is kept for pods of (\S+), which (this plan does not move|the budgets hold back|move elsewhere in this plan)`)
	later := regexp.MustCompile(`^its pods would fit on (\S+) now`)
	seen := map[string]int{}
	for seed := uint64(from); seed < uint64(clusters); seed++ {
		x := newTangled(seed)
		r, _, _ := x.plan(t)
		moves := map[string]bool{} // by the node that a pod is on
		for i := range r.Commands {
			for _, p := range r.Commands[i].Pods() {
				moves[p.Spec.NodeName] = true
			}
		}
		require.Len(t, r.Verdicts, len(x.s.Nodes))
		for i, v := range r.Verdicts {
			assert.Equal(t, x.s.Nodes[i].Name, v.Node)
			if m := kept.FindStringSubmatch(v.Detail); m != nil {
				seen[m[2]]++
				other := said(t, r, m[1])
				if m[2] == "the budgets hold back" {
					assert.Equal(t, giveback.OverBudget, other.Outcome, "seed %d: %+v; %+v", seed, v, other)
				}
				assert.Equal(t, m[2] == "move elsewhere in this plan", moves[m[1]], "seed %d: %+v; %+v", seed, v, other)
			} else {
				assert.NotContains(t, v.Detail, "it is kept for")
			}
			if m := later.FindStringSubmatch(v.Detail); m != nil {
				seen["later"]++
				assert.Equal(t, giveback.OverBudget, said(t, r, m[1]).Outcome, "seed %d: %+v", seed, v)
			}
		}
	}
	t.Logf("reasons that name nodes: %v", seen)
	assert.Len(t, seen, 4)
}
