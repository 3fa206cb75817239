package greedy

import (
	"maps"
	"math"
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
	groups []count
	nodes  []*node // existing ones, in their order
	bought []*node // the emptiest first, of equals the one that was so first
	seats  []Seat
}

// count is where the pods of a group are.
type count struct {
	sure     []map[string]int // on nodes whose value is decided, as seen by spreads of each number; nil where none has asked yet
	possible map[string]int   // on nodes that may have the value
	owners   map[string]int   // pods that keep away from the group, on nodes that may have the value
	total    int              // within one node
}

// Place places pods, given by their classes in the order in which they are taken. It costs O(laps x pods x nodes) tests;
// most are a look-up, for a node that has no room for a class once does not get any.
func (p *Problem) Place(order []int) Plan {
	s := &planner{p: p, groups: make([]count, len(p.Groups))}
	for i := range p.Groups {
		g := &p.Groups[i]
		s.groups[i] = count{sure: []map[string]int{counted(g.Running)}, possible: counted(g.Running), owners: counted(g.Owners)}
		for _, n := range g.Running {
			s.groups[i].total += n
		}
	}
	for i := range p.Nodes {
		old := &p.Nodes[i]
		n := newNode(i, old.Labels, []*Cell{{Labels: old.Labels, Rooms: [][]int64{old.Free}}}, len(old.Free))
		n.bind(old.Tags, old.Limits)
		s.nodes = append(s.nodes, n)
	}
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

// counted is a copy to count on with.
func counted(of map[string]int) map[string]int {
	if of == nil {
		return map[string]int{}
	}
	return maps.Clone(of)
}

// plan says what came of it.
func (s *planner) plan() Plan {
	out := Plan{Seats: s.seats, Bought: make([]requirements.Set, len(s.bought))}
	for _, n := range s.bought {
		least := math.Inf(1)
		for _, c := range n.cells {
			both, err := n.set.Intersect(c.Labels)
			if err != nil {
				continue
			}
			for _, size := range c.Sizes {
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
	for stage := range s.p.Classes[class].Stages {
		for _, n := range s.nodes {
			if s.add(n, class, stage) {
				return true
			}
		}
		for i, n := range s.bought {
			if s.add(n, class, stage) {
				s.fuller(i)
				return true
			}
		}
		for _, cells := range s.p.Pools {
			all := make([]*Cell, len(cells))
			for i := range cells {
				all[i] = &cells[i]
			}
			n := newNode(len(s.nodes)+len(s.bought), requirements.Set{}, all, len(s.p.Classes[class].Requests))
			if s.add(n, class, stage) {
				at, _ := slices.BinarySearchFunc(s.bought, n.pods+1, func(n *node, pods int) int { return n.pods - pods })
				s.bought = slices.Insert(s.bought, at, n)
				return true
			}
		}
	}
	return false
}

// fuller moves the node at a position, which has got one more pod, behind those that have fewer now.
func (s *planner) fuller(i int) {
	n := s.bought[i]
	for ; i+1 < len(s.bought) && s.bought[i+1].pods < n.pods; i++ {
		s.bought[i] = s.bought[i+1]
	}
	s.bought[i] = n
}

// add puts a pod on a node, if it can be there.
func (s *planner) add(n *node, class, stage int) bool {
	key := [2]int{class, stage}
	if n.never[key] {
		return false
	}
	c := &s.p.Classes[class]
	st := &c.Stages[stage]
	if !n.admits(st) {
		return false
	}
	used := slices.Clone(c.Requests)
	for r, q := range n.used {
		used[r] += q
	}
	never := true
	for asked := range st.Required.All() {
		set, err := n.set.Intersect(asked)
		if err != nil {
			continue
		}
		cells := open(n.cells, set, used)
		if len(cells) == 0 {
			continue
		}
		never = false // where others are may change
		where := narrowing{n: n, st: st, last: s.p.Last, base: set, set: set, cells: cells, used: used}
		if !s.settle(&where, c) {
			continue
		}
		n.set, n.cells, n.used = where.set, where.cells, used
		n.bind(st.Tags, st.Keeps)
		n.pods++
		s.seats = append(s.seats, Seat{class, n.number})
		s.record(n, c, st)
		return true
	}
	if never {
		n.never[key] = true
	}
	return false
}
