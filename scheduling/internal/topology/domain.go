package topology

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
)

// unsold is the price of a domain without offerings.
const unsold = 1e30

// cell is all offerings with one set of labels, without those for which another one has at least
// the capacity at no higher price.
type cell struct {
	labels requirements.Set
	free   [][]int64 // capacities of shapes for pods, none of them dominated
	offers []offer
}

// offer is a capacity and its price.
type offer struct {
	free  []int64
	price float64
}

// cellsOf groups the offerings by labels. It costs one text of labels for each.
func cellsOf(shapes func(yield func(Shape) bool)) []cell {
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
				out = append(out, cell{labels: set})
			}
			out[id].add(shape.Free, o.Price)
		}
	}
	return out
}

func (c *cell) add(free []int64, price float64) {
	beats := func(a, b offer) bool { return a.price <= b.price && fits(b.free, a.free) }
	own := offer{free, price}
	if !slices.ContainsFunc(c.offers, func(o offer) bool { return beats(o, own) }) {
		c.offers = append(slices.DeleteFunc(c.offers, func(o offer) bool { return beats(own, o) }), own)
	}
	if !c.holds(free) {
		c.free = append(slices.DeleteFunc(c.free, func(have []int64) bool { return fits(have, free) }), free)
	}
}

// holds reports whether some shape of the cell can hold the requests.
func (c *cell) holds(requests []int64) bool {
	return slices.ContainsFunc(c.free, func(free []int64) bool { return fits(requests, free) })
}

// price estimates what one pod costs in the cell: the least share of a node that holds it, by the
// resource of which it takes most. It is unsold if no node does.
func (c *cell) price(requests []int64) float64 {
	least := unsold
	for _, o := range c.offers {
		if !fits(requests, o.free) {
			continue
		}
		most := 0.0
		for r, q := range requests {
			if q > 0 {
				most = max(most, float64(q)/float64(o.free[r]))
			}
		}
		least = min(least, most*o.price)
	}
	return least
}

// together returns what one of n pods costs at least if all of them are in the cell, on whole nodes
// of one type.
func (c *cell) together(requests []int64, n int) float64 {
	least := unsold
	for _, o := range c.offers {
		if k := copies(o.free, requests); k > 0 {
			least = min(least, float64((n+k-1)/k)*o.price/float64(n))
		}
	}
	return least
}

// Domain is a combination of values of label keys that pods of a class can be placed in.
type Domain struct {
	// Values are by the keys that matter to the class, in their order. There are none if no key
	// does. A spread's node filter is a key too, with the values "in" and "out". Nodes without a
	// label by which others count the pods have the value "(none)".
	Values []string

	at    []int32 // the values by key of the index
	price float64 // an estimate for one pod; unsold without offerings
	free  int     // pods of the class that its existing nodes could hold
	nodes []int   // existing nodes that could hold some
	node  int     // the existing node whose hostname is a value, -1 for none
	fresh []value // values that no node has, except for the Chosen ones
	text  string  // the values joined

	required func() requirements.Alternatives // what labels of a node there must satisfy to hold a pod; computed once
}

// String joins the values.
func (d Domain) String() string { return d.text }

// value is a value of a key of the index.
type value struct{ key, id int32 }

// absent is the value of an optional key on nodes that lack it. It is not a valid label value, so
// it meets no label.
const absent = "(none)"

// key is a key of a class's domains.
type key struct {
	name     string
	id       int32 // of the label; -1 for a filter
	filter   int   // index into Problem.filters; -1 for a label
	optional bool  // nodes without the label also suit the pods
}

// domains returns the domains of a class, sorted by their values.
func (p *Problem) domains(rc *relaxed) []Domain {
	required, requests := rc.at.required, p.classes[rc.Class].Requests
	byText := map[string]int{}
	var out []Domain
	at := func(values []string) *Domain {
		text := strings.Join(values, "\x00")
		id, ok := byText[text]
		if !ok {
			id = len(out)
			byText[text] = id
			out = append(out, Domain{Values: slices.Clone(values), price: unsold, node: -1})
		}
		return &out[id]
	}
	cells := p.cells()
	for i := range cells {
		c := &cells[i]
		if !required.Compatible(c.labels, requirements.Keys{}) || !c.holds(requests) {
			continue
		}
		price := c.price(requests)
		if rc.together {
			price = c.together(requests, p.classes[rc.Class].Count)
		}
		p.combinations(c.labels, required, rc.keys, p.openValues, func(values []string) {
			d := at(values)
			d.price = min(d.price, price)
		})
	}
	byHost := slices.IndexFunc(rc.keys, func(k key) bool { return k.name == corev1.LabelHostname })
	for i := range p.nodes {
		node := &p.nodes[i]
		n := copies(node.Free, p.onNode(&p.classes[rc.Class], i))
		if n == 0 || !required.Compatible(node.Labels, requirements.Keys{}) {
			continue
		}
		p.combinations(node.Labels, required, rc.keys, onlyChosen, func(values []string) {
			d := at(values)
			d.free += n
			d.nodes = append(d.nodes, i)
			if byHost >= 0 && values[byHost] != absent {
				d.node = i
			}
		})
	}
	slices.SortFunc(out, func(a, b Domain) int { return slices.Compare(a.Values, b.Values) })
	known := p.sets(rc.keys)
	for i := range out {
		d := &out[i]
		d.required = sync.OnceValue(func() requirements.Alternatives { return required.Intersect(p.pin(rc.keys, d, nil)) })
		d.text = strings.Join(d.Values, "/")
		d.at = slices.Repeat([]int32{interpod.Absent}, len(p.index.Keys()))
		for k, key := range rc.keys {
			if key.filter < 0 && d.Values[k] != absent {
				d.at[key.id] = p.values.Of(key.id, d.Values[k])
				if known[k] != nil && !known[k][d.Values[k]] {
					d.fresh = append(d.fresh, value{key.id, d.at[key.id]})
				}
			}
		}
	}
	return out
}

