package quota_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/scheduling/internal/quota"
)

func ExampleApportion() {
	_, shares, _ := quota.ParseShares("web; karpenter.sh/capacity-type: on-demand=2, spot=3")
	fmt.Println(quota.Apportion(7, shares))
	// Output: map[on-demand:3 spot:4]
}

// No value is a whole pod or more away from its exact part, and all pods have a value.
func TestApportionIsExactToOnePod(t *testing.T) {
	for total := range 40 {
		for a := range 5 {
			for b := range 5 {
				shares := map[string]int{"a": a, "b": b, "c": 2}
				got := quota.Apportion(total, shares)
				require.Equal(t, total, got["a"]+got["b"]+got["c"])
				for v, s := range shares {
					require.Less(t, math.Abs(float64(got[v])-float64(total*s)/float64(a+b+2)), 1.0, "%d over %v", total, shares)
				}
			}
		}
	}
}
