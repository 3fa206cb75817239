package plan_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/gang"
)

// contended is a cluster whose jobs have a priority each, the first one the highest, and seldom all have room.
type contended struct {
	snapshot scheduling.Snapshot // without pods
	jobs     [][]*corev1.Pod
	groups   []gang.Group // of each job
}

// drawContended draws one or two existing nodes, a pool that may buy at most two more, and two to four jobs, some of which spread or keep apart.
func drawContended(seed uint64) contended {
	r := rand.New(rand.NewPCG(seed, 83))
	var out contended
	zones := []string{"a", "b"}
	for i := range 1 + r.IntN(2) {
		size := corev1.ResourceList{"cpu": *resource.NewQuantity(int64(2+r.IntN(3)), resource.DecimalSI), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("20")}
		out.snapshot.Nodes = append(out.snapshot.Nodes, standing(fmt.Sprintf("old-%d", i), map[string]string{corev1.LabelTopologyZone: zones[r.IntN(2)]}, size))
	}
	if nodes := r.IntN(3); nodes > 0 {
		pool := limited(0, zones...)
		pool.Limits = corev1.ResourceList{"nodes": *resource.NewQuantity(int64(nodes), resource.DecimalSI)}
		out.snapshot.Pools = []scheduling.Pool{pool}
	}
	for i := range 2 + r.IntN(3) {
		name, priority := fmt.Sprintf("job-%d", i), int32(100-10*i)
		list := job(name, 1+r.IntN(4), fmt.Sprintf("%dm", 250*(1+r.IntN(9))))
		key, own := []string{corev1.LabelHostname, corev1.LabelTopologyZone}[r.IntN(2)], &metav1.LabelSelector{MatchLabels: list[0].Labels}
		rule, zone := r.IntN(4), r.IntN(5)
		for _, p := range list {
			p.Spec.Priority = &priority
			switch rule {
			case 0:
				p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: own}}
			case 1:
				p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: key, LabelSelector: own}}}}
			}
			if zone < len(zones) {
				p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: zones[zone]}
			}
		}
		g := jobs(name)[0]
		g.Minimum = r.IntN(len(list) + 1)
		g.Key = []string{"", "", corev1.LabelTopologyZone, corev1.LabelHostname}[r.IntN(4)]
		out.jobs, out.groups = append(out.jobs, list), append(out.groups, g)
	}
	return out
}

// plan plans the first jobs as far as they are groups, and returns how many pods of each it places.
func (c *contended) plan(t *testing.T, jobs int, groups []gang.Group) []int {
	s := c.snapshot
	s.Pods = slices.Concat(c.jobs[:jobs]...)
	p, err := plan.Make(t.Context(), s, &plan.Options{Groups: groups})
	require.NoError(t, err)
	placed, out := placedOf(p), []int(nil)
	for i := range jobs {
		out = append(out, placed[fmt.Sprintf("job-%d", i)])
	}
	return out
}

// A group of one pod is nothing else than the pod. With a priority of its own it takes part in the same order as before,
// so the plan is as good: at the highest priority at which they differ, it places no fewer pods.
func TestAGroupOfOnePodIsAPod(t *testing.T) {
	var worse []string
	n, waits := seedsOfLaws(200), 0
	for seed := range uint64(n) {
		c := drawContended(seed)
		at := int(seed) % len(c.jobs)
		c.jobs[at] = c.jobs[at][:1]
		c.groups[at].Minimum = min(c.groups[at].Minimum, 1)
		alone, grouped := c.plan(t, len(c.jobs), nil), c.plan(t, len(c.jobs), c.groups[at:at+1])
		if grouped[at] == 0 {
			waits++
		}
		if slices.Compare(grouped, alone) < 0 {
			worse = append(worse, fmt.Sprintf("seed %d: job %d: %v without and %v with the group", seed, at, alone, grouped))
		}
	}
	assert.Empty(t, worse, strings.Join(worse, "\n"))
	assert.Positive(t, waits)
}

// Whoever comes later takes nothing from those of higher priority: beside further jobs of lower priority, as groups or not,
// these place as much. The search has limits and misses a better plan in less than one cluster of 200.
func TestLowerPrioritiesTakeNothing(t *testing.T) {
	n := seedsOfLaws(120)
	for name, as := range map[string]func([]gang.Group) []gang.Group{
		"groups":            func(all []gang.Group) []gang.Group { return all },
		"pods":              func([]gang.Group) []gang.Group { return nil },
		"groups among pods": func(all []gang.Group) []gang.Group { return all[:1] },
		"pods among groups": func(all []gang.Group) []gang.Group { return all[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			var worse []string
			for seed := range uint64(n) {
				c := drawContended(seed)
				beside := c.plan(t, len(c.jobs), as(c.groups))
				for jobs := 1; jobs < len(c.jobs); jobs++ {
					if alone := c.plan(t, jobs, as(c.groups[:jobs])); slices.Compare(beside[:jobs], alone) < 0 {
						worse = append(worse, fmt.Sprintf("seed %d: %v become %v", seed, alone, beside))
						break
					}
				}
			}
			assert.LessOrEqual(t, len(worse), n/200, strings.Join(worse, "\n"))
		})
	}
}

// seedsOfLaws is how many clusters are drawn: a third in short tests, 400 or more in long ones.
func seedsOfLaws(usual int) int {
	if testing.Short() {
		return usual / 3
	}
	if parts, err := strconv.Atoi(os.Getenv("JOINERY_LONG")); err == nil {
		return max(usual, 400/parts)
	}
	return usual
}

// A group whose nodes must share a label that none of them can have waits, and the reason names the label.
func TestAKeyThatNoNodeHasIsNamed(t *testing.T) {
	for _, values := range []int{0, 2} {
		for _, pods := range []int{1, 3} {
			groups := jobs("train")
			groups[0].Key, groups[0].Values = "example.com/rack", values
			node := standing("old", map[string]string{corev1.LabelTopologyZone: "a"}, limited(0, "a").Types[0].Capacity)
			for what, s := range map[string]scheduling.Snapshot{
				"a pool":            {Pools: []scheduling.Pool{limited(0, "a")}},
				"a node":            {Nodes: []*corev1.Node{node}},
				"a node and a pool": {Nodes: []*corev1.Node{node}, Pools: []scheduling.Pool{limited(0, "a")}},
			} {
				s.Pods = job("train", pods, "1")
				p, err := plan.Make(t.Context(), s, &plan.Options{Groups: groups})
				require.NoError(t, err)
				require.Len(t, p.Unplaced(), 1, what)
				for _, r := range p.Unplaced()[0].Reasons() {
					assert.Contains(t, r.Detail, "example.com/rack", what)
				}
			}
		}
	}
}
