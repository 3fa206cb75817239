package whatif_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/whatif"
)

// asking asks a question of its own before it answers.
type asking struct {
	t       *testing.T
	cluster *whatif.Cluster
	pod     *corev1.Pod
	answer  []whatif.Purchase
}

func (a asking) Buy(o whatif.Order) []whatif.Purchase {
	one := a.cluster.Ask(a.t.Context(), whatif.Question{Remove: []string{"n1"}, Pods: []*corev1.Pod{a.pod}, MaxNodes: 1})
	if !one.OK() || !o.Suits(0, 0, 0) {
		return nil
	}
	return a.answer
}

func TestABuyerMayAsk(t *testing.T) {
	pods := []*corev1.Pod{pod("a", "n1", "7"), pod("b", "n1", "7")}
	c := compile(t, []*corev1.Node{node("n1", "zone-a", "16")}, pods...)
	eight := -1
	for i := range c.Problem().Shapes {
		if c.Problem().InstanceType(i).Capacity.Cpu().Value() == 8 {
			eight = i
		}
	}
	require.GreaterOrEqual(t, eight, 0)
	one := whatif.Purchase{Shape: eight, Pods: []whatif.LotShare{{Lot: 0, Count: 1}}}
	ask := func(answer ...whatif.Purchase) whatif.Answer {
		return c.Ask(t.Context(), whatif.Question{Remove: []string{"n1"}, Pods: pods, MaxNodes: 3, Buyer: asking{t, c, pods[0], answer}})
	}
	a := ask(one, one)
	require.True(t, a.OK(), a.Why)
	require.Len(t, a.Bought, 2)

	// An answer that does not add up is named, and the next question is answered as if it had never been asked.
	for want, bad := range map[string]whatif.LotShare{
		"the buyer's purchase 0 takes 3 of the pods of lot 0, which has 2 left":  {Lot: 0, Count: 3},
		"the buyer's purchase 0 takes -1 of the pods of lot 0, which has 2 left": {Lot: 0, Count: -1},
		"the buyer's purchase 0 names lot 1 of 1":                                {Lot: 1, Count: 1},
		"the buyer's purchase 0 names lot -1 of 1":                               {Lot: -1, Count: 1},
	} {
		a := ask(whatif.Purchase{Shape: eight, Pods: []whatif.LotShare{bad}})
		assert.False(t, a.OK())
		assert.Equal(t, want, a.Why)
		again := ask(one, one)
		assert.True(t, again.OK())
	}
}

// offering buys a node of 4 CPUs for each pod, or whatever it is told for open nodes.
type offering struct {
	four  int
	open  *[]whatif.Order
	tells func(o whatif.Order) []whatif.Purchase
}

func (x offering) Buy(o whatif.Order) []whatif.Purchase {
	if *x.open = append(*x.open, o); len(o.Open) > 0 {
		return x.tells(o)
	}
	var out []whatif.Purchase
	for l, lot := range o.Lots {
		for range lot.Count {
			out = append(out, whatif.Purchase{Shape: x.four, Pods: []whatif.LotShare{{Lot: l, Count: 1}}})
		}
	}
	return out
}

