package rules_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/ruletest"
)

var update = flag.Bool("update", false, "rewrite the expected text of broken rules; commit only what you understand")

// recorder is a test that keeps what is reported to it.
type recorder struct{ text string }

func (r *recorder) Helper()                           {}
func (r *recorder) Errorf(format string, args ...any) { r.text += fmt.Sprintf(format, args...) + "\n" }
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...) }

// market is two sizes in two zones, so that it is plain to see what moves a pod.
func market() ruletest.Scenario {
	return ruletest.New(
		ruletest.Type("a.4", "cpu", "4", "memory", "16Gi").Offer("zone-a", "on-demand", 0.20).Offer("zone-b", "on-demand", 0.22).Offer("zone-a", "spot", 0.08),
		ruletest.Type("a.16", "cpu", "16", "memory", "64Gi").Offer("zone-a", "on-demand", 0.90),
		ruletest.Type("arm.4", "cpu", "4", "memory", "16Gi").Label("kubernetes.io/arch", "arm64").Offer("zone-b", "on-demand", 0.16),
		ruletest.Pool("default"),
	)
}

// Each way of breaking a rule, and what is said of it.
func TestWhatABrokenRuleSays(t *testing.T) {
	web := ruletest.Deployment("shop/web", 4).Requests("cpu", "1")
	cases := []struct {
		name   string
		plan   ruletest.Scenario
		demand func(*ruletest.Plan)
	}{
		{"the pod's own node affinity contradicts the rule", market().Add(web.On("kubernetes.io/arch=amd64")), func(p *ruletest.Plan) {
			p.Pods("shop/web-*").Called("the shop runs on arm64").LandOn(ruletest.On("kubernetes.io/arch=arm64"))
		}},
		{"the price decides", market().Add(web), func(p *ruletest.Plan) { p.Pods("shop/web-*").LandOn(ruletest.Place{Zone: "zone-b"}) }},
		{"a taint keeps pods away", market().Add(web, ruletest.Pool("cheap").Taint("dedicated=batch:NoSchedule").Weight(10)), func(p *ruletest.Plan) {
			p.Pods("shop/web-*").LandOn(ruletest.Place{Pool: "cheap"})
		}},
		{"a toleration lets pods in", market().Add(web.Tolerates("dedicated"), ruletest.Pool("batch").Taint("dedicated=batch:NoSchedule").Weight(10)), func(p *ruletest.Plan) {
			p.Pods("shop/web-*").NeverLandOn(ruletest.Place{Pool: "batch"})
		}},
		{"the weight of a pool decides", market().Add(web, ruletest.Pool("dear").Weight(50).Only("karpenter.sh/capacity-type=on-demand")), func(p *ruletest.Plan) {
			p.Pods("shop/web-*").LandOn(ruletest.Place{CapacityType: "spot"})
		}},
		{"the limit of a pool decides", market().Add(web, ruletest.Pool("first").Weight(50).Limit("cpu", "2")), func(p *ruletest.Plan) {
			p.Pods("shop/web-*").LandOn(ruletest.Place{Pool: "first"})
		}},
		{"a topology spread decides", market().Add(web.Spreads("zone", 1)), func(p *ruletest.Plan) { p.Pods("shop/web-*").AreTogether("zone") }},
		{"pod affinity decides", market().Add(web.Near("zone", "app=cache"), ruletest.Deployment("shop/cache", 1).Requests("cpu", "1").On("topology.kubernetes.io/zone=zone-b")), func(p *ruletest.Plan) {
			p.Pods("shop/web-*").NeverLandOn(ruletest.Place{Zone: "zone-b"})
		}},
		{"pod anti-affinity decides", market().Add(web.Apart("node")), func(p *ruletest.Plan) { p.Pods("shop/web-*").CostAtMost(0.10) }},
		{"a preference decides", market().PreferencePrice(math.Inf(1)).Add(web.Prefers(10, "karpenter.sh/capacity-type=on-demand")), func(p *ruletest.Plan) { p.Pods("shop/web-*").CostAtMost(0.10) }},
		{"a preference was given up", market().PreferencePrice(math.Inf(1)).Add(web.Prefers(10, "topology.kubernetes.io/zone=zone-a").Prefers(5, "kubernetes.io/arch=arm64")), func(p *ruletest.Plan) {
			p.Pods("shop/web-*").LandOn(ruletest.On("kubernetes.io/arch=arm64"))
		}},
		{"nothing asks for it", market().Add(web, ruletest.ExistingNode("n1", "cpu", "8", "memory", "32Gi"), ruletest.ExistingNode("n2", "cpu", "8", "memory", "32Gi")), func(p *ruletest.Plan) {
			p.Pods("shop/web-*").AreSpread("node", 3)
		}},
		{"others stand in the way", market().Add(web.On("topology.kubernetes.io/zone in (zone-a,zone-b)"), ruletest.ExistingNode("n1", "cpu", "2", "memory", "8Gi").Label("topology.kubernetes.io/zone", "zone-b"),
			ruletest.Pod("shop/loud").RunningOn("n1").Edit(keepsAway)), func(p *ruletest.Plan) {
			p.Pods("shop/web-*").LandOn(ruletest.Place{Zone: "zone-b"})
		}},
		{"there is no room", market().Add(ruletest.Pod("shop/giant").Requests("cpu", "20")), func(p *ruletest.Plan) { p.Pods("shop/giant").ArePlaced() }},
		{"the pods are too large for the price", market().Add(web), func(p *ruletest.Plan) { p.Pods("").Called("the budget").CostAtMost(0.05) }},
		{"a pod was to be refused", market().Add(web), func(p *ruletest.Plan) { p.Pods("shop/web-0").AreRefused(ruletest.Refusal{Stage: "taint"}) }},
		{"a pod is refused for another reason", market().Add(ruletest.Pod("shop/giant").Requests("cpu", "20")), func(p *ruletest.Plan) {
			p.Pods("shop/giant").AreRefused(ruletest.Refusal{Text: "taint"})
		}},
		{"pods that are to be near each other", market().Add(web, ruletest.Pod("shop/cache").Requests("cpu", "1").On("kubernetes.io/arch=arm64")), func(p *ruletest.Plan) {
			p.Pods("shop/web-*").AreNear("zone", "shop/cache")
		}},
		{"pods that are to avoid each other", market().Add(web, ruletest.Pod("batch/etl").Requests("cpu", "100m")), func(p *ruletest.Plan) {
			p.Pods("batch/etl").AvoidPods("zone", "shop/web-*")
		}},
		{"no such pod", market().Add(web), func(p *ruletest.Plan) { p.Pods("shop/wbe-*").ArePlaced() }},
		{"no such pool", market().Add(web), func(p *ruletest.Plan) { p.Pods("shop/web-*").NeverLandOn(ruletest.Place{Pool: "defualt"}) }},
		{"a constraint of the team's own decides", market().Constrain(noSpot()).Add(web), func(p *ruletest.Plan) {
			p.Pods("shop/web-*").LandOn(ruletest.Place{CapacityType: "spot"})
		}},
	}
	got := ""
	for _, c := range cases {
		rec := &recorder{}
		c.demand(c.plan.Plan(rec))
		require.NotEmpty(t, rec.text, c.name)
		got += "# " + c.name + "\n" + rec.text + "\n"
	}
	const path = "testdata/broken.txt"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
