package simulate_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/scheduling/whatif"
)

// Prices of all packages are the same amounts, and print alike.
func TestPricesPrintAlike(t *testing.T) {
	amounts := []int64{0, math.MaxInt64, math.MinInt64}
	for unit := int64(1); unit <= 1e17; unit *= 10 {
		for _, n := range []int64{1, 5, 9, 10, 58, 99, 101} {
			if n <= math.MaxInt64/unit {
				amounts = append(amounts, n*unit, -n*unit, n*unit+1, n*unit-1)
			}
		}
	}
	for _, n := range amounts {
		want := binpack.Price(n)
		assert.Equal(t, want.String(), deprovision.Price(n).String())
		assert.Equal(t, want.String(), whatif.Price(n).String())
		assert.Equal(t, want.Dollars(), whatif.Price(n).Dollars())
	}
}
