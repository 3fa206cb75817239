package scheduling

import (
	"fmt"
	"maps"
	"slices"

	"github.com/joinery-sdk/joinery/requirements"
)

// State is one point in the dialogue with a packer: [State.Round] says what to pack, [State.Advance] takes what came of
// it and gives the next state. States are immutable; each settles everything anew from the snapshot and from the facts
// that earlier rounds found out, so that no decision rests on one that was taken back.
type State struct {
	p      *Problem
	facts  facts
	number int
	items  []Item
	made   []making // of the items, by position
	parts  []*part
	left   map[int]int // by class: pods that no domain takes
	picks  []pick
	solved bool
	last   Outcome
}

// Item is a number of things that are to be packed alike: pods of one class, or bundles of pods that must share a node.
type Item struct {
	// Name is unique within the round.
	Name  string
	Count int
	// Pods says what one of them is made of.
	Pods []ItemPods
	// Requests is what each takes, by Problem.Resources.
	Requests []int64
	// Requires is what the labels of the node must satisfy: of shapes and rooms, whose labels include pseudo-labels.
	Requires requirements.Alternatives
	Tags     []string
	Limits   []Limit
	// Priority is the least of the pods': where a limit leaves some out, the higher goes first.
	Priority int32
}

// ItemPods is a number of pods of a class.
type ItemPods struct{ Class, Count int }

// making is where an item comes from: its slots, and the bundles that are its copies; none for pods on their own.
type making struct {
	slots   []slot
	bundles []int
}

// Share is a number of copies of one item.
type Share struct {
	Item  int
	Count int
}

// Outcome is what a packer made of a round.
type Outcome struct {
	// Rooms holds what each existing node takes, by position in Problem.Rooms; it may be shorter.
	Rooms [][]Share
	// Bins are the nodes to buy.
	Bins []OutcomeBin
}

// OutcomeBin is one node to buy.
type OutcomeBin struct {
	// Shape is an index into Problem.Shapes, Offering one into its offerings.
	Shape, Offering int
	Shares          []Share
}

// maxRounds bounds the dialogue. One or two rounds are usual; every round adds at least one fact.
const maxRounds = 40

// Start settles for the first time. Where pods are left over, it tries again with the domains closed that only stand in
// their way, and keeps what places more.
func (p *Problem) Start() *State {
	f := facts{caps: map[capKey]int{}, closed: map[closedKey]bool{}}
	st, settler := p.settle(f, 0)
	if len(st.left) == 0 {
		return st
	}
	closed := p.closable(settler)
	if len(closed) == 0 {
		return st
	}
	f.closed = closed
	if other, _ := p.settle(f, 0); sum(other.left) < sum(st.left) {
		return other
	}
	return st
}

// Done reports whether the last outcome stands: everything was placed, or nothing more can be found out.
func (s *State) Done() bool { return s.solved }

// Round is what is to be packed now; it must not be modified.
func (s *State) Round() []Item { return s.items }

func (p *Problem) settle(f facts, number int) (*State, *settler) {
	settler := p.newSettler(&f)
	st := &State{p: p, facts: f, number: number}
	st.left = settler.run()
	st.picks, st.parts = settler.picks, settler.parts
	open := f.openDomains()
	byText := map[string]int{}
	for b, bd := range settler.bundles {
		text := bd.text()
		at, ok := byText[text]
		if !ok {
			at = len(st.items)
			byText[text] = at
			st.addBundle(bd, open)
		}
		st.items[at].Count++
		st.made[at].bundles = append(st.made[at].bundles, b)
	}
	for i, pt := range settler.parts {
		for d, n := range pt.placed {
			if n -= settler.bundled(i, d); n > 0 {
				st.addLoose(i, d, n, open)
			}
		}
	}
	return st, settler
}

func (s *State) nameOf(part, domain int) string {
	pt := s.parts[part]
	name := s.p.Classes[pt.class].Name()
	if len(pt.keys) > 0 {
		name += " in " + pt.domains[domain].text()
	}
	if pt.stage > 0 {
		name = fmt.Sprintf("%s without %d preferences", name, pt.stage)
	}
	return name
}

