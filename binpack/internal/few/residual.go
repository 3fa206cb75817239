package few

import (
	"cmp"
	"math"
	"slices"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
)

// Residual looks for the cheapest packing as a shortest path: from all things, bin by bin, to none. A bin costs its price less
// what is in it is worth, which is never negative for values that prove a bound; the path is as long as the packing costs more
// than the bound. What is left to be packed is a node, so it is for few classes, where many ways lead to the same rest. Of the
// bins it looks at those that hold one of the largest class that is left, that nothing left goes into as well, and that
// no cheaper kind could be. The model must have no counted kinds.
type Residual struct {
	m      *relax.Model
	value  []int64
	order  []int32  // classes, the largest first
	radix  []uint64 // by place in order
	kinds  []int    // by price
	bounds []roomBound
	spent  map[uint64]int64
	from   map[uint64]step
	queue  []rest
	budget *relax.Budget
	limit  int64

	count   []int64 // of the bin, by place
	left    []int64
	free    []int64
	tail    []int64   // by place: what things from there on are worth beyond their room
	all     []int64   // by place: what things from there on are worth
	perUnit []float64 // by place and resource: what a unit is worth to the class
	dense   []float64 // by place and resource: the most that a unit is worth to things from there on
}

// roomBound is what the room of a kind is worth by resource, as a knapsack's bound gives it.
type roomBound struct {
	weight []float64
	over   []int64 // by place: what a thing is worth beyond its room
	least  int64   // what no bin of the kind costs less than, its contents deducted
}

type step struct {
	before uint64
	kind   int
}

// rest is a state in the queue.
type rest struct {
	spent int64
	state uint64
}

// mostRests is how many rests are remembered: each takes some hundred bytes.
const mostRests = 1 << 19

// NewResidual is nil where there are too many different rests.
func NewResidual(m *relax.Model, value []int64, b *relax.Budget) *Residual {
	s := &Residual{m: m, value: value, budget: b, spent: map[uint64]int64{}, from: map[uint64]step{}}
	states := 1.0
	largest := make([]float64, m.Dims)
	for k := range m.Kinds {
		s.kinds = append(s.kinds, k)
		for r, c := range m.Kinds[k].Capacity {
			largest[r] = max(largest[r], float64(c))
		}
	}
	slices.SortStableFunc(s.kinds, func(a, b int) int { return cmp.Compare(m.Kinds[a].Price, m.Kinds[b].Price) })
	size := make([]float64, len(m.Classes))
	for i := range m.Classes {
		s.order = append(s.order, int32(i))
		states *= float64(m.Classes[i].Count + 1)
		for r, v := range m.Classes[i].Size {
			size[i] = max(size[i], float64(v)/max(largest[r], 1))
		}
	}
	if states > 1e8 { // a search would drown in them
		return nil
	}
	slices.SortStableFunc(s.order, func(a, b int32) int { return cmp.Compare(size[b], size[a]) })
	n := uint64(1)
	for _, i := range s.order {
		s.radix = append(s.radix, n)
		n *= uint64(m.Classes[i].Count + 1)
	}
	var knap relax.Knapsack
	worth := make([]float64, len(value))
	for i, v := range value {
		worth[i] = float64(v)
	}
	s.bounds = make([]roomBound, len(m.Kinds))
	for k := range m.Kinds {
		b := &s.bounds[k]
		b.weight, b.over = make([]float64, m.Dims), make([]int64, len(s.order))
		b.least = int64(m.Kinds[k].Price)
		if m.Load(&knap, k, worth) {
			b.least -= int64(min(m.Kinds[k].Price, knap.Bound(0)+1))
			b.weight = knap.PerUnit()
		}
		for at, i := range s.order {
			room := 0.0
			for r, v := range m.Classes[i].Size {
				room += b.weight[r] * float64(v)
			}
			if m.Classes[i].May(k) {
				b.over[at] = int64(math.Ceil(max(0, float64(value[i])-room*(1-relax.Slack))))
			}
		}
	}
	for _, i := range s.order {
		for _, v := range m.Classes[i].Size {
			s.perUnit = append(s.perUnit, float64(value[i])/float64(v)) // infinite where none is taken
		}
	}
	return s
}

