package ruletest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/regret"
	"github.com/joinery-sdk/joinery/examples/pipeline/ruletest"
)

// half is a cluster of two nodes, either of which has room for all pods, and a budget that keeps them apart.
func half(budget string) ruletest.Scenario {
	node := func(name string) ruletest.Node {
		return ruletest.ExistingNode(name, "cpu", "4", "memory", "16Gi").Label("karpenter.sh/nodepool", "default").Label("node.kubernetes.io/instance-type", "a.4").
			Label("topology.kubernetes.io/zone", "zone-a").Label("karpenter.sh/capacity-type", "on-demand")
	}
	s := base()
	if budget != "" {
		s = s.Manifests(budget)
	}
	return s.At(time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)).Add(node("n1"), node("n2"),
		ruletest.Pod("shop/web-0").Label("app", "web").Requests("cpu", "1").RunningOn("n1"), ruletest.Pod("shop/web-1").Label("app", "web").Requests("cpu", "1").RunningOn("n2"))
}

const budget = `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {namespace: shop, name: web}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: web}}}
status: {disruptionsAllowed: 0, currentHealthy: 2, desiredHealthy: 2, expectedPods: 2}
`

// A rule that costs more than it may is named with its cost, and an interval or a proof stands beside those that do not.
func TestRulesMayNotCostTooMuch(t *testing.T) {
	dear := ruletest.New(ruletest.Type("a.4", "cpu", "4", "memory", "16Gi").Offer("zone-a", "on-demand", 0.2).Offer("zone-a", "spot", 0.1),
		ruletest.Pool("default").Only("karpenter.sh/capacity-type=on-demand"), ruletest.Pool("other").Only("karpenter.sh/capacity-type=on-demand, topology.kubernetes.io/zone=zone-b"), ruletest.Deployment("shop/web", 4).Requests("cpu", "1"))
	pinned := ruletest.New(ruletest.Type("a.4", "cpu", "4", "memory", "16Gi").Offer("zone-a", "on-demand", 0.2).Offer("zone-a", "spot", 0.1),
		ruletest.Pool("default").Only("karpenter.sh/capacity-type=on-demand"), ruletest.Deployment("shop/web", 3).Requests("cpu", "1"))
	for _, c := range []struct {
		name          string
		in            ruletest.Scenario
		costs         ruletest.RulesCost
		broken, holds string
	}{
		{name: "dearer than it may be", in: pinned, costs: ruletest.RulesCost{AtMostPerMonth: 70}, broken: "NodePool default: karpenter.sh/capacity-type in (on-demand) costs $73.00 a month, verified by a plan without it, want at most $70.00"},
		{name: "as dear as it may be", in: pinned, costs: ruletest.RulesCost{AtMostPerMonth: 73, Proved: true}, holds: "the dearest costs $73.00 a month, NodePool default: karpenter.sh/capacity-type in (on-demand); by the bounds none costs more than $73.00"},
		{name: "another one is meant", in: pinned, costs: ruletest.RulesCost{Of: "Deployment *"}, broken: `no rule is called "Deployment *"`},
		{name: "it is excepted", in: pinned, costs: ruletest.RulesCost{Except: "NodePool default: karpenter.sh/capacity-type*"}, holds: "there are no such rules"},
		{name: "a slip in what is excepted", in: pinned, costs: ruletest.RulesCost{AtMostPerMonth: 1000, Except: "NodePool defualt*"}, broken: `no rule is called "NodePool defualt*"`},
		{name: "a budget keeps a node", in: half(budget), costs: ruletest.RulesCost{AtMostPerMonth: 70}, broken: "PodDisruptionBudget shop/web costs $146.00 a month"},
		{name: "it may", in: half(budget), costs: ruletest.RulesCost{AtMostPerMonth: 400}, holds: "PodDisruptionBudget shop/web"},
		{name: "no budget", in: half(""), costs: ruletest.RulesCost{}, holds: "there are no such rules"},
		{name: "one of two", in: dear, costs: ruletest.RulesCost{AtMostPerMonth: 1}, broken: "karpenter.sh/capacity-type"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := c.in.Solve()
			require.NoError(t, err)
			res := p.Check(ruletest.Rule{RulesCost: &c.costs})[0]
			require.NoError(t, res.Invalid)
			assert.Equal(t, c.broken == "", res.Holds(), "%s", res)
			assert.Contains(t, res.String(), c.broken)
			assert.Contains(t, res.String(), c.holds)
		})
	}
	rec := &recorder{}
	pinned.Plan(rec).RulesCostAtMost(73)
	assert.Empty(t, rec.text)
	pinned.Plan(rec).RulesCostAtMost(72)
	assert.Contains(t, rec.text, "rule: the cluster: no rule costs more than $72.00 a month is broken")
}

