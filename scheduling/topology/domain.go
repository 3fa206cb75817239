package topology

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/topology/internal/greedy"
)

// unsold is the price of what cannot be bought.
const unsold = 1e30

// cell is all offerings that no pod of the problem can tell apart by labels: one set of labels, and the sizes to be had.
type cell struct {
	labels requirements.Set
	rooms  [][]int64     // what shapes leave for pods, none covered by another
	unit   []float64     // least price of a unit of each resource
	sizes  []greedy.Size // all that is for sale, where that is asked for
}

// cellsOf groups the offerings, and lists those of each cell where sizes are wanted. It costs a look-up by labels for each,
// which are few where they are only those that pods ask about.
func cellsOf(shapes func(yield func(Shape) bool), sizes bool) []cell {
	var out []cell
	byLabels := map[string]int{}
	var key []byte
	for shape := range shapes {
		key = shape.Labels.AppendKey(key[:0])
		base := len(key)
		for _, o := range shape.Offerings {
			key = o.Labels.AppendKey(key[:base])
			id, ok := byLabels[string(key)]
			if !ok {
				set, err := shape.Labels.Intersect(o.Labels)
				if err != nil {
					continue
				}
				id = len(out)
				byLabels[string(key)] = id
				out = append(out, cell{labels: set, unit: slices.Repeat([]float64{unsold}, len(shape.Room))})
			}
			out[id].add(shape.Room, o.Price)
			if sizes {
				out[id].sizes = append(out[id].sizes, greedy.Size{Room: shape.Room, Price: o.Price, Usage: shape.Usage})
			}
		}
	}
	return out
}

// forBundles are the cells where pods may share a node. Where no pod asks about others they are only made for this.
func (p *Problem) forBundles() []cell {
	if len(p.groups) > 0 || p.shapes == nil {
		return p.cells
	}
	p.memo.once.Do(func() { p.memo.cells = cellsOf(p.shapes, false) })
	return p.memo.cells
}

func (c *cell) add(room []int64, price float64) {
	for r, v := range room {
		if v > 0 {
			c.unit[r] = min(c.unit[r], price/float64(v))
		}
	}
	c.rooms = greedy.Widen(c.rooms, room)
}

// holds reports whether some shape of the cell has room for one pod.
func (c *cell) holds(requests []int64) bool {
	return slices.ContainsFunc(c.rooms, func(room []int64) bool { return fits(requests, room) })
}

// price estimates what one pod costs in the cell: its dearest resource at the least price.
func (c *cell) price(requests []int64) float64 {
	most := 0.0
	for r, q := range requests {
		if q > 0 {
			most = max(most, float64(q)*c.unit[r])
		}
	}
	return most
}

// Domain is a combination of values of label keys that pods of a class can be placed in.
type Domain struct {
	// Values are by the keys that matter to the class, in their order; there are none where no key does. A spread's node
	// filter is a key too, with the values "in" and "out". Nodes without a label by which others count the pods have the
	// value "(none)".
	Values []string

	price float64 // an estimate for one pod, unsold where no new node can be there
	room  int     // how many pods of the class existing nodes there could hold
}

// String joins the values.
func (d Domain) String() string { return strings.Join(d.Values, "/") }

// absent is the value of an optional key on nodes that lack it. It is no valid label value and cannot meet one.
const absent = "(none)"

// domains enumerates where one pod of the part can be, by the values of its keys.
func (p *Problem) domains(pt *Part) []Domain {
	required, requests := pt.st.required, p.classes[pt.Class].Requests
	byText := map[string]int{}
	var out []Domain
	at := func(values []string) *Domain {
		text := strings.Join(values, "\x00")
		id, ok := byText[text]
		if !ok {
			id = len(out)
			byText[text] = id
			out = append(out, Domain{Values: slices.Clone(values), price: unsold})
		}
		return &out[id]
	}
	for i := range p.cells {
		c := &p.cells[i]
		if !required.Compatible(c.labels, requirements.Keys{}) || !c.holds(requests) {
			continue
		}
		price := c.price(requests)
		p.combinations(c.labels, required, pt.keys, pt.optional, func(values []string) {
			d := at(values)
			d.price = min(d.price, price)
		})
	}
	for i := range p.nodes {
		node := &p.nodes[i]
		n := copies(node.Free, p.onNode(&p.classes[pt.Class], i))
		if n == 0 || !required.Compatible(node.Labels, requirements.Keys{}) {
			continue
		}
		p.combinations(node.Labels, required, pt.keys, pt.optional, func(values []string) { at(values).room += n })
	}
	slices.SortFunc(out, func(a, b Domain) int { return slices.Compare(a.Values, b.Values) })
	return out
}

// copies is how many pods fit into what is free.
func copies(free, requests []int64) int {
	n := 1 << 30
	for r, q := range requests {
		if q > 0 {
			n = min(n, int(max(0, free[r])/q))
		}
	}
	return n
}

