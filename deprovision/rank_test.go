package deprovision_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/deletioncost"
	"github.com/joinery-sdk/joinery/deprovision/drain"
	"github.com/joinery-sdk/joinery/deprovision/drift"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// row is a candidate in one line: what the golden cases compare.
func row(c deprovision.Candidate) string {
	p := c.Parts
	out := fmt.Sprintf("%s: %.3g = node %.3g + pods %.3g + priorities %.3g + deletion costs %.3g + bounds %.3g; protected %d, life %.2g; $%.2f/h, at most $%.2f",
		c.Name, c.Disruption, p.Node, p.Pods, p.Priorities, p.DeletionCosts, p.Bounds, p.DoNotDisrupt, c.Lifetime, c.PricePerHour.Dollars(), c.MostSavings.Dollars())
	for _, b := range c.Blockers {
		out += "; " + string(b.Kind)
	}
	return out
}

func TestRankOfEveryPart(t *testing.T) {
	priority := func(n int32) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.Priority = &n } }
	annotated := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations = map[string]string{key: value} }
	}
	for _, c := range []struct {
		what, node string
		pod        func(*corev1.Pod)
		set        func(*world)
		want       string
	}{
		{what: "nothing but the node", node: "a 4 0", want: "a: 1 = node 1 + pods 0 + priorities 0 + deletion costs 0 + bounds 0; protected 0, life 1; $0.04/h, at most $0.96"},
		{what: "pods", node: "a 4 3", want: "a: 4 = node 1 + pods 3 + priorities 0 + deletion costs 0 + bounds 0; protected 0, life 1; $0.04/h, at most $0.96"},
		{what: "a priority", node: "a 4 2", pod: priority(1 << 24), want: "a: 3.5 = node 1 + pods 2 + priorities 0.5 + deletion costs 0 + bounds 0; protected 0, life 1; $0.04/h, at most $0.96"},
		{what: "a low priority", node: "a 4 2", pod: priority(-1 << 24), want: "a: 2.5 = node 1 + pods 2 + priorities -0.5 + deletion costs 0 + bounds 0; protected 0, life 1; $0.04/h, at most $0.96"},
		{what: "a priority beyond bounds", node: "a 4 1", pod: priority(2_000_000_000), want: "a: 11 = node 1 + pods 1 + priorities 59.6 + deletion costs 0 + bounds -50.6; protected 0, life 1; $0.04/h, at most $0.96"},
		{what: "a pod that asks to go costs nothing, and takes nothing off", node: "a 4 1", pod: priority(-1 << 27), want: "a: 1 = node 1 + pods 1 + priorities -4 + deletion costs 0 + bounds 3; protected 0, life 1; $0.04/h, at most $0.96"},
		{what: "a deletion cost", node: "a 4 1", pod: annotated(eviction.DeletionCost, "67108864"), want: "a: 2.5 = node 1 + pods 1 + priorities 0 + deletion costs 0.5 + bounds 0; protected 0, life 1; $0.04/h, at most $0.96"},
		{what: "a deletion cost that is no number", node: "a 4 1", pod: annotated(eviction.DeletionCost, "dear"), want: "a: 2 = node 1 + pods 1 + priorities 0 + deletion costs 0 + bounds 0; protected 0, life 1; $0.04/h, at most $0.96"},
		{what: "do-not-disrupt", node: "a 4 2", pod: annotated(eviction.DoNotDisrupt, "true"), want: "a: 3 = node 1 + pods 2 + priorities 0 + deletion costs 0 + bounds 0; protected 1, life 1; $0.04/h, at most $0.00; pod-protected"},
		{what: "a lifetime", node: "a 4 1", set: func(w *world) {
			d := 4 * time.Hour
			w.Pools[0].Disruption.ExpireAfter = &d
		}, want: "a: 2 = node 1 + pods 1 + priorities 0 + deletion costs 0 + bounds 0; protected 0, life 0.75; $0.04/h, at most $0.12"},
		{what: "no price", node: "a 4 1", set: func(w *world) { w.Nodes[0].Priced = false }, want: "a: 2 = node 1 + pods 1 + priorities 0 + deletion costs 0 + bounds 0; protected 0, life 1; $0.00/h, at most $0.00; unknown-price"},
		{what: "none of ours", node: "a 4 1", set: func(w *world) { w.Nodes[0].Pool = nil }, want: "a: 2 = node 1 + pods 1 + priorities 0 + deletion costs 0 + bounds 0; protected 0, life 1; $0.04/h, at most $0.00; not-ours"},
	} {
		w := newWorld(c.node)
		if c.pod != nil {
			c.pod(w.Nodes[0].Pods[0])
		}
		if c.set != nil {
			c.set(w)
		}
		got := w.rank(deprovision.RankOptions{})
		require.Len(t, got, 1)
		assert.Equal(t, c.want, row(got[0]), c.what)
		p := got[0].Parts
		assert.InDelta(t, got[0].Disruption, p.Node+p.Pods+p.Priorities+p.DeletionCosts+p.Bounds, 1e-9, c.what)
	}
}

