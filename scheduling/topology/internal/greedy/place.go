package greedy

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/joinery-sdk/joinery/requirements"
)

// Seat is a pod and its node: the position of an existing one, or the number of those to buy, counted on from there.
type Seat struct{ Class, Node int }

// Plan is who goes where, in the order of placing.
type Plan struct {
	Seats []Seat
	// Bought are the labels of the nodes to buy: those of the cheapest offering that each can still be.
	Bought []requirements.Set
}

// planner is a plan as it grows.
type planner struct {
	p      *Problem
	stages [][]stage          // by class
	asks   []requirements.Set // what stages require
	labels []label
	groups []count
	pools  []pool
	nodes  []*node // existing ones, in their order
	bought []*node // the emptiest first
	seats  []Seat
	used   []int64 // what a node would have in use with one pod more
	tries  int
	random *rand.Rand // of a fixed seed
}

// count is where the pods of a group are.
type count struct {
	label    int     // the number of its label, -1 where it counts within one node
	values   []int   // those that an eligible node may have
	sure     []tally // on nodes whose value is decided, as seen by spreads of each number; nil where none has asked yet
	possible tally   // on nodes that may have the value
	owners   tally   // pods that keep away from the group, on nodes that may have the value
	total    int     // within one node
	version  int     // changes with the counts
}

func (p *Problem) newPlanner() *planner {
	s := &planner{p: p, groups: make([]count, len(p.Groups)), random: rand.New(rand.NewPCG(uint64(p.Ties), 0))}
	s.stages, s.asks = p.stages()
	at := map[string]int{}
	for i := range p.Groups {
		g, c := &p.Groups[i], &s.groups[i]
		for _, n := range g.Running {
			c.total += n
		}
		if c.label = -1; g.Within {
			continue
		}
		k, ok := at[g.Key]
		if !ok {
			k = len(s.labels)
			at[g.Key], s.labels = k, append(s.labels, label{name: g.Key, number: map[string]int{}})
		}
		l := &s.labels[k]
		c.label, c.values = k, l.all(g.Values)
		c.sure, c.possible, c.owners = []tally{l.tally(g.Running)}, l.tally(g.Running), l.tally(g.Owners)
	}
	for _, of := range p.Pools {
		s.pools = append(s.pools, newPool(of))
	}
	for i := range p.Nodes {
		old := &p.Nodes[i]
		itself := &market{exists: true, cells: []cell{{labels: old.Labels}}, forms: map[string]*form{}}
		if !overfull(old.Free) {
			itself.cells[0].rooms = [][]int64{old.Free}
		}
		n := newNode(i, itself.form(old.Labels), len(old.Free))
		n.bind(old.Tags, old.Limits)
		n.shared = slices.Clone(old.Shared)
		s.nodes = append(s.nodes, n)
	}
	return s
}

// Place places pods, given by their classes in the order in which they are taken. It costs O(laps x pods x nodes) tests;
// most are a look-up, for what a node of a form cannot take no other node of it can.
func (p *Problem) Place(order []int) Plan {
	s := p.newPlanner()
	for queue := order; len(queue) > 0; {
		var again []int
		for _, class := range queue {
			if !s.place(class) {
				again = append(again, class)
			}
		}
		if len(again) == len(queue) {
			break
		}
		queue = again
	}
	return s.plan()
}

// plan says what came of it.
func (s *planner) plan() Plan {
	out := Plan{Seats: s.seats, Bought: make([]requirements.Set, len(s.bought))}
	for _, n := range s.bought {
		least := math.Inf(1)
		for _, c := range n.form.cells {
			both, err := n.form.set.Intersect(c.labels)
			if err != nil {
				continue
			}
			for _, size := range c.sizes {
				if size.Price < least && fits(n.used, size.Room) {
					least, out.Bought[n.number-len(s.nodes)] = size.Price, both
				}
			}
		}
	}
	return out
}

// place finds a place for one pod, giving up its preferences one by one.
func (s *planner) place(class int) bool {
	for i := range s.stages[class] {
		st := &s.stages[class][i]
		s.tries++
		for _, n := range s.nodes {
			if s.add(n, class, st) {
				return true
			}
		}
		s.order()
		for _, n := range s.bought {
			if s.add(n, class, st) {
				return true
			}
		}
		for k := range s.pools {
			n := newNode(len(s.nodes)+len(s.bought), s.pools[k].anything, len(s.p.Classes[class].Requests))
			if s.add(n, class, st) {
				s.pools[k].charge(n)
				s.bought = append(s.bought, n)
				return true
			}
		}
	}
	return false
}

// order sorts the nodes to buy by their pods. Those that are as full as each other come in the order that this leaves them in, for
// Karpenter sorts in the same way, which is not stable.
func (s *planner) order() {
	slices.SortFunc(s.bought, func(a, b *node) int { return cmp.Compare(a.pods, b.pods) })
}

// add puts a pod on a node, if it can be there.
func (s *planner) add(n *node, class int, st *stage) bool {
	if n.isClosed(st.number) {
		return false
	}
	if !n.admits(st.Stage) {
		n.close(st.number)
		return false
	}
	c := &s.p.Classes[class]
	s.used = n.take(c, s.used)
	never := true
	for _, asked := range st.asks {
		base := n.form.ask(asked, s.asks[asked], len(st.asks) == 1)
		if base.shut == s.tries {
			never = false
			continue
		}
		if !base.holds(s.used) {
			continue
		}
		never = false // where others are may change
		where := narrowing{n: n, st: st, base: base, form: base}
		if !s.settle(&where, c) {
			continue
		}
		n.form = where.form
		copy(n.used, s.used)
		n.bind(st.Tags, st.Keeps)
		n.share(c)
		n.pods++
		s.seats = append(s.seats, Seat{class, n.number})
		s.record(n, c, st)
		return true
	}
	if never {
		n.close(st.number)
	}
	return false
}
