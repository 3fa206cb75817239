package binpack_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/requirements"
)

func anywhere() requirements.Alternatives { return requirements.AnyOf(requirements.Set{}) }

func TestTwoSizes(t *testing.T) {
	p := binpack.Problem{
		Resources: []string{"cpu"},
		Items:     []binpack.Item{{Name: "a", Count: 10, Size: []int64{3}, Requires: anywhere()}},
		Pools:     []binpack.Pool{{Name: "p"}},
		Types: []binpack.Type{
			{Name: "small", Capacity: []int64{4}, Offerings: []binpack.Offering{{Price: 4}}},
			{Name: "large", Capacity: []int64{9}, Offerings: []binpack.Offering{{Price: 8}}},
		},
	}
	in, err := binpack.Compile(p)
	require.NoError(t, err)
	plan, err := in.Pack(t.Context(), &binpack.Options{Strategy: binpack.FirstFitDecreasing{}})
	require.NoError(t, err)
	require.NoError(t, in.VerifyBound(plan))
	require.Equal(t, []int{0}, plan.Unplaced)
	require.Equal(t, binpack.Price(28), plan.Cost)
	require.Equal(t, binpack.Price(28), plan.Bound.Price, "80/3, and all prices are multiples of 4")
}

// The cost does not depend on how many different requirements there are: 4,000 took 12 s, and none 3 ms.
func TestFirstFitOfManyDifferentRequirements(t *testing.T) {
	took := map[bool]time.Duration{}
	bins := map[bool]int{}
	for _, differ := range []bool{false, true} {
		p := one([]string{"cpu", "memory"}, nil)
		for i := range 600 {
			p.Types = append(p.Types, typ(fmt.Sprintf("t%03d", i), binpack.Price(1000+i*13%997), int64(4+i%60), int64(8+i%250)))
		}
		for i := range 4_000 {
			it := item(fmt.Sprintf("i%04d", i), 1, int64(1+i%3), int64(1+i%7))
			if differ {
				it.Requires = requirements.AnyOf(requirements.MustOf(requirements.NotIn("host", fmt.Sprintf("h%d", i))))
			}
			p.Items = append(p.Items, it)
		}
		in, err := binpack.Compile(p)
		require.NoError(t, err)
		start := time.Now()
		plan, err := in.Pack(t.Context(), &binpack.Options{Strategy: binpack.FirstFitDecreasing{}, Draft: true})
		require.NoError(t, err)
		took[differ], bins[differ] = time.Since(start), len(plan.Bins)
	}
	t.Log(took)
	require.Equal(t, bins[false], bins[true])
	require.Less(t, took[true], 100*took[false]+50*time.Millisecond)
}
