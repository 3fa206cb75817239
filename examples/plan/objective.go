package plan

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Objective is what a plan should be good at beyond the price list: what counts as the cost of a node where plans are
// compared, and how large and how many nodes may be. Prices that are shown stay prices. nil and the zero Objective mean the
// price alone.
//
// By price alone older families win, for they cost less a core and are slower; a factor on them says how much slower.
type Objective struct {
	// Factors multiply the price of what they match, the first that does.
	Factors []Factor
	// PerNode is added for each node, in dollars an hour: a licence, an agent, an address.
	PerNode float64
	// Interruption is the part of a spot price that is added to it for the trouble of being interrupted, where Interruptions says
	// nothing.
	Interruption float64
	// Interruptions says how often spot capacity is interrupted and what that costs; nil says nothing.
	Interruptions *Interruptions
	// Prices are layers over the price list, the lowest first, such as discounts and savings plans.
	Prices []instancetypes.PriceSource
	// Spread keeps workloads from depending on few spot pools.
	Spread Spread
	// MostCPU is how many vCPUs a node has at most; 0 means any number.
	MostCPU int64
	// MostNodes is how many nodes each pool may have at most, those that exist included; 0 means any number.
	MostNodes int64
}

// Factor says how many times its price an offering is counted.
type Factor struct {
	// Match is asked of the labels of the node that the offering gives.
	Match requirements.Set
	Times float64
}

// Interruptions is what being interrupted costs a spot node in the mean: how often that happens, times what it costs each time.
type Interruptions struct {
	// Cost of one interruption in dollars: work that is lost, capacity that stands idle until it is replaced.
	Cost float64
	// PerHour is how many times an hour a spot node of the type in the zone is interrupted; known is false where there is no rate.
	PerHour func(instanceType, zone string) (rate float64, known bool)
}

// check names everything that no plan can aim at: numbers below zero, and what is no number.
func (o *Objective) check() error {
	if o == nil {
		return nil
	}
	var errs []error
	number := func(what string, v, most float64) {
		if !(v >= 0 && v <= most) { // not a number is neither
			errs = append(errs, fmt.Errorf("plan: objective: %s is %v, want 0 to %v", what, v, most))
		}
	}
	for i, f := range o.Factors {
		number(fmt.Sprintf("factor %d", i), f.Times, maxDollars)
	}
	number("the price of each node", o.PerNode, maxDollars)
	number("the part for interruptions", o.Interruption, maxDollars)
	if o.Interruptions != nil {
		number("the cost of an interruption", o.Interruptions.Cost, maxDollars)
	}
	number("the part of a workload in a spot pool", o.Spread.Workload, 1)
	number("the part of the plan in a spot pool", o.Spread.Plan, 1)
	number("the most vCPUs of a node", float64(o.MostCPU), math.MaxInt64)
	number("the most nodes of a pool", float64(o.MostNodes), math.MaxInt64)
	return errors.Join(errs...)
}

// maxDollars is far above what anybody pays for a node, and low enough that sums stay in integers.
const maxDollars = 1e6

// Narrow takes the types that are too large out of the snapshot's pools, limits their number of nodes, and lays the objective's
// prices over theirs. The snapshot given is not changed.
func (o *Objective) Narrow(s scheduling.Snapshot) scheduling.Snapshot {
	if o == nil || o.MostCPU <= 0 && o.MostNodes <= 0 && len(o.Prices) == 0 {
		return s
	}
	s.Pools = slices.Clone(s.Pools)
	for i := range s.Pools {
		p := &s.Pools[i]
		if len(o.Prices) > 0 {
			p.Types = instancetypes.Reprice(p.Types, o.Prices...)
		}
		if o.MostCPU > 0 {
			p.Types = slices.DeleteFunc(slices.Clone(p.Types), func(t instancetypes.InstanceType) bool { return t.Capacity.Cpu().Value() > o.MostCPU })
		}
		if o.MostNodes > 0 {
			limits := maps.Clone(p.Limits)
			if limits == nil {
				limits = corev1.ResourceList{}
			}
			if q, ok := limits["nodes"]; !ok || q.Value() > o.MostNodes {
				limits["nodes"] = *resource.NewQuantity(o.MostNodes, resource.DecimalSI)
			}
			p.Limits = limits
		}
	}
	return s
}

// counts is what the offering of the shape counts for; 0 where that is its price.
func (o *Objective) counts(p *scheduling.Problem, shape, offering int) binpack.Price {
	if o == nil || len(o.Factors) == 0 && o.PerNode == 0 && o.Interruption == 0 && o.Interruptions == nil {
		return 0
	}
	labels, err := p.NodeLabels(shape, offering)
	if err != nil {
		return 0
	}
	return o.Cost(labels, p.Shapes[shape].Offerings[offering].Price)
}

// Cost is what a node with these labels counts for at a price in dollars an hour.
func (o *Objective) Cost(labels requirements.Set, price float64) binpack.Price {
	if o == nil {
		return Price(price)
	}
	cost := price
	if i := slices.IndexFunc(o.Factors, func(f Factor) bool { return f.Match.Compatible(labels, requirements.Keys{}) }); i >= 0 {
		cost *= o.Factors[i].Times
	}
	if capacityType, _ := labels.Get(instancetypes.LabelCapacityType).Single(); capacityType == instancetypes.CapacityTypeSpot {
		cost += o.trouble(labels, price)
	}
	return Price(cost + o.PerNode)
}

// trouble is what interruptions of a spot node with these labels cost an hour.
func (o *Objective) trouble(labels requirements.Set, price float64) float64 {
	if x := o.Interruptions; x != nil {
		typ, _ := labels.Get(corev1.LabelInstanceTypeStable).Single()
		zone, _ := labels.Get(corev1.LabelTopologyZone).Single()
		if rate, known := x.PerHour(typ, zone); known {
			return rate * x.Cost
		}
	}
	return o.Interruption * price
}