// Below is the least cost of a packing under the limit, with the packing, or the limit where there is none. Less than that
// and no packing is what is sure when the budget is used up.
func (s *Residual) Below(limit int64) (int64, []relax.Column) {
	base := int64(0)
	start := uint64(0)
	for at, i := range s.order {
		base += s.value[i] * s.m.Classes[i].Count
		start += s.radix[at] * uint64(s.m.Classes[i].Count)
	}
	whole := limit - base
	if whole <= 0 {
		return limit, nil
	}
	s.left, s.count = make([]int64, len(s.order)), make([]int64, len(s.order))
	s.free, s.tail = make([]int64, s.m.Dims), make([]int64, len(s.order)+1)
	s.all, s.dense = make([]int64, len(s.order)+1), make([]float64, (len(s.order)+1)*s.m.Dims)
	known := base
	for part := int64(64); part > 0; part /= 2 { // short paths first: the longer they may be, the more there are
		s.limit = max(whole/part, 1)
		if part == 1 {
			s.limit = whole
		}
		low, done := s.shortest(start)
		known = max(known, base+low)
		if done && low < s.limit {
			return known, s.columns(start)
		}
		if !done {
			return known, nil
		}
	}
	return limit, nil
}

// shortest is the length of the shortest path under the limit, or the limit; less where it is not done.
func (s *Residual) shortest(start uint64) (length int64, done bool) {
	clear(s.spent)
	clear(s.from)
	s.queue = s.queue[:0]
	s.push(rest{0, start})
	for len(s.queue) > 0 {
		q := s.pop()
		if q.spent > s.spent[q.state] {
			continue
		}
		if q.state == 0 || len(s.spent) > mostRests {
			return q.spent, q.state == 0
		}
		if s.expand(q); s.budget.Left <= 0 {
			return q.spent, false
		}
	}
	return s.limit, true
}

func (s *Residual) expand(q rest) {
	first := -1
	for at, i := range s.order {
		s.left[at] = int64(q.state / s.radix[at] % uint64(s.m.Classes[i].Count+1))
		if first < 0 && s.left[at] > 0 {
			first = at
		}
	}
	d := s.m.Dims
	for at := len(s.order) - 1; at >= first; at-- {
		i := s.order[at]
		s.all[at] = s.all[at+1]
		dense := s.dense[at*d : (at+1)*d]
		copy(dense, s.dense[(at+1)*d:])
		if s.left[at] > 0 {
			s.all[at] += s.value[i] * s.left[at]
			for r, v := range s.perUnit[at*d : (at+1)*d] {
				dense[r] = max(dense[r], v)
			}
		}
	}
	largest := &s.m.Classes[s.order[first]]
	for n, k := range s.kinds {
		kind := &s.m.Kinds[k]
		b := &s.bounds[k]
		if b.least >= s.limit-q.spent || !largest.May(k) || relax.Copies(kind.Capacity, largest.Size, 1) == 0 {
			continue
		}
		for at := len(s.order) - 1; at >= first; at-- {
			s.tail[at] = s.tail[at+1] + b.over[at]*s.left[at]
		}
		s.budget.Left -= 2 * len(s.order)
		copy(s.free, kind.Capacity)
		clear(s.count)
		s.fill(q, n, first, first, int64(kind.Price))
	}
}

