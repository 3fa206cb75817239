package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// One pod that keeps a zone to itself leaves a spread one pod in the other: of forty, nearly all would have to stay out
// for it, so it does. The small stay out for the large where they are few.
func TestOnePodDoesNotShutOutAWholeApp(t *testing.T) {
	loud := deployment("loud", 1, affinity("podAntiAffinity", "web", zoneKey)+container("3"))
	for _, c := range []struct {
		replicas, web, loud int
	}{{40, 40, 0}, {3, 1, 1}} {
		p := plan(t, catalogue(t, twoZones...), anyPool+loud+deployment("web", c.replicas, spreadBy(zoneKey)+container("100m")))
		placed := map[string]int{}
		for _, pod := range p.Result.Order {
			placed[pod.Labels["app"]]++
		}
		assert.Equal(t, c.web, placed["web"], "of %d", c.replicas)
		assert.Equal(t, c.loud, placed["loud"], "beside %d", c.replicas)
	}
}

// Two apps wait, and one of them has to stay out for the other; that both go first together decides nothing.
func TestWhoIsLeftOverGoesFirstInTurn(t *testing.T) {
	zone := func(z string) string { return "nodeSelector: {topology.kubernetes.io/zone: " + z + "}\n" }
	p := plan(t, catalogue(t, twoZones...), anyPool+
		deployment("picky", 2, zone("zone-a")+affinity("podAntiAffinity", "web", zoneKey)+container("1"))+
		deployment("web", 30, zone("zone-a")+container("100m")))
	assert.Equal(t, 30, len(p.Result.Order))
}
