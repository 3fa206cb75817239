package relax

import (
	"fmt"
	"math"
	"math/big"
	"slices"
)

// Largest is the largest price that the proofs here handle: whole numbers up to it are exact in floating point.
const Largest = 1 << 52

// Slack is the relative margin that all bounds keep for the rounding of floating-point numbers.
//
// It suffices for Bound. Let u = 2^-53, d the number of dimensions, n that of candidates, W the sum of the weights, w the
// weights, which are exact as they stand. A size as a part of the room is the quotient of two rounded integers, so it is off
// by at most 3u of itself; the room of a candidate, a sum of d products of what is not negative, by (d+4)u of itself; its
// difference to the value by that and 2u of the difference. The bound is W plus the positive differences times the counts. As
// so many of a candidate as may go in fit the room by themselves, each part times the count is at most 1, and so the room of
// all of them is at most W: the errors of the differences add up to no more than n(d+4)uW, those of the sums to (n+d)u and
// that of the products to 2u of the bound, which is at least W. Together that is below (n+1)(d+8)u of the bound, which a proof
// makes sure is less than Slack (see Model.verify). Search prunes by the same sums over fewer terms, and by single products that are off by 4u.
// What is found is a sum of whole numbers below 2^53 as long as it is of use, and exact. Products that a processor fuses with
// sums are rounded less often, never more.
const Slack = 1e-10

// Proof is a bound with the values that prove it.
type Proof struct {
	// Value is what one of each class is worth, in whole units of price.
	Duals []int64
	Price int64
	// Searched says that some bin type's fillings had to be searched, for in fractions they are worth more than the bin.
	Searched bool
}

// verifySteps is how many steps a bin type's search may take when a proof is checked; a proof takes half of that at most.
const verifySteps = 200_000

// Prove makes a proof of the values, lowered as little as need be, searching at most steps a bin type. missing is a pattern
// that is worth more than its bin by more than rounding, where the search has met one.
func (m *Model) Prove(duals []float64, steps int, b *Budget) (proof Proof, missing []Column) {
	var knap Knapsack
	steps = min(steps, verifySteps/2)
	over := 0.0
	for k := range m.BinTypes {
		typ := &m.BinTypes[k]
		if typ.Supply >= 0 || !m.Load(&knap, k, duals) {
			continue
		}
		profitBound := knap.Bound(typ.Price)
		for profitBound > typ.Price*(1+over) {
			target := typ.Price * (1 + over)
			found, done := knap.Search(target, min(steps, max(b.Left/8, 1)))
			b.Take(knap.Steps())
			if found > typ.Price*(1+1e-7) {
				missing = append(missing, Column{k, knap.Found()})
			}
			if done && found <= target {
				break
			}
			next := profitBound/typ.Price - 1
			if done {
				next = found/typ.Price - 1
			} else if typ.Price > 0 {
				next = min(next, max(2*over, 0.0005))
			}
			if typ.Price == 0 {
				next = math.Inf(1)
			}
			over = max(next, over+1e-9)
			if found/max(typ.Price, 1e-9)-1 > over {
				over = found/typ.Price - 1
			}
		}
		b.Take(knap.Steps())
	}
	return m.Certify(duals, 1/(1+over)), missing
}

// proof makes the best proof of what column generation has found, or one that is so near to it, in at most so many rounds.
func (m *Model) proof(s *Master, near float64, rounds int, b *Budget) Proof {
	var best Proof
	if s.BestBound > 0 {
		best = m.Certify(s.BestDuals, 1)
	}
	s.Solve(b) // the patterns that came last when steps ran out
	// What the proof finds worth more than its bin has been missed by column generation, which goes on with it.
	for range rounds {
		if s.Objective() <= float64(best.Price)*(1+near) || b.Left <= 0 {
			break
		}
		proof, missing := m.Prove(s.Duals(), 100_000, b)
		if proof.Price > best.Price {
			best = proof
		}
		added := false
		for _, c := range missing {
			added = s.Add(c) || added
		}
		if !added {
			break
		}
		s.Generate(20, b)
	}
	return best
}

// Certify makes a proof of the values times a factor, if they are one.
func (m *Model) Certify(duals []float64, factor float64) Proof {
	return m.certify(duals, factor, nil, false)
}

// rounded is by how much the values of a proof are lowered, so that rounding raises none.
const rounded = 1e-9

