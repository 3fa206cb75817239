package topology

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
)

// Choice is what is decided before pods are assigned. The zero value decides nothing.
type Choice struct {
	// GivenUp is how many preferences each class gives up from the start, by class, in the order of
	// [Problem.Preferences]; nil means none.
	GivenUp []int
	// Only is how many pods of each class are assigned, by class; nil means all.
	Only []int
	// OverNodes assigns spreads by hostname over the existing nodes, like spreads over zones. Their
	// pods go to no new node.
	OverNodes bool
	// LeastOnHosts is how many pods of each spread by hostname every node that it counts is taken to
	// have in the end. A node may have so many more than its skew allows beside an empty node.
	LeastOnHosts int
	// First are classes to assign before the others, in any order.
	First []int
	// Gone plans as if leaving nodes were gone before any pod is assigned.
	Gone bool
	// Without are zones without new nodes, beside closed domains of other keys. Spreads do not count
	// them. nil leaves closed the zones that were.
	Without []string
	// Avoid are values of labels, by class. New nodes with them, such as those of a zone, take no pods
	// of the class. If the class has a hard spread, domains with these values come last among those
	// that the spread allows, because pods that it does not place would be bound as if the domain did
	// not count. See [Problem.Elsewhere].
	Avoid map[int][]Value
}

// Alternative is another domain for the pods of a node.
type Alternative struct {
	// Avoided is the value of a label that the pods avoid, such as a zone, and Only says whether they
	// also avoid all other values but that of the cheapest node elsewhere.
	Avoided Value
	Only    bool
	// Price is the least price of a node without the value that has room for all of them.
	Price float64
	// Choice may send the pods there.
	Choice Choice
}

// Value is a value of a label.
type Value struct{ Key, Value string }

// Elsewhere returns alternatives for the pods of a node with these labels: for each label by which
// domains of the classes differ, other values. Classes for which the label makes no difference
// choose none, so they avoid none.
func (p *Problem) Elsewhere(node requirements.Set, classes []int, used []int64) []Alternative {
	asked, names := requirements.AnyOf(requirements.Set{}), []string(nil)
	for _, i := range classes {
		asked = asked.Intersect(p.relaxed(i, len(p.classes[i].soft)).at.required)
		for _, k := range p.relaxed(i, 0).keys {
			if k.filter < 0 && k.name != corev1.LabelHostname {
				names = append(names, k.name)
			}
		}
	}
	slices.Sort(names)
	var out []Alternative
	for _, name := range slices.Compact(names) {
		here, _ := node.Get(name).Single()
		away := asked.Intersect(requirements.AnyOf(requirements.MustOf(requirements.NotIn(name, here))))
		price, to, others := unsold, "", []string(nil)
		for _, c := range p.cells() {
			there, _ := c.labels.Get(name).Single()
			others = append(others, there)
			for _, o := range c.offers {
				if o.price < price && fits(used, o.free) && away.Compatible(c.labels, requirements.Keys{}) {
					to, price = there, o.price
				}
			}
		}
		slices.Sort(others)
		others = slices.DeleteFunc(slices.Compact(others), func(v string) bool { return v == to || v == "" })
		choosing := slices.DeleteFunc(slices.Clone(classes), func(i int) bool {
			return !slices.ContainsFunc(p.relaxed(i, 0).keys, func(k key) bool { return k.filter < 0 && k.name == name })
		})
		for k, avoided := range [][]string{{here}, others} {
			if c, changes := p.avoiding(choosing, name, avoided, k == 1); changes {
				out = append(out, Alternative{Value{name, here}, k == 1, price, c})
			}
		}
	}
	return out
}

// avoiding returns the choice in which the classes avoid values of a label, too; instead of those
// that they avoid now if only. It reports whether that changes the choice.
func (p *Problem) avoiding(classes []int, name string, values []string, only bool) (c Choice, changes bool) {
	c = p.choice
	if c.Avoid = maps.Clone(c.Avoid); c.Avoid == nil {
		c.Avoid = map[int][]Value{}
	}
	for _, i := range classes {
		next := slices.Clone(c.Avoid[i])
		if only {
			next = slices.DeleteFunc(next, func(v Value) bool { return v.Key == name })
		}
		for _, v := range values {
			if !slices.Contains(next, Value{name, v}) {
				next = append(next, Value{name, v})
			}
		}
		if !slices.Equal(next, c.Avoid[i]) {
			c.Avoid[i], changes = next, true
		}
	}
	return c, changes
}

// avoids reports whether the domain has a value that the class avoids.
func (p *Problem) avoids(rc *RelaxedClass, domain int) bool {
	return slices.ContainsFunc(p.choice.Avoid[rc.Class], func(v Value) bool {
		at := slices.IndexFunc(rc.keys, func(k key) bool { return k.filter < 0 && k.name == v.Key })
		return at >= 0 && rc.Domains[domain].Values[at] == v.Value
	})
}

// spreads reports whether there is a hard spread that is not by hostname.
func (p *Problem) spreads(c *interpod.Constraints) bool {
	return slices.ContainsFunc(c.Spreads, func(sp interpod.Spread) bool { return sp.Hard && !p.groups[sp.Group].hostname })
}

// SpreadsOverHosts reports whether [Choice.LeastOnHosts] bears on pods of the class.
func (p *Problem) SpreadsOverHosts(class int) bool {
	return slices.ContainsFunc(p.relaxed(class, len(p.classes[class].soft)).at.Spreads, func(sp interpod.Spread) bool { return sp.Hard && p.withinNode[sp.Group] })
}

