package relax

import (
	"cmp"
	"math"
	"slices"
)

// Knapsack looks for the most profitable filling of one bin. It reuses its memory, and is not safe
// for concurrent use.
type Knapsack struct {
	capacity   []int64
	dims       []int // the dimensions with capacity
	cand       []candidate
	weight     []float64 // by dimension: the dual of the whole capacity
	unit       []float64 // by resource: the dual of one unit
	byCost     []int     // candidates by decreasing cost
	suffix     []float64 // by place in byCost: the profit above cost of the candidates from there on
	dense      []float64 // by place in byCost and resource: the highest profit per unit from there on
	free       []int64
	count      []int64
	best       []int64
	ranked     bool
	fixed      []int64 // by candidate: copies that a search does not change
	bestProfit float64
	nodes      int
	steps      int
	limit      int
	target     float64
	order      []int
	ratio      []float64
	parts      []float64 // sizes of the candidates in order
	left       []float64 // by dimension: the free fraction of the bin
	size       []float64 // by candidate and dimension: the size as a fraction of the bin
	whole      []int64   // by candidate and resource: the size
	solver     fractional
}

type candidate struct {
	class  int32
	most   int64
	profit float64
	cost   float64 // the size times the weights
}

// Load sets the bin and the candidates: the eligible classes with positive profit and count that
// fit. It reports whether there are any.
func (s *Knapsack) Load(capacity []int64, classes []Class, eligible func(class int) bool, profits []float64) bool {
	s.capacity = capacity
	s.cand, s.whole = s.cand[:0], s.whole[:0]
	for i := range classes {
		c := &classes[i]
		if profits[i] <= 0 || c.Count == 0 || !eligible(i) {
			continue
		}
		if most := Copies(capacity, c.Size, min(c.Count, c.Most)); most > 0 {
			s.cand = append(s.cand, candidate{class: int32(i), most: most, profit: profits[i]})
			s.whole = append(s.whole, c.Size...)
		}
	}
	s.dims = s.dims[:0]
	for r, c := range capacity {
		if c > 0 {
			s.dims = append(s.dims, r)
		}
	}
	n, d := len(s.cand), len(s.dims)
	s.size = sized(s.size, n*d)
	for i := range s.cand {
		size := s.wholeOf(i)
		for k, r := range s.dims {
			s.size[i*d+k] = float64(size[r]) / float64(capacity[r]) // independent of the unit of the resource
		}
	}
	s.steps += 2 * n * d
	return n > 0
}

// wholeOf returns the size of a candidate.
func (s *Knapsack) wholeOf(i int) []int64 { return s.whole[i*len(s.capacity) : (i+1)*len(s.capacity)] }

// Steps returns the work since the last call.
func (s *Knapsack) Steps() int {
	n := s.steps
	s.steps = 0
	return n
}

// Bound returns an upper bound on the profit of a filling, from the fractional knapsack, rounded
// up. It does not sharpen a bound of enough or less.
func (s *Knapsack) Bound(enough float64) float64 {
	all := 0.0
	for i := range s.cand {
		all += float64(s.cand[i].profit * float64(s.cand[i].most))
	}
	s.weight = s.solver.solve(s.cand, s.size, len(s.dims), s.weight[:0])
	s.steps += 8 * len(s.cand) * len(s.dims)
	sum := s.weigh()
	if sum*(1+Slack) > enough && s.scarce() {
		s.sharpen()
		s.steps += 8 * len(s.cand) * (len(s.dims) + 4)
		sum = s.weigh()
	}
	s.ranked = false
	s.count, s.best, s.fixed = zeros(s.count, len(s.cand)), zeros(s.best, len(s.cand)), zeros(s.fixed, len(s.cand))
	s.free = append(s.free[:0], s.capacity...)
	s.bestProfit = 0
	return min(sum, all) * (1 + Slack)
}