// sets returns the values of each key that nodes have or that are always sold; nil for a key
// without invented ones.
func (p *Problem) sets(keys []key) []map[string]bool {
	out := make([]map[string]bool, len(keys))
	for i := range keys {
		open := false
		for _, c := range p.cells() {
			if _, finite := c.labels.Get(keys[i].name).Values(); keys[i].filter < 0 && c.labels.Has(keys[i].name) && !finite {
				open = true
				break
			}
		}
		if !open {
			continue
		}
		out[i] = maps.Clone(p.standing(keys[i].name))
		for _, c := range p.cells() {
			if r := c.labels.Get(keys[i].name); c.labels.Has(keys[i].name) {
				some, finite := r.Values()
				if !finite {
					some = onlyChosen(r)
				}
				for _, v := range some {
					out[i][v] = true
				}
			}
		}
	}
	return out
}

// nodesIn returns the existing nodes of a domain that could hold a pod of the class, ascending.
func (p *Problem) nodesIn(rc *RelaxedClass, d int) []int {
	if len(rc.keys) == 0 {
		return p.suitable(rc.relaxed)
	}
	return rc.Domains[d].nodes
}

// suitable returns the existing nodes that could hold a pod of the class.
func (p *Problem) suitable(rc *relaxed) []int {
	return p.memo.nodes.Of([2]int{rc.Class, rc.Level}, func() []int {
		var out []int
		for i := range p.nodes {
			if n := &p.nodes[i]; copies(n.Free, p.onNode(&p.classes[rc.Class], i)) > 0 && rc.at.required.Compatible(n.Labels, requirements.Keys{}) {
				out = append(out, i)
			}
		}
		return out
	})
}

// copies returns how many pods fit into what is free.
func copies(free, requests []int64) int {
	n := unbounded
	for r, q := range requests {
		if q > 0 {
			n = min(n, int(max(0, free[r])/q))
		}
	}
	return n
}

// combinations yields the combinations of values of the keys that a node with these labels may have
// and the pod accepts. For a key with infinitely many values, open gives them. A node without one
// of the keys is in no domain, unless the key is optional.
func (p *Problem) combinations(labels requirements.Set, required requirements.Alternatives, keys []key, open func(requirements.Requirement) []string, yield func([]string)) {
	values := make([]string, len(keys))
	var walk func(int)
	walk = func(k int) {
		if k == len(keys) {
			yield(values)
			return
		}
		each := func(list []string) {
			for _, v := range list {
				values[k] = v
				walk(k + 1)
			}
		}
		if f := keys[k].filter; f >= 0 {
			each(p.filters[f].values(labels, required))
			return
		}
		name := keys[k].name
		if !labels.Has(name) {
			if keys[k].optional {
				each([]string{absent})
			}
			return
		}
		r, lacking := labels.Get(name), false
		var list []string
		for alt := range required.All() {
			both := r
			if alt.Has(name) {
				both = r.Intersect(alt.Get(name))
			}
			if both.AllowsAbsent() { // a new node has the label only if a pod asks for it
				lacking = true
			} else if some, finite := both.Values(); finite {
				list = append(slices.Clip(list), some...)
			} else {
				list = append(slices.Clip(list), open(both)...)
			}
		}
		if required.Len() > 1 { // alternatives may share values
			list = slices.Compact(slices.Sorted(slices.Values(list)))
		}
		each(list)
		if lacking && keys[k].optional {
			each([]string{absent})
		}
	}
	walk(0)
}

// unasked is the default value of labels such as EC2's tenancy.
const unasked = "default"

// Chosen returns one of the allowed values of a label, always the same: "default" if it is allowed,
// because clouds use it by default, and otherwise the first. It is false if none is allowed.
func Chosen(r requirements.Requirement) (string, bool) {
	if r.Contains(unasked) {
		return unasked, true
	}
	return r.Any()
}

