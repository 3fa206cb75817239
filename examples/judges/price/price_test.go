package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Never dearer than Karpenter for the same pods, and far cheaper where every size may be bought. JOINERY_LONG=1 asks it of
// more pods.
func TestNeverDearer(t *testing.T) {
	sizes := []int{50, 300}
	if os.Getenv("JOINERY_LONG") == "1" {
		sizes = append(sizes, 1000, 5000)
	}
	for _, name := range []string{"second mix", "mix", "bimodal", "distinct"} {
		w, ok := workload(name)
		require.True(t, ok)
		for _, n := range sizes {
			for _, maxCPU := range []int64{0, 64, 16} {
				r, err := compare(t.Context(), w, n, maxCPU, 1, 300)
				require.NoError(t, err)
				t.Log(r.line())
				require.Equal(t, r.pods, r.ours.placed)
				require.GreaterOrEqual(t, r.ours.placed, r.theirs.placed)
				if r.ours.accepted >= 0 {
					require.Equal(t, r.ours.placed, r.ours.accepted)
				}
				if r.counts() {
					require.LessOrEqual(t, r.ours.price, r.theirs.price*(1+1e-9), r.line())
				}
				if name == "second mix" && maxCPU == 0 && n >= 1000 { // what Karpenter pays for 1,000 varies much with the draw
					require.LessOrEqual(t, r.ours.price, 0.72*r.theirs.price, "at least 28%% below")
				}
				if n >= 1000 {
					require.LessOrEqual(t, r.ours.price, 1.02*r.bound, "within 2%% of the bound")
				}
			}
		}
	}
}

func TestLargeRowsGetFewerPods(t *testing.T) {
	all, err := schedule("second mix", "0,16", "100,1000,5000", 2, 0)
	require.NoError(t, err)
	require.Len(t, all, 8)
	require.Equal(t, 5000, all[len(all)-1].pods)
	some, err := schedule("second mix", "0,16", "100,1000,4500,5000", 2, 60_000_000)
	require.NoError(t, err)
	for _, c := range some {
		require.LessOrEqual(t, c.work(), 60_000_000)
	}
	require.Equal(t, 1500, some[len(some)-1].pods)
	require.Len(t, some, 9, "two sizes that shrink to the same are one row")
}