// rank orders the candidates for a search of at most limit steps, once after each Bound. Long
// searches have a second pruning rule by the profit per unit of one resource, which is slow to
// prepare.
func (s *Knapsack) rank(limit int) {
	const long = 1000
	n, d := len(s.cand), len(s.capacity)
	if !s.ranked {
		s.ranked = true
		s.unit = zeros(s.unit, d)
		for k, r := range s.dims {
			s.unit[r] = s.weight[k] / float64(s.capacity[r])
		}
		s.byCost = s.byCost[:0]
		for i := range n {
			s.byCost = append(s.byCost, i)
		}
		slices.SortFunc(s.byCost, func(a, b int) int { return cmp.Or(cmp.Compare(s.cand[b].cost, s.cand[a].cost), cmp.Compare(a, b)) })
		s.suffix = zeros(s.suffix, n+1)
		for k, i := range slices.Backward(s.byCost) {
			c := &s.cand[i]
			s.suffix[k] = s.suffix[k+1] + float64(max(0, c.profit-c.cost)*float64(c.most))
		}
		s.dense = s.dense[:0]
	}
	switch {
	case limit < long:
		s.dense = s.dense[:0]
	case len(s.dense) == 0:
		s.dense = zeros(s.dense, (n+1)*d)
		for k, i := range slices.Backward(s.byCost) {
			for r, size := range s.wholeOf(i) {
				s.dense[k*d+r] = max(s.dense[(k+1)*d+r], s.cand[i].profit/float64(size)) // infinite if it takes none
			}
		}
	}
}

// sized returns a slice of n elements, in the memory of v if it suffices.
func sized[T any](v []T, n int) []T { return slices.Grow(v[:0], n)[:n] }

// zeros returns n zeros, in the memory of v if it suffices.
func zeros[T any](v []T, n int) []T {
	v = sized(v, n)
	clear(v)
	return v
}

// weigh returns the bound that the weights give, and sets the cost of each candidate.
func (s *Knapsack) weigh() float64 {
	d := len(s.dims)
	sum := 0.0
	for _, w := range s.weight {
		sum += w
	}
	for i := range s.cand {
		cost := 0.0
		for k, w := range s.weight {
			cost += float64(w * s.size[i*d+k])
		}
		c := &s.cand[i]
		c.cost = cost
		if c.profit > cost {
			sum += float64((c.profit - cost) * float64(c.most))
		}
	}
	return sum
}

// scarce reports whether the count limits some candidate before the capacity does.
func (s *Knapsack) scarce() bool {
	for i := range s.cand {
		most := s.cand[i].most
		if Copies(s.capacity, s.wholeOf(i), most+1) > most {
			return true
		}
	}
	return false
}

// sharpen lowers the weights where counts limit candidates: all dimensions together, then one by
// one. Any weights give a bound; each move is the best in its direction.
func (s *Knapsack) sharpen() {
	sum := 0.0
	for _, w := range s.weight {
		sum += w
	}
	theta := s.dantzig(sum, func(i int) (float64, float64) { return s.cand[i].profit, s.cand[i].cost })
	for k := range s.weight {
		s.weight[k] *= theta
	}
	if len(s.dims) > 1 {
		s.descendWeights()
		s.descendWeights()
	}
}

// descendWeights moves each weight to its best value in turn.
func (s *Knapsack) descendWeights() {
	d := len(s.dims)
	for k := range s.weight {
		s.weight[k] = s.dantzig(1, func(i int) (float64, float64) {
			v := s.cand[i].profit
			for j, w := range s.weight {
				if j != k {
					v -= float64(w * s.size[i*d+j])
				}
			}
			return v, s.size[i*d+k]
		})
	}
}

// Sharpest returns Bound(enough), and sharpens it further as long as it is above enough and each
// step gains.
func (s *Knapsack) Sharpest(enough float64) float64 {
	bound := s.Bound(enough)
	for bound > enough {
		s.descendWeights()
		s.steps += 4 * len(s.cand) * (len(s.dims) + 1)
		before := bound
		if bound = min(bound, s.weigh()*(1+Slack)); bound > before*(1-sharpened) {
			break
		}
	}
	return bound
}

