package eligibility

import (
	"fmt"
	"math"
	"strings"
)

// Price is an amount of money in billionths of a dollar. It is an integer so that sums do not
// depend on their order.
type Price int64

// Dollars returns the price of d dollars, rounded to the nearest billionth. NaN becomes 0. An
// amount out of range becomes the largest or the smallest price.
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

// Dollars returns the price in dollars, for display.
func (p Price) Dollars() float64 { return float64(p) / 1e9 }

// String returns the price in dollars, with two decimals or as many as it needs: "$0.17",
// "$0.0058".
func (p Price) String() string {
	sign, n := "", uint64(p)
	if p < 0 {
		sign, n = "-", -n
	}
	const cent = 1e7
	return fmt.Sprintf("%s$%d.%02d%s", sign, n/cent/100, n/cent%100, strings.TrimRight(fmt.Sprintf("%07d", n%cent), "0"))
}

// Times returns n times the price, rounded to the nearest billionth. An example is an hourly price
// times hours.
func (p Price) Times(n float64) Price { return Dollars(float64(float64(p)*n) / 1e9) }
