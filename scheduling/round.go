// Package scheduling plans pending pods onto existing nodes and nodes to buy, and explains why the
// others are unplaced.
//
// [Compile] reads a [Snapshot] once. Pods that are equal in everything that affects placement
// become a class. An instance type, as one pool offers it and without what its daemons take,
// becomes a shape. [Problem.Solve] then repeats rounds with a [Packer]: it assigns classes to
// domains, the packer says what fits, and it assigns again with that knowledge. The [Result] has
// the nodes to buy, the bindings in an order that kube-scheduler accepts, and the reasons.
//
// # What is decided here, and what by the packer
//
// This package decides domains, and the packer decides bins. A domain is a value of a label, such
// as a zone. In the end this package gives up bins whose pods have room elsewhere; see
// [Outcome.AsPacked]. A constraint on a domain (spread, affinity and anti-affinity over zones,
// capacity types or any label; volumes) becomes an assignment of pods to combinations of label
// values. A constraint within one node (host ports, anti-affinity and spread by hostname, attach
// limits) becomes tags and limits of items. Pods that must share a node become one bundle. Taints
// become a pseudo-label (a label that no node has), whose values pods accept or not.
//
// # What a plan promises
//
// Two plans are compared from the highest priority down. At the first priority at which they place
// different numbers of pods, more is better. Otherwise these decide in turn: larger requests
// placed, fewer pods that wait for leaving nodes, lower cost including the price of preferences
// given up, fewer preferences given up. A finished plan is verified: its pods are bound once more,
// one by one in its own order on its concrete nodes, by code that shares no reasoning with the
// planner. A pod that kube-scheduler would refuse is unplaced, with that reason.
//
// The work grows with classes, domains and offerings; only the verification grows with pods. The
// same snapshot gives the same result, whatever the order of its lists.
package scheduling

import (
	"context"
	"fmt"
	"slices"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/bind"
	"github.com/joinery-sdk/joinery/scheduling/internal/topology"
)

// Packer packs the items of a round onto existing nodes and nodes to buy. [Problem.Solve] calls it
// from one goroutine.
//
// The packer must keep within what may be bought: the limits of pools ([PoolState].Left and
// NodesLeft), the counts of offerings, and the quotas. Solve does not check that.
type Packer interface {
	// Pack packs a round. It must not modify round and problem. Pods that it places against their
	// constraints are unplaced again. When ctx ends, it returns the best outcome so far. An error
	// ends the search.
	Pack(ctx context.Context, p *Problem, r Round) (Outcome, error)
}

// Round is the items to pack.
type Round struct {
	// Number counts the rounds from 0.
	Number int
	Items  []Item
	// Final is set for the last calls. They pack a chosen round again, to find a plan that costs
	// less. Two rounds may be chosen, for example if pods are unplaced; [Result.Round] is the one
	// used. The outcome is used if it places all that the first packing placed, and the plan is not
	// worse. Calls without Final need no careful search for the lowest cost: there, cost only
	// decides between plans of the same pods.
	Final bool
}

// Solve works in rounds. It assigns pods to domains, calls the packer, and assigns again with the
// knowledge of what did not fit, until nothing changes. If pods are unplaced, it searches with
// other orders of assignment. Then it looks for a cheaper plan of the same pods, for example by
// giving up preferences or by buying nothing in a zone; see [Options.PreferencePrice] and
// [Options.LeaveZones]. When ctx ends, it returns the best plan so far, with [Result.Stopped] set;
// the first round is always packed. The error is the packer's, or names the invalid part of an
// outcome.
func (p *Problem) Solve(ctx context.Context, packer Packer) (*Result, error) {
	v := &solver{ctx: ctx, packer: packer}
	at, err := v.solve(p)
	if err == nil {
		at, err = v.decide(at)
	}
	if err != nil {
		return nil, err
	}
	final, draft, err := v.finish(at)
	if err != nil {
		return nil, err
	}
	best := final.consolidate()
	if (final.added > 0 || final.p.topology.Choice().Only != nil || len(final.unplaced()) > 0) && v.ctx.Err() == nil {
		best, draft, err = v.anew(p, best, draft)
	}
	if err != nil {
		return nil, err
	}
	return newResult(best, len(v.packed), v.stopped, draft), nil
}