// dantzig returns the t >= 0 that minimises c*t + sum of most*max(0, v-g*t). That is the highest
// ratio v/g down to which the g of all copies sum up to c. It is found as in quickselect, because
// this is called more often than anything else.
func (s *Knapsack) dantzig(c float64, of func(i int) (v, g float64)) float64 {
	s.ratio, s.parts = s.ratio[:0], s.parts[:0]
	for i := range s.cand {
		if v, g := of(i); v > 0 && g > 0 {
			s.ratio, s.parts = append(s.ratio, v/g), append(s.parts, float64(g*float64(s.cand[i].most)))
		}
	}
	ratio, mass := s.ratio, s.parts
	for len(ratio) > 0 {
		n := len(ratio)
		low, pivot, high := ratio[0], ratio[n/2], ratio[n-1]
		pivot = max(min(low, pivot), min(max(low, pivot), high)) // the median of three
		above, at, below := 0.0, 0.0, n                          // those above the pivot come first, then those at it
		first := 0
		for k := 0; k < below; {
			switch {
			case ratio[k] > pivot:
				above += mass[k]
				ratio[k], ratio[first], mass[k], mass[first] = ratio[first], ratio[k], mass[first], mass[k]
				first++
				k++
			case ratio[k] < pivot:
				below--
				ratio[k], ratio[below], mass[k], mass[below] = ratio[below], ratio[k], mass[below], mass[k]
			default:
				at += mass[k]
				k++
			}
		}
		switch {
		case above >= c:
			ratio, mass = ratio[:first], mass[:first]
		case above+at >= c:
			return pivot
		default:
			c -= above + at
			ratio, mass = ratio[below:], mass[below:]
		}
	}
	return 0
}

// Fill packs greedily. A candidate's score is its similarity to the free capacity, times the square
// root of its profit, times the eighth power of its profit per cost. It returns the best profit
// since Bound. Call it after Bound.
func (s *Knapsack) Fill() float64 {
	clear(s.count)
	copy(s.free, s.capacity)
	d := len(s.dims)
	s.order, s.ratio, s.parts = s.order[:0], s.ratio[:0], s.parts[:0]
	profit := 0.0
	for i := range s.cand {
		c := &s.cand[i]
		norm := 0.0
		for _, size := range s.size[i*d : (i+1)*d] {
			norm += float64(size * size)
		}
		ratio := 1 / math.Sqrt(max(norm, 1e-300)) * math.Sqrt(c.profit) // roots are the same on every processor, powers are not
		density := c.profit / max(c.cost, 1e-300)
		density *= density
		density *= density
		ratio *= density * density // its eighth power
		s.order, s.ratio = append(s.order, i), append(s.ratio, ratio)
		s.parts = append(s.parts, s.size[i*d:(i+1)*d]...)
	}
	for {
		s.steps += len(s.order)*d/2 + d
		at := s.fittest(d)
		if at < 0 {
			break
		}
		i := s.order[at]
		c, whole := &s.cand[i], s.wholeOf(i)
		k := Copies(s.free, whole, c.most-s.count[i])
		if k == 0 { // a rounding error in fittest
			s.drop(at, d)
			continue
		}
		k = max(1, k/4)
		for r, size := range whole {
			s.free[r] -= k * size
		}
		profit += float64(float64(k) * c.profit)
		if s.count[i] += k; s.count[i] == c.most {
			s.drop(at, d)
		}
	}
	if profit > s.bestProfit {
		s.bestProfit = profit
		copy(s.best, s.count)
	}
	return s.bestProfit
}

// drop removes the candidate at the place from order, ratio and parts.
func (s *Knapsack) drop(at, d int) {
	last := len(s.order) - 1
	s.order[at], s.ratio[at] = s.order[last], s.ratio[last]
	copy(s.parts[at*d:(at+1)*d], s.parts[last*d:])
	s.order, s.ratio, s.parts = s.order[:last], s.ratio[:last], s.parts[:last*d]
}

