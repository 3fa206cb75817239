package whatif

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
)

// order puts pods into lots. Pods of a class with a spread or affinity by a domain are pinned to one each, to the given one where affinity leaves the
// choice. PerNode is set for classes with anti-affinity or spreads by hostname.
func (b *buying) order(left []int32, limit Price, domain string) (Order, [][]int32) {
	e := b.e
	o := Order{Problem: e.problem, MaxNodes: b.q.MaxNodes, MaxPrice: limit, CapacityTypes: b.q.CapacityTypes}
	var members [][]int32
	add := func(c *class, pods []int32, pin requirements.Set) {
		if len(pods) > 0 {
			o.Lots = append(o.Lots, Lot{c.problem, len(pods), pin, e.perNode(c)})
			members = append(members, pods)
		}
	}
	for start := 0; start < len(left); {
		c, end := e.classOf(left[start]), start
		for end < len(left) && e.classOf(left[end]) == c {
			end++
		}
		pods := left[start:end]
		start = end
		var values []string
		var parts [][]int32
		group, ok := e.domainGroup(c)
		if ok {
			values, parts = e.deal(c, group, pods, domain)
		}
		if len(values) == 0 { // no constraint by a domain, or no offer has the label
			add(c, pods, requirements.Set{})
		}
		for i, value := range values {
			add(c, parts[i], requirements.MustOf(requirements.In(e.keyOf(group), value)))
		}
	}
	lots := o.Lots
	o.suits = func(lot, shape, offering int) bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		offer := e.offerOf(shape, offering)
		return offer != nil && e.buys(e.classOf(members[lot][0]), offer) && lots[lot].Pin.Overlaps(offer.all())
	}
	return o, members
}

// perNode is how many pods of the class a new node accepts by its constraints on the hostname; 0 means any number.
func (e *engine) perNode(c *class) int {
	most := 0
	for _, t := range c.Terms {
		if t.Anti && t.Self && e.keyOf(t.Group) == corev1.LabelHostname {
			most = 1
		}
	}
	for _, s := range c.Spreads {
		if e.keyOf(s.Group) == corev1.LabelHostname && s.Self && (most == 0 || int(s.MaxSkew) < most) {
			most = int(s.MaxSkew)
		}
	}
	return most
}

// domainGroup is the group of the ratio of the class, else of its first spread, else of its first affinity, that is not by hostname.
func (e *engine) domainGroup(c *class) (int32, bool) {
	if len(c.Ratios) > 0 {
		return c.Ratios[0], true
	}
	for _, s := range c.Spreads {
		if e.keyOf(s.Group) != corev1.LabelHostname {
			return s.Group, true
		}
	}
	for _, t := range c.Terms {
		if !t.Anti && e.keyOf(t.Group) != corev1.LabelHostname {
			return t.Group, true
		}
	}
	return 0, false
}

// deal gives each pod a value of the key: the one with the most room for a ratio, with the fewest members for a spread, and with the most for
// affinity, of equal ones the given one.
func (e *engine) deal(c *class, group int32, pods []int32, domain string) (values []string, parts [][]int32) {
	spreads, divides := e.index.Groups()[group].Spread, e.index.Groups()[group].Ratio != ""
	values = e.valuesFor(c, e.keyOf(group))
	if len(values) == 0 {
		return nil, nil
	}
	counts := make([]int32, len(values))
	for i, v := range values {
		if id := e.cluster.Values.Find(e.index.Groups()[group].Key, v); id >= 0 {
			counts[i] = e.cluster.State.Members(group, id)
			if divides {
				counts[i] = -e.cluster.State.Room(group, id)
			}
		}
	}
	parts = make([][]int32, len(values))
	preferred := max(0, slices.Index(values, domain))
	for _, p := range pods {
		best := 0
		if !spreads && !divides {
			best = preferred
		}
		for i := range values {
			if spreads := spreads || divides; spreads && counts[i] < counts[best] || !spreads && counts[i] > counts[best] {
				best = i
			}
		}
		counts[best]++
		parts[best] = append(parts[best], p)
	}
	return values, parts
}

// choices are the domains of which one has to be chosen for pods with affinity to each other, where none of them is anywhere: all that offers have
// for the first such class. One that is empty says that nothing has to be chosen.
func (e *engine) choices(left []int32) []string {
	var last *class
	for _, p := range left {
		c := e.classOf(p)
		if c == last {
			continue
		}
		last = c
		group, ok := e.domainGroup(c)
		if !ok || e.cluster.State.Total(group) > 0 {
			continue
		}
		if g := &e.index.Groups()[group]; g.Spread || g.Ratio != "" {
			continue
		}
		if values := e.valuesFor(c, e.keyOf(group)); len(values) > 1 {
			return values[:min(len(values), mostChoices)]
		}
	}
	return []string{""}
}

// mostChoices bounds the domains that are tried for one question. Regions have up to six zones.
const mostChoices = 8

// valuesFor are the values of a label among the offers that the class may buy, sorted.
func (e *engine) valuesFor(c *class, key string) []string {
	var values []string
	for i := range e.offers {
		o := &e.offers[i]
		if !e.buys(c, o) {
			continue
		}
		if key == corev1.LabelTopologyZone && o.zone != "" {
			if !slices.Contains(values, o.zone) {
				values = append(values, o.zone)
			}
			continue
		}
		list, _ := o.all().Get(key).Values()
		for _, v := range list {
			if !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
	}
	slices.Sort(values)
	return values
}