// finish packs a plan for a low cost. draft says that the first packing was better.
func (v *solver) finish(at *state) (final *state, draft bool, err error) {
	o, err := at.pack(v.ctx, v.packer, true)
	if err != nil || o.sameLayout(at.last) { // an equal outcome is verified already
		return at, false, err
	}
	if final, _ = at.with(o).extend(); !final.covers(at) || at.p.compare(final, at) > 0 {
		return at, true, nil
	}
	return final, false, nil
}

// anew plans the placed pods alone and without facts, and returns the better plan. Facts about
// unplaced pods, and nodes that were added for one pod each, may cost more than the others need.
func (v *solver) anew(base *Problem, best *state, draft bool) (*state, bool, error) {
	d := decisions{solver: v, base: base, best: best}
	choice := topology.Choice{Only: best.placed, Gone: best.p.topology.Choice().Gone}
	other := d.plan(*base, choice, &topology.Assignment{}, base.options.Attempts)
	if other == nil {
		return best, draft, d.err
	}
	other, err := v.decide(other)
	if err != nil || base.comparePlaced(other, best) != 0 {
		return best, draft, err
	}
	final, rough, err := v.finish(other)
	if err != nil {
		return best, draft, err
	}
	if final = final.consolidate(); base.compare(final, best) >= 0 {
		return best, draft, nil
	}
	return final, rough, nil
}

// solver is a running [Problem.Solve].
type solver struct {
	ctx     context.Context
	packer  Packer
	packed  []packedRound
	placed  int  // the most pods that a round placed
	pods    int  // of all rounds
	stopped bool // ctx ended before the search did
}

// solve runs rounds until a state is solved.
func (v *solver) solve(p *Problem) (*state, error) {
	at := p.start()
	for !at.solved {
		at.number = slices.IndexFunc(v.packed, func(r packedRound) bool { return slices.EqualFunc(r.items, at.items, Item.equal) })
		if at.number < 0 {
			at.number = len(v.packed)
			o, err := at.pack(v.ctx, v.packer, false)
			if err != nil {
				return nil, err
			}
			v.packed = append(v.packed, packedRound{at.items, o})
			v.pods += p.pending()
			if p.options.Progress != nil {
				v.placed = max(v.placed, at.packed(o))
				p.options.Progress(len(v.packed), v.placed, p.pending())
			}
		}
		o := v.packed[at.number].outcome
		next := at.advance(o)
		if !next.solved && v.ctx.Err() != nil {
			next, v.stopped = at.stop(o), true
		}
		at = next
	}
	return at, nil
}

// packedRound is a round and its outcome, kept because another attempt may need it again.
type packedRound struct {
	items   []Item
	outcome Outcome
}

// Items returns the items of the first round, before any preference is given up for lack of
// capacity.
func (p *Problem) Items() []Item { return p.start().items }

