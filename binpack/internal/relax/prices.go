package relax

import (
	"cmp"
	"math"
	"math/big"
	"math/bits"
	"slices"

	"github.com/joinery-sdk/joinery/binpack/internal/lp"
)

// sorts are the kinds of a model by which classes may go into them. A unit of a resource is worth more in a sort that
// classes must go into than in one that is cheap but open to few of them, so each sort has prices of its own.
type sorts struct {
	m     *Model
	of    []int32   // by kind, its sort, -1 where nothing may go
	kinds [][]int32 // by sort
	group []int32   // by class: those of a group ask most of the same and may go to the same kinds, each of which has all of it
	into  [][]int32 // by group, its sorts
}

func (m *Model) sorts() *sorts {
	s := &sorts{m: m, group: make([]int32, len(m.Classes)), of: make([]int32, len(m.Kinds))}
	having := make([][]uint64, m.Dims) // by dimension, the kinds that have any of it
	largest := make([]float64, m.Dims)
	for r := range having {
		having[r] = make([]uint64, (len(m.Kinds)+63)/64)
		for k := range m.Kinds {
			if c := m.Kinds[k].Capacity[r]; c > 0 {
				having[r][k/64] |= 1 << (k % 64)
				largest[r] = max(largest[r], float64(c))
			}
		}
	}
	var sets [][]uint64 // by group
	var most []int      // by group, the dimension that they ask most of
	for i := range m.Classes {
		set := slices.Clone(m.Classes[i].Kinds)
		for r, size := range m.Classes[i].Size {
			for w := range set {
				if size > 0 {
					set[w] &= having[r][w]
				}
			}
		}
		d := m.asksMost(&m.Classes[i], largest)
		g := 0
		for g < len(sets) && (most[g] != d || !slices.Equal(sets[g], set)) {
			g++
		}
		if g == len(sets) {
			sets, most = append(sets, set), append(most, d)
		}
		s.group[i] = int32(g)
	}
	s.into = make([][]int32, len(sets))
	known := map[string]int32{}
	key := make([]byte, (len(sets)+7)/8)
	for k := range m.Kinds {
		clear(key)
		any := false
		for g, set := range sets {
			if has(set, k) {
				key[g/8] |= 1 << (g % 8)
				any = true
			}
		}
		if s.of[k] = -1; !any {
			continue
		}
		at, ok := known[string(key)]
		if !ok {
			at = int32(len(s.kinds))
			known[string(key)] = at
			s.kinds = append(s.kinds, nil)
			for g, set := range sets {
				if has(set, k) {
					s.into[g] = append(s.into[g], at)
				}
			}
		}
		s.of[k] = at
		s.kinds[at] = append(s.kinds[at], int32(k))
	}
	return s
}

// asksMost is the dimension of which a thing of the class takes the largest part.
func (m *Model) asksMost(c *Class, largest []float64) int {
	at, most := 0, 0.0
	for r, size := range c.Size {
		if part := float64(size) / max(largest[r], 1); part > most {
			at, most = r, part
		}
	}
	return at
}

// prices is what a unit of each dimension is worth, by sort, for so many things of each class: so much that no kind that never
// runs out offers its whole room for less. Where the programme would be large, all sorts have the same.
func (s *sorts) prices(classes []Class, b *Budget) [][]float64 {
	m := s.m
	sum, things := make([]float64, m.Dims), int64(0)
	flows := lp.Flows{Demand: make([][]float64, len(s.into)), Into: make([][]int, len(s.into)), Rooms: make([][][]float64, len(s.kinds)), Prices: make([][]float64, len(s.kinds))}
	for g, into := range s.into {
		flows.Demand[g] = make([]float64, m.Dims)
		for _, at := range into {
			flows.Into[g] = append(flows.Into[g], int(at))
		}
	}
	for i := range classes {
		things += classes[i].Count
		for r, size := range classes[i].Size {
			asked := float64(float64(size) * float64(classes[i].Count))
			flows.Demand[s.group[i]][r] += asked
			if len(s.into[s.group[i]]) > 0 {
				sum[r] += asked
			}
		}
	}
	for at, kinds := range s.kinds {
		for _, k := range kinds {
			if m.Kinds[k].Supply < 0 {
				flows.Rooms[at], flows.Prices[at] = append(flows.Rooms[at], m.Kinds[k].room()), append(flows.Prices[at], m.Kinds[k].Price)
			}
		}
	}
	all, steps := lp.Coverage(slices.Concat(flows.Rooms...), slices.Concat(flows.Prices...), sum)
	b.Take(steps / sumsInStep)
	same := slices.Repeat([][]float64{all}, len(s.kinds))
	if len(s.kinds) < 2 || float64(len(s.kinds)*m.Dims+len(s.into)) > priceRows*math.Cbrt(float64(things)) {
		return same
	}
	out, steps := flows.Values()
	b.Take(steps / sumsInStep)
	if s.worth(classes, out) > s.worth(classes, same) { // things of a group do not all ask in the same proportion
		return out
	}
	return same
}

