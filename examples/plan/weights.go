package plan

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/scheduling"
)

// WeightsCost is how much less the same pods would cost, in the unit of [Plan.Cost], if all pools had the same weight. It is 0 where the
// weights are equal already, and where the plan without them is not cheaper or leaves out one of the pods. It costs a plan, unless the
// weights cannot matter.
func (p *Plan) WeightsCost(ctx context.Context) (binpack.Price, error) {
	s := p.Problem.Snapshot()
	differ := slices.ContainsFunc(s.Pools, func(o scheduling.Pool) bool { return o.Weight != s.Pools[0].Weight })
	if !differ || len(p.Result.NewNodes()) == 0 || p.Packing.Objective <= p.Bound.Price {
		return 0, nil
	}
	refused := map[types.NamespacedName]bool{}
	for _, u := range p.Unplaced() {
		for _, pod := range u.Pods {
			refused[nameOf(pod)] = true
		}
	}
	s.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(pod *corev1.Pod) bool { return refused[nameOf(pod)] })
	s.Pools = slices.Clone(s.Pools)
	for i := range s.Pools {
		s.Pools[i].Weight = 0
	}
	level, err := unproved(ctx, s, &p.options)
	if err != nil || len(level.Unplaced()) > 0 {
		return 0, err
	}
	return max(0, p.Cost()-level.Cost()), nil
}
