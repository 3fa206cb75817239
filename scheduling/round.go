package scheduling

import (
	"fmt"
	"strings"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/topology"
)

// State is one point in the dialogue with a packer: [State.Round] says what to pack, [State.Advance] takes what came of
// it and gives the next state. States are immutable; each assigns everything anew from the snapshot and from the facts
// that earlier rounds found out, so that no decision rests on one that was taken back.
type State struct {
	p        *Problem
	assigned *topology.Assignment
	number   int
	items    []Item // one for each lot
	solved   bool
	last     Outcome
	search   search

	// Where solved: which pod has a place where, verified, how many of each class, and what keeps out those that were refused.
	bound   []binding
	placed  []int
	refused map[int]string
}

// Preference is a soft constraint of a class; see [topology.Preference] for the order in which they are given up.
type Preference = topology.Preference

// Item is a number of things that are to be packed alike: pods of one class, or bundles of pods that must share a node.
type Item struct {
	// Name is unique within the round.
	Name  string
	Count int
	// Pods says what one of them is made of.
	Pods []ItemPods
	// Requests is what each takes, by Problem.Resources.
	Requests []int64
	// Requires is what the labels of the node must satisfy: of shapes and existing nodes, whose labels include pseudo-labels.
	Requires requirements.Alternatives
	Tags     []string
	Limits   []Limit
	// Priority orders items where not all of them can be placed, the higher first: what must be on one node, what earlier
	// attempts could not place, then by the priorities of pods. The numbers say nothing else.
	Priority int32
}

// ItemPods is a number of pods of a class.
type ItemPods struct{ Class, Count int }

// Share is a number of copies of one item.
type Share struct {
	Item  int
	Count int
}

// Outcome is what a packer made of a round.
type Outcome struct {
	// Existing holds what each existing node takes, by position in Problem.Existing; it may be shorter.
	Existing [][]Share
	// Bins are the nodes to buy.
	Bins []OutcomeBin
}

// OutcomeBin is one node to buy.
type OutcomeBin struct {
	// Shape is an index into Problem.Shapes, Offering one into its offerings.
	Shape, Offering int
	// Labels are what the pods there leave of the shape's and the offering's. The zero value leaves everything.
	Labels requirements.Set
	Shares []Share
}

// maxRounds bounds the dialogue of one attempt. One or two rounds are usual; every round adds at least one fact. Without the bound
// random scenarios of 5 to 1,500 pods placed as many pods, within one in 4,000.
const maxRounds = 12

// Start assigns domains for the first time. Where pods are unplaced, it tries again with the domains closed that only stand in
// their way, and keeps what places more.
func (p *Problem) Start() *State { return p.state(p.topology.Start(), 0, search{}) }

// Number says which round this is, from 0. A state that is done has the number of the round whose outcome it stands for,
// which need not be the last: where pods are unplaced, they go first in another attempt, and that may turn out worse.
func (s *State) Number() int { return s.number }

// Done reports whether the last outcome stands: everything was placed, or nothing more can be found out.
func (s *State) Done() bool { return s.solved }

// Round is what is to be packed now; it must not be modified.
func (s *State) Round() []Item { return s.items }

// state names what is to be packed, and gives it the priority of its pods.
func (p *Problem) state(assigned *topology.Assignment, number int, at search) *State {
	s := &State{p: p, assigned: assigned, number: number, items: make([]Item, len(assigned.Lots)), search: at}
	urgencies := make([]urgency, len(assigned.Lots))
	for i := range assigned.Lots {
		lot := &assigned.Lots[i]
		it := Item{
			Count: lot.Count, Requests: lot.Requests, Requires: lot.Required, Tags: lot.Tags, Limits: lot.Limits,
			Pods: make([]ItemPods, len(lot.Slots)),
		}
		var name strings.Builder
		for k, slot := range lot.Slots {
			if k > 0 {
				name.WriteString(" with ")
			}
			s.writeName(&name, slot)
			class := assigned.Classes[slot.Relaxed].Class
			it.Pods[k] = ItemPods{class, slot.Count}
			if u := s.urgency(class); k == 0 || u.compare(urgencies[i]) < 0 {
				urgencies[i] = u
			}
		}
		if lot.Node < 0 && len(lot.Bundles) > 0 && len(lot.Slots) == 1 && lot.Slots[0].Count == 1 {
			name.WriteString(" by itself") // others of its kind may stand there, too, in no bundle
		}
		if lot.Node >= 0 { // it has one place to go, which others can do without
			urgencies[i].tied = true
			name.WriteString(" on " + p.Existing[lot.Node].Node.Name)
		}
		it.Name = name.String()
		s.items[i] = it
	}
	prioritize(s.items, urgencies)
	return s
}

func (s *State) writeName(to *strings.Builder, slot topology.Slot) {
	rc := s.assigned.Classes[slot.Relaxed]
	to.WriteString(s.p.Classes[rc.Class].Name())
	if d := rc.Domains[slot.Domain]; len(d.Values) > 0 {
		to.WriteString(" in " + d.String())
	}
	if rc.Level > 0 {
		fmt.Fprintf(to, " without %d preferences", rc.Level)
	}
	if slot.Count > 1 {
		fmt.Fprintf(to, " x %d", slot.Count)
	}
}

// Advance takes what became of the round. Where pods could not be placed, their domain holds no more than what was
// placed, and everything is assigned again with that knowledge; where all were placed, or none has anywhere else to go,
// the attempt is over. If pods are unplaced that something could hold, they go before the others in another attempt, a
// few times; the state that is done stands for the best.
func (s *State) Advance(o Outcome) *State {
	facts, news := s.assigned.Learn(s.shortfall(o))
	if news && s.search.rounds+1 < maxRounds {
		next := s.search
		next.rounds++
		return s.p.state(s.p.topology.Assign(facts), s.number+1, next)
	}
	done := *s
	done.solved, done.last = true, o
	return done.conclude()
}

// With is a state that is done, for another outcome of the same round. It stands without being learnt from, as far as it
// can be verified.
func (s *State) With(o Outcome) *State {
	other := *s
	other.last = o
	other.verify()
	return &other
}

// shortfall is how many pods of each relaxed class and domain found no place. Bundles are placed whole or not at all; of one that
// was not, a quarter is given up, so that what is left of it gets another try.
func (s *State) shortfall(o Outcome) func(relaxed, domain int) int {
	missing := make([]int, len(s.items))
	for i := range s.items {
		missing[i] = s.items[i].Count
	}
	take := func(shares []Share) {
		for _, sh := range shares {
			missing[sh.Item] -= sh.Count
		}
	}
	for _, shares := range o.Existing {
		take(shares)
	}
	for _, b := range o.Bins {
		take(b.Shares)
	}
	short := map[[2]int]int{}
	for i, n := range missing {
		if n <= 0 {
			continue
		}
		slots := s.assigned.Lots[i].Slots
		for k, sl := range slots {
			if k < len(slots)-1 && !s.assigned.Classes[sl.Relaxed].Follows() {
				continue // the pod that others follow can stay without them
			}
			short[[2]int{sl.Relaxed, sl.Domain}] += n * max(1, (sl.Count+3)/4)
		}
	}
	return func(relaxed, domain int) int { return short[[2]int{relaxed, domain}] }
}
