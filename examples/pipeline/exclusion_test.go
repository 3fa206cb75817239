package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/plan"
)

// apps plans, and counts the pods that are placed by app.
func apps(t *testing.T, market *pipeline.Market, text string) map[string]int {
	t.Helper()
	packed, err := plan.Make(t.Context(), read(t, market, text), nil)
	require.NoError(t, err)
	placed := map[string]int{}
	for _, b := range packed.Bindings() {
		placed[b.Pod.Labels["app"]]++
	}
	return placed
}

// A pod that keeps a zone to itself leaves a spread one pod in the other. More pods of one priority come before fewer, however
// large these are; a higher priority comes before any number.
func TestOnePodAgainstAWholeApp(t *testing.T) {
	loud := affinity("podAntiAffinity", "web", zoneKey) + container("3")
	for _, c := range []struct {
		priority  string
		web, loud int
	}{{"", 40, 0}, {"priority: 5\n", 1, 1}} {
		placed := apps(t, catalogue(t, twoZones...), anyPool+deployment("loud", 1, c.priority+loud)+deployment("web", 40, spreadBy(zoneKey)+container("100m")))
		assert.Equal(t, c.web, placed["web"])
		assert.Equal(t, c.loud, placed["loud"])
	}
}

// Two apps exclude each other in the one zone that they may use, and a third keeps away from one of them.
func TestOfTwoThatExcludeEachOtherTheLargerNumberStays(t *testing.T) {
	zone := func(z string) string { return "nodeSelector: {topology.kubernetes.io/zone: " + z + "}\n" }
	text := anyPool +
		deployment("picky", 2, zone("zone-a")+affinity("podAntiAffinity", "web", zoneKey)+container("1")) +
		deployment("web", 30, zone("zone-a")+container("100m"))
	assert.Equal(t, map[string]int{"web": 30}, apps(t, catalogue(t, twoZones...), text))
	text += deployment("quiet", 5, affinity("podAntiAffinity", "picky", zoneKey)+container("50m"))
	assert.Equal(t, map[string]int{"web": 30, "quiet": 5}, apps(t, catalogue(t, twoZones...), text))
}