// onlyChosen returns the [Chosen] value alone.
func onlyChosen(r requirements.Requirement) []string {
	if v, ok := Chosen(r); ok {
		return []string{v}
	}
	return nil
}

// mostInvented limits the values of one open label that no node has. Each is a domain, and every
// pod looks at all domains.
const mostInvented = 64

// openValues returns values of an open label for pods to be placed at: the [Chosen] one, those of
// nodes, and one more for each pod, because each pod may have to be alone at its value.
func (p *Problem) openValues(r requirements.Requirement) []string {
	out := onlyChosen(r)
	if len(out) == 0 {
		return nil
	}
	there := map[string]bool{out[0]: true}
	for v := range p.standing(r.Key()) {
		if r.Contains(v) && !there[v] {
			there[v] = true
			out = append(out, v)
		}
	}
	slices.Sort(out[1:])
	pods := 0
	for i := range p.classes {
		pods += p.classes[i].Count
	}
	number, err := strconv.ParseInt(out[0], 10, 64)
	for k, more := int64(2), min(pods, mostInvented); more > 0 && k < 4*mostInvented; k++ {
		v := fmt.Sprintf("%s-%d", out[0], k)
		if err == nil {
			v = strconv.FormatInt(number+k-1, 10)
		}
		if r.Contains(v) && !there[v] {
			out = append(out, v)
			more--
		}
	}
	return out
}

// standing returns the values of a label on existing and leaving nodes. It must not be modified.
func (p *Problem) standing(key string) map[string]bool {
	return p.memo.standing.Of(key, func() map[string]bool {
		out := map[string]bool{}
		for i := range p.nodes {
			if v, ok := p.nodes[i].value(key); ok {
				out[v] = true
			}
		}
		for i := range p.leaving {
			if v, ok := p.leaving[i].value(key); ok {
				out[v] = true
			}
		}
		return out
	})
}

// universe is the values of a group's key on nodes to buy, and on existing nodes that pass its
// filter.
type universe struct{ offered, standing []string }

func (p *Problem) newUniverse(id int32) universe {
	g := &p.groups[id]
	offered, standing := map[string]bool{}, map[string]bool{}
	anything := requirements.AnyOf(requirements.Set{})
	only := []key{{name: g.key, id: g.keyID, filter: -1}}
	for _, c := range p.cells() {
		if p.passes(g, c.labels) {
			p.combinations(c.labels, anything, only, onlyChosen, func(v []string) { offered[v[0]] = true })
		}
	}
	for i := range p.nodes {
		if v, ok := p.nodes[i].value(g.key); ok && p.passes(g, p.nodes[i].Labels) {
			standing[v] = true
		}
	}
	for i := range p.leaving {
		if n := &p.leaving[i]; !p.choice.Gone {
			if v, ok := n.value(g.key); ok && p.passes(g, n.Labels) {
				standing[v] = true
			}
		}
	}
	return universe{slices.Sorted(maps.Keys(offered)), slices.Sorted(maps.Keys(standing))}
}

// universe returns the values that the group's spreads count, without closed ones. Some appear
// twice. It may have more than the plan will have, which makes spreads stricter and never looser.
func (p *Problem) universe(id int32, closed *closing) []string {
	u := p.memo.universes.Of(id, func() universe { return p.newUniverse(id) })
	offered := u.offered
	if closed != nil {
		offered = slices.DeleteFunc(slices.Clone(offered), func(v string) bool {
			return closed.domains[closedDomain{p.side(id), v}] || closed.domains[closedDomain{side{p.groups[id].key, -1}, v}]
		})
	}
	return slices.Concat(offered, u.standing)
}

// mostStanding limits the existing nodes of a spread that is assigned over them. Each is a domain,
// and every pod looks at all domains.
const mostStanding = 64

// actsWithinNode reports for each group whether it acts within one node. A group by hostname does,
// because a new node may be empty, so the least count is 0 and the skew limits each node by itself.
// The exception is a spread that counts only existing nodes, since no node to buy passes its
// filter. Its least count can rise, so its hostnames are domains, and pods there are tied to their
// node.
func (p *Problem) actsWithinNode() []bool {
	out := make([]bool, len(p.groups))
	for i := range p.groups {
		g := &p.groups[i]
		out[i] = g.hostname && (!g.spread || !p.onlyStanding(g))
	}
	return out
}

// onlyStanding reports whether the group's filter passes only existing nodes, and at most
// mostStanding.
func (p *Problem) onlyStanding(g *group) bool {
	if slices.ContainsFunc(p.cells(), func(c cell) bool { return p.passes(g, c.labels) }) {
		return false
	}
	n := 0
	for i := range p.nodes {
		if p.passes(g, p.nodes[i].Labels) {
			n++
		}
	}
	return n <= mostStanding
}

// value returns the node's one value of the label; false if it has none.
func (n *Node) value(key string) (string, bool) { return n.Labels.Get(key).Single() }
