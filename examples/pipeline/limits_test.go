package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/plan"
)

func limitedPool(limits string) string {
	return `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec: {limits: {` + limits + `}, template: {spec: {nodeClassRef: {group: g.example.com, kind: C, name: c}, requirements: []}}}
---
`
}

// A limit that is too small for all pods is used up. Which domain is packed first does not hold the others back, and zones stay closed if that
// places more.
func TestLimitsAreUsedUp(t *testing.T) {
	three := []string{"a.2 2 zone-a on-demand 0.1", "a.2 2 zone-b on-demand 0.1", "a.2 2 zone-c on-demand 0.1"}
	for _, c := range []struct {
		name, limits string
		offers       []string
		replicas     int
		cpu          string
		want         map[string]int
	}{
		{"cores", "cpu: 12", three, 100, "1", map[string]int{"zone-a": 4, "zone-b": 4, "zone-c": 4}},
		{"nodes", "nodes: 3", three, 100, "1", map[string]int{"zone-a": 2, "zone-b": 2, "zone-c": 2}},
		{"not one node more in each zone", "cpu: 8", three, 100, "1", map[string]int{"zone-a": 4, "zone-b": 4}},
		{"large and cheap by unit in one zone", "cpu: 18", append([]string{"b.16 16 zone-a on-demand 0.2"}, three...), 100, "1", map[string]int{"zone-a": 6, "zone-b": 6, "zone-c": 6}},
		{"enough", "cpu: 12", three, 12, "1", map[string]int{"zone-a": 4, "zone-b": 4, "zone-c": 4}},
		{"small pods", "cpu: 12", three, 500, "250m", map[string]int{"zone-a": 16, "zone-b": 16, "zone-c": 16}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pack(t, catalogue(t, c.offers...), limitedPool(c.limits)+deployment("web", c.replicas, spreadBy(zoneKey)+container(c.cpu)))
			assert.Equal(t, sumOf(c.want), sumOf(count(t, p, "web", zoneKey)), "%v", count(t, p, "web", zoneKey))
			most, least := 0, 1<<30
			for _, n := range count(t, p, "web", zoneKey) {
				most, least = max(most, n), min(least, n)
			}
			assert.LessOrEqual(t, most-least, 1)
		})
	}
	// More pods have a place if small ones do, whatever spreads beside them.
	p := pack(t, catalogue(t, three...), limitedPool("cpu: 12")+deployment("web", 2, spreadBy(zoneKey)+container("2"))+deployment("plain", 40, container("500m")))
	assert.Len(t, p.Bindings(), 24)
}

func sumOf(counts map[string]int) int {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}

// A stock that is used up in one zone holds the others back by the skew of the spread, whatever limit the pool has.
func TestAStockIsNoLimit(t *testing.T) {
	for _, stock := range []int{1, 2, 5} {
		s := read(t, catalogue(t, "a.2 2 zone-a on-demand 0.1", "c.2 2 zone-b on-demand 0.1", "b.2 2 zone-c on-demand 0.1"),
			limitedPool("cpu: 100000")+deployment("web", 3000, spreadBy(zoneKey)+container("1")))
		for i := range s.Pools[0].Types {
			if typ := &s.Pools[0].Types[i]; typ.Name == "b.2" {
				typ.Offerings[0].ReservationCount = stock
			}
		}
		p, err := plan.Make(t.Context(), s, nil)
		require.NoError(t, err)
		assert.Equal(t, map[string]int{"zone-a": 2*stock + 1, "zone-b": 2*stock + 1, "zone-c": 2 * stock}, count(t, p, "web", zoneKey))
	}
}