// fittest returns the place of the candidate with the highest score, or -1. It drops those that no
// longer fit. This is the innermost loop of the package.
func (s *Knapsack) fittest(d int) int {
	s.left = sized(s.left, d)
	left := s.left
	for k, r := range s.dims {
		left[k] = float64(s.free[r]) / float64(s.capacity[r]) * (1 + 1e-12)
	}
	best, most := -1, -1.0 // items without a size have the score 0
	for at := 0; at < len(s.order); {
		score, goes := 0.0, true
		part := s.parts[at*d : at*d+d]
		if d == 3 {
			a, b, c := part[0], part[1], part[2]
			goes = a <= left[0] && b <= left[1] && c <= left[2]
			score = float64(a*left[0]) + float64(b*left[1]) + float64(c*left[2])
		} else {
			for k, size := range part {
				goes = goes && size <= left[k]
				score += float64(size * left[k])
			}
		}
		if !goes {
			s.drop(at, d)
			continue
		}
		if score *= s.ratio[at]; score > most {
			best, most = at, score
		}
		at++
	}
	return best
}

// Search looks for the most profitable whole filling, in at most limit steps, and prunes what
// cannot exceed the target. Call it after Bound. done means that the search is complete: no filling
// exceeds the greater of profit and target.
func (s *Knapsack) Search(target float64, limit int) (profit float64, done bool) {
	s.rank(limit)
	clear(s.count)
	clear(s.fixed)
	copy(s.free, s.capacity)
	s.nodes, s.limit, s.target = 0, limit, target
	s.descend(0, 0)
	s.steps += s.nodes * (len(s.dims) + 4)
	return s.bestProfit, s.nodes < s.limit
}

func (s *Knapsack) descend(k int, profit float64) {
	if profit > s.bestProfit {
		s.bestProfit = profit
		for i, n := range s.count {
			s.best[i] = n + s.fixed[i]
		}
	}
	least := max(s.bestProfit, s.target)
	cost := 0.0
	for r, free := range s.free {
		cost += float64(s.unit[r] * float64(free))
	}
	var i int
	var c *candidate
	var whole []int64
	var n int64
	for ; n == 0; k++ { // skip what no longer fits
		if s.nodes++; s.nodes >= s.limit || k == len(s.cand) {
			return
		}
		most := cost + s.suffix[k]
		if len(s.dense) > 0 {
			for r, w := range s.dense[k*len(s.free) : (k+1)*len(s.free)] {
				if v := w * float64(s.free[r]); v < most { // NaN if nothing is free and it takes none
					most = v
				}
			}
		}
		if (profit+most)*(1+Slack) <= least {
			return
		}
		i = s.byCost[k]
		c, whole = &s.cand[i], s.wholeOf(i)
		n = Copies(s.free, whole, c.most-s.fixed[i])
	}
	for r, size := range whole {
		s.free[r] -= n * size
	}
	for s.count[i] = n; ; s.count[i]-- {
		s.descend(k, profit+float64(float64(s.count[i])*c.profit))
		if s.count[i] == 0 || s.nodes >= s.limit {
			break
		}
		for r, size := range whole {
			s.free[r] += size
		}
	}
	for r, size := range whole {
		s.free[r] += s.count[i] * size
	}
	s.count[i] = 0
}

// Improve removes a few items from the best filling and searches for a better completion, a few
// times. It returns the best profit.
func (s *Knapsack) Improve(rounds, limit int) float64 {
	s.rank(limit)
	n := len(s.cand)
	for round := range rounds {
		copy(s.fixed, s.best)
		copy(s.free, s.capacity)
		profit, out := 0.0, 0
		for k := range n { // remove one of every few
			i := s.byCost[k]
			if s.fixed[i] > 0 && (k+round)%(2+round) == 0 && out < 3+round {
				s.fixed[i]--
				out++
			}
			profit += float64(float64(s.fixed[i]) * s.cand[i].profit)
			for r, size := range s.wholeOf(i) {
				s.free[r] -= s.fixed[i] * size
			}
		}
		clear(s.count)
		before := s.bestProfit
		s.nodes, s.limit, s.target = 0, limit, 0
		s.descend(0, profit)
		s.steps += s.nodes*(len(s.dims)+4) + n
		if s.bestProfit <= before && round > 2 {
			break
		}
	}
	return s.bestProfit
}

// Found appends the best filling since Bound.
func (s *Knapsack) Found(to Pattern) Pattern {
	for i, n := range s.best { // candidates are in the order of classes
		if n > 0 {
			to = append(to, Amount{s.cand[i].class, n})
		}
	}
	return to
}
