package simulate

import (
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/deprovision"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
)

// fewest is a number of evictions below which no change of the cluster comes down to the price, by linear programming duality: at any
// price of an eviction, what is kept and bought costs at least the value of the program of what to keep.
func fewest(s *Simulator, c *deprovision.Cluster, price float64) (most float64) {
	var names []string
	total := 0.0
	demand := make([]int64, len(s.market.problem.Resources))
	needs := make([][]int64, len(c.Nodes))
	for i := range c.Nodes {
		names = append(names, c.Nodes[i].Name())
		pods := c.Nodes[i].Reschedulable()
		needs[i] = s.at.Needs(pods)
		total += float64(len(pods))
		for d, q := range needs[i] {
			demand[d] += q
		}
	}
	scale := s.market.scale(demand)
	free := s.at.FreeOf(names)
	for unit := 1e6; unit < 1e10; unit *= 1.3 { // billionths of a dollar an hour for an eviction
		capacities, costs := make([][]float64, len(names)), make([]float64, len(names))
		always := 0.0
		for i := range c.Nodes {
			for d := range free[i] {
				capacities[i] = append(capacities[i], float64(free[i][d]+needs[i][d])/scale[d])
			}
			costs[i] = float64(c.Nodes[i].PricePerHour) - unit*float64(len(c.Nodes[i].Reschedulable()))
			always += min(0, costs[i])
		}
		_, value := s.market.retain(capacities, costs, scaled(demand, scale), scale)
		most = max(most, total-(price*1e9-value-always)/unit)
	}
	return most
}

// Plans with a bound of evictions are nearly as good as they can be: where they save half up to 95% of what the full answer saves, they
// take in the mean at most a tenth more evictions than a relaxation of any plan whatever, and at most a third more. Between the bounds
// the frontier has the first commands of these plans, which are not the best for so few evictions; at its end nearly every pod moves,
// whoever plans.
func TestFewestEvictions(t *testing.T) {
	clusters, from, to := 1, 1, 4 // those that save half up to 95%
	if !testing.Short() {
		clusters = 4
	}
	if parts, err := strconv.Atoi(os.Getenv("JOINERY_LONG")); err == nil {
		clusters, from, to = max(clusters, 32/parts), 0, 8
	}
	sum, asked := 0.0, 0
	for seed := range clusters {
		c, err := fragment.Generate(fragment.Options{Nodes: []int{200, 100}[seed%2], Seed: 4000 + uint64(seed)})
		require.NoError(t, err)
		s, nominated, err := New(c.Snapshot)
		require.NoError(t, err)
		cluster := Cluster(c.Manifests, c.Snapshot, nominated, fragment.Now())
		r, err := giveback.Make(t.Context(), cluster, s, nil)
		require.NoError(t, err)
		least := fewest(s, &cluster, r.PricePerHourAfter.Dollars())
		t.Logf("seed %d, the full answer: %d evictions of %d pods, at least %.0f", seed, r.Evictions, len(c.Snapshot.Pods), least)
		assert.LessOrEqual(t, least, float64(r.Evictions))
		var bounds []int
		for k := from; k < to; k++ {
			bounds = append(bounds, r.Evictions*(k+1)/9)
		}
		frontier, err := giveback.Frontier(t.Context(), cluster, s, nil, bounds...)
		require.NoError(t, err)
		for i, p := range frontier {
			least := fewest(s, &cluster, (r.PricePerHour - p.SavingsPerHour).Dollars())
			assert.LessOrEqual(t, least, float64(p.Evictions)+1e-6)
			last := slices.ContainsFunc(bounds, func(n int) bool {
				return p.Evictions <= n && (i+1 == len(frontier) || frontier[i+1].Evictions > n)
			})
			if saved := r.PricePerHour - r.PricePerHourAfter; last && p.SavingsPerHour >= saved.Times(0.5) && p.SavingsPerHour <= saved.Times(0.95) {
				asked++
				sum += float64(p.Evictions) / least
				t.Logf("$%.2f an hour saved: %d evictions, at least %.0f: %.3f", p.SavingsPerHour.Dollars(), p.Evictions, least, float64(p.Evictions)/least)
				assert.LessOrEqual(t, float64(p.Evictions), 4*least/3)
			}
		}
	}
	assert.GreaterOrEqual(t, asked, clusters)
	assert.LessOrEqual(t, sum/float64(asked), 1.1)
	t.Logf("%d points: %.3f times the fewest evictions in the mean", asked, sum/float64(asked))
}