// Gathers reports whether pods of the class must be in one zone, by affinity, and spread over zones.
// Then more than the skew allows have places only where no other zone has a node.
func (p *Problem) Gathers(class int) bool {
	at := p.relaxed(class, len(p.classes[class].soft)).at
	zonal := func(group int32) bool { return p.groups[group].key == corev1.LabelTopologyZone }
	return slices.ContainsFunc(at.Spreads, func(sp interpod.Spread) bool { return sp.Hard && zonal(sp.Group) }) &&
		slices.ContainsFunc(at.Terms, func(t interpod.Term) bool { return t.Hard && !t.Anti && zonal(t.Group) })
}

// Pods returns how many of so many pods of the class are assigned.
func (c Choice) Pods(class, of int) int {
	if c.Only == nil {
		return of
	}
	return min(of, c.Only[class])
}

func (c *Choice) givenUp(class int) int {
	if c.GivenUp == nil {
		return 0
	}
	return c.GivenUp[class]
}

// Choice returns what was decided by [Problem.With].
func (p *Problem) Choice() Choice { return p.choice }

// With returns the problem with a choice. Assignment then starts from the facts of an assignment of
// this problem. It is false if the choice is not possible: no spread by hostname may count existing
// nodes, there are too many of these nodes, or some class needs one of the zones.
func (p *Problem) With(c Choice, from *Assignment) (*Problem, bool) {
	out := *p
	out.choice, out.chosen, out.first = c, true, from.Facts.next()
	if len(c.First) > len(p.choice.First) {
		first := slices.Sorted(slices.Values(c.First))
		out.first = (&Assignment{p: p, Facts: from.Facts}).Blame(slices.Compact(first))
	}
	if c.Gone && !p.choice.Gone && !p.Leaves() {
		return nil, false
	}
	if c.OverNodes != p.choice.OverNodes || c.Gone != p.choice.Gone {
		out.withinNode = p.actsWithinNode()
	}
	if out.memo = p.memoOf(c); out.memo != p.memo {
		if closed := from.Facts.closed; closed != nil {
			out.first.closed = &closing{domains: closed.domains, open: closed.open}
		}
	}
	if c.OverNodes && !p.choice.OverNodes {
		if len(p.nodes) == 0 || len(p.nodes) > mostStanding || p.hostless {
			return nil, false
		}
		some := false
		for i := range p.groups {
			if g := &p.groups[i]; g.hostname && g.spread && out.withinNode[i] && len(g.members) > 0 {
				out.withinNode[i], some = false, true
			}
		}
		if !some {
			return nil, false
		}
	}
	if len(c.Without) > 0 {
		closed := map[closedDomain]bool{}
		if from.Facts.closed != nil {
			maps.Copy(closed, from.Facts.closed.domains)
		}
		maps.DeleteFunc(closed, func(k closedDomain, _ bool) bool { return k.key == corev1.LabelTopologyZone })
		for _, zone := range c.Without {
			closed[closedDomain{side{corev1.LabelTopologyZone, -1}, zone}] = true
		}
		n := len(closed)
		if out.first.closed = out.closing(closed); len(out.first.closed.domains) < n {
			return nil, false
		}
	}
	return &out, true
}

// Marks of a group, see [Problem.marks].
const (
	idle   = 1 << iota // nothing counts its pods
	vacant             // no pod is in it
)

// marks returns what a choice changes in the groups, as one byte for each. A group is idle if only
// pods select it that are left out, or preferences that are given up. It is vacant if only pods are
// in it that are left out. The result is empty if nothing changes.
func (p *Problem) marks(c Choice) string {
	if c.Only == nil && c.GivenUp == nil {
		return ""
	}
	out := make([]byte, len(p.groups))
	each := func(constraints *interpod.Constraints, do func(group int32)) {
		for _, sp := range constraints.Spreads {
			do(sp.Group)
		}
		for _, t := range constraints.Terms {
			do(t.Group)
		}
		for _, g := range constraints.Ratios {
			do(g)
		}
	}
	for i := range p.classes {
		each(&p.classes[i].all, func(g int32) { out[g] |= idle })
		for _, g := range p.classes[i].all.MemberOf {
			out[g] |= vacant
		}
	}
	counts := func(g int32) { out[g] &^= idle }
	for i := range p.classes {
		if own := &p.classes[i]; c.Pods(i, own.Count) > 0 {
			at := own.relaxFrom(own.Required, c.givenUp(i))
			each(&at.Constraints, counts)
			for _, g := range own.all.MemberOf {
				out[g] &^= vacant
			}
		}
	}
	for i := range p.daemons {
		each(&p.daemons[i], counts)
	}
	for _, n := range p.leaving {
		for k := range n.pods {
			each(&n.pods[k], counts)
		}
	}
	for g := range out {
		if p.kept[g] {
			out[g] &^= idle
		}
		if p.peopled[g] {
			out[g] &^= vacant
		}
	}
	return strings.TrimRight(string(out), "\x00")
}

// Closed returns the zones in which nothing is bought, sorted.
func (f Facts) Closed() []string {
	if f.closed == nil {
		return nil
	}
	var out []string
	for k := range f.closed.domains {
		if k.key == corev1.LabelTopologyZone {
			out = append(out, k.value)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Zones returns the zones that can be bought and have no existing node, sorted.
func (p *Problem) Zones() []string {
	var out []string
	for _, c := range p.cells() {
		zone, ok := c.labels.Get(corev1.LabelTopologyZone).Single()
		if ok && c.labels.Has(corev1.LabelTopologyZone) && !p.stands(closedDomain{side{corev1.LabelTopologyZone, -1}, zone}) {
			out = append(out, zone)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
