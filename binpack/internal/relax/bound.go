package relax

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"sync/atomic"
)

// Largest is the largest price that proofs accept: integers up to it are exact in floating point.
const Largest = 1 << 52

// Slack is the relative margin for floating-point rounding in all bounds.
//
// It suffices for Bound and Sharpest. Let u = 2^-53, d the number of dimensions, n that of
// candidates, w the weights, which are exact as they stand, and W their sum. A size as a fraction
// of the capacity is the quotient of two rounded integers, so its relative error is at most 3u. The
// cost of a candidate, a sum of d non-negative products, has a relative error of at most (d+4)u;
// the difference to its profit has that and 2u of the difference. The bound is W plus the positive
// differences times their counts. As many copies of a candidate as may go in fit alone, so each
// fraction times the count is at most 1, and the cost of all of them is at most W. So the errors of
// the differences sum to at most n(d+4)uW, those of the sums to (n+d)u and that of the products to
// 2u of the bound, which is at least W. In total the error is below (n+1)(d+8)u of the bound;
// Model.verify makes sure that this is less than Slack. Search prunes by the same sums over fewer
// terms, and by single products with an error of 4u. Its result is a sum of integers, and exact
// below 2^53. A fused multiply-add rounds less often, never more.
const Slack = 1e-10

// Proof is a bound with the duals that prove it.
type Proof struct {
	// Duals has the dual of each class, in whole units of price.
	Duals []int64
	Price int64
	// Searched means that the fractional knapsack did not suffice for some bin type, so its
	// fillings were searched.
	Searched bool
}

// verifySteps is the step limit of the search per bin type when a proof is checked. Making a proof
// uses at most half of it.
const verifySteps = 200_000

// Prove makes a proof of the duals, scaled down as little as necessary. missing holds the patterns
// with negative reduced cost that the search met.
func (m *Model) Prove(duals []float64, b *Budget) (proof Proof, missing []Column) {
	var knap Knapsack
	over := 0.0
	for k := range m.BinTypes {
		if b.Stopped() {
			return proof, nil
		}
		typ := &m.BinTypes[k]
		if typ.Supply >= 0 || !m.Load(&knap, k, duals) {
			continue
		}
		profitBound := knap.Bound(typ.Price)
		for profitBound > typ.Price*(1+over) {
			target := typ.Price * (1 + over)
			found, done := knap.Search(target, min(verifySteps/2, max(b.Left/8, 1)))
			b.Take(knap.Steps())
			if found > typ.Price*(1+1e-7) {
				missing = append(missing, Column{k, knap.Found(nil)})
			}
			if done && found <= target {
				break
			}
			next := math.Inf(1)
			if done {
				next = found/typ.Price - 1
			} else if typ.Price > 0 {
				next = min(profitBound/typ.Price-1, max(2*over, 0.0005))
			}
			over = max(next, over+1e-9, found/max(typ.Price, 1e-9)-1)
		}
		b.Take(knap.Steps())
	}
	return m.Certify(duals, 1/(1+over), b.Stop), missing
}

