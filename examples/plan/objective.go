package plan

import (
	"maps"
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
	// Interruption is the part of a spot price that is added to it for the trouble of being interrupted.
	Interruption float64
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

// Narrow takes the types that are too large out of the snapshot's pools, and limits their number of nodes. The snapshot
// given is not changed.
func (o *Objective) Narrow(s scheduling.Snapshot) scheduling.Snapshot {
	if o == nil || o.MostCPU <= 0 && o.MostNodes <= 0 {
		return s
	}
	s.Pools = slices.Clone(s.Pools)
	for i := range s.Pools {
		p := &s.Pools[i]
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
	if o == nil || len(o.Factors) == 0 && o.PerNode == 0 && o.Interruption == 0 {
		return 0
	}
	price := p.Shapes[shape].Offerings[offering].Price
	cost := price
	labels, err := p.NodeLabels(shape, offering)
	if err != nil {
		return 0
	}
	if i := slices.IndexFunc(o.Factors, func(f Factor) bool { return f.Match.Compatible(labels, requirements.Keys{}) }); i >= 0 {
		cost *= o.Factors[i].Times
	}
	if capacityType, _ := labels.Get(instancetypes.LabelCapacityType).Single(); capacityType == instancetypes.CapacityTypeSpot {
		cost += o.Interruption * price
	}
	return Price(cost + o.PerNode)
}
