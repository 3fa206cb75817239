package plan

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// NewNode is a node to buy, with alternative ways to buy it.
type NewNode struct {
	scheduling.NewNode
	// Alternatives would hold the same pods, cheapest first. The list may be incomplete, and it is
	// empty if pods were Added. No alternative counts more against the limits of its pool or
	// against a CapacityQuota than the planned node does, because other nodes of the plan may use
	// what is left.
	Alternatives []Alternative
}

// Alternative is another way to buy a node. PricePerHour is in dollars.
type Alternative struct {
	InstanceType       string
	Zone, CapacityType string
	PricePerHour       float64
	// Offering is the requirements of the alternative's offering.
	Offering requirements.Set
}

// NewNodes returns the nodes to buy, by descending weight of the pool, then by its name, and within
// a pool in the order of the plan.
func (p *Plan) NewNodes() []NewNode {
	nodes := p.Result.NewNodes()
	out := make([]NewNode, len(nodes))
	for i, n := range nodes {
		out[i] = NewNode{n, p.alternatives(&n)}
	}
	return out
}

// Cost returns the price of the new nodes that hold pods.
func (p *Plan) Cost() binpack.Price {
	var sum binpack.Price
	for _, n := range p.Result.NewNodes() {
		sum += p.Instance.Problem().Types[n.Shape].Offerings[n.ShapeOffering].Price
	}
	return sum
}

// alternatives returns the alternatives that binpack knows, without those that the node's
// Open labels or the limits of its pool rule out. It returns none if pods were added to the node
// after binpack packed it.
func (p *Plan) alternatives(n *scheduling.NewNode) []Alternative {
	var out []Alternative
	if n.Added > 0 {
		return nil
	}
	planned := p.Problem.Shapes[n.Shape].Usage
	charged := func(k int) int64 {
		if usage := p.Problem.Shapes[n.Shape].Offerings[n.ShapeOffering].Usage; usage != nil {
			return usage[k]
		}
		return 0
	}
	for _, c := range p.Packing.Alternatives[n.Bin] {
		if c == (binpack.Choice{Type: n.Shape, Offering: n.ShapeOffering}) {
			continue
		}
		shape := &p.Problem.Shapes[c.Type]
		typ := p.Problem.InstanceType(c.Type)
		offering := typ.Offerings[shape.Offerings[c.Offering].Index]
		larger := exceeds(shape.Usage, func(k int) int64 { return planned[k] }) || exceeds(shape.Offerings[c.Offering].Usage, charged)
		if larger || !typ.Requirements.Overlaps(n.Open) || !offering.Requirements.Overlaps(n.Open) {
			continue
		}
		zone, _ := offering.Requirements.Get(corev1.LabelTopologyZone).Single()
		capacity, _ := offering.Requirements.Get(instancetypes.LabelCapacityType).Single()
		out = append(out, Alternative{typ.Name, zone, capacity, offering.Price, offering.Requirements})
	}
	return out
}