// proof returns the best proof that column generation yields within the given rounds, or the first
// one within near of the optimum.
func (m *Model) proof(s *Master, near float64, rounds int, b *Budget) Proof {
	var best Proof
	s.Solve(b) // include the last patterns
	// Column generation continues with the patterns that the proof found missing.
	for range rounds {
		if s.Objective()*m.unit() <= float64(best.Price)*(1+near) || b.Left <= 0 {
			break
		}
		proof, missing := m.Prove(s.Duals(), b)
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

// Certify makes a proof of the duals times a factor; it proves 0 if they are not valid.
func (m *Model) Certify(duals []float64, factor float64, stop *atomic.Bool) Proof {
	return m.certify(duals, factor, examination{Watch: NewWatch(stop, 0), search: true})
}

// rounded is the relative amount by which duals are lowered, so that rounding never raises one.
const rounded = 1e-9

// certify returns the duals of classes by resource duals, and their proof. A bin type needs no
// knapsack if its whole capacity has a dual value of at most its price. For a counted one, if the
// budget is too small for a knapsack, that dual value is used instead.
func (s *typeGroups) certify(b *Budget) (duals []float64, proof Proof) {
	m := s.m
	prices, duals := s.refine(b)
	counted := 0
	for k := range m.BinTypes {
		if s.of[k] >= 0 && m.BinTypes[k].Supply >= 0 {
			counted++
		}
	}
	quick := counted*len(m.Classes)*m.Dims*countedSteps > b.Left/countedPart
	return duals, m.certify(duals, 1, examination{Watch: NewWatch(b.Stop, 0), full: m.inPrice(s.full(prices)), quick: quick, search: true})
}

// examination says how thoroughly duals are examined.
type examination struct {
	*Watch
	// full, if not nil, has the dual value of the whole capacity of each bin type, an upper bound
	// for its fillings; quick uses it instead of a knapsack for counted bin types.
	full  []float64
	quick bool
	// search looks for whole fillings where fractional ones are too good, and whole for whole bins
	// that hold captives.
	search, whole bool
}

var errStopped = errors.New("the examination was stopped")

// certify is Certify, of duals in units.
func (m *Model) certify(duals []float64, factor float64, by examination) Proof {
	proof := Proof{Duals: make([]int64, len(duals))}
	for i, v := range duals {
		if v *= m.unit() * factor * (1 - rounded); v > 0 && v < Largest {
			proof.Duals[i] = int64(v)
		}
	}
	var err error
	if proof.Price, proof.Searched, err = m.priced().verify(proof.Duals, by); err != nil {
		return Proof{Duals: make([]int64, len(duals))} // rounding, or a search that was cut short
	}
	return proof
}

// Load sets the knapsack to a bin type; it reports whether any item fits.
func (m *Model) Load(knap *Knapsack, k int, duals []float64) bool {
	return knap.Load(m.BinTypes[k].Capacity, m.Classes, func(i int) bool { return m.Classes[i].May(k) }, duals)
}

// Verify returns the bound that the duals prove. No filling of an uncounted bin type may have a
// dual value above its price. Then all bins together cost at least the dual value of all items,
// less the premiums of counted bin types, plus the slack of whole bins (see captives). Without
// search, fillings may be fractional, which suffices for a proof that was not searched. It is an
// error if the watch ends it.
func (m *Model) Verify(duals []int64, search bool, w *Watch) (price int64, err error) {
	price, _, err = m.priced().verify(duals, examination{Watch: w, search: search, whole: true})
	return price, err
}

// verify is Verify; searched reports that the search made a difference. Rounding in sums of a few
// products is far smaller than the amount by which the duals were lowered.
func (m *Model) verify(duals []int64, by examination) (price int64, searched bool, err error) {
	if float64(len(m.Classes)+1)*float64(m.Dims+8)*0x1p-53 > Slack {
		return 0, false, fmt.Errorf("%d classes are too many for the margin of rounding", len(m.Classes))
	}
	var knap Knapsack
	pools := m.poolDuals(duals)
	profits := make([]float64, len(duals))
	sum := new(big.Int)
	for i, v := range duals {
		if v < 0 || v > Largest {
			return 0, false, fmt.Errorf("dual %d is out of range", v)
		}
		profits[i] = float64(v)
		sum.Add(sum, new(big.Int).Mul(big.NewInt(v), big.NewInt(m.Classes[i].Count)))
	}
	premium, slack := make([]*big.Int, len(m.Supply)), make([]float64, len(m.BinTypes)) // by bin type: at least the slack
	for k := range m.BinTypes {
		if by.Ended(knap.Steps() / knapsackSteps) {
			return 0, false, errStopped
		}
		typ := &m.BinTypes[k]
		if by.full != nil && by.full[k] <= typ.Price*(1+rounded/10) {
			continue
		}
		most := 0.0
		if by.quick && typ.Supply >= 0 {
			most = by.full[k]
		} else if m.Load(&knap, k, profits) {
			most = knap.Sharpest(typ.Price)
		}
		if most > typ.Price && typ.Supply < 0 && typ.Pool > 0 {
			pools.over(typ, most)
			continue
		}
		if most > typ.Price && by.search && (!by.quick || typ.Supply < 0) {
			if found, done := knap.Search(typ.Price, verifySteps); done {
				searched = searched || most > max(found, typ.Price)
				most = max(found, typ.Price)
			}
		}
		if most <= typ.Price {
			slack[k] = math.Floor(typ.Price - most)
			continue
		}
		if typ.Supply < 0 {
			return 0, searched, fmt.Errorf("bin type %d has a filling with a dual value of %.0f, above its price %.0f", k, most, typ.Price)
		}
		// This is the premium of a supply: the dual value of a bin above its price, per unit of the
		// supply. All bins that share the supply together have at most the highest of these times
		// the supply, in any mix.
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
	if by.whole {
		whole, err := m.wholeBins(profits, slack, by)
		if err != nil {
			return 0, false, err
		}
		if whole == math.MaxInt64 {
			return whole, searched, nil
		}
		sum.Add(sum, big.NewInt(whole))
	}
	if sum.Sign() <= 0 {
		return 0, searched, nil
	}
	if !sum.IsInt64() {
		return math.MaxInt64, searched, nil
	}
	return sum.Int64(), searched, nil
}

// fractional solves the fractional knapsack, max profit.x with the sizes in each dimension at most
// 1, by the simplex method with one row per dimension. It returns the dual of each dimension.
type fractional struct {
	inverse, x, y, dir []float64
	perProfit          []float64 // by candidate and dimension: the fraction of the bin per unit of profit
	basis              []int
}

func (f *fractional) solve(cand []candidate, size []float64, d int, out []float64) []float64 {
	f.inverse, f.x, f.y, f.dir = zeros(f.inverse, d*d), zeros(f.x, d), zeros(f.y, d), zeros(f.dir, d)
	f.perProfit = sized(f.perProfit, len(size))
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
	// Any non-negative weights give a bound; rounding may have made some negative.
	for _, y := range f.y {
		out = append(out, max(0, y))
	}
	return out
}

// entering returns the candidate with the lowest cost per profit, or the slack of a dimension, if
// entering improves.
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