// pack calls the packer and checks that its outcome is valid.
func (s *state) pack(ctx context.Context, packer Packer, final bool) (Outcome, error) {
	o, err := call(ctx, packer, s.p, Round{Number: s.number, Items: s.items, Final: final})
	if err != nil {
		return o, fmt.Errorf("scheduling: round %d: %w", s.number, err)
	}
	if len(o.Existing) > len(s.p.Existing) {
		return o, fmt.Errorf("scheduling: round %d: the packer fills %d existing nodes of %d", s.number, len(o.Existing), len(s.p.Existing))
	}
	agree := map[string]bool{}
	for b := range o.Bins {
		if x := &o.Bins[b]; x.Shape < 0 || x.Shape >= len(s.p.Shapes) || x.Offering < 0 || x.Offering >= len(s.p.Shapes[x.Shape].Offerings) {
			return o, fmt.Errorf("scheduling: round %d: bin %d: there is no offering %d of shape %d", s.number, b, x.Offering, x.Shape)
		}
		if err := s.labelsAgree(&o.Bins[b], agree); err != nil {
			return o, fmt.Errorf("scheduling: round %d: bin %d: %w", s.number, b, err)
		}
	}
	for _, list := range o.lists() {
		for _, sh := range list {
			if sh.Item < 0 || sh.Item >= len(s.items) || sh.Count < 0 {
				return o, fmt.Errorf("scheduling: round %d: a count of %d of item %d, of %d items, is invalid", s.number, sh.Count, sh.Item, len(s.items))
			}
		}
	}
	for i, n := range s.missing(o) {
		if n < 0 {
			return o, fmt.Errorf("scheduling: round %d: the packer places %d of item %s, but there are only %d", s.number, s.items[i].Count-n, s.items[i].Name, s.items[i].Count)
		}
	}
	return o, nil
}

// labelsAgree returns an error if the labels of a bin contradict those of its offering. known has
// what agreed before.
func (s *state) labelsAgree(b *OutcomeBin, known map[string]bool) error {
	if b.Labels.Len() == 0 {
		return nil
	}
	key := string(b.Labels.AppendKey(fmt.Appendf(nil, "%d %d ", b.Shape, b.Offering)))
	if known[key] {
		return nil
	}
	set, err := s.p.NodeLabels(b.Shape, b.Offering)
	if err == nil {
		_, err = set.Intersect(b.Labels)
	}
	known[key] = err == nil
	return err
}

// stop ends the search with the outcome of the present round or the best attempt, whichever is
// better.
func (s *state) stop(o Outcome) *state {
	done := s.with(o)
	if best := s.search.best; best != nil && s.p.compare(best, done) <= 0 {
		return best
	}
	return done
}

// packed returns how many pods the outcome places.
func (s *state) packed(o Outcome) int {
	pods := 0
	for i, n := range s.missing(o) {
		for _, part := range s.items[i].Pods {
			pods += part.Count * (s.items[i].Count - n)
		}
	}
	return pods
}

// covers reports whether the state places all that another outcome of the same round places.
func (s *state) covers(other *state) bool {
	own, others := s.missing(s.last), s.missing(other.last)
	for i := range own {
		if own[i] > others[i] {
			return false
		}
	}
	return len(s.bound) >= len(other.bound)
}

// state is an assignment and its items to pack. States are immutable. Each assigns all pods again,
// from the problem and the facts of earlier rounds.
type state struct {
	p        *Problem
	assigned *topology.Assignment
	number   int    // of the round, once it is packed
	items    []Item // one for each lot
	solved   bool
	last     Outcome
	search   search

	// If solved: the verified bindings, how many pods of each class they place, and why others were
	// refused.
	bound   []binding
	placed  []int
	refused map[int]bind.Refusal
	added   int // how many of the last bins the packer does not know
}

// Item is a number of equal units to pack: pods of one class, or bundles of pods that must share a
// node.
type Item struct {
	// Name is unique within the round.
	Name  string
	Count int
	// Pods are the pods of one unit.
	Pods []ItemPods
	// Requests is what one unit takes, in the order of Problem.Resources.
	Requests []int64
	// Requires is what the labels of a node must satisfy, including pseudo-labels. The node is an
	// existing one or a shape with an offering. Tags and Limits come with each unit; see [Limit].
	Requires requirements.Alternatives
	Tags     []string
	Limits   []Limit
	// Priority matters if not all items can be placed: those of higher priority go first. Items
	// that are tied to one node have the highest. Then come pods that earlier attempts could not
	// place, then pods by their own priority. Only the order of the numbers matters. It orders one
	// round of packing; whole plans are compared by the pods' own priority alone.
	Priority int32
}

