package quota_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/scheduling/internal/topology/quota"
)

func ExampleDivide() {
	spots := []quota.Spot{
		{Values: []string{"zone-a", "spot"}, Most: 9},
		{Values: []string{"zone-a", "on-demand"}, Most: 9},
		{Values: []string{"zone-b", "on-demand"}, Most: 9}, // no spot in zone b
	}
	fmt.Println(quota.Divide(6, spots, []map[string]int{nil, nil}))
	// Output: [3 0 3]
}

func TestDivideKeepsToWhatSpotsTake(t *testing.T) {
	spots := []quota.Spot{{Values: []string{"a"}, Most: 1}, {Values: []string{"b"}, Most: 2}, {Values: []string{"c"}, Most: -1}}
	assert.Equal(t, []int{1, 2, 0}, quota.Divide(9, spots, []map[string]int{nil}))
	counts := map[string]int{"a": 1, "b": 0}
	assert.Equal(t, []int{0, 1, 0}, quota.Divide(1, spots, []map[string]int{counts}), "what is there counts")
	assert.Equal(t, map[string]int{"a": 1, "b": 0}, counts, "and is only read")
	assert.Empty(t, quota.Divide(3, nil, []map[string]int{nil}))
}

// Two keys, one of each with counts, and a combination that does not exist: every single move makes matters no better,
// but a pod in each of three combinations is perfectly even.
func TestDivideLooksFurtherThanOneMove(t *testing.T) {
	spots := []quota.Spot{
		{Values: []string{"on-demand", "zone-b"}, Most: 9},
		{Values: []string{"on-demand", "zone-c"}, Most: 9},
		{Values: []string{"spot", "zone-c"}, Most: 9},
		{Values: []string{"on-demand", "zone-a"}, Most: 9},
		{Values: []string{"spot", "zone-a"}, Most: 0},
		{Values: []string{"spot", "zone-b"}, Most: 9},
	}
	counts := []map[string]int{{"spot": 2, "on-demand": 1}, {"zone-c": 2, "zone-a": 1}}
	assert.Equal(t, []int{1, 0, 0, 1, 0, 1}, quota.Divide(3, spots, counts))
}

// No other way of dividing leaves the counts less uneven: compared with all of them.
func TestDivideOverTwoKeysIsTheBest(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 0))
		var spots []quota.Spot
		counts := []map[string]int{{}, {}}
		for range 2 + r.IntN(5) {
			spots = append(spots, quota.Spot{Values: []string{strconv.Itoa(r.IntN(3)), strconv.Itoa(r.IntN(3))}, Most: r.IntN(4)})
		}
		for k := range counts {
			for v := range 3 {
				counts[k][strconv.Itoa(v)] = r.IntN(3)
			}
		}
		want := r.IntN(6)
		uneven := func(given []int) int {
			sum := 0
			for k := range counts {
				have := maps.Clone(counts[k])
				for i, n := range given {
					have[spots[i].Values[k]] += n
				}
				for _, n := range have {
					sum += n * n
				}
			}
			return sum
		}
		total := func(given []int) int {
			n := 0
			for _, g := range given {
				n += g
			}
			return n
		}
		most, least := -1, 0
		given := make([]int, len(spots))
		var try func(int)
		try = func(i int) {
			if n := total(given); n > want {
				return
			} else if i == len(spots) {
				if u := uneven(given); n > most || n == most && u < least {
					most, least = n, u
				}
				return
			}
			for given[i] = 0; given[i] <= spots[i].Most; given[i]++ {
				try(i + 1)
			}
			given[i] = 0
		}
		try(0)
		got := quota.Divide(want, spots, counts)
		require.Equal(t, most, total(got), "seed %d", seed)
		require.Equal(t, least, uneven(got), "seed %d: %v", seed, got)
	}
}
