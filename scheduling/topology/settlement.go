package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/requirements"
)

// Settlement is where pods go. It is immutable and safe for concurrent use.
type Settlement struct {
	// Parts are the pods by class and by how many preferences were given up.
	Parts []*Part
	// Lots are what is to be packed: bundles first, then pods on their own.
	Lots []Lot
	// Picks is who was placed after whom: bound in this order, kube-scheduler accepts each.
	Picks []Pick
	// Left is how many pods of each class no domain takes.
	Left []int

	p     *Problem
	facts Facts
}

// Lot is a number of things that are to be packed alike: pods of one part and domain, or bundles of pods that must share
// a node.
type Lot struct {
	// Count is how many there are.
	Count int
	// Slots are what one of them is made of.
	Slots []Slot
	// Bundles numbers them where they are bundles, which is what Pick.Bundle refers to; empty for pods on their own.
	Bundles []int
	// Node is the existing node that they must be on, -1 for any.
	Node int
	// Seated says that they share a node to buy in a reference's plan, which is within limits as long as others wait; see
	// [Reference.Nodes].
	Seated bool
	// Requests is what each takes.
	Requests []int64
	// Required is what the labels of the node must satisfy.
	Required requirements.Alternatives
	// Tags and Limits are the constraints within a node.
	Tags   []string
	Limits []Limit
}

// Slot is a number of pods of one part in a domain.
type Slot struct{ Part, Domain, Count int }

// Pick is one or more pods of a part placed in a domain, one after the other. Bundle is the bundle that they joined, or
// -1 where they were placed on their own, even if others have joined them later.
type Pick struct{ Part, Domain, Bundle, Count int }

// Start settles for the first time. Where pods are left over, it tries again with the domains closed that only stand in
// their way, then with all that only stand in somebody's way, and keeps what places most.
func (p *Problem) Start() *Settlement {
	best, s := p.settle(Facts{})
	left := best.Left
	theirs, anybodys := func(pt *Part) bool { return left[pt.Class] > 0 }, func(*Part) bool { return true }
	for _, whose := range []func(*Part) bool{theirs, anybodys} {
		if best.total() == 0 {
			break
		}
		closed := s.closable(whose)
		if len(closed) == 0 || maps.Equal(closed, best.facts.closed) {
			continue
		}
		if other := p.Settle(Facts{closed: closed}); other.total() < best.total() {
			best = other
		}
	}
	return best
}

// Settle gives every pod to a domain, as far as the facts let it. It costs about O(pods x domains x constraints); pods
// that nobody asks about or counts cost nothing each.
func (p *Problem) Settle(f Facts) *Settlement {
	out, _ := p.settle(f)
	return out
}

func (p *Problem) settle(f Facts) (*Settlement, *settler) {
	s := p.newSettler(f)
	out := &Settlement{p: p, facts: f}
	out.Left = s.run()
	out.Parts, out.Picks = s.parts, s.picks
	out.Lots = s.lots()
	return out, s
}

// total is how many pods are left over.
func (st *Settlement) total() int { return sum(st.Left) }

// lots turns what was placed into lots: bundles that can be exchanged for each other are one.
func (s *settler) lots() []Lot {
	most := len(s.bundles)
	for _, pt := range s.parts {
		for d, n := range pt.Placed {
			if n > pt.bundled[d] {
				most++
			}
		}
	}
	out := make([]Lot, 0, most)
	slots := make([]Slot, 0, most) // of pods on their own
	open := s.p.open(s.facts.closed)
	keep := func(required requirements.Alternatives) requirements.Alternatives {
		if len(s.facts.closed) == 0 {
			return required
		}
		return required.Intersect(open)
	}
	at := map[string]int{}
	for i, b := range s.bundles {
		text := b.text()
		k, ok := at[text]
		if !ok {
			k = len(out)
			at[text] = k
			out = append(out, Lot{Slots: b.slots, Node: b.node, Seated: b.seated, Requests: b.requests, Required: keep(b.required), Tags: b.tags, Limits: s.limitsOf(b)})
		}
		out[k].Count++
		out[k].Bundles = append(out[k].Bundles, i)
	}
	for i, pt := range s.parts {
		for d, n := range pt.Placed {
			if n -= pt.bundled[d]; n <= 0 {
				continue
			}
			slots = append(slots, Slot{i, d, 1})
			out = append(out, Lot{
				Count: n, Slots: slots[len(slots)-1 : len(slots) : len(slots)], Node: -1, Requests: s.p.classes[pt.Class].Requests,
				Required: keep(s.required(pt, d)), Tags: pt.tags, Limits: slices.Concat(pt.lasting, pt.passing),
			})
		}
	}
	return out
}

// text tells bundles apart that cannot be exchanged.
func (b *bundle) text() string {
	var out strings.Builder
	for _, sl := range b.slots {
		fmt.Fprintf(&out, "%d/%d x%d ", sl.Part, sl.Domain, sl.Count)
	}
	fmt.Fprintf(&out, "@%d %t", b.node, b.seated)
	return out.String()
}

// Learn adds to the facts of the settlement that packing found no place for some pods: missing says how many of a part
// in a domain (the count of its slots is ignored). It reports whether another settlement can make a difference.
func (st *Settlement) Learn(missing func(part, domain int) int) (Facts, bool) {
	next := st.facts.clone()
	news := false
	for i, pt := range st.Parts {
		for d, n := range pt.Placed {
			gone := missing(i, d)
			if gone <= 0 {
				continue
			}
			key := capKey{pt.Class, pt.Stage, pt.Domains[d].String()}
			if have, ok := next.caps[key]; ok && have <= n-gone {
				continue
			}
			next.caps[key] = n - gone
			// Only pods that may be settled differently make another round worth it.
			c := &st.p.classes[pt.Class]
			news = news || len(pt.keys) > 0 || pt.Stage < len(c.soft) || len(c.memberOf) > 0
		}
	}
	return next, news
}

// Replay tests an order of binding again, when less was placed than was settled.
type Replay struct {
	s *settler
}

// Replay begins with the cluster as it is.
func (st *Settlement) Replay() *Replay {
	s := st.p.newSettler(Facts{closed: st.facts.closed}) // what can bind depends on nothing else
	s.parts = st.Parts
	return &Replay{s}
}

// Bind binds one pod of a part in a domain if kube-scheduler would let it at this point, and reports whether it did.
func (r *Replay) Bind(part, domain int) bool {
	pt := r.s.parts[part]
	if len(pt.keys) > 0 && !r.s.allowed(pt, domain) {
		return false
	}
	r.s.count(pt, domain, 1)
	return true
}