// equal reports whether the items are the same to a packer.
func (it Item) equal(o Item) bool {
	return it.Count == o.Count && it.Priority == o.Priority && it.Name == o.Name && slices.Equal(it.Pods, o.Pods) && slices.Equal(it.Requests, o.Requests) &&
		slices.Equal(it.Limits, o.Limits) && slices.Equal(it.Tags, o.Tags) && it.Requires.Equal(o.Requires)
}

// ItemPods is a number of pods of a class.
type ItemPods struct{ Class, Count int }

// Share is a number of units of one item.
type Share struct {
	Item  int
	Count int
}

// Outcome is a packed round.
type Outcome struct {
	// Existing[i] is what Problem.Existing[i] takes. The list may be shorter than that.
	Existing [][]Share
	// Bins are the nodes to buy.
	Bins []OutcomeBin
	// AsPacked keeps the new nodes as they are packed; so does [Options.Apart]. Otherwise the plan
	// gives up a new node if its pods have room on other nodes, or on further new nodes that cost
	// less. It is for packers that optimize something else than the price of offerings.
	AsPacked bool
}

// OutcomeBin is one node to buy.
type OutcomeBin struct {
	// Shape is an index into Problem.Shapes, and Offering one into the offerings of that shape.
	Shape, Offering int
	// Needed are further pairs of Shape and Offering, for MinValues; limits count the most of all.
	Needed [][2]int
	// Labels narrow the labels of shape and offering to what the pods ask for, if it is not zero.
	Labels requirements.Set
	Shares []Share
}

// lists returns the shares of each existing node, then those of each bin.
func (o *Outcome) lists() [][]Share {
	out := slices.Clone(o.Existing)
	for b := range o.Bins {
		out = append(out, o.Bins[b].Shares)
	}
	return out
}

// sameLayout reports whether both have the same shares in the same bins, in the same order.
func (o *Outcome) sameLayout(other Outcome) bool {
	return slices.EqualFunc(o.Existing, other.Existing, slices.Equal) && slices.EqualFunc(o.Bins, other.Bins, func(a, b OutcomeBin) bool {
		return a.Shape == b.Shape && a.Offering == b.Offering && slices.Equal(a.Shares, b.Shares)
	})
}

// maxRounds limits the rounds of one attempt. One or two are usual. On random scenarios of 5 to
// 1,500 pods, attempts without the limit placed the same number of pods to within one in 4,000.
const maxRounds = 12

// start assigns domains for the first time.
func (p *Problem) start() *state { return p.state(p.topology.Start(), search{}) }

// state makes items from the lots of an assignment, with names and priorities.
func (p *Problem) state(assigned *topology.Assignment, at search) *state {
	s := &state{p: p, assigned: assigned, items: make([]Item, len(assigned.Lots)), search: at}
	urgencies := make([]urgency, len(assigned.Lots))
	var name []byte
	for i := range assigned.Lots {
		lot := &assigned.Lots[i]
		it := Item{Count: lot.Count, Requests: lot.Requests, Requires: lot.Required, Tags: lot.Tags, Limits: lot.Limits}
		name = name[:0]
		for k, slot := range lot.Slots {
			if k > 0 {
				name = append(name, " with "...)
			}
			name = s.appendName(name, slot)
			class := assigned.Classes[slot.Relaxed].Class
			it.Pods = append(it.Pods, ItemPods{class, slot.Count})
			if u := s.urgency(class); k == 0 || u.compare(urgencies[i]) < 0 {
				urgencies[i] = u
			}
		}
		if lot.Node < 0 && len(lot.Bundles) > 0 && len(lot.Slots) == 1 && lot.Slots[0].Count == 1 {
			name = append(name, " by itself"...) // pods of the same class and domain in no bundle have the plain name
		}
		if lot.Loose {
			name = append(name, " or elsewhere"...)
		}
		if lot.Node >= 0 { // it fits only this node
			urgencies[i].tied = 1
			name = append(append(name, " on "...), p.Existing[lot.Node].Node.Name...)
		}
		it.Name = string(name)
		s.items[i] = it
	}
	prioritize(s.items, urgencies)
	return s
}

