package proof

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/internal/toleration"
	"github.com/joinery-sdk/joinery/requirements"
)

const (
	shift = 48 // a price of a resource is rounded to 2^-48 billionths of a dollar per byte
	// mostSearched limits the steps of the search for the cheapest set of nodes. A checker needs no
	// more steps, because it knows the answer.
	mostSearched = 200_000
	// largest is the largest value allowed, so that the sums for a node are exact in 64 bits.
	largest = 1 << 44
)

// prover finds prices of resources for given values, and the bound that they prove.
type prover struct {
	*writer
	placed   []int64
	requires []requirements.Alternatives
	tolerate [][]corev1.Toleration
	allowed  map[string][]bool // by labels and taints, which classes may be on such a node
}

// prove tries several values and keeps the highest bound. It tries the duals of the planner, and
// the requests of each resource, including the number of pods. The requests are better if few nodes
// are needed and one resource makes up most of their price.
func (w *writer) prove(duals []binpack.Price) Bound {
	p := &prover{writer: w, placed: make([]int64, len(w.out.Pods)), allowed: map[string][]bool{}}
	at := map[string]int{}
	for k, c := range w.plan.Problem.Classes {
		p.requires, p.tolerate = append(p.requires, requirements.AnyOf(w.sets[k]...)), append(p.tolerate, c.Template.Spec.Tolerations)
		for _, name := range w.out.Pods[k].Pods {
			at[name] = k
		}
	}
	for _, nodes := range [][]Node{w.out.Nodes, w.out.NewNodes} {
		for _, n := range nodes {
			for _, name := range n.Pods {
				p.placed[at[name]]++
			}
		}
	}
	values := make([]int64, len(duals))
	for i, dual := range duals {
		values[i] = int64(dual)
	}
	best := p.try(values)
	for r := range w.out.Resources {
		for i := range values {
			values[i] = w.out.Pods[i].Requests[r]
		}
		if next := p.try(values); next.CostPerHour > best.CostPerHour {
			best = next
		}
	}
	return best
}

// try finds prices of resources for the values and returns the resulting bound. Values that are too
// large are scaled down.
func (p *prover) try(values []int64) Bound {
	b := Bound{Shift: shift, Values: slices.Clone(values)}
	if most := slices.Max(append(values, 1)); most > largest {
		for i := range b.Values {
			b.Values[i] /= most/largest + 1
		}
	}
	missing := new(big.Int)
	for i, n := range p.placed {
		missing.Add(missing, new(big.Int).Mul(big.NewInt(n), big.NewInt(b.Values[i])))
	}
	for i := range p.out.Nodes {
		n := &p.out.Nodes[i]
		may := p.may(n.Labels, n.Taints)
		prices := p.prices(n.Free, b.Values, may)
		b.Nodes = append(b.Nodes, prices)
		missing.Sub(missing, p.holds(n.Free, b.Values, prices, may))
	}
	var kinds []kind
	given := map[string]*big.Int{}
	for i := range p.out.Types {
		t := &p.out.Types[i]
		prices := make([]*big.Int, len(t.Free))
		for r := range prices {
			prices[r] = new(big.Int)
		}
		pool := &p.out.Pools[t.Pool]
		var useful []int
		for j, o := range t.Offerings {
			if o.Cost < p.out.CostPerHour && (o.Stock == "" || o.Takes <= p.out.Stock[o.Stock]) && !never(t, pool) {
				useful = append(useful, j)
			}
		}
		if len(useful) > 0 {
			any := make([]bool, len(p.placed))
			for _, j := range useful {
				for k, ok := range p.may(t.Offerings[j].Labels, pool.Taints) {
					any[k] = any[k] || ok
				}
			}
			prices = p.prices(t.Free, b.Values, any)
		}
		b.Types = append(b.Types, prices)
		known := map[*bool]*big.Int{}
		for _, j := range useful {
			o := &t.Offerings[j]
			may := p.may(o.Labels, pool.Taints)
			if len(may) == 0 {
				continue
			}
			if known[&may[0]] == nil {
				known[&may[0]] = p.holds(t.Free, b.Values, prices, may)
			}
			value := known[&may[0]]
			switch {
			case o.Stock != "" && o.Cost == 0: // all of it is taken
				if all := new(big.Int).Mul(value, big.NewInt(p.out.Stock[o.Stock]/o.Takes)); given[o.Stock] == nil || all.Cmp(given[o.Stock]) > 0 {
					given[o.Stock] = all
				}
			case value.Sign() > 0:
				kinds = append(kinds, kind{o.Cost, value.Int64()})
			}
		}
	}
	for _, value := range given {
		missing.Sub(missing, value)
	}
	if missing.Sign() > 0 && missing.IsInt64() {
		b.CostPerHour = cheapest(kinds, missing.Int64(), p.out.CostPerHour)
	}
	return b
}

// never reports whether a single node of the type already breaks a limit of its pool.
func never(t *Type, pool *Pool) bool {
	for k, n := range t.Usage {
		if n > pool.Limits[k] {
			return true
		}
	}
	return pool.MaxNodes != nil && *pool.MaxNodes <= 0
}

