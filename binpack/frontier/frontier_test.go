package frontier_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/binpack/frontier"
)

// A negative count would trade in the wrong direction, so it is an error.
func TestNegativeCounts(t *testing.T) {
	p := binpack.Problem{Resources: []string{"cpu"}, Pools: []binpack.Pool{{Name: "default"}}, Types: []binpack.Type{{Name: "small", Capacity: []int64{2}, Offerings: make([]binpack.Offering, 2)}}}
	_, err := frontier.Of(t.Context(), p, func(c binpack.Choice) int64 { return -int64(c.Offering) })
	assert.EqualError(t, err, "frontier: the count of offering 1 of type small is -1, must not be negative")
	_, err = frontier.Of(t.Context(), p, func(binpack.Choice) int64 { return 0 })
	assert.NoError(t, err)
}
