package binpack

import (
	"errors"
	"fmt"
	"math"
	"math/big"
)

// BoundKind says which argument proves a [Bound].
type BoundKind string

// CoverageLP is the bound by resource prices: if no type offers capacity for less than it is worth at these prices, no
// plan costs less than what its items are worth. It looks at the sums of the resources only.
const CoverageLP BoundKind = "coverage-lp"

// Bound is a price below which no plan can place the same items, with the certificate that proves it.
type Bound struct {
	Price Price
	Kind  BoundKind
	// Value is the certificate: what one unit of each resource is worth, in the unit of [Price]; each number is meant at
	// its exact binary value. No type may offer capacity for less than it is worth. See [Instance.VerifyBound].
	Value []float64
}

// exact is a precision in bits at which sums of products of a certificate do not round; where they would, they round
// to the safe side.
const exact = 1024

// VerifyBound checks the certificate of a plan in one pass over types and items, in exact or safely rounded
// arithmetic: that no type
// offers capacity for less than it is worth, and that what the placed items are worth, less what the existing nodes
// have free, is at least the bound.
func (in *Instance) VerifyBound(plan *Plan) error {
	b := plan.Bound
	if b.Kind != CoverageLP {
		return fmt.Errorf("binpack: unknown kind of bound %q", b.Kind)
	}
	if len(b.Value) != in.dims {
		return fmt.Errorf("binpack: certificate has %d values, want %d", len(b.Value), in.dims)
	}
	for _, v := range b.Value {
		if !(v >= 0) || math.IsInf(v, 0) {
			return errors.New("binpack: certificate has a value that is negative or no number")
		}
	}
	for t, typ := range in.problem.Types {
		if len(typ.Offerings) == 0 {
			continue
		}
		if worth(in.capacityOf(int32(t)), b.Value).Cmp(new(big.Float).SetInt64(int64(in.minPrice[t]))) > 0 {
			return fmt.Errorf("binpack: type %q is worth more than its price", typ.Name)
		}
	}
	proved := in.proved(in.netDemand(plan.Layout), b.Value)
	if proved < b.Price {
		return fmt.Errorf("binpack: the certificate proves %d, the bound claims %d", proved, b.Price)
	}
	if b.Price > plan.Cost {
		return fmt.Errorf("binpack: bound %d is above the cost %d", b.Price, plan.Cost)
	}
	return nil
}

// worth is rounded up, if at all.
func worth(v []int64, value []float64) *big.Float {
	sum := new(big.Float).SetPrec(exact).SetMode(big.ToPositiveInf)
	term := new(big.Float).SetPrec(exact).SetMode(big.ToPositiveInf)
	for r := range v {
		if v[r] > 0 && value[r] > 0 {
			sum.Add(sum, term.Mul(new(big.Float).SetInt64(v[r]), big.NewFloat(value[r])))
		}
	}
	return sum
}

// netDemand is the sum of all placed items less what existing nodes have free, by resource; it may be negative.
func (in *Instance) netDemand(l Layout) []*big.Int {
	net := make([]*big.Int, in.dims)
	for r := range net {
		net[r] = new(big.Int)
	}
	add := func(shares []Share) {
		for _, s := range shares {
			for r, size := range in.problem.Items[s.Item].Size {
				net[r].Add(net[r], new(big.Int).Mul(big.NewInt(size), big.NewInt(int64(s.Count))))
			}
		}
	}
	for _, shares := range l.Nodes {
		add(shares)
	}
	for _, b := range l.Bins {
		add(b.Shares)
	}
	for n := range in.problem.Nodes {
		for r := range net {
			net[r].Sub(net[r], big.NewInt(in.free[n*in.dims+r]))
		}
	}
	return net
}

// proved is the price that the values prove for the demand, rounded up at the end only, for every price is a whole
// number.
func (in *Instance) proved(net []*big.Int, value []float64) Price {
	sum := new(big.Float).SetPrec(exact).SetMode(big.ToNegativeInf)
	term := new(big.Float).SetPrec(exact).SetMode(big.ToNegativeInf)
	for r := range net {
		sum.Add(sum, term.Mul(new(big.Float).SetPrec(exact).SetInt(net[r]), big.NewFloat(value[r])))
	}
	if sum.Sign() <= 0 {
		return 0
	}
	whole, accuracy := sum.Int64()
	if accuracy == big.Below && whole < math.MaxInt64 {
		whole++ // a fraction was cut off
	}
	return Price(whole)
}

// coverageBound solves the coverage LP for what the layout places, and rounds its duals down to a certificate.
func (in *Instance) coverageBound(l Layout) Bound {
	out := Bound{Kind: CoverageLP, Value: make([]float64, in.dims)}
	if len(l.Bins) == 0 {
		return out
	}
	net := in.netDemand(l)
	demand := make([]float64, in.dims)
	for r := range net {
		demand[r], _ = new(big.Float).SetInt(net[r]).Float64()
	}
	var rows [][]float64
	var prices []float64
	for _, t := range in.byPrice {
		if len(in.problem.Types[t].Offerings) == 0 {
			continue
		}
		row := make([]float64, in.dims)
		for r, c := range in.capacityOf(t) {
			row[r] = float64(max(c, 0))
		}
		rows = append(rows, row)
		prices = append(prices, float64(in.minPrice[t]))
	}
	value := coverageDuals(rows, prices, demand)
	for r := range value {
		out.Value[r] = value[r] * (1 - 1e-12) // rounding may leave a type worth a little more than its price
	}
	out.Price = in.proved(net, out.Value)
	return out
}
