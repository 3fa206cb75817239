package scheduling

import (
	"fmt"
	"strings"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/topology"
)

// State is one point in the dialogue with a packer: [State.Round] says what to pack, [State.Advance] takes what came of
// it and gives the next state. States are immutable; each settles everything anew from the snapshot and from the facts
// that earlier rounds found out, so that no decision rests on one that was taken back.
type State struct {
	p       *Problem
	settled *topology.Settlement
	number  int
	items   []Item // one for each lot
	solved  bool
	last    Outcome
	dealt   dealt     // where solved
	bound   []binding // of what is dealt, where it is known

	attempt attempt
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
	// Requires is what the labels of the node must satisfy: of shapes and rooms, whose labels include pseudo-labels.
	Requires requirements.Alternatives
	Tags     []string
	Limits   []Limit
	// Priority orders items where not all of them can be placed, the higher first: what must be on one node, what earlier
	// attempts left over, then by the priorities of pods. The numbers say nothing else.
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
func (p *Problem) Start() *State { return p.state(p.topology.Start(), 0, attempt{}) }

// Number says which round this is, from 0. A state that is done has the number of the round whose outcome it stands for,
// which need not be the last: where pods are left over, others are let before them, and that may turn out worse.
func (s *State) Number() int { return s.number }

// Done reports whether the last outcome stands: everything was placed, or nothing more can be found out.
func (s *State) Done() bool { return s.solved }

// Round is what is to be packed now; it must not be modified.
func (s *State) Round() []Item { return s.items }

// state names what is to be packed, and gives it the priority of its pods.
func (p *Problem) state(settled *topology.Settlement, number int, a attempt) *State {
	s := &State{p: p, settled: settled, number: number, items: make([]Item, len(settled.Lots)), attempt: a}
	urgency := make([]int64, len(settled.Lots))
	for i := range settled.Lots {
		lot := &settled.Lots[i]
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
			class := settled.Parts[slot.Part].Class
			it.Pods[k] = ItemPods{class, slot.Count}
			if u := s.urgency(settled, class); k == 0 || u < urgency[i] {
				urgency[i] = u
			}
		}
		if lot.Node < 0 && len(lot.Bundles) > 0 && len(lot.Slots) == 1 && lot.Slots[0].Count == 1 {
			name.WriteString(" by itself") // others of its kind may stand there, too, in no bundle
		}
		if lot.Node >= 0 { // it has one place to go, which others can do without
			urgency[i] += 1 << 40
			name.WriteString(" on " + p.Rooms[lot.Node].Node.Name)
		}
		if lot.Seated {
			urgency[i] += 1 << 39
		}
		it.Name = name.String()
		s.items[i] = it
	}
	prioritize(s.items, urgency)
	return s
}

func (s *State) writeName(to *strings.Builder, slot topology.Slot) {
	pt := s.settled.Parts[slot.Part]
	to.WriteString(s.p.Classes[pt.Class].Name())
	if d := pt.Domains[slot.Domain]; len(d.Values) > 0 {
		to.WriteString(" in " + d.String())
	}
	if pt.Stage > 0 {
		fmt.Fprintf(to, " without %d preferences", pt.Stage)
	}
	if slot.Count > 1 {
		fmt.Fprintf(to, " x %d", slot.Count)
	}
}

// Advance takes what became of the round. Where pods could not be placed, their domain holds no more than what was
// placed, and everything is settled again with that knowledge; where all were placed, or nobody has anywhere else to go,
// the attempt is over. If it left pods over that something could hold, they go before the others in another attempt, a
// few times; the state that is done stands for the best.
func (s *State) Advance(o Outcome) *State {
	facts, news := s.settled.Learn(s.shortfall(o))
	if news && s.attempt.rounds+1 < maxRounds {
		return s.next(facts, s.attempt.again())
	}
	done := *s
	done.solved, done.last = true, o
	done.dealt = done.deal()
	return done.contest()
}

// With is a state that is done, for another outcome of the same round. That outcome must place everything that the one
// before placed: it stands without being learnt from.
func (s *State) With(o Outcome) *State {
	other := *s
	other.last, other.bound = o, nil
	other.dealt = other.deal()
	return &other
}

func (s *State) next(f topology.Facts, a attempt) *State {
	return s.p.state(s.p.topology.Settle(f), s.number+1, a)
}

// shortfall is how many pods of each part and domain found no place. Bundles are placed whole or not at all; of one that
// was not, a quarter is given up, so that what is left of it gets another try.
func (s *State) shortfall(o Outcome) func(part, domain int) int {
	missing := make([]int, len(s.items))
	for i := range s.items {
		missing[i] = s.items[i].Count
	}
	take := func(shares []Share) {
		for _, sh := range shares {
			missing[sh.Item] -= sh.Count
		}
	}
	for _, shares := range o.Rooms {
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
		slots := s.settled.Lots[i].Slots
		for k, sl := range slots {
			if k < len(slots)-1 && !s.settled.Parts[sl.Part].Follows() {
				continue // the pod that others follow can stay without them
			}
			short[[2]int{sl.Part, sl.Domain}] += n * max(1, (sl.Count+3)/4)
		}
	}
	return func(part, domain int) int { return short[[2]int{part, domain}] }
}