// combinations yields every combination of values that a node with these labels may have for the keys and the pod
// accepts. A key with infinitely many values takes those that the pod asks for; a node without one of the keys is
// outside of every domain, unless the key is optional.
func (p *Problem) combinations(labels requirements.Set, required requirements.Alternatives, keys []string, optional []bool, yield func([]string)) {
	values := make([]string, len(keys))
	var walk func(int)
	walk = func(k int) {
		if k == len(keys) {
			yield(values)
			return
		}
		if f := p.filters[keys[k]]; f != nil {
			for _, v := range f.values(labels, required) {
				values[k] = v
				walk(k + 1)
			}
			return
		}
		r := labels.Get(keys[k])
		if optional[k] && !labels.Has(keys[k]) {
			values[k] = absent
			walk(k + 1)
			return
		}
		if !labels.Has(keys[k]) || r.AllowsAbsent() {
			return
		}
		var list []string
		for alt := range required.All() {
			some, finite := r.Intersect(alt.Get(keys[k])).Values()
			switch {
			case !finite:
			case list == nil:
				list = some
			default: // alternatives may share values
				list = slices.Concat(list, some)
				slices.Sort(list)
				list = slices.Compact(list)
			}
		}
		for _, v := range list {
			values[k] = v
			walk(k + 1)
		}
	}
	walk(0)
}

// universe is the values of a group's key on nodes that may be bought, and on nodes that exist, as far as the group's
// filter lets them count.
type universe struct{ offered, standing []string }

func (p *Problem) universeOf(id int) universe {
	g := p.groups[id]
	offered, standing := map[string]bool{}, map[string]bool{}
	anything := requirements.AnyOf(requirements.Set{})
	for i := range p.cells {
		c := &p.cells[i]
		if g.filter.passes(c.labels) {
			p.combinations(c.labels, anything, []string{g.key}, []bool{false}, func(v []string) { offered[v[0]] = true })
		}
	}
	for i := range p.nodes {
		if v, ok := p.nodes[i].value(g.key); ok && g.filter.passes(p.nodes[i].Labels) {
			standing[v] = true
		}
	}
	return universe{sortedTrue(offered), sortedTrue(standing)}
}

// universe lists the values that the group's spreads count, those that are closed to new nodes left out. It may list more
// than the plan will have, which only makes spreads stricter.
func (p *Problem) universe(id int, f Facts) []string {
	g := p.groups[id]
	u := p.memo.universe(id, func() universe { return p.universeOf(id) })
	if len(f.closed) == 0 && len(u.standing) == 0 {
		return u.offered
	}
	open := slices.DeleteFunc(slices.Clone(u.offered), func(v string) bool {
		return f.closed[p.closedKey(id, v)] || f.closed[closedKey{g.key, v, ""}]
	})
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(open, u.standing))))
}

// mostStanding is how many existing nodes a spread by the hostname may count to be settled over them: each is a domain, and
// who spreads looks at all of them for every pod.
const mostStanding = 64

// standingOnly are the groups on the hostname that spreads count on existing nodes only, for no node to buy passes their filter.
// Elsewhere a new node may be empty, so the least count is 0 and no node may have more pods than the skew. Here it rises
// with the nodes, as in every zone: their hostnames are domains like others, and pods there are tied to their node.
func (p *Problem) standingOnly() map[int]bool {
	out := map[int]bool{}
	for i := range p.classes {
		for _, sp := range p.classes[i].spreads {
			if _, known := out[sp.group]; p.groups[sp.group].hostname && !known {
				out[sp.group] = p.onlyStanding(p.groups[sp.group].filter)
			}
		}
	}
	return out
}

// onlyStanding reports whether the filter passes existing nodes and no others, and not too many of them.
func (p *Problem) onlyStanding(f *nodeFilter) bool {
	if slices.ContainsFunc(p.cells, func(c cell) bool { return f.passes(c.labels) }) {
		return false
	}
	n := 0
	for i := range p.nodes {
		if f.passes(p.nodes[i].Labels) {
			n++
		}
	}
	return n <= mostStanding
}

// inNode reports whether what looks at the group acts within one node, so that the packer sees to it.
func (p *Problem) inNode(group int) bool { return p.groups[group].hostname && !p.standing[group] }

// standsOn is the existing node that the domain is about, -1 if it is about none.
func (p *Problem) standsOn(pt *Part, d int) int {
	at := slices.Index(pt.keys, corev1.LabelHostname)
	if at < 0 || pt.Domains[d].Values[at] == absent {
		return -1
	}
	return slices.IndexFunc(p.nodes, func(n Node) bool {
		name, ok := n.value(corev1.LabelHostname)
		return ok && name == pt.Domains[d].Values[at]
	})
}
