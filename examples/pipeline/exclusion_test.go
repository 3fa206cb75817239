package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/scheduling"
)

// apps plans as many pods as can be, and counts those that are placed by app.
func apps(t *testing.T, mostPods bool, market *pipeline.Market, text string) map[string]int {
	t.Helper()
	s := read(t, market, text)
	packed, err := pipeline.Run(s, &scheduling.Options{MostPods: mostPods}, nil)
	require.NoError(t, err)
	placed := map[string]int{}
	for _, pod := range packed.Result.Order {
		placed[pod.Labels["app"]]++
	}
	return placed
}

// A pod that keeps a zone to itself leaves a spread one pod in the other. Karpenter places it, for it is the largest, so
// nobody may take its place. Where as many pods as can be are asked for, nearly all of forty would have to stay out for it,
// so it does; the small stay out for the large where they are few.
func TestOnePodAgainstAWholeApp(t *testing.T) {
	loud := deployment("loud", 1, affinity("podAntiAffinity", "web", zoneKey)+container("3"))
	for _, c := range []struct {
		replicas, web, loud int
		mostPods            bool
	}{{40, 1, 1, false}, {40, 40, 0, true}, {3, 1, 1, true}} {
		placed := apps(t, c.mostPods, catalogue(t, twoZones...), anyPool+loud+deployment("web", c.replicas, spreadBy(zoneKey)+container("100m")))
		assert.Equal(t, c.web, placed["web"], "of %d", c.replicas)
		assert.Equal(t, c.loud, placed["loud"], "beside %d", c.replicas)
	}
}

// Two apps wait, and one of them has to stay out for the other; that both go first together decides nothing.
func TestWhoIsLeftOverGoesFirstInTurn(t *testing.T) {
	zone := func(z string) string { return "nodeSelector: {topology.kubernetes.io/zone: " + z + "}\n" }
	placed := apps(t, true, catalogue(t, twoZones...), anyPool+
		deployment("picky", 2, zone("zone-a")+affinity("podAntiAffinity", "web", zoneKey)+container("1"))+
		deployment("web", 30, zone("zone-a")+container("100m")))
	assert.Equal(t, map[string]int{"web": 30}, placed)
}

// Nobody loses a place that Karpenter gives him, and others still get what is left beside him: the larger app has its zone,
// the smaller one, which keeps away from it, the other, whichever would be more pods.
func TestTheReferenceComesFirstButNotAlone(t *testing.T) {
	zone := func(z string) string { return "nodeSelector: {topology.kubernetes.io/zone: " + z + "}\n" }
	placed := apps(t, false, catalogue(t, twoZones...), anyPool+
		deployment("picky", 2, zone("zone-a")+affinity("podAntiAffinity", "web", zoneKey)+container("1"))+
		deployment("web", 30, zone("zone-a")+container("100m"))+
		deployment("quiet", 5, affinity("podAntiAffinity", "picky", zoneKey)+container("50m")))
	assert.Equal(t, map[string]int{"picky": 2, "quiet": 5}, placed)
}
