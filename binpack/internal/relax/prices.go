package relax

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"slices"

	"github.com/joinery-sdk/joinery/binpack/internal/lp"
)

// typeGroups partitions the bin types by the classes that may go into them, and has resource duals
// for each group. A group that classes must go into has higher duals than a cheap group that few
// may enter.
type typeGroups struct {
	m     *Model
	of    []int   // by bin type: its group; -1 if no class may go there
	types [][]int // by type group
	group []int   // by class: its demand group, whose classes may go to the same bin types with all that they need
	into  [][]int // by demand group: the type groups open to it
	most  int     // how many rows the programme may have
	// largest is the largest capacity on offer, by dimension, and 1 if there is none. Sizes,
	// capacities and prices are fractions of it, so that they do not depend on the unit of a
	// resource.
	largest []float64
}

func (m *Model) typeGroups() *typeGroups {
	s := &typeGroups{m: m, of: make([]int, len(m.BinTypes)), largest: m.largest()}
	for r := range s.largest {
		s.largest[r] = cmp.Or(s.largest[r], 1)
	}
	s.most = int(priceRows * math.Cbrt(float64(m.items())))
	sets, group := m.demandSets()
	s.group = group
	s.into = make([][]int, len(sets))
	known := map[string]int{}
	key := make([]byte, (len(sets)+7)/8)
	for k := range m.BinTypes {
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
			at = len(s.types)
			known[string(key)] = at
			s.types = append(s.types, nil)
			for g, set := range sets {
				if has(set, k) {
					s.into[g] = append(s.into[g], at)
				}
			}
		}
		s.of[k] = at
		s.types[at] = append(s.types[at], k)
	}
	return s
}

// demandSets returns the distinct sets of bin types that are open to some class and have all that
// it needs, and the set of each class.
func (m *Model) demandSets() (sets [][]uint64, group []int) {
	having := make([][]uint64, m.Dims) // by dimension: the bin types that have any of it
	for r := range having {
		having[r] = make([]uint64, (len(m.BinTypes)+63)/64)
		for k := range m.BinTypes {
			if m.BinTypes[k].Capacity[r] > 0 {
				having[r][k/64] |= 1 << (k % 64)
			}
		}
	}
	group = make([]int, len(m.Classes))
	known := map[string]int{}
	var key []byte
	for i := range m.Classes {
		set := slices.Clone(m.Classes[i].BinTypes)
		for r, size := range m.Classes[i].Size {
			for w := range set {
				if size > 0 {
					set[w] &= having[r][w]
				}
			}
		}
		key = key[:0]
		for _, w := range set {
			key = binary.LittleEndian.AppendUint64(key, w)
		}
		g, ok := known[string(key)]
		if !ok {
			g, sets = len(sets), append(sets, set)
			known[string(key)] = g
		}
		group[i] = g
	}
	return sets, group
}

// prices returns, by type group, the dual of the largest capacity of each dimension, for the counts
// of the classes. No capacity of an uncounted bin type then has a dual value above its price. If
// the programme would be large, all groups have the same duals.
func (s *typeGroups) prices(classes []Class, b *Budget) [][]float64 {
	m := s.m
	sum := make([]float64, m.Dims)
	flows := lp.Flows{
		Demand: make([][]float64, len(s.into)), Into: s.into, Capacity: make([][][]float64, len(s.types)), Prices: make([][]float64, len(s.types)), Stop: b.Stop,
	}
	for g := range s.into {
		flows.Demand[g] = make([]float64, m.Dims)
	}
	for i := range classes {
		for r, size := range classes[i].Size {
			asked := float64(float64(size) / s.largest[r] * float64(classes[i].Count))
			flows.Demand[s.group[i]][r] += asked
			if len(s.into[s.group[i]]) > 0 {
				sum[r] += asked
			}
		}
	}
	for at, types := range s.types {
		for _, k := range types {
			if typ := &m.BinTypes[k]; typ.Supply < 0 {
				flows.Capacity[at], flows.Prices[at] = append(flows.Capacity[at], s.available(typ)), append(flows.Prices[at], typ.Price)
			}
		}
	}
	all, steps := lp.Coverage(slices.Concat(flows.Capacity...), slices.Concat(flows.Prices...), sum, b.Stop)
	b.Take(steps / sumsInStep)
	if len(s.types) < 2 || s.rows() > s.most {
		return slices.Repeat([][]float64{all}, len(s.types))
	}
	apart, steps := flows.Duals()
	b.Take(steps / sumsInStep)
	return apart
}