// fill decides on the number of things of the class at the place; cost is the price less what is in.
func (s *Residual) fill(q rest, n, first, at int, cost int64) {
	k := s.kinds[n]
	b := &s.bounds[k]
	if !s.budget.Take(2*s.m.Dims + 8) {
		return
	}
	room := 0.0
	for r, w := range b.weight {
		room += w * float64(s.free[r])
	}
	room += float64(s.tail[at])
	for r, w := range s.dense[at*s.m.Dims : (at+1)*s.m.Dims] {
		if v := w * float64(s.free[r]); v < room { // no number where nothing is free and none is taken
			room = v
		}
	}
	if cost-min(s.all[at], int64(room*(1+relax.Slack))+1) >= s.limit-q.spent {
		return
	}
	for at > first && at < len(s.order) && s.left[at] == 0 {
		at++
	}
	if at == len(s.order) {
		s.leaf(q, n, cost)
		return
	}
	c := &s.m.Classes[s.order[at]]
	most := int64(0)
	if c.May(k) {
		most = relax.Copies(s.free, c.Size, min(s.left[at], c.Most))
	}
	least := int64(0)
	if at == first {
		least = 1
	}
	for r, v := range c.Size {
		s.free[r] -= most * v
	}
	for x := most; x >= least; x-- {
		s.count[at] = x
		s.fill(q, n, first, at+1, cost-x*s.value[s.order[at]])
		if x > 0 {
			for r, v := range c.Size {
				s.free[r] += v
			}
		}
	}
	s.count[at] = 0
}

// leaf goes to the rest that the bin leaves.
func (s *Residual) leaf(q rest, n int, cost int64) {
	spent := q.spent + max(cost, 0)
	if spent >= s.limit {
		return
	}
	k := s.kinds[n]
	for at, i := range s.order {
		c := &s.m.Classes[i]
		if s.count[at] < min(s.left[at], c.Most) && c.May(k) && relax.Copies(s.free, c.Size, 1) > 0 {
			return
		}
	}
	for _, cheaper := range s.kinds[:n] {
		if s.holds(cheaper, k) {
			return
		}
	}
	state := q.state
	for at, x := range s.count {
		state -= s.radix[at] * uint64(x)
	}
	if old, ok := s.spent[state]; ok && old <= spent {
		return
	}
	s.from[state] = step{q.state, k}
	s.push(rest{spent, state})
}

// holds reports whether the cheaper kind holds what the bin of kind k holds.
func (s *Residual) holds(cheaper, k int) bool {
	for r, c := range s.m.Kinds[cheaper].Capacity {
		if s.m.Kinds[k].Capacity[r]-s.free[r] > c {
			return false
		}
	}
	for at, x := range s.count {
		if x > 0 && !s.m.Classes[s.order[at]].May(cheaper) {
			return false
		}
	}
	return true
}

// columns is the path from the start to nothing left.
func (s *Residual) columns(start uint64) []relax.Column {
	var out []relax.Column
	for state := uint64(0); state != start; {
		f := s.from[state]
		c := relax.Column{Kind: f.kind}
		for at, i := range s.order {
			size := uint64(s.m.Classes[i].Count + 1)
			if n := f.before/s.radix[at]%size - state/s.radix[at]%size; n > 0 {
				c.Class, c.Count = append(c.Class, i), append(c.Count, int32(n))
			}
		}
		c.Sort()
		out = append(out, c)
		state = f.before
	}
	slices.Reverse(out)
	return out
}

// push and pop keep the queue a binary heap.
func (s *Residual) push(x rest) {
	s.spent[x.state] = x.spent
	s.queue = append(s.queue, x)
	for i := len(s.queue) - 1; i > 0; {
		up := (i - 1) / 2
		if s.queue[up].before(s.queue[i]) {
			break
		}
		s.queue[up], s.queue[i] = s.queue[i], s.queue[up]
		i = up
	}
}

func (a rest) before(b rest) bool {
	return a.spent < b.spent || a.spent == b.spent && a.state <= b.state
}

func (s *Residual) pop() rest {
	q := s.queue
	top := q[0]
	last := len(q) - 1
	q[0] = q[last]
	s.queue = q[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			break
		}
		if down+1 < last && s.queue[down+1].before(s.queue[down]) {
			down++
		}
		if s.queue[i].before(s.queue[down]) {
			break
		}
		s.queue[i], s.queue[down] = s.queue[down], s.queue[i]
		i = down
	}
	return top
}