// worth is what all things are worth.
func (s *sorts) worth(classes []Class, prices [][]float64) float64 {
	sum := 0.0
	for i := range classes {
		sum += float64(s.value(i, prices) * float64(classes[i].Count))
	}
	return sum
}

// room is the capacity, as far as there is any.
func (k *Kind) room() []float64 {
	out := make([]float64, len(k.Capacity))
	for r, c := range k.Capacity {
		out[r] = float64(max(c, 0))
	}
	return out
}

// values is what one of each class is worth.
func (s *sorts) values(prices [][]float64) []float64 {
	out := make([]float64, len(s.m.Classes))
	for i := range out {
		out[i] = s.value(i, prices)
	}
	return out
}

// value is the least that the room of one thing of the class is worth in any sort that it may go into.
func (s *sorts) value(class int, prices [][]float64) float64 {
	least := 0.0
	for n, at := range s.into[s.group[class]] {
		worth := 0.0
		for r, size := range s.m.Classes[class].Size {
			worth += float64(float64(size) * prices[at][r])
		}
		if n == 0 || worth < least {
			least = worth
		}
	}
	return least
}

// poolsWorth is what proofs take off for pools of kinds whose bins are worth more than their price. A pool holds no more than
// its diversities allow, so its bins are worth no more than the most valuable things that may be in it, W. A bin of a kind that
// can be filled with a worth of w at a price of p gives away at most the part (w-p)/w of what is in it, so the pool gives away
// at most the highest such part of W. Without a diversity W is everything, and values above a price prove nothing.
type poolsWorth struct {
	worth   []*big.Int // by pool, the most that may be in it
	premium []*big.Int // by pool, what its bins give away at most
}

func (m *Model) poolsWorth(value []int64) *poolsWorth {
	p := &poolsWorth{}
	for k := range m.Kinds {
		if n := int(m.Kinds[k].Pool) + 1; n > len(p.worth) {
			p.worth = append(p.worth, make([]*big.Int, n-len(p.worth))...)
		}
	}
	p.premium = make([]*big.Int, len(p.worth))
	if len(p.worth) == 0 {
		return p
	}
	// Each class is bounded by the first or by the last diversity that counts it.
	first, last := make([]int, len(m.Classes)), make([]int, len(m.Classes))
	for i := range first {
		first[i], last[i] = -1, -1
		for d := range m.Diversity {
			if m.Diversity[d].Counts[i] > 0 {
				last[i] = d
				if first[i] < 0 {
					first[i] = d
				}
			}
		}
	}
	for _, way := range [][]int{first, last} {
		for pool, sum := range m.worthByPool(value, way, len(p.worth)) {
			if p.worth[pool] == nil || sum.Cmp(p.worth[pool]) < 0 {
				p.worth[pool] = sum
			}
		}
	}
	return p
}

