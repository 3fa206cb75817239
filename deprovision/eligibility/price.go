package eligibility

import "math"

// Price is an amount of money in billionths of a dollar: sums of integers do not depend on their order.
type Price int64

// Dollars is the price of so many dollars, rounded to the nearest billionth; what is no number is 0, and what cannot be counted
// the largest price.
func Dollars(d float64) Price {
	switch p := math.Round(d * 1e9); {
	case math.IsNaN(p):
		return 0
	case p >= math.MaxInt64:
		return math.MaxInt64
	case p <= math.MinInt64:
		return math.MinInt64
	default:
		return Price(p)
	}
}

// Dollars is the price as a decimal number, for people.
func (p Price) Dollars() float64 { return float64(p) / 1e9 }

// Times is so many of it, such as an hour's price for some hours, rounded to the nearest billionth.
func (p Price) Times(n float64) Price { return Dollars(float64(float64(p)*n) / 1e9) }