func TestRankOrder(t *testing.T) {
	names := func(list []deprovision.Candidate) string {
		var out []string
		for _, c := range list {
			out = append(out, c.Name)
		}
		return strings.Join(out, " ")
	}
	byName := deprovision.RankerFunc(func(c deprovision.Candidate) float64 { return float64(c.Node.Name()[0]) })
	w := newWorld("dear 9 2", "equal-b 4 3", "equal-a 4 3", "empty 4 0", "blocked 90 1")
	w.node("blocked").Pods[0].Annotations = map[string]string{eviction.DoNotDisrupt: "true"}
	assert.Equal(t, "empty dear equal-a equal-b blocked", names(w.rank(deprovision.RankOptions{})))
	assert.Equal(t, "empty equal-a equal-b dear blocked", names(w.rank(deprovision.RankOptions{Ranker: byName})))
	hour := w.rank(deprovision.RankOptions{Horizon: time.Hour})
	assert.InDelta(t, 0.04, hour[0].MostSavings.Dollars(), 1e-12)
	for i, j := 0, len(w.Nodes)-1; i < j; i, j = i+1, j-1 {
		w.Nodes[i], w.Nodes[j] = w.Nodes[j], w.Nodes[i]
	}
	assert.Equal(t, "empty dear equal-a equal-b blocked", names(w.rank(deprovision.RankOptions{})), "whatever the order of nodes")
}

func TestMistakesInClusters(t *testing.T) {
	_, err := deprovision.Rank(deprovision.Cluster{}, nil)
	require.ErrorIs(t, err, deprovision.ErrNoTime)
	_, err = deprovision.Rank(deprovision.Cluster{Now: now(), Nodes: make([]eligibility.Node, 1)}, nil)
	require.ErrorIs(t, err, deprovision.ErrNoNode)
	list, err := deprovision.Rank(deprovision.Cluster{Now: now()}, nil)
	require.NoError(t, err, "no nodes are no mistake")
	assert.Empty(t, list)
}

func BenchmarkRank5000Nodes(b *testing.B) {
	var nodes []string
	for i := range 5000 {
		nodes = append(nodes, fmt.Sprintf("node-%d 40 20", i))
	}
	w := newWorld(nodes...)
	b.ReportAllocs()
	for b.Loop() {
		list := w.rank(deprovision.RankOptions{})
		if len(list) != 5000 || list[0].Name != "node-0" || list[1].Name != "node-1" || list[2].Name != "node-10" || list[0].Disruption != 21 {
			b.Fatal("a node is missing, or out of order")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms") // 100 are allowed
}

// Ranking needs no simulator: what each node costs, what emptying it costs, and what forbids it.
func ExampleRank() {
	w := newWorld("half 8 4", "spare 8 1", "full 8 8")
	w.node("full").Pods[0].Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
	for _, c := range w.rank(deprovision.RankOptions{}) {
		fmt.Printf("%-5s $%.2f an hour, disruption %.0f, saves at most $%.2f in a day", c.Name, c.PricePerHour.Dollars(), c.Disruption, c.MostSavings.Dollars())
		for _, b := range c.Blockers {
			fmt.Print("; ", b)
		}
		fmt.Println()
	}
	// Output:
	// spare $0.08 an hour, disruption 2, saves at most $1.92 in a day
	// half  $0.08 an hour, disruption 5, saves at most $1.92 in a day
	// full  $0.08 an hour, disruption 9, saves at most $0.00 in a day; shop/full-0: annotation karpenter.sh/do-not-disrupt=true
}

func ExampleDisruptionParts() {
	w := newWorld("a 8 2")
	high := int32(1 << 25)
	w.Nodes[0].Pods[0].Spec.Priority = &high
	c := w.rank(deprovision.RankOptions{})[0]
	fmt.Printf("%.0f = node %.0f + pods %.0f + priorities %.0f\n", c.Disruption, c.Parts.Node, c.Parts.Pods, c.Parts.Priorities)
	// Output: 4 = node 1 + pods 2 + priorities 1
}

func ExampleCluster_Validate() {
	fmt.Println((&deprovision.Cluster{}).Validate())
	// Output: deprovision: Cluster.Now is not set
}

func ExampleMissingPoolError() {
	w := newWorld("a 8 2")
	w.Pools = nil
	fmt.Println(w.Validate())
	// Output: deprovision: node a is of pool "default", which is not in Cluster.Pools
}

// A ranker without state is a function: here cheap nodes go first.
func ExampleRankerFunc() {
	w := newWorld("dear 8 1", "cheap 4 1")
	for _, c := range w.rank(deprovision.RankOptions{Ranker: deprovision.RankerFunc(func(c deprovision.Candidate) float64 { return -c.PricePerHour.Dollars() })}) {
		fmt.Println(c.Name)
	}
	// Output:
	// cheap
	// dear
}

// Without Karpenter six lines rank nodes: eligibility.FromNode reads their labels.
func ExampleRankOptions() {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"team": "red"}}}
	cluster := deprovision.Cluster{Now: now(), Nodes: []eligibility.Node{eligibility.FromNode(node, nil, nil, deprovision.Dollars(0.1))}}
	cluster.Pools = []nodepool.NodePool{*cluster.Nodes[0].Pool}
	keep := eligibility.Rules{Keep: func(n *eligibility.Node) string {
		if n.Node.Labels["team"] == "red" {
			return "team red asked for quiet"
		}
		return ""
	}}
	list, err := deprovision.Rank(cluster, &deprovision.RankOptions{Rules: keep})
	fmt.Println(list[0].Name, list[0].Blockers, err)
	// Output: a [team red asked for quiet] <nil>
}

