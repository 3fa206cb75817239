package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/report"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// A plan with an objective is the plan of a catalogue with the objective's costs as prices: every
// comparison is made by cost, and the report counts the nodes that are bought.
func TestObjectiveIsAPrice(t *testing.T) {
	spot := requirements.MustParse("karpenter.sh/capacity-type=spot")
	for seed := range 600 {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		s := drawSparse(r)
		o := &plan.Objective{PerNode: 0.05 * float64(r.IntN(3)), Factors: []plan.Factor{{Match: spot, Times: []float64{0.5, 2, 3}[r.IntN(3)]}}}
		dear := s
		dear.Pools = slices.Clone(s.Pools)
		for i := range dear.Pools {
			types := slices.Clone(dear.Pools[i].Types)
			for k := range types {
				types[k].Offerings = slices.Clone(types[k].Offerings)
				for j := range types[k].Offerings {
					x := &types[k].Offerings[j]
					x.Price = o.Cost(x.Requirements, x.Price).Dollars()
				}
			}
			dear.Pools[i].Types = types
		}
		got, want := describe(t, s, o), describe(t, dear, nil)
		require.Equal(t, want, got, "seed %d", seed)
	}
}

// describe plans the snapshot, and returns its nodes, what they count, the bound, and the refusals.
func describe(t *testing.T, s scheduling.Snapshot, o *plan.Objective) string {
	t.Helper()
	p, err := plan.Make(t.Context(), s, &plan.Options{Objective: o})
	require.NoError(t, err)
	out, cost := "", 0.0
	for _, n := range p.Result.NewNodes() {
		out += fmt.Sprintln(n.Name, n.InstanceType.Name, n.Zone, n.CapacityType, len(n.Pods))
		cost += o.Cost(mustLabels(t, p.Problem, n.Shape, n.ShapeOffering), n.PricePerHour).Dollars()
	}
	for _, b := range p.Bindings() {
		out += fmt.Sprintln(b.Pod.Name, b.Node)
	}
	sum := report.Of(p).Summary
	counted := sum.ObjectivePerHour
	if counted == 0 {
		counted = sum.PricePerHour
	}
	assert.InDelta(t, cost, counted, 1e-8, "what the nodes count as")
	assert.GreaterOrEqual(t, counted+1e-8, sum.LowerBoundPerHour)
	return out + fmt.Sprintf("%.6f %.6f", counted, sum.LowerBoundPerHour)
}

func mustLabels(t *testing.T, p *scheduling.Problem, shape, offering int) requirements.Set {
	t.Helper()
	labels, err := p.NodeLabels(shape, offering)
	require.NoError(t, err)
	return labels
}
