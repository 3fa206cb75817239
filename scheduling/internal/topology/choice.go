package topology

import (
	"maps"
	"slices"

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
	// Gone plans as if leaving nodes were gone before any pod is assigned.
	Gone bool
	// Without are zones without new nodes, beside closed domains of other keys. Spreads do not count
	// them. nil leaves closed the zones that were.
	Without []string
	// Avoid are zones, by class, in which no new node takes pods of the class. If the class has a
	// hard spread, these zones come last among those that the spread allows, because pods that it
	// does not place would be bound as if the zone did not count. See [Problem.Elsewhere].
	Avoid map[int][]string
}

// Elsewhere returns the least price of a node in another zone with so much room for the classes, and
// choices that may send them there. In the first, they avoid the given zone, too; in the second, all
// zones but that of the node. Classes without constraints that regard zones choose none, so they
// avoid none. If that changes nothing, there are no choices.
func (p *Problem) Elsewhere(zone string, classes []int, used []int64) (price float64, choices []Choice) {
	choosing := slices.DeleteFunc(slices.Clone(classes), func(i int) bool { return !slices.ContainsFunc(p.relaxed(i, 0).keys, isZone) })
	if len(choosing) == 0 {
		return unsold, nil
	}
	asked := requirements.AnyOf(requirements.MustOf(requirements.NotIn(corev1.LabelTopologyZone, zone)))
	for _, i := range classes {
		asked = asked.Intersect(p.relaxed(i, len(p.classes[i].soft)).at.required)
	}
	price = unsold
	to, others := "", []string(nil)
	for _, c := range p.cells() {
		there, _ := c.labels.Get(corev1.LabelTopologyZone).Single()
		others = append(others, there)
		for _, o := range c.offers {
			if o.price < price && fits(used, o.free) && asked.Compatible(c.labels, requirements.Keys{}) {
				to, price = there, o.price
			}
		}
	}
	slices.Sort(others)
	others = slices.DeleteFunc(slices.Compact(others), func(z string) bool { return z == to || z == "" })
	avoiding := func(zones func(now []string) []string) {
		c, changes := p.choice, false
		if c.Avoid = maps.Clone(c.Avoid); c.Avoid == nil {
			c.Avoid = map[int][]string{}
		}
		for _, i := range choosing {
			if avoided := zones(c.Avoid[i]); !slices.Equal(avoided, c.Avoid[i]) {
				c.Avoid[i], changes = avoided, true
			}
		}
		if changes {
			choices = append(choices, c)
		}
	}
	avoiding(func(now []string) []string {
		if slices.Contains(now, zone) {
			return now
		}
		return append(slices.Clip(now), zone)
	})
	avoiding(func([]string) []string { return others })
	return price, choices
}

// avoids reports whether the domain is in a zone that the class avoids.
func (p *Problem) avoids(rc *RelaxedClass, domain int) bool {
	zones := p.choice.Avoid[rc.Class]
	if len(zones) == 0 {
		return false
	}
	zone := slices.IndexFunc(rc.keys, isZone)
	return zone >= 0 && slices.Contains(zones, rc.Domains[domain].Values[zone])
}

// spreads reports whether there is a hard spread that is not by hostname.
func (p *Problem) spreads(c *interpod.Constraints) bool {
	return slices.ContainsFunc(c.Spreads, func(sp interpod.Spread) bool { return sp.Hard && !p.groups[sp.Group].hostname })
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
	if c.Gone && !p.choice.Gone && !p.Leaves() {
		return nil, false
	}
	if c.OverNodes != p.choice.OverNodes || c.Gone != p.choice.Gone { // else all that is computed once is the same
		out.memo, out.withinNode = p.memoOf(c), p.actsWithinNode()
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
