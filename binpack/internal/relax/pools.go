package relax

import (
	"cmp"
	"math"
	"math/big"
	"math/bits"
	"slices"
)

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
	// Each class is bounded by the first or by the last diversity that counts it, or all by one.
	first, last, own := make([]int, len(m.Classes)), make([]int, len(m.Classes)), make([]int, len(m.Classes))
	for i := range first {
		counts := func(d Diversity) bool { return d.Counts[i] > 0 }
		first[i], last[i] = slices.IndexFunc(m.Diversity, counts), -1
		for d := range m.Diversity {
			if counts(m.Diversity[d]) {
				last[i] = d
			}
		}
	}
	ways := [][]int{first, last}
	for d := range min(len(m.Diversity), 1+mostGroups) {
		for i := range own {
			if own[i] = -1; m.Diversity[d].Counts[i] > 0 {
				own[i] = d
			}
		}
		ways = append(ways, slices.Clone(own))
	}
	for _, way := range ways {
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