func ExampleNewCandidate() {
	w := newWorld("a 8 2")
	c := deprovision.NewCandidate(w.node("a"), w.Now)
	fmt.Println(c.Name, c.Disruption, len(c.Pods))
	// Output: a 3 2
}

// Two nodes of one name are a mistake of the caller.
func ExampleDuplicateNodeError() {
	w := newWorld("a 4 0", "a 4 0")
	if e, ok := errors.AsType[*deprovision.DuplicateNodeError](w.Validate()); ok {
		fmt.Println(e.Node, "is there twice")
	}
	// Output: a is there twice
}

func ExamplePriceRanker() {
	fmt.Println(deprovision.PriceRanker{}.Rank(deprovision.Candidate{CostPerHour: deprovision.Dollars(0.4), Disruption: 4}))
	// Output: 0.1
}

// oldest is a ranker of a user's own: the nodes with the least life left go first.
type oldest struct{}

func (oldest) Rank(c deprovision.Candidate) float64 { return -c.RemainingLife.Hours() }

func ExampleRanker() {
	w := newWorld("young 4 1", "old 4 1")
	day := 24 * time.Hour
	w.Pools[0].Disruption.ExpireAfter = &day
	w.node("old").Node.CreationTimestamp.Time = now().Add(-20 * time.Hour)
	fmt.Println(w.rank(deprovision.RankOptions{Ranker: oldest{}})[0].Name)
	// Output: old
}

// A machine that the cloud takes back is known by the name of its node.
func ExampleInterruption() {
	i := deprovision.Interruption{Node: "spot-a", Deadline: now().Add(2 * time.Minute), Why: "spot interruption warning"}
	fmt.Printf("%s goes at %s: %s\n", i.Node, i.Deadline.Format(time.Kitchen), i.Why)
	// Output: spot-a goes at 12:02PM: spot interruption warning
}

// What a cluster may not contain is named, and no function panics on it.
func TestMistakesInAClusterAreNamed(t *testing.T) {
	anyone := func(*corev1.Pod) bool { return true }
	for want, spoil := range map[string]func(*world){
		"deprovision: node a: Pods[1] is nil; leave it out":                                   func(w *world) { w.node("a").Pods[1] = nil },
		"deprovision: PodDisruptionBudgets[0] is nil; leave it out":                           func(w *world) { w.PodDisruptionBudgets = []*policyv1.PodDisruptionBudget{nil} },
		"deprovision: two pools of the cluster have the name default":                         func(w *world) { w.Pools = append(w.Pools, w.Pools[0]) },
		"deprovision: group 0 has no name":                                                    func(w *world) { w.Groups = []eviction.Group{{Member: anyone}} },
		"deprovision: group g: Member is nil; it must say which pods are in the group":        func(w *world) { w.Groups = []eviction.Group{{Name: "g"}} },
		"deprovision: group g: Minimum is -1, must not be negative; 0 means all running pods": func(w *world) { w.Groups = []eviction.Group{{Name: "g", Member: anyone, Minimum: -1}} },
		"deprovision: two groups have the name g, and names must be unique":                   func(w *world) { w.Groups = []eviction.Group{{Name: "g", Member: anyone}, {Name: "g", Member: anyone}} },
	} {
		w := newWorld("a 8 2")
		spoil(w)
		assert.EqualError(t, w.Validate(), want)
		_, err := deprovision.Rank(w.Cluster, nil)
		assert.EqualError(t, err, want)
		_, err = deletioncost.Of(w.Cluster, nil)
		assert.EqualError(t, err, want)
	}
	w := newWorld("a 8 2")
	w.Pools = append(w.Pools, nodepool.NodePool{Name: w.Pools[0].Name, Kind: "Provisioner"})
	assert.NoError(t, w.Validate(), "pools of two kinds may share a name during a migration")
	assert.Empty(t, eviction.NewBudgets([]*policyv1.PodDisruptionBudget{nil}).Of(&corev1.Pod{}))
	assert.True(t, drain.Of([]*corev1.Pod{nil}, eviction.Budgets{}, now(), now()).Done())
	_, known := drift.Hash(nil)
	assert.False(t, known)
}
