package plan

import (
	"cmp"
	"slices"

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
	// empty if pods were Added. Limits of pools and CapacityQuotas hold even if each node of the
	// plan becomes the largest of its alternatives. Those that minValues need come first in this,
	// and then the nodes take turns: each gets the cheapest that what is left allows.
	Alternatives []Alternative
}

// Alternative is another way to buy a node. PricePerHour is in dollars.
type Alternative struct {
	InstanceType       string
	Zone, CapacityType string
	PricePerHour       float64
	// Offering is the requirements of the alternative's offering.
	Offering requirements.Set
	// Shape and ShapeOffering are indexes as those of the node.
	Shape, ShapeOffering int
}

// Valued returns how many of the Alternatives, from the cheapest, the node needs to have as many
// values as its pool's MinValues require.
func (n *NewNode) Valued() int {
	if len(n.Pool.MinValues) == 0 {
		return 0
	}
	own := *n.InstanceType
	own.Offerings = []instancetypes.Offering{n.Offering}
	all := []instancetypes.InstanceType{own}
	for _, a := range n.Alternatives {
		i := slices.IndexFunc(n.Pool.Types, func(t instancetypes.InstanceType) bool { return t.Name == a.InstanceType })
		other := n.Pool.Types[i]
		other.Offerings = []instancetypes.Offering{{Requirements: a.Offering, Price: a.PricePerHour, Available: true}}
		all = append(all, other)
	}
	needed, _ := instancetypes.MinValues(all, n.Open, n.Pool.MinValues)
	return max(needed-1, 0)
}

// NewNodes returns the nodes to buy, by descending weight of the pool, then by its name, and within
// a pool in the order of the plan.
func (p *Plan) NewNodes() []NewNode {
	nodes := p.Result.NewNodes()
	out, lists := make([]NewNode, len(nodes)), p.share(nodes)
	for i, n := range nodes {
		out[i] = NewNode{n, nil}
		for _, c := range lists[i] {
			typ := p.Problem.InstanceType(c.Type)
			o := &typ.Offerings[p.Problem.Shapes[c.Type].Offerings[c.Offering].Index]
			zone, _ := o.Requirements.Get(corev1.LabelTopologyZone).Single()
			capacity, _ := o.Requirements.Get(instancetypes.LabelCapacityType).Single()
			out[i].Alternatives = append(out[i].Alternatives, Alternative{typ.Name, zone, capacity, o.Price, o.Requirements, c.Type, c.Offering})
		}
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

// ObjectiveValue returns what the new nodes count as in the [Objective]; without one it is [Plan.Cost].
func (p *Plan) ObjectiveValue() binpack.Price {
	var sum binpack.Price
	for _, n := range p.Result.NewNodes() {
		o := &p.Instance.Problem().Types[n.Shape].Offerings[n.ShapeOffering]
		sum += cmp.Or(o.Objective, o.Price)
	}
	return sum
}

// share returns the alternatives of each node. All nodes take from the same limits and quotas, each
// the most that one of its choices counts.
func (p *Plan) share(nodes []scheduling.NewNode) [][]binpack.Choice {
	needed := p.Instance.Needed(p.Packing.Layout)
	left := make([][]int64, len(p.Problem.Pools)+1) // by pool, and then of the quotas
	quotas := len(p.Problem.Pools)
	for k := range p.Problem.Pools {
		left[k] = slices.Clone(p.Problem.Pools[k].Left)
	}
	left[quotas] = Budgets(p.Problem)
	counts := func(c binpack.Choice) (limits, quotas []int64) {
		return p.Problem.Shapes[c.Type].Usage, p.Problem.Shapes[c.Type].Offerings[c.Offering].Usage
	}
	most := make([][2][]int64, len(nodes)) // what each node takes so far, of limits and of quotas
	// take lets the node become the choice, if what is left allows that. More says whether it takes
	// more then.
	take := func(i int, c binpack.Choice, always bool) (ok, more bool) {
		pool := p.Problem.Shapes[nodes[i].Shape].Pool
		limits, charges := counts(c)
		for half, usage := range [][]int64{limits, charges} {
			rest := left[[]int{pool, quotas}[half]]
			for k, u := range usage {
				beyond := u - most[i][half][k]
				more = more || beyond > 0
				if beyond > 0 && beyond > rest[k] && !always {
					return false, true
				}
			}
		}
		for half, usage := range [][]int64{limits, charges} {
			rest := left[[]int{pool, quotas}[half]]
			for k, u := range usage {
				if beyond := u - most[i][half][k]; beyond > 0 {
					rest[k], most[i][half][k] = rest[k]-beyond, u
				}
			}
		}
		return true, more
	}
	lists, taken := make([][]binpack.Choice, len(nodes)), make([][]bool, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		own := binpack.Choice{Type: n.Shape, Offering: n.ShapeOffering}
		most[i] = [2][]int64{make([]int64, len(left[p.Problem.Shapes[n.Shape].Pool])), make([]int64, len(left[quotas]))}
		take(i, own, true)
		if n.Bin >= 0 {
			for _, c := range needed[n.Bin] {
				take(i, c, true)
			}
		}
		if n.Added == 0 && n.Bin >= 0 {
			lists[i] = slices.DeleteFunc(slices.Clone(p.Packing.Alternatives[n.Bin]), func(c binpack.Choice) bool {
				typ := p.Problem.InstanceType(c.Type)
				o := &typ.Offerings[p.Problem.Shapes[c.Type].Offerings[c.Offering].Index]
				return c == own || !typ.Requirements.Overlaps(n.Open) || !o.Requirements.Overlaps(n.Open)
			})
		}
		taken[i] = make([]bool, len(lists[i]))
	}
	for progress := true; progress; {
		progress = false
		for i, list := range lists {
			for k, c := range list {
				if taken[i][k] {
					continue
				}
				ok, more := take(i, c, false)
				taken[i][k] = ok
				if progress = progress || ok && more; ok && more { // the others are next
					break
				}
			}
		}
	}
	for i, list := range lists {
		lists[i] = nil
		for k, c := range list {
			if taken[i][k] {
				lists[i] = append(lists[i], c)
			}
		}
	}
	return lists
}
