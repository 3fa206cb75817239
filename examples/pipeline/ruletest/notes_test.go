package ruletest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline/ruletest"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/constraint"
)

// A rule may forbid a label that nothing has yet. The answer says so, because it may also be a typo.
func TestAbsentLabelsThatNothingHasAreNamed(t *testing.T) {
	p := ruletest.New(
		ruletest.Type("a.4", "cpu", "4").Offer("zone-a", "on-demand", 1), ruletest.Pool("default"),
		ruletest.ExistingNode("old-1", "cpu", "4").Label("disk", "ssd"), ruletest.Deployment("shop/web", 2).Requests("cpu", "1").Label("tier", "front"),
	).Plan(t)
	for _, c := range []struct {
		rule ruletest.Rule
		want string
	}{
		{ruletest.Rule{LandsOn: []ruletest.Place{ruletest.On("!kubernetes.io/arhc")}}, `holds for 2 pods; there is no label kubernetes.io/arhc here (did you mean "kubernetes.io/arch"?)`},
		{ruletest.Rule{LandsOn: []ruletest.Place{ruletest.On("!example.com/dedicated")}}, "holds for 2 pods; there is no label example.com/dedicated here"},
		{ruletest.Rule{LandsOn: []ruletest.Place{ruletest.On("!dsik"), ruletest.On("!gpu")}}, `holds for 2 pods; there is no label dsik here (did you mean "disk"?); there is no label gpu here`},
		{ruletest.Rule{NeverOn: []ruletest.Place{ruletest.On("!gpu, disk=ssd")}, Pods: "shop/web-9"}, ""},
		{ruletest.Rule{Labels: "teir!=back", Placed: true}, `holds for 2 pods; no pending or running pod has the label teir (did you mean "tier"?)`},
		{ruletest.Rule{Labels: "tier notin (bakc)", Placed: true}, "holds for 2 pods; no pending or running pod has the label tier=bakc"},
		{ruletest.Rule{Labels: "!canary", Placed: true}, "holds for 2 pods; no pending or running pod has the label canary"},
		{ruletest.Rule{Labels: "tier,tier notin (front)", Placed: true}, "it matches no pending pod"},
	} {
		res := p.Check(c.rule)[0]
		assert.Contains(t, res.String(), c.want)
		if res.Holds() {
			assert.NotEmpty(t, res.Notes)
		}
	}
	for _, labels := range []string{"!disk", "disk=ssd"} {
		assert.Empty(t, p.Check(ruletest.Rule{LandsOn: []ruletest.Place{ruletest.On(labels)}})[0].Notes, labels)
	}
}

// A pod that the plan refuses survives nothing, and what refuses it is named.
func TestRefusedPodsSurviveNothing(t *testing.T) {
	p := ruletest.New(
		ruletest.Type("a.4", "cpu", "4").Offer("zone-a", "on-demand", 1).Offer("zone-b", "on-demand", 1), ruletest.Pool("default"),
		ruletest.Pod("web-0").Requests("cpu", "1"), ruletest.Pod("web-1").Requests("cpu", "1").On("topology.kubernetes.io/zone=zone-c"), ruletest.Pod("big-0").Requests("cpu", "9"),
	).Plan(t)
	for pods, want := range map[string][]string{
		"web-0": {"survive the loss of any one zone, though they may wait for nodes holds for 1 pod"},
		"web-1": {"default/web-1: has no place", "moved by required node affinity topology.kubernetes.io/zone in (zone-c): without it the rule holds while nothing is lost"},
		"big-0": {"default/big-0: has no place", "none is large enough"},
	} {
		for _, text := range want {
			assert.Contains(t, p.Check(ruletest.Rule{Pods: pods, Survives: "zone", MayWait: true})[0].String(), text)
		}
	}
}

// A rule names those of its pods that are not planned. If it demands a place for them, it is broken.
func TestPodsThatAreNotPlannedAreNamed(t *testing.T) {
	foreign := func(spec *corev1.PodSpec) { spec.SchedulerName = "batch" }
	gated := func(spec *corev1.PodSpec) { spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}} }
	p := ruletest.New(
		ruletest.Type("a.4", "cpu", "4").Offer("zone-a", "on-demand", 1).Offer("zone-b", "on-demand", 1), ruletest.Pool("default"),
		ruletest.ExistingNode("old-1", "cpu", "4").Label("topology.kubernetes.io/zone", "zone-a"),
		ruletest.Pod("run-0").Requests("cpu", "1").RunningOn("old-1").Edit(foreign), ruletest.Pod("run-1").Requests("cpu", "1").RunningOn("old-1"),
		ruletest.Pod("web-0").Requests("cpu", "1"), ruletest.Pod("web-1").Requests("cpu", "1").Edit(foreign), ruletest.Pod("web-2").Requests("cpu", "1").Edit(gated),
	).Plan(t)
	const notes = `1 of them not ours to place: scheduler "batch" places it; 1 of them not ours to place: scheduling gate "quota"`
	for _, c := range []struct {
		rule ruletest.Rule
		want string
	}{
		{ruletest.Rule{Pods: "web-*", NeverOn: []ruletest.Place{{Zone: "zone-b"}}}, "holds for 3 pods; " + notes},
		{ruletest.Rule{Pods: "web-*", Apart: &ruletest.Company{By: "node"}}, "holds for 3 pods; " + notes},
		{ruletest.Rule{Pods: "web-0", Placed: true}, "holds for 1 pod"},
		{ruletest.Rule{Pods: "web-*", Placed: true}, `web-1: has no place: it is not ours to place: scheduler "batch" places it`},
		{ruletest.Rule{Pods: "web-*", AllOrNothing: true}, `web-2: it has no place: it is not ours to place: scheduling gate "quota", and 1 of the others have one`},
		{ruletest.Rule{Pods: "web-1", Refused: &ruletest.Refusal{}}, `is not ours to place: scheduler "batch" places it`},
		{ruletest.Rule{Pods: "web-*", LandsOn: []ruletest.Place{{Zone: "zone-*"}}}, `web-2: has no place: it is not ours to place: scheduling gate "quota"`},
		{ruletest.Rule{Pods: "web-2", Survives: "zone", MayWait: true}, `web-2: has no place: it is not ours to place: scheduling gate "quota"`},
		{ruletest.Rule{Pods: "web-1", Survives: "node, zone"}, `web-1: has no place: it is not ours to place: scheduler "batch" places it`},
		{ruletest.Rule{Pods: "web-0", Survives: "zone", MayWait: true}, "holds for 1 pod"},
		{ruletest.Rule{Pods: "run-1", Survives: "node", MayWait: true}, "holds for 0 pods"},
		{ruletest.Rule{Pods: "run-*", Survives: "node", MayWait: true}, `default/run-0: after the loss of node old-1 it is not ours to place: scheduler "batch" places it`},
	} {
		assert.Contains(t, p.Check(c.rule)[0].String(), c.want)
	}
}

// A nil constraint is skipped, in the search for causes, too.
func TestNilConstraints(t *testing.T) {
	p, err := base().Constrain(nil, constraint.Named("no spot", constraint.Require(func(*corev1.Pod) bool { return true }, requirements.MustParse("karpenter.sh/capacity-type!=spot")))).
		Add(ruletest.Deployment("web", 2).Requests("cpu", "1")).Solve()
	require.NoError(t, err)
	res := p.Check(ruletest.Rule{Pods: "web-*", LandsOn: []ruletest.Place{{CapacityType: "spot"}}})
	require.Len(t, res, 1)
	assert.Contains(t, strings.Join(res[0].MovedBy, "\n"), "no spot")
}
