package whatif_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

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