// may returns which classes the labels and taints of a node allow.
func (p *prover) may(has Labels, taints []Taint) []bool {
	key := fmt.Sprint(has, taints)
	if out, known := p.allowed[key]; known {
		return out
	}
	fixed, open := requirements.Set{}, []string{}
	for name, values := range has {
		if values == nil {
			open = append(open, name)
		} else if with, err := fixed.Intersect(requirements.MustOf(requirements.In(name, values...))); err == nil {
			fixed = with
		}
	}
	out := make([]bool, len(p.requires))
	for k := range out {
		out[k] = p.requires[k].Compatible(fixed, requirements.KeysOf(open...)) && !slices.ContainsFunc(taints, func(t Taint) bool {
			return t.Effect != string(corev1.TaintEffectPreferNoSchedule) &&
				!toleration.Covers(p.tolerate[k], corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
		})
	}
	p.allowed[key] = out
	return out
}

// copies returns an upper bound of the number of placed pods of a class on one node.
func (p *prover) copies(class int, free []int64) int64 {
	one, n := &p.out.Pods[class], p.placed[class]
	if one.Apart != "" {
		n = min(n, p.out.Apart[one.Apart])
	}
	for r, size := range one.Requests {
		if size > 0 {
			n = min(n, free[r]/size)
		}
	}
	return n
}

// prices returns the rounded duals of the fractional knapsack of a node. Any prices give a valid
// bound; these minimize the value that the node can hold.
func (p *prover) prices(free, values []int64, may []bool) []*big.Int {
	k := knapsack{rows: len(free)}
	for i, ok := range may {
		if n := p.copies(i, free); ok && n > 0 && values[i] > 0 {
			column := make([]float64, len(free))
			for r, size := range p.out.Pods[i].Requests {
				if free[r] > 0 {
					column[r] = float64(size) / float64(free[r])
				}
			}
			k.columns, k.profit, k.most = append(k.columns, column), append(k.profit, float64(values[i])), append(k.most, float64(n))
		}
	}
	out := make([]*big.Int, len(free))
	for r, dual := range k.duals() {
		out[r] = new(big.Int)
		if free[r] > 0 {
			scaled := new(big.Float).SetMantExp(big.NewFloat(dual/float64(free[r])), shift)
			scaled.Int(out[r])
		}
	}
	return out
}

// holds returns an upper bound of the value that a node holds at the given prices.
func (p *prover) holds(free, values []int64, prices []*big.Int, may []bool) *big.Int {
	sum, product := new(big.Int), new(big.Int)
	for r, n := range free {
		sum.Add(sum, product.Mul(prices[r], big.NewInt(n)))
	}
	for i, ok := range may {
		n := p.copies(i, free)
		if !ok || n <= 0 {
			continue
		}
		above := new(big.Int).Lsh(big.NewInt(values[i]), shift)
		for r, size := range p.out.Pods[i].Requests {
			above.Sub(above, product.Mul(prices[r], big.NewInt(size)))
		}
		if above.Sign() > 0 {
			sum.Add(sum, above.Mul(above, big.NewInt(n)))
		}
	}
	return sum.Rsh(sum, shift)
}

// kind is nodes of the same cost, with the largest value that one of them can hold.
type kind struct{ cost, value int64 }

// cheapest returns the least cost of a set of nodes that holds the value, but at most most. If the
// search is too long, it returns a lower bound of that cost.
func cheapest(kinds []kind, missing, most int64) int64 {
	for i := range kinds {
		kinds[i].value = min(kinds[i].value, missing)
	}
	slices.SortFunc(kinds, func(a, b kind) int {
		return cmp.Or(product(a.cost, b.value).Cmp(product(b.cost, a.value)), cmp.Compare(b.value, a.value))
	})
	var useful []kind
	for _, k := range kinds {
		if !slices.ContainsFunc(useful, func(u kind) bool { return u.cost <= k.cost && u.value >= k.value }) {
			useful = append(useful, k)
		}
	}
	if len(useful) == 0 {
		return most
	}
	c := &cover{kinds: useful, best: most, steps: mostSearched}
	if c.from(0, missing, 0); c.steps > 0 {
		return c.best
	}
	return min(most, new(big.Int).Quo(product(missing, useful[0].cost), big.NewInt(useful[0].value)).Int64())
}

func product(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }

// cover searches for the cheapest set of nodes that holds a value. It is branch and bound over a
// knapsack with one row.
type cover struct {
	kinds []kind
	best  int64
	steps int
}

func (c *cover) from(k int, missing, spent int64) {
	if c.steps--; c.steps <= 0 || spent >= c.best {
		return
	}
	if missing <= 0 {
		c.best = spent
		return
	}
	if k == len(c.kinds) || product(missing, c.kinds[k].cost).Cmp(product(c.best-spent, c.kinds[k].value)) >= 0 {
		return
	}
	c.from(k, missing-c.kinds[k].value, spent+c.kinds[k].cost)
	c.from(k+1, missing, spent)
}
