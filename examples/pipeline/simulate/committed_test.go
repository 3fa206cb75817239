package simulate_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/pricing"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Giving back nodes spends no more of a commitment in money than is committed, whatever types and pools share it.
func TestCommitmentsAreNotOverspent(t *testing.T) {
	covered, several := 0, 0
	for seed := range uint64(drawings(t)) {
		d, r := draw(seed, false), rand.New(rand.NewPCG(seed, 61))
		c := pricing.Commitment{Name: "plan", PerHour: 0.2 + 3*r.Float64(), PercentOff: float64(r.IntN(7)) * 10}
		pools := map[string]*scheduling.Pool{}
		for i := range d.s.Pools {
			p := &d.s.Pools[i]
			p.Types = instancetypes.Reprice(p.Types, c)
			pools[p.Name] = p
		}
		result, _, _ := d.plan(t, d.s)
		spent, nodes := 0.0, 0
		for i := range result.Commands {
			for _, n := range result.Commands[i].NewNodes {
				for _, typ := range pools[n.Pool].Types {
					for _, o := range typ.Offerings {
						zone, _ := o.Requirements.Get("topology.kubernetes.io/zone").Single()
						if typ.Name == n.InstanceType && zone == n.Zone && o.CapacityType() == n.CapacityType && o.CommittedPerHour > 0 && n.PricePerHour.Dollars() < 1e-9 {
							spent, nodes = spent+o.CommitmentRate, nodes+1
						}
					}
				}
			}
		}
		covered, several = covered+nodes, several+min(1, nodes/2)
		assert.LessOrEqual(t, spent, c.PerHour+1e-6, "seed %d: %d nodes", seed, nodes)
	}
	t.Logf("%d nodes are covered, in %d plans several", covered, several)
	assert.Greater(t, covered, drawings(t)/10)
	assert.Positive(t, several)
}
