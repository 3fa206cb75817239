package plan_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/pricing"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Nodes take no more than what is committed, whatever pools and types share it, also if the plan is
// carried out and more pods come. The cost is that of the nodes, and the bound is not above it.
func TestCommitmentsAreNotOverspent(t *testing.T) {
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 7))
		types, names := []instancetypes.InstanceType(nil), []string(nil)
		for i := range 2 + r.IntN(3) {
			cpu, name := 2<<r.IntN(3), fmt.Sprintf("t%d", i)
			price := float64(cpu) * (0.04 + 0.001*float64(r.IntN(30)))
			types, names = append(types, instancetypes.New(name, nil, corev1.ResourceList{"cpu": *resource.NewQuantity(int64(cpu), resource.DecimalSI)},
				instancetypes.Offer("a", "on-demand", price), instancetypes.Offer("b", "on-demand", price))), append(names, name)
		}
		prices, committed := []instancetypes.PriceSource(nil), map[string]float64{}
		for i := range 1 + r.IntN(2) {
			c := pricing.Commitment{Name: fmt.Sprint("plan ", i), PerHour: 0.1 + 0.01*float64(r.IntN(60)), PercentOff: float64(r.IntN(7)) * 10}
			if r.IntN(3) == 0 {
				c.Match = requirements.MustOf(requirements.In(corev1.LabelInstanceTypeStable, names[:2]...))
			}
			prices, committed[c.Name] = append(prices, c), c.PerHour
		}
		s := scheduling.Snapshot{Pools: []scheduling.Pool{{NodePool: nodepool.New("m"), Types: types}, {NodePool: nodepool.New("n"), Types: types}}}
		if r.IntN(2) == 0 {
			s.Pools[1].Weight = 5
			s.Pools[1].Limits = corev1.ResourceList{"cpu": resource.MustParse("8")}
		}
		wave := func(prefix string) (out []*corev1.Pod) {
			for k := range 1 + r.IntN(4) {
				at, spread := names[r.IntN(len(names))], r.IntN(4) == 0
				free, cpu := r.IntN(4) == 0, resource.MustParse(fmt.Sprintf("%dm", 600+100*r.IntN(14)))
				out = append(out, pending(1+r.IntN(4), func(p *corev1.Pod) {
					app := fmt.Sprint(prefix, k)
					p.Name, p.Labels = app+p.Name, map[string]string{"app": app}
					p.Spec.Containers[0].Resources.Requests["cpu"] = cpu
					if !free {
						p.Spec.NodeSelector = map[string]string{corev1.LabelInstanceTypeStable: at}
					}
					if spread {
						p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}
					}
				})...)
			}
			return out
		}
		s.Pods = wave("first")
		opts := &plan.Options{Objective: &plan.Objective{Prices: prices}}
		spent := map[string]float64{}
		for round := range 2 {
			p, err := plan.Make(t.Context(), s, opts)
			require.NoError(t, err, "seed %d", seed)
			takes, counts, cost := map[string]int{}, map[string]int{}, binpack.Price(0)
			for _, n := range p.NewNodes() {
				cost += plan.Price(n.PricePerHour)
				if o := p.Instance.Problem().Types[n.Shape].Offerings[n.ShapeOffering]; o.Counted {
					takes[o.Reservation], counts[o.Reservation] = takes[o.Reservation]+o.Takes, o.Count
					spent[n.Offering.Commitment] += n.Offering.CommitmentRate
				}
			}
			for name, n := range takes {
				assert.LessOrEqual(t, n, counts[name], "seed %d, round %d: %s", seed, round, name)
			}
			for name, dollars := range spent {
				assert.LessOrEqual(t, dollars, committed[name]+1e-6, "seed %d, round %d: %s", seed, round, name)
			}
			assert.Equal(t, cost, p.Cost(), "seed %d, round %d", seed, round)
			assert.LessOrEqual(t, p.Bound.Price, cost, "seed %d, round %d", seed, round)
			assert.Equal(t, p.Bound.GapPercent == 0, p.Bound.Price == cost, "seed %d, round %d: the gap is %v between %v and %v", seed, round, p.Bound.GapPercent, p.Bound.Price, cost)
			s = p.CarriedOut()
			s.Pods = append(s.Pods, wave("second")...)
			o := p.Options()
			opts = &o
		}
	}
}