// refine splits demand groups whose classes are cheapest in different type groups, and prices
// again. It ends when there is no such group, which is optimal, or when the programme is large. It
// returns the best prices, and the duals of the classes under them.
func (s *typeGroups) refine(b *Budget) (prices [][]float64, duals []float64) {
	for left := b.Left; ; {
		apart := s.prices(s.m.Classes, b)
		other, cheapest := s.duals(apart)
		if prices == nil || dualValue(other, s.m.Classes) > dualValue(duals, s.m.Classes) {
			prices, duals = apart, other
		}
		if s.rows() >= s.most || left-b.Left > left/refinePart || !s.split(cheapest) {
			return prices, duals
		}
	}
}

func (s *typeGroups) rows() int { return len(s.types)*s.m.Dims + len(s.into) }

// split splits each demand group by the type group where its classes are cheapest. It reports
// whether it split any.
func (s *typeGroups) split(cheapest []int32) bool {
	type part struct {
		group int
		at    int32
	}
	parts, n := map[part]int{}, len(s.into)
	first := slices.Repeat([]int32{-1}, n) // by demand group: the type group of its first class, which keeps the number
	for i, g := range s.group {
		if first[g] < 0 {
			first[g] = cheapest[i]
		}
		if first[g] == cheapest[i] {
			continue
		}
		to, ok := parts[part{g, cheapest[i]}]
		if !ok {
			to = len(s.into)
			parts[part{g, cheapest[i]}] = to
			s.into = append(s.into, s.into[g])
		}
		s.group[i] = to
	}
	return len(s.into) > n
}

// dualValue returns the dual value of all items.
func dualValue(duals []float64, classes []Class) float64 {
	sum := 0.0
	for i, v := range duals {
		sum += float64(v * float64(classes[i].Count))
	}
	return sum
}

// full returns the dual value of the whole capacity of each bin type, 0 if no class may go there.
func (s *typeGroups) full(prices [][]float64) []float64 {
	out := make([]float64, len(s.of))
	for k, at := range s.of {
		if at < 0 {
			continue
		}
		for r, c := range s.available(&s.m.BinTypes[k]) {
			out[k] += float64(c * prices[at][r])
		}
	}
	return out
}

// available returns the capacity without negative numbers, as fractions.
func (s *typeGroups) available(k *BinType) []float64 {
	out := make([]float64, len(k.Capacity))
	for r, c := range k.Capacity {
		out[r] = float64(max(c, 0)) / s.largest[r]
	}
	return out
}

// whole returns the duals without fractions, in the range that proofs accept.
func whole(duals []float64) []int64 {
	out := make([]int64, len(duals))
	for i, v := range duals {
		out[i] = int64(max(0, min(v, Largest)))
	}
	return out
}

// duals returns the dual of each class, the lowest dual value of an item over the type groups open
// to it, and that type group.
func (s *typeGroups) duals(prices [][]float64) (duals []float64, cheapest []int32) {
	duals, cheapest = make([]float64, len(s.m.Classes)), make([]int32, len(s.m.Classes))
	for i := range duals {
		for n, at := range s.into[s.group[i]] {
			value := 0.0
			for r, size := range s.m.Classes[i].Size {
				value += float64(float64(size) / s.largest[r] * prices[at][r])
			}
			if n == 0 || value < duals[i] {
				duals[i], cheapest[i] = value, int32(at)
			}
		}
	}
	return duals, cheapest
}

// poolDuals bounds what a proof must subtract for pools whose bins have dual values above their
// prices. Let W be the highest dual value that a pool may hold by its diversities. A bin with price
// p and a filling of at most w gives away at most (w-p)/w of its contents, so the pool gives away
// at most the highest such fraction of W. Without diversity, W is the dual value of everything, and
// such duals prove nothing.
type poolDuals struct {
	dualValue []*big.Int // by pool: W
	premium   []*big.Int // by pool: the most that it gives away
}

func (m *Model) poolDuals(duals []int64) *poolDuals {
	p := &poolDuals{}
	for k := range m.BinTypes {
		if n := int(m.BinTypes[k].Pool) + 1; n > len(p.dualValue) {
			p.dualValue = append(p.dualValue, make([]*big.Int, n-len(p.dualValue))...)
		}
	}
	p.premium = make([]*big.Int, len(p.dualValue))
	if len(p.dualValue) == 0 {
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
		for pool, sum := range m.mostByPool(duals, way, len(p.dualValue)) {
			if p.dualValue[pool] == nil || sum.Cmp(p.dualValue[pool]) < 0 {
				p.dualValue[pool] = sum
			}
		}
	}
	return p
}