// What was paid is compared with what had to be, and with what our policy pays.
func TestThePastMayNotCostTooMuch(t *testing.T) {
	const hour = regret.Amount(3600e9)
	past := &regret.Report{Bill: regret.Bill{Paid: 12 * hour, Policy: 11 * hour, Present: 10 * hour, Bound: 9 * hour}, Decisions: []regret.Decision{
		{Node: "n1", InstanceType: "m5.large", Bill: regret.Bill{Paid: 3 * hour, Policy: 2 * hour}, Better: "node n2 has room"},
	}}
	p, err := base().Add(ruletest.Pod("web").Requests("cpu", "1")).Solve()
	require.NoError(t, err)
	rules, err := ruletest.Parse(manifests.File{Name: "rules.yaml", Data: []byte("- regret: {aboveBound: 20, abovePolicy: 10}\n- regret: {aboveBound: 19.9}\n- regret: {abovePolicy: 9}\n")})
	require.NoError(t, err)
	for _, r := range p.Check(rules...) {
		assert.Contains(t, r.String(), "none is given")
	}
	got := p.Recorded(past).Check(rules...)
	assert.Equal(t, "rule: the cluster: its past cost at most 19.9% above the bound (rules.yaml:2) is broken\n"+
		"  $12.00 was paid, 20.0% above the $10.00 that any policy must pay that knows only the present, want at most 19.9%\n"+
		"  dearest was node n1 (m5.large): $1.00 more than under our policy; better: node n2 has room", got[1].String())
	assert.Contains(t, got[2].String(), "9.1% above the $11.00 that our policy pays, want at most 9%")
	assert.True(t, got[0].Holds(), "%s", got[0])
	ten := 10.0
	held := p.Recorded(past).Check(ruletest.Rule{Regret: &ruletest.Regret{AbovePolicy: &ten}})[0]
	assert.True(t, held.Holds())
	assert.Contains(t, held.String(), "holds: $12.00 was paid, 9.1% above the $11.00 that our policy pays")
	blind := p.Recorded(&regret.Report{NoPods: true}).Check(rules...)
	assert.Contains(t, blind[0].String(), "no pods")
	nothing := p.Recorded(&regret.Report{Bill: regret.Bill{Paid: hour}}).Check(rules...)
	assert.Contains(t, nothing[0].String(), "+Inf% above the $0.00", "nothing had to be paid")
}

// Nonsense in these rules is said where it stands.
func TestRulesAboutMoneyAreValidated(t *testing.T) {
	for text, want := range map[string]string{
		"- rulesCost: {atMostPerMonth: -1}":                "rulesCost.atMostPerMonth: -1: want dollars, 0 or more",
		"- {pods: shop/*, rulesCost: {atMostPerMonth: 1}}": "want neither pods nor labels beside them",
		"- regret: {}":                                         "regret: want aboveBound or abovePolicy, in percent",
		"- regret: {aboveBound: -1}":                           "regret.aboveBound: -1: want percent, 0 or more",
		"- regret: {above: 1}":                                 "regret.above",
		"- rulesCost: {max: 1}":                                `did you mean "atMostPerMonth"?`,
		"- rulesCost: 200":                                     "rulesCost",
		"- {labels: app=web, regret: {aboveBound: 1}}":         "want neither pods nor labels",
		"- rulesCost: {atMostPerMonth: 1, proved: sometimes}":  "proved",
		"- rulesCost: {atMostPerMonth: 1, except: [NodePool]}": "except",
	} {
		_, err := ruletest.Parse(manifests.File{Name: "rules.yaml", Data: []byte(text)})
		require.Error(t, err, text)
		assert.Contains(t, err.Error(), want, text)
		assert.True(t, strings.HasPrefix(err.Error(), "rules.yaml:1: "), err)
	}
}

// A rule about survival speaks of pods that run, too: after all pods are bound it still means something.
func TestRunningPodsSurvive(t *testing.T) {
	p, err := half("").Solve()
	require.NoError(t, err)
	res := p.Check(ruletest.Rule{Pods: "shop/web-*", Survives: "node"}, ruletest.Rule{Pods: "shop/api-*", Survives: "node"})
	assert.True(t, res[0].Holds(), "%s", res[0])
	assert.Contains(t, res[1].String(), "it matches no pending pod")
}

// Money is not rounded: what breaks a limit never looks like the limit, and "at most" is not less than the truth.
func TestMoneyHasAllItsDecimals(t *testing.T) {
	s := ruletest.New(ruletest.Type("t", "cpu", "6", "memory", "5Gi").Offer("zone-a", "spot", 0.078125), ruletest.Pool("default"),
		ruletest.Deployment("shop/web", 3).Requests("cpu", "1250m", "memory", "1536Mi"))
	p, err := s.Solve()
	require.NoError(t, err)
	limit, apart := 0.07812, ruletest.Company{By: "node"}
	got := p.Check(ruletest.Rule{AtMostPerHour: &limit}, ruletest.Rule{Pods: "shop/web-*", Apart: &apart})
	assert.Contains(t, got[0].String(), "1 new node for $0.078125/h, want at most $0.07812/h: default-0 t spot $0.078125\n")
	assert.Contains(t, got[1].String(), "to keep the rule costs at most $0.15625/h more")
}

// A percentage has the decimals that tell it from its limit.
func TestPercentagesShowOnWhichSideOfTheLimitTheyAre(t *testing.T) {
	const hour = regret.Amount(3600e9)
	past := &regret.Report{Bill: regret.Bill{Paid: 1200400 * hour / 100000, Policy: 10 * hour, Present: 10 * hour, Bound: 9 * hour}}
	p, err := base().Add(ruletest.Pod("web").Requests("cpu", "1")).Solve()
	require.NoError(t, err)
	twenty := 20.0
	got := p.Recorded(past).Check(ruletest.Rule{Regret: &ruletest.Regret{AboveBound: &twenty}})[0]
	assert.Contains(t, got.String(), "20.04% above the $10.00 that any policy must pay that knows only the present, want at most 20%")
}
