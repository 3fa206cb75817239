package plan

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// NewNode is a node to buy, with the other ways to buy it.
type NewNode struct {
	scheduling.NewNode
	// Alternatives would hold the same pods, cheapest first. There may be others: where pods were Added, none are listed. None counts
	// more against the limits of its pool than what was planned, for the plan has given what is left of them to others.
	Alternatives []Alternative
}

// Alternative is another way to buy a node.
type Alternative struct {
	InstanceType       string
	Zone, CapacityType string
	PricePerHour       float64
	// Offering are the requirements of its offering.
	Offering requirements.Set
}

// NewNodes lists the nodes to buy: heaviest pool first, then by pool's name, within a pool in the order of the plan.
func (p *Plan) NewNodes() []NewNode {
	nodes := p.Result.NewNodes()
	out := make([]NewNode, len(nodes))
	for i, n := range nodes {
		out[i] = NewNode{n, p.alternatives(&n)}
	}
	return out
}

// Cost is the price of the nodes that hold pods.
func (p *Plan) Cost() binpack.Price {
	var sum binpack.Price
	for _, n := range p.Result.NewNodes() {
		sum += p.Instance.Problem().Types[n.Shape].Offerings[n.ShapeOffering].Price
	}
	return sum
}

// alternatives are those that binpack knows, without what the open labels of the node or the limits of its pool rule out. For pods
// that were added to what binpack packed it knows none.
func (p *Plan) alternatives(n *scheduling.NewNode) []Alternative {
	var out []Alternative
	if n.Added > 0 {
		return nil
	}
	planned := p.Problem.Shapes[n.Shape].Usage
	for _, c := range p.Packing.Alternatives[n.Bin] {
		if c == (binpack.Choice{Type: n.Shape, Offering: n.ShapeOffering}) {
			continue
		}
		shape := &p.Problem.Shapes[c.Type]
		typ := p.Problem.InstanceType(c.Type)
		offering := typ.Offerings[shape.Offerings[c.Offering].Index]
		larger := false
		for i, used := range shape.Usage {
			larger = larger || used > planned[i]
		}
		if larger || !typ.Requirements.Overlaps(n.Open) || !offering.Requirements.Overlaps(n.Open) {
			continue
		}
		zone, _ := offering.Requirements.Get(corev1.LabelTopologyZone).Single()
		capacity, _ := offering.Requirements.Get(instancetypes.LabelCapacityType).Single()
		out = append(out, Alternative{typ.Name, zone, capacity, offering.Price, offering.Requirements})
	}
	return out
}