// mostByPool returns the highest dual value that each pool may hold, if each class is bounded by
// one diversity or none.
func (m *Model) mostByPool(duals []int64, by []int, pools int) []*big.Int {
	rest := new(big.Int)
	bounded := make([][]int, len(m.Diversity))
	for i, v := range duals {
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
		slices.SortFunc(classes, func(a, b int) int { // by dual per count, exactly
			hi, lo := bits.Mul64(uint64(duals[a]), uint64(x.Counts[b]))
			h, l := bits.Mul64(uint64(duals[b]), uint64(x.Counts[a]))
			return cmp.Or(cmp.Compare(h, hi), cmp.Compare(l, lo), cmp.Compare(a, b))
		})
		known := map[int64]*big.Int{}
		for pool := 1; pool < pools; pool++ {
			sum, ok := known[x.Left[pool]]
			if !ok {
				sum = m.mostDual(duals, x, classes, x.Left[pool])
				known[x.Left[pool]] = sum
			}
			out[pool].Add(out[pool], sum)
		}
	}
	return out
}

// mostDual returns the highest dual value of items, of the sorted classes, that count at most left
// in total, rounded up.
func (m *Model) mostDual(duals []int64, x *Diversity, classes []int, left int64) *big.Int {
	sum := new(big.Int)
	for _, i := range classes {
		all := m.Classes[i].Count
		if fits := left / x.Counts[i]; fits < all {
			part := new(big.Int).Mul(big.NewInt(duals[i]), big.NewInt(left))
			return sum.Add(sum, part.Add(part, big.NewInt(x.Counts[i]-1)).Quo(part, big.NewInt(x.Counts[i])))
		}
		sum.Add(sum, new(big.Int).Mul(big.NewInt(duals[i]), big.NewInt(all)))
		left -= all * x.Counts[i]
	}
	return sum
}

// over records that a bin type of a pool has a filling with the dual value most, above its price.
func (p *poolDuals) over(typ *BinType, most float64) {
	w := big.NewInt(int64(math.Ceil(most)))
	off := new(big.Int).Sub(w, big.NewInt(int64(typ.Price)))
	off.Mul(off, p.dualValue[typ.Pool])
	off.Add(off, new(big.Int).Sub(w, big.NewInt(1))).Quo(off, w)
	if at := &p.premium[typ.Pool]; *at == nil || off.Cmp(*at) > 0 {
		*at = off
	}
}

// lift returns the given proof, or that of a multiple of the duals if it is better. A cheap pool
// holds a limited amount, so the duals of the remaining items may rise above its price. lift takes
// the factor with the highest dual value net of what pools give away. That is a concave, piecewise
// linear function of the factor, with breakpoints where a pool reaches its price.
func (m *Model) lift(duals []float64, proof Proof, b *Budget) Proof {
	if len(m.Diversity) == 0 || !b.Take(len(m.BinTypes)*len(m.Classes)*m.Dims*8) {
		return proof
	}
	type step struct{ factor, dualValue float64 }
	var knap Knapsack
	most := m.poolDuals(whole(duals)).dualValue
	limit, at := math.Inf(1), slices.Repeat([]float64{math.Inf(1)}, len(most)) // by pool: the factor from which it gives something away
	for k := range m.BinTypes {
		typ := &m.BinTypes[k]
		if b.Stopped() {
			return proof
		}
		if typ.Supply >= 0 || !m.Load(&knap, k, duals) {
			continue
		}
		factor := typ.Price / max(knap.Bound(0), 1e-9)
		if typ.Pool == 0 {
			limit = min(limit, factor)
			continue
		}
		at[typ.Pool] = min(at[typ.Pool], factor)
	}
	var steps []step
	for pool, sum := range most {
		if pool > 0 && !math.IsInf(at[pool], 1) {
			value, _ := new(big.Float).SetInt(sum).Float64()
			steps = append(steps, step{at[pool], value})
		}
	}
	slices.SortFunc(steps, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.factor, b.factor), cmp.Compare(a.dualValue, b.dualValue))
	})
	slope, factor := dualValue(duals, m.Classes), limit
	for _, s := range steps {
		if slope -= s.dualValue; slope <= 0 {
			factor = min(s.factor, limit)
			break
		}
	}
	if math.IsInf(factor, 1) || factor <= 1 {
		return proof
	}
	if lifted := m.Certify(duals, factor, b.Stop); lifted.Price > proof.Price {
		return lifted
	}
	return proof
}