// worthByPool is what the things are worth that may be in each pool, where each class is bounded by one diversity or by none.
func (m *Model) worthByPool(value []int64, by []int, pools int) []*big.Int {
	rest := new(big.Int)
	bounded := make([][]int, len(m.Diversity))
	for i, v := range value {
		if by[i] < 0 {
			rest.Add(rest, new(big.Int).Mul(big.NewInt(v), big.NewInt(m.Classes[i].Count)))
		} else {
			bounded[by[i]] = append(bounded[by[i]], i)
		}
	}
	out := make([]*big.Int, pools)
	for pool := range out {
		out[pool] = new(big.Int).Set(rest)
	}
	for d, classes := range bounded {
		x := &m.Diversity[d]
		slices.SortFunc(classes, func(a, b int) int { // by what a count is worth, exactly
			hi, lo := bits.Mul64(uint64(value[a]), uint64(x.Counts[b]))
			h, l := bits.Mul64(uint64(value[b]), uint64(x.Counts[a]))
			return cmp.Or(cmp.Compare(h, hi), cmp.Compare(l, lo), cmp.Compare(a, b))
		})
		known := map[int64]*big.Int{}
		for pool := 1; pool < pools; pool++ {
			sum, ok := known[x.Left[pool]]
			if !ok {
				sum = m.mostWorth(value, x, classes, x.Left[pool])
				known[x.Left[pool]] = sum
			}
			out[pool].Add(out[pool], sum)
		}
	}
	return out
}

// mostWorth is what things of the classes, which are in order, are worth at most that count no more than left, rounded up.
func (m *Model) mostWorth(value []int64, x *Diversity, classes []int, left int64) *big.Int {
	sum := new(big.Int)
	for _, i := range classes {
		all := m.Classes[i].Count
		if fits := left / x.Counts[i]; fits < all {
			part := new(big.Int).Mul(big.NewInt(value[i]), big.NewInt(left))
			return sum.Add(sum, part.Add(part, big.NewInt(x.Counts[i]-1)).Quo(part, big.NewInt(x.Counts[i])))
		}
		sum.Add(sum, new(big.Int).Mul(big.NewInt(value[i]), big.NewInt(all)))
		left -= all * x.Counts[i]
	}
	return sum
}

// over takes note of a kind of a pool that can be filled with so much worth, more than its price.
func (p *poolsWorth) over(kind *Kind, most float64) {
	w := big.NewInt(int64(math.Ceil(most)))
	off := new(big.Int).Sub(w, big.NewInt(int64(kind.Price)))
	off.Mul(off, p.worth[kind.Pool])
	off.Add(off, new(big.Int).Sub(w, big.NewInt(1))).Quo(off, w)
	if at := &p.premium[kind.Pool]; *at == nil || off.Cmp(*at) > 0 {
		*at = off
	}
}

// lift is the proof of the values, or of a multiple of them that proves more. A pool that costs little holds only so much, so
// what the rest is worth rises above the pool's price until enough other pools come into reach: as many times as makes the
// worth of all, less what the pools give away, the most. That is a concave function of the factor, straight between those at
// which a pool is worth its price.
func (m *Model) lift(value []float64, proof Proof, b *Budget) Proof {
	if len(m.Diversity) == 0 || !b.Take(len(m.Kinds)*len(m.Classes)*m.Dims*8) {
		return proof
	}
	type step struct{ factor, worth float64 }
	var knap Knapsack
	whole := make([]int64, len(value))
	for i, v := range value {
		whole[i] = int64(max(0, min(v, Largest)))
	}
	worth := m.poolsWorth(whole).worth
	limit, at := math.Inf(1), slices.Repeat([]float64{math.Inf(1)}, len(worth)) // by pool, the factor from which on it gives something away
	for k := range m.Kinds {
		kind := &m.Kinds[k]
		if kind.Supply >= 0 || !m.Load(&knap, k, value) {
			continue
		}
		factor := kind.Price / max(knap.Bound(0), 1e-9)
		if kind.Pool == 0 {
			limit = min(limit, factor)
			continue
		}
		at[kind.Pool] = min(at[kind.Pool], factor)
	}
	var steps []step
	for pool, sum := range worth {
		if pool > 0 && !math.IsInf(at[pool], 1) {
			most, _ := new(big.Float).SetInt(sum).Float64()
			steps = append(steps, step{at[pool], most})
		}
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Or(cmp.Compare(a.factor, b.factor), cmp.Compare(a.worth, b.worth)) })
	slope, factor := 0.0, limit
	for i, v := range value {
		slope += float64(v * float64(m.Classes[i].Count))
	}
	for _, s := range steps {
		if slope -= s.worth; slope <= 0 {
			factor = min(s.factor, limit)
			break
		}
	}
	if math.IsInf(factor, 1) || factor <= 1 {
		return proof
	}
	if lifted := m.Certify(value, factor); lifted.Price > proof.Price {
		return lifted
	}
	return proof
}
