package pipeline_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
)

// softSpread spreads the pods of a workload if that is worth its price.
func softSpread(key, workload string) string {
	return strings.NewReplacer("DoNotSchedule", "ScheduleAnyway", "app: web", "app: "+workload).Replace(spreadBy(key))
}

func atPrice(share float64) *scheduling.Options { return &scheduling.Options{PreferencePrice: &share} }

// A preference is bought up to its price, which is a share of what the pods that have it take of a node.
func TestPreferencesHaveAPrice(t *testing.T) {
	market := catalogue(t, "a.4 4 zone-a on-demand 0.4", "a.4 4 zone-b on-demand 0.44", "a.2 2 zone-b on-demand 0.22")
	// Two pods of 2 cpus cost 0.4 together in zone-a, and 0.42 or more if one of them is in zone-b: a twentieth of what they take.
	pods := deployment("web", 2, softSpread(zoneKey, "web")+container("2"))
	for _, c := range []struct {
		price float64
		zones int
	}{{0, 1}, {0.05, 1}, {math.Inf(1), 2}, {1, 2}} {
		p := packWith(t, market, anyPool+pods, atPrice(c.price))
		require.Empty(t, p.Unplaced())
		assert.Len(t, count(t, p, "web", zoneKey), c.zones, "price %v: %v", c.price, p.Cost().Dollars())
	}
}

// Preferences of different pods are decided one by one: those that cost nothing stay, whatever others cost.
func TestOnlyDearPreferencesAreGivenUp(t *testing.T) {
	market := catalogue(t, "a.8 8 zone-a on-demand 0.8", "a.8 8 zone-b on-demand 0.8")
	text := anyPool + deployment("free", 16, softSpread(zoneKey, "free")+container("1")) + deployment("dear", 3, softSpread(corev1.LabelHostname, "dear")+container("100m"))
	p := pack(t, market, text)
	require.Empty(t, p.Unplaced())
	assert.Equal(t, 2, len(count(t, p, "free", zoneKey)))
	for _, b := range p.Bindings() {
		if given, _ := p.GivenUp(b.Pod); strings.HasPrefix(b.Pod.Name, "free") {
			assert.Empty(t, given, b.Pod.Name)
		}
	}
	assert.LessOrEqual(t, len(p.NewNodes()), 3)
	assert.LessOrEqual(t, p.Cost(), packWith(t, market, text, atAnyPrice()).Cost())
}

// What is bought does not grow with the number of values that a soft spread could spread over.
func TestSoftSpreadsOverManyValues(t *testing.T) {
	var offers []string
	for i := range 40 {
		offers = append(offers, fmt.Sprintf("t.%d 4 zone-a on-demand %v", i, 0.1+float64(i)))
	}
	p := pack(t, catalogue(t, offers...), anyPool+deployment("web", 40, softSpread("node.kubernetes.io/instance-type", "web")+container("100m")))
	require.Empty(t, p.Unplaced())
	assert.InDelta(t, 0.1, p.Cost().Dollars(), 1e-9)
}

// A spread by hostname counts existing nodes as it counts zones: their least count rises.
func TestHostnameSpreadsFillExistingNodes(t *testing.T) {
	market := catalogue(t, "a.4 4 zone-a on-demand 0.2")
	for _, nodes := range []int{1, 2, 3} {
		text := anyPool + deployment("web", 3*nodes, spreadBy(corev1.LabelHostname)+container("1"))
		for i := range nodes {
			text += nodeIn(fmt.Sprintf("n%d", i), "zone-a", "16", "")
		}
		p := pack(t, market, text)
		require.Empty(t, p.Unplaced(), "%d nodes", nodes)
		assert.Empty(t, p.NewNodes(), "%d nodes", nodes)
	}
}

// Pods that must be together go where all of them cost least on whole nodes, not where a unit is cheapest.
func TestAffinityBeginsWhereAllOfThemAreCheap(t *testing.T) {
	market := catalogue(t, "big 32 zone-a on-demand 1.6", "small 4 zone-b on-demand 0.24")
	together := fmt.Sprintf("affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: %s, labelSelector: {matchLabels: {app: web}}}]}}\n", zoneKey)
	for n, cost := range map[int]float64{2: 0.24, 4: 0.24, 5: 0.48, 31: 1.6} {
		p := pack(t, market, anyPool+deployment("web", n, together+container("1")))
		require.Empty(t, p.Unplaced())
		assert.InDelta(t, cost, p.Cost().Dollars(), 1e-9, "%d pods", n)
	}
}

