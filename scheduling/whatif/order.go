package whatif

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/bind"
)

// order puts pods into lots. Pods of a class with a spread or affinity by a domain are pinned to one each. PerNode is set for classes
// with anti-affinity or spreads by hostname.
func (b *buying) order(left []int32, limit Price) (Order, [][]int32) {
	e := b.e
	o := Order{Problem: e.problem, MaxNodes: b.q.MaxNodes, MaxPrice: limit, CapacityTypes: b.q.CapacityTypes}
	var members [][]int32
	var pins []*pin
	add := func(id int32, pods []int32, p *pin) {
		if len(pods) > 0 {
			o.Lots = append(o.Lots, Lot{e.problemClass[id], len(pods), p.set, e.perNode(&e.classes[id])})
			members, pins = append(members, pods), append(pins, p)
		}
	}
	for start := 0; start < len(left); {
		id := e.pods[left[start]].class
		end := start
		for end < len(left) && e.pods[left[end]].class == id {
			end++
		}
		pods := left[start:end]
		start = end
		var values []string
		var parts [][]int32
		group, ok := e.domainGroup(&e.classes[id])
		if ok {
			values, parts = e.deal(&e.classes[id], group, pods)
		}
		if len(values) == 0 { // no constraint by a domain, or no offer has the label
			add(id, pods, &pin{})
		}
		for i, value := range values {
			add(id, parts[i], e.pin(e.keyOf(group), value))
		}
	}
	ids := make([]int32, len(members))
	for i := range members {
		ids[i] = e.pods[members[i][0]].class
	}
	var last *offer // Suits is called for one offer after the other
	o.suits = func(lot, shape, offering int) bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		if last == nil || last.shape != shape || last.index != offering {
			last = e.offerOf(shape, offering)
		}
		return last != nil && e.buys(&e.classes[ids[lot]], last) && e.pinned(pins[lot], last)
	}
	return o, members
}

// pin is a value of a label that the nodes of a lot must have; the zero value is no pin.
type pin struct {
	set    requirements.Set
	offers bind.Answers // by offer: it can have the value
}

type pinKey struct {
	key, value string
}

func (e *engine) pin(key, value string) *pin {
	k := pinKey{key, value}
	if e.pins[k] == nil {
		e.pins[k] = &pin{set: requirements.MustOf(requirements.In(key, value))}
	}
	return e.pins[k]
}

// pinned reports whether a node bought by the offer can have the value of the pin.
func (e *engine) pinned(p *pin, o *offer) bool {
	return p.set.IsAnything() || p.offers.Of(o.at, func() bool { return p.set.Overlaps(e.labels(o)) })
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

// domainGroup is the group of the first spread of the class, else of its first affinity, that is not by hostname.
func (e *engine) domainGroup(c *class) (int32, bool) {
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

// deal gives each pod a value of the key: the one with the fewest members for a spread, and with the most for affinity.
func (e *engine) deal(c *class, group int32, pods []int32) (values []string, parts [][]int32) {
	key, spreads := e.keyOf(group), e.index.Groups()[group].Spread
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
		if list, ok := e.labels(o).Get(key).Values(); ok {
			for _, v := range list {
				if !slices.Contains(values, v) {
					values = append(values, v)
				}
			}
		}
	}
	slices.Sort(values)
	counts := make([]int32, len(values))
	for i, v := range values {
		if id := e.cluster.Values.Find(e.index.Groups()[group].Key, v); id >= 0 {
			counts[i] = e.cluster.State.Members(group, id)
		}
	}
	if len(values) == 0 {
		return nil, nil
	}
	parts = make([][]int32, len(values))
	for _, p := range pods {
		best := 0
		for i := range values {
			if spreads && counts[i] < counts[best] || !spreads && counts[i] > counts[best] {
				best = i
			}
		}
		counts[best]++
		parts[best] = append(parts[best], p)
	}
	return values, parts
}