// CertifyCoverage is what one of each class is worth by the prices of resources, and the proof that this makes. A bin type whose whole
// room is not worth more than its price needs no filling to be looked for. Nor does a counted one where looking for the best filling
// of each does not fit into the budget: none is worth more than the room.
func (m *Model) CertifyCoverage(b *Budget) (duals []float64, proof Proof) {
	s := m.typeGroups()
	prices := s.prices(m.Classes, b)
	duals = s.duals(prices)
	full, counted := make([]float64, len(m.BinTypes)), 0
	for k := range m.BinTypes {
		if s.of[k] < 0 {
			continue
		}
		for r, c := range m.BinTypes[k].Capacity {
			full[k] += float64(float64(max(c, 0)) * prices[s.of[k]][r])
		}
		if m.BinTypes[k].Supply >= 0 {
			counted++
		}
	}
	return duals, m.certify(duals, 1, full, counted*len(m.Classes)*m.Dims*countedSteps > b.Left/countedPart)
}

// certify is Certify where no filling of a bin type is worth more than its room, if there are rooms; quick takes that for counted bin types.
func (m *Model) certify(duals []float64, factor float64, full []float64, quick bool) Proof {
	proof := Proof{Duals: make([]int64, len(duals))}
	for i, v := range duals {
		if v *= factor * (1 - rounded); v > 0 && v < Largest {
			proof.Duals[i] = int64(v)
		}
	}
	var err error
	if proof.Price, proof.Searched, err = m.verify(proof.Duals, full, quick); err != nil {
		return Proof{Duals: make([]int64, len(duals))} // rounding, or a search that ends otherwise
	}
	return proof
}

// Load sets the knapsack to the bin of a bin type; it reports whether anything goes in.
func (m *Model) Load(knap *Knapsack, k int, duals []float64) bool {
	return knap.Load(m.BinTypes[k].Capacity, m.Classes, func(i int) bool { return has(m.Classes[i].BinTypes, k) }, duals)
}

// Verify is what the values prove: no bin of an uncounted bin type can be filled with more worth than its price, so all bins
// together cost at least the worth of all items, less what the counted ones may hold beyond theirs. searched says that
// this took a search and not only fractions.
func (m *Model) Verify(duals []int64) (price int64, searched bool, err error) {
	return m.verify(duals, nil, false)
}

// verify is Verify with what certify knows of rooms; sums of a few products round by far less than the values were lowered.
func (m *Model) verify(duals []int64, full []float64, quick bool) (price int64, searched bool, err error) {
	if float64(len(m.Classes)+1)*float64(m.Dims+8)*0x1p-53 > Slack {
		return 0, false, fmt.Errorf("%d classes are too many for the margin of rounding", len(m.Classes))
	}
	var knap Knapsack
	pools := m.poolDuals(duals)
	profits := make([]float64, len(duals))
	sum := new(big.Int)
	for i, v := range duals {
		if v < 0 || v > Largest {
			return 0, false, fmt.Errorf("value %d is out of range", v)
		}
		profits[i] = float64(v)
		sum.Add(sum, new(big.Int).Mul(big.NewInt(v), big.NewInt(m.Classes[i].Count)))
	}
	premium := make([]*big.Int, len(m.Supply))
	for k := range m.BinTypes {
		typ := &m.BinTypes[k]
		if full != nil && full[k] <= typ.Price*(1+rounded/10) {
			continue
		}
		most := 0.0
		if quick && typ.Supply >= 0 {
			most = full[k]
		} else if !m.Load(&knap, k, profits) {
			continue
		} else {
			most = knap.Bound(typ.Price)
		}
		if most > typ.Price && typ.Supply < 0 && typ.Pool > 0 {
			pools.over(typ, most)
			continue
		}
		if most > typ.Price && (!quick || typ.Supply < 0) {
			target := typ.Price
			if found, done := knap.Search(target, verifySteps); done {
				searched = searched || most > max(found, target)
				most = max(found, target)
			}
		}
		if most <= typ.Price {
			continue
		}
		if typ.Supply < 0 {
			return 0, searched, fmt.Errorf("kind %d can be filled with a worth of %.0f, its price is %.0f", typ.Label, most, typ.Price)
		}
		// For each unit of the supply that it takes, a bin is worth so much more than its price: all bins that share the supply
		// together no more than the highest of these times the supply, whatever mix they are.
		if takes := typ.takes(); takes <= m.Supply[typ.Supply] {
			over := new(big.Int).Mul(big.NewInt(int64(math.Ceil(most-typ.Price))), big.NewInt(m.Supply[typ.Supply]))
			over.Add(over, big.NewInt(takes-1)).Quo(over, big.NewInt(takes))
			if premium[typ.Supply] == nil || over.Cmp(premium[typ.Supply]) > 0 {
				premium[typ.Supply] = over
			}
		}
	}
	for _, p := range append(premium, pools.premium...) {
		if p != nil {
			sum.Sub(sum, p)
		}
	}
	if sum.Sign() <= 0 {
		return 0, searched, nil
	}
	if !sum.IsInt64() {
		return math.MaxInt64, searched, nil
	}
	return sum.Int64(), searched, nil
}