// Only a thorough question lists open nodes. Whatever a buyer makes of them, the answer costs no more than without, each pod has one place, and pods
// that a node of theirs refuses go elsewhere or keep the first answer.
func TestBuyersDividePods(t *testing.T) {
	loner := func(name string) *corev1.Pod { return pod(name, "n1", "1", apart) }
	pods := []*corev1.Pod{pod("a", "n1", "4", labelled("db")), pod("b", "n1", "3", labelled("db")), pod("c", "n1", "2", labelled("db")), loner("d")}
	shut := node("n3", "z1", "64")
	shut.Spec.Unschedulable = true
	c := compile(t, []*corev1.Node{node("n1", "z1", "32"), node("n2", "z1", "6"), shut}, append([]*corev1.Pod{pod("f", "n2", "1", labelled("db"))}, pods...)...)
	sized := func(cpu int64) int {
		return slices.IndexFunc(c.Problem().Shapes, func(s scheduling.Shape) bool { return s.Free[0] == cpu })
	}
	four, two := sized(4000), sized(2000)
	var orders []whatif.Order
	ask := func(thorough bool, tells func(o whatif.Order) []whatif.Purchase) whatif.Answer {
		orders = nil
		a := c.Ask(t.Context(), whatif.Question{Remove: []string{"n1"}, Pods: pods, MaxNodes: 4, Buyer: offering{four, &orders, tells}, Thorough: thorough})
		require.True(t, a.OK(), a.Why)
		require.Len(t, a.Placements, len(pods))
		seen := map[*corev1.Pod]bool{}
		for _, p := range a.Placements {
			seen[p.Pod] = true
		}
		require.Len(t, seen, len(pods))
		return a
	}
	first := ask(false, nil)
	for _, o := range orders {
		require.Empty(t, o.Open)
		require.False(t, o.Lots[0].Anywhere)
	}
	share := func(lots ...int) (out []whatif.LotShare) {
		for _, l := range lots {
			out = append(out, whatif.LotShare{Lot: l, Count: 1})
		}
		return out
	}
	best := ask(true, func(o whatif.Order) []whatif.Purchase {
		return []whatif.Purchase{{Node: "n2", Pods: share(1, 2)}, {Shape: four, Pods: share(0)}, {Shape: two, Pods: share(3)}, {Node: "n2", Pods: nil}}
	})
	require.Less(t, best.Price, first.Price)
	require.Contains(t, places(best), "b>n2")
	require.Contains(t, places(best), "c>n2")
	last := orders[len(orders)-1]
	require.Len(t, last.Open, 2, "no removed node")
	require.True(t, last.Suits(0, -1, 0))
	require.False(t, last.Suits(0, -1, 1), "its taint")
	require.Equal(t, "n2", last.Open[0].Name)
	require.Equal(t, -1, last.Open[0].Shape)
	require.Equal(t, int64(5000), last.Open[0].Free[0])
	require.Equal(t, "n2", last.Open[0].Labels[corev1.LabelHostname])
	require.Greater(t, last.MaxPrice, best.Price)
	for _, l := range last.Lots {
		require.True(t, l.Anywhere)
	}
	for name, tells := range map[string]func(o whatif.Order) []whatif.Purchase{
		"nothing":         func(whatif.Order) []whatif.Purchase { return nil },
		"an unknown node": func(whatif.Order) []whatif.Purchase { return []whatif.Purchase{{Node: "n9", Pods: share(0)}} },
		"a cordoned node": func(whatif.Order) []whatif.Purchase { return []whatif.Purchase{{Node: "n3", Pods: share(0, 1, 2, 3)}} },
		"too many pods": func(whatif.Order) []whatif.Purchase {
			return []whatif.Purchase{{Node: "n2", Pods: []whatif.LotShare{{Lot: 0, Count: 9}}}}
		},
		"more than fit there": func(whatif.Order) []whatif.Purchase { return []whatif.Purchase{{Node: "n2", Pods: share(0, 1, 2, 3)}} },
	} {
		a := ask(true, tells)
		require.Equal(t, first.Price, a.Price, name)
		require.Equal(t, places(first), places(a), name)
	}
}

// panicking has a mistake in it.
type panicking struct{}

func (panicking) Buy(whatif.Order) []whatif.Purchase { panic("mistake") }

// After a buyer has panicked, questions are answered as if it had never been asked.
func TestABuyerMayPanic(t *testing.T) {
	pods := []*corev1.Pod{pod("a", "n1", "7"), pod("b", "n1", "7")}
	c := compile(t, []*corev1.Node{node("n1", "zone-a", "16"), node("n2", "zone-a", "7")}, pods...)
	free := c.Free()
	require.PanicsWithValue(t, "mistake", func() {
		c.Ask(t.Context(), whatif.Question{Remove: []string{"n1"}, Pods: pods, MaxNodes: 3, Buyer: panicking{}})
	})
	require.Equal(t, free, c.Free())
	a := c.Ask(t.Context(), whatif.Question{Remove: []string{"n2"}})
	require.True(t, a.OK(), a.Why)
}

func TestDuplicatesAreRefused(t *testing.T) {
	_, err := whatif.Compile(snapshot([]*corev1.Node{node("n1", "zone-a", "4"), node("n1", "zone-a", "4")}), nil)
	require.ErrorContains(t, err, "node n1: is listed more than once")
	_, err = whatif.Compile(snapshot([]*corev1.Node{node("n1", "zone-a", "4")}, pod("a", "n1", "1"), pod("a", "n1", "1")), nil)
	require.ErrorContains(t, err, "pod shop/a: is listed more than once")
}