// addLoose makes the item of pods of one part and domain that are on their own.
func (s *State) addLoose(part, domain, n int, open requirements.Set) {
	pt := s.parts[part]
	c := s.p.Classes[pt.class]
	required := pt.st.required
	if len(pt.keys) > 0 {
		required = required.Intersect(s.p.pin(pt.keys, &pt.domains[domain]))
	}
	s.items = append(s.items, Item{
		Name: s.nameOf(part, domain), Count: n, Pods: []ItemPods{{pt.class, 1}}, Requests: c.requests,
		Requires: opened(required, open), Tags: pt.tags, Limits: pt.limits, Priority: c.priority,
	})
	s.made = append(s.made, making{slots: []slot{{part, domain, 1}}})
}

// opened keeps new nodes out of closed domains.
func opened(required requirements.Alternatives, open requirements.Set) requirements.Alternatives {
	if open.IsAnything() {
		return required
	}
	return required.Intersect(requirements.AnyOf(open))
}

func (s *State) addBundle(b *bundle, open requirements.Set) {
	it := Item{Requests: b.requests, Requires: opened(b.required, open), Tags: b.tags, Limits: b.limits}
	for i, sl := range b.slots {
		class := s.parts[sl.part].class
		if i > 0 {
			it.Name += " with "
		}
		it.Name += s.nameOf(sl.part, sl.domain)
		if sl.count > 1 {
			it.Name += fmt.Sprintf(" x %d", sl.count)
		}
		it.Pods = append(it.Pods, ItemPods{class, sl.count})
		if c := s.p.Classes[class]; i == 0 || c.priority < it.Priority {
			it.Priority = c.priority
		}
	}
	if b.room >= 0 {
		it.Name += " on " + s.p.Rooms[b.room].Node.Name
	}
	s.items = append(s.items, it)
	s.made = append(s.made, making{slots: b.slots})
}

// openDomains keeps new nodes out of domains that are closed.
func (f *facts) openDomains() requirements.Set {
	byKey := map[string][]string{}
	for c := range f.closed {
		byKey[c.key] = append(byKey[c.key], c.value)
	}
	var b requirements.Builder
	for k, values := range byKey { // the builder sorts
		b.Add(requirements.NotIn(k, values...))
	}
	set, err := b.Set()
	if err != nil { // keys are distinct, and NotIn is never impossible
		panic(err)
	}
	return set
}

// Advance takes what became of the round. Where pods could not be placed, their domain holds no more than what was
// placed, and everything is settled again with that knowledge; where all were placed, or nobody has anywhere else to go,
// the state is done.
func (s *State) Advance(o Outcome) *State {
	short := s.shortfall(o)
	next := facts{caps: maps.Clone(s.facts.caps), closed: s.facts.closed}
	news := false
	for i, pt := range s.parts {
		for d, n := range pt.placed {
			missing := short[[2]int{i, d}]
			if missing == 0 {
				continue
			}
			key := capKey{pt.class, pt.stage, pt.domains[d].text()}
			most := n - missing
			if have, ok := next.caps[key]; !ok || most < have {
				next.caps[key] = most
				// Only pods that may be settled differently make another round worth it.
				news = news || len(pt.keys) > 0 || pt.stage < len(s.p.Classes[pt.class].soft) || len(s.p.Classes[pt.class].memberOf) > 0
			}
		}
	}
	if !news || s.number+1 >= maxRounds {
		done := *s
		done.solved, done.last = true, o
		return &done
	}
	again, _ := s.p.settle(next, s.number+1)
	return again
}

// shortfall is how many pods of each part and domain found no place. Bundles are placed whole or not at all; of one that
// was not, a quarter is given up, so that what is left of it gets another try.
func (s *State) shortfall(o Outcome) map[[2]int]int {
	placed := make([]int, len(s.items))
	for _, shares := range o.Rooms {
		for _, sh := range shares {
			placed[sh.Item] += sh.Count
		}
	}
	for _, b := range o.Bins {
		for _, sh := range b.Shares {
			placed[sh.Item] += sh.Count
		}
	}
	short := map[[2]int]int{}
	for i, it := range s.items {
		missing := it.Count - placed[i]
		if missing <= 0 {
			continue
		}
		slots := s.made[i].slots
		for k, sl := range slots {
			if len(slots) > 1 && k < len(slots)-1 && !s.follower(sl.part) {
				continue // the pod that others follow can stay without them
			}
			short[[2]int{sl.part, sl.domain}] += missing * max(1, (sl.count+3)/4)
		}
	}
	return short
}

func (s *State) follower(part int) bool {
	return slices.ContainsFunc(s.parts[part].st.terms, func(t term) bool { return !t.anti && s.p.onHostname(t.group) })
}