// fractional solves the knapsack in fractions, max value.n with the parts of each dimension at most 1, by the simplex
// method on as many rows as there are dimensions. It gives what each dimension is worth.
type fractional struct {
	inverse, x, y, dir []float64
	perProfit          []float64 // by candidate and dimension: the part of the bin that a unit of value takes
	basis              []int
}

func (f *fractional) solve(cand []candidate, size []float64, d int, out []float64) []float64 {
	grow := func(v []float64, n int) []float64 {
		if cap(v) < n {
			return make([]float64, n)
		}
		v = v[:n]
		clear(v)
		return v
	}
	f.inverse, f.x, f.y, f.dir = grow(f.inverse, d*d), grow(f.x, d), grow(f.y, d), grow(f.dir, d)
	f.perProfit = slices.Grow(f.perProfit[:0], len(size))[:len(size)]
	for i := range cand {
		per := 1 / cand[i].profit
		for k, v := range size[i*d : i*d+d] {
			f.perProfit[i*d+k] = v * per
		}
	}
	f.basis = f.basis[:0]
	for i := range d {
		f.inverse[i*d+i], f.x[i] = 1, 1
		f.basis = append(f.basis, -1-i)
	}
	for range 30 + 10*d {
		clear(f.y)
		for i, b := range f.basis {
			if b >= 0 {
				for k := range d {
					f.y[k] += float64(cand[b].profit * f.inverse[i*d+k])
				}
			}
		}
		enter := f.entering(len(cand), d)
		if enter == math.MinInt {
			break
		}
		for i := range d {
			f.dir[i] = 0
			for k := range d {
				if enter >= 0 {
					f.dir[i] += float64(f.inverse[i*d+k] * size[enter*d+k])
				} else if k == -1-enter {
					f.dir[i] += f.inverse[i*d+k]
				}
			}
		}
		leave, ratio := -1, math.Inf(1)
		for i := range d {
			if f.dir[i] > 1e-12 {
				if q := f.x[i] / f.dir[i]; q < ratio {
					leave, ratio = i, q
				}
			}
		}
		if leave < 0 {
			break
		}
		f.pivot(enter, leave, ratio, d)
	}
	// Whatever the rounding, weights must be worth every item: raise what is short.
	for _, y := range f.y {
		out = append(out, max(0, y))
	}
	return out
}

// entering is the candidate whose room costs the least part of its value, or the Slack of a dimension, if that pays.
func (f *fractional) entering(n, d int) int {
	best, least := math.MinInt, 1-1e-11
	if d == 3 { // cpu, memory and pods
		y0, y1, y2 := f.y[0], f.y[1], f.y[2]
		part := f.perProfit[:3*n]
		for i := 0; len(part) >= 3; i++ {
			if cost := float64(part[0]*y0) + float64(part[1]*y1) + float64(part[2]*y2); cost < least {
				best, least = i, cost
			}
			part = part[3:]
		}
	} else {
		for i := range n {
			cost := 0.0
			for k, v := range f.perProfit[i*d : i*d+d] {
				cost += float64(v * f.y[k])
			}
			if cost < least {
				best, least = i, cost
			}
		}
	}
	if best != math.MinInt {
		return best
	}
	for k := range d {
		if f.y[k] < -1e-12 {
			return -1 - k
		}
	}
	return best
}

func (f *fractional) pivot(enter, leave int, ratio float64, d int) {
	for i := range d {
		if i != leave {
			f.x[i] = max(0, f.x[i]-float64(ratio*f.dir[i]))
		}
	}
	f.x[leave] = ratio
	for k := range d {
		f.inverse[leave*d+k] /= f.dir[leave]
	}
	for i := range d {
		if i != leave {
			for k := range d {
				f.inverse[i*d+k] -= float64(f.dir[i] * f.inverse[leave*d+k])
			}
		}
	}
	f.basis[leave] = enter
}