// A zone is left alone only if the options allow it.
func TestZonesAreLeftAloneIfAllowed(t *testing.T) {
	market := catalogue(t, "big 32 zone-a on-demand 1.6", "small 4 zone-b on-demand 0.24")
	text := anyPool + deployment("web", 2, spreadBy(zoneKey)+container("1"))
	cost := func(options *scheduling.Options) *plan.Plan {
		p := packWith(t, market, text, options)
		require.Empty(t, p.Unplaced())
		return p
	}
	assert.InDelta(t, 1.84, cost(nil).Cost().Dollars(), 1e-9)
	assert.InDelta(t, 0.24, cost(&scheduling.Options{LeaveZones: true}).Cost().Dollars(), 1e-9)
}

// A pod that meets its own affinity needs no other class. If blame put the pods that also meet it first, they took the place beside the first pod.
func TestPodsThatMeetTheirOwnAffinity(t *testing.T) {
	market := catalogue(t, "box 4 zone-a on-demand 0.12")
	together := "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}\n"
	for _, key := range []string{zoneKey, "karpenter.sh/capacity-type", corev1.LabelArchStable} {
		for workers := 2; workers <= 4; workers++ {
			cpu := container(fmt.Sprintf("%dm", 3900/workers))
			canary := strings.Replace(spreadBy(key), "maxSkew: 1", "maxSkew: 9", 1)
			text := deployment("web", workers, together+cpu) + strings.ReplaceAll(deployment("canary", 1, canary+cpu), "labels: {app: canary}", "labels: {app: web}")
			p := pack(t, market, anyPool+strings.Replace(text, "selector: {matchLabels: {app: canary}}", "selector: {matchLabels: {app: web}}", 1))
			assert.Zero(t, len(p.Unplaced()), "%s, %d workers", key, workers)
		}
	}
}

// Pods whose price in a domain is only known with the whole node are also tried elsewhere, whichever label the domain is a value of.
func TestOtherDomainsOfAnyLabel(t *testing.T) {
	// A core costs less in the large node, of which only one pod can use a part.
	apart := "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}\n"
	for key, market := range map[string][]string{
		zoneKey:                      {"small 1 zone-a on-demand 0.1", "large 16 zone-b on-demand 0.32"},
		"karpenter.sh/capacity-type": {"small 1 zone-a on-demand 0.1", "large 16 zone-a spot 0.32"},
	} {
		loose := strings.Replace(spreadBy(key), "maxSkew: 1", "maxSkew: 2", 1)
		p := pack(t, catalogue(t, market...), anyPool+deployment("web", 2, apart+loose+container("500m")))
		require.Empty(t, p.Unplaced(), key)
		assert.InDelta(t, 0.2, p.Cost().Dollars(), 1e-9, key)
	}
}

// A pod that fits on one existing node only has it, if others that took it fit on another one, so that nothing is bought.
func TestPodsOfNewNodesChooseFirst(t *testing.T) {
	market := catalogue(t, "box 4 zone-b on-demand 0.2")
	for name, picky := range map[string]string{
		"by selector": "nodeSelector: {rack: r1}\n",
		"by affinity": "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: rack, operator: Exists}]}]}}}\n",
	} {
		away := "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: rack, labelSelector: {matchLabels: {app: other}}}]}}\n"
		text := deployment("picky", 1, picky+container("1500m")) + deployment("large", 1, away+container("3")) +
			strings.Replace(nodeIn("n0", "zone-b", "4", ""), "zone-b}}", "zone-b, rack: r1}}", 1) + nodeIn("n1", "zone-b", "8", "")
		p := pack(t, market, strings.Replace(anyPool, "requirements: []", "requirements: [{key: rack, operator: In, values: [r1, r2]}]", 1)+text)
		require.Zero(t, len(p.Unplaced()), name)
		assert.Zero(t, len(p.NewNodes()), name)
	}
}
