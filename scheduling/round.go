package scheduling

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

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
	parts  []itemPart
	left   map[int]int // by class: pods that no domain takes
	picks  []pick
	solved bool
	last   Outcome
}

// Item is a number of pods of one class that are to be packed alike.
type Item struct {
	// Name is unique within the round.
	Name  string
	Class int
	Count int
	// Requests is what each takes, by Problem.Resources.
	Requests []int64
	// Requires is what the labels of the node must satisfy: of shapes and rooms, whose labels include pseudo-labels.
	Requires requirements.Alternatives
	Tags     []string
	Limits   []Limit
	// Priority is that of the pods: where a limit leaves some out, the higher goes first.
	Priority int32
}

type itemPart struct {
	part   int
	domain int
	stage  int
	text   string
}

// Share is a number of pods of one item.
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
	st := &State{p: p, facts: f, number: number}
	settler := p.newSettler(&f)
	st.left = settler.run()
	st.picks = settler.picks
	for i, pt := range settler.parts {
		for d, n := range pt.placed {
			if n > 0 {
				st.add(settler, i, d, n)
			}
		}
	}
	st.remap()
	return st, settler
}

// add makes the item of one part and domain.
func (s *State) add(settler *settler, i, d, n int) {
	pt := settler.parts[i]
	c := s.p.Classes[pt.class]
	required := pt.st.required
	name := c.Name()
	if len(pt.keys) > 0 {
		required = required.Intersect(requirements.AnyOf(pt.domains[d].pin(pt.keys)))
		name += " in " + pt.domains[d].text()
	}
	if pt.stage > 0 {
		name = fmt.Sprintf("%s without %d preferences", name, pt.stage)
	}
	if open := s.facts.openDomains(); !open.IsAnything() {
		required = required.Intersect(requirements.AnyOf(open))
	}
	s.items = append(s.items, Item{
		Name: name, Class: pt.class, Count: n, Requests: c.requests, Requires: required,
		Tags: pt.tags, Limits: pt.limits, Priority: c.priority,
	})
	s.parts = append(s.parts, itemPart{i, d, pt.stage, pt.domains[d].text()})
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

// remap rewrites the picks from parts and domains to items.
func (s *State) remap() {
	at := map[[2]int]int{}
	for i, ip := range s.parts {
		at[[2]int{ip.part, ip.domain}] = i
	}
	for i := range s.picks {
		s.picks[i] = pick{part: at[[2]int{s.picks[i].part, s.picks[i].domain}], count: s.picks[i].count}
	}
}

// Advance takes what became of the round. Where an item could not be placed whole, its domain holds no more than what
// was placed, and everything is settled again with that knowledge; where all were placed, or no fact is new, the state
// is done.
func (s *State) Advance(o Outcome) *State {
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
	next := facts{caps: map[capKey]int{}, closed: s.facts.closed}
	for k, v := range s.facts.caps {
		next.caps[k] = v
	}
	news := false
	for i, it := range s.items {
		if placed[i] >= it.Count {
			continue
		}
		key := capKey{it.Class, s.parts[i].stage, s.parts[i].text}
		if have, ok := next.caps[key]; !ok || placed[i] < have {
			next.caps[key] = placed[i]
			// Only a class that has somewhere else to go makes another round worth it.
			news = news || s.p.elsewhere(it.Class, s.parts[i])
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

// elsewhere reports whether pods of the class that found no room may be settled differently: in another domain, with a
// preference less, or beside pods whose counts depend on them.
func (p *Problem) elsewhere(class int, at itemPart) bool {
	return at.text != "" || at.stage < len(p.Classes[class].soft)
}

// pods deals the members of each class out to items, in order.
func (s *State) pods() [][]*corev1.Pod {
	next := make([]int, len(s.p.Classes))
	out := make([][]*corev1.Pod, len(s.items))
	for i, it := range s.items {
		all := s.p.Classes[it.Class].Pods
		out[i] = all[next[it.Class] : next[it.Class]+it.Count]
		next[it.Class] += it.Count
	}
	return out
}