func (s *state) appendName(to []byte, slot topology.Slot) []byte {
	rc := s.assigned.Classes[slot.Relaxed]
	to = append(to, s.p.Classes[rc.Class].Name()...)
	if d := rc.Domains[slot.Domain]; len(d.Values) > 0 {
		to = append(append(to, " in "...), d.String()...)
	}
	if rc.Level > 0 {
		to = fmt.Appendf(to, " without %d preferences", rc.Level)
	}
	if slot.Count > 1 {
		to = fmt.Appendf(to, " x %d", slot.Count)
	}
	return to
}

// advance returns the state after an outcome. It is another round if the facts learnt from the
// outcome can change the assignment. Otherwise it is the first round of another attempt, or the
// best plan, which is solved.
func (s *state) advance(o Outcome) *state {
	if s.search.loose {
		if loose := s.with(o); s.p.comparePlaced(loose, s.search.best) <= 0 {
			return loose
		}
		return s.search.best
	}
	facts, news := s.assigned.Learn(s.shortfall(o))
	if news && s.search.rounds+1 < maxRounds {
		next := s.search
		next.rounds, next.all = next.rounds+1, next.all+1
		return s.p.state(s.p.topology.Assign(facts), next)
	}
	return s.with(o).conclude()
}

// with returns the state solved by an outcome of its round, verified.
func (s *state) with(o Outcome) *state {
	other := *s
	other.solved, other.last, other.added = true, o, 0
	other.verify(other.bindings())
	return &other
}

// missing returns how many of each item the outcome does not place.
func (s *state) missing(o Outcome) []int {
	missing := make([]int, len(s.items))
	for i := range s.items {
		missing[i] = s.items[i].Count
	}
	for _, list := range o.lists() {
		for _, sh := range list {
			missing[sh.Item] -= sh.Count
		}
	}
	return missing
}

// shortfall returns how many pods of each relaxed class and domain the outcome does not place. If a
// bundle is not placed, only a quarter of its pods count, so that the next round tries a smaller
// one.
func (s *state) shortfall(o Outcome) func(relaxed, domain int) int {
	short := map[[2]int]int{}
	for i, n := range s.missing(o) {
		if n <= 0 {
			continue
		}
		slots := s.assigned.Lots[i].Slots
		for k, sl := range slots {
			if k < len(slots)-1 && !s.assigned.Classes[sl.Relaxed].Follows {
				continue // the pod that others follow can be placed without them
			}
			short[[2]int{sl.Relaxed, sl.Domain}] += n * max(1, (sl.Count+3)/4)
		}
	}
	return func(relaxed, domain int) int { return short[[2]int{relaxed, domain}] }
}

// usedBy reports for each bin whether it has pods.
func usedBy(order []binding, bins int) []bool {
	used := make([]bool, bins)
	for _, b := range order {
		if b.at.bin >= 0 {
			used[b.at.bin] = true
		}
	}
	return used
}

// labelsOf returns the labels of a bin; none if they contradict each other.
func (s *state) labelsOf(bin int) requirements.Set {
	b := &s.last.Bins[bin]
	labels, _ := s.p.NodeLabels(b.Shape, b.Offering)
	labels, _ = labels.Intersect(b.Labels)
	return labels
}

// IsComplete reports whether every unplaced pod is one that no node could hold, even without other
// pods of the plan. Then no other order of the pods places more.
func (r *Result) IsComplete() bool { return len(r.state.unplaced()) == 0 }
