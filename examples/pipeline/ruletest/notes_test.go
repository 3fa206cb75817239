package ruletest_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
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
	const notes = `default/web-1 is not ours to place: scheduler "batch" places it; default/web-2 is not ours to place: scheduling gate "quota"`
	for _, c := range []struct {
		rule ruletest.Rule
		want string
	}{
		{ruletest.Rule{Pods: "web-*", NeverOn: []ruletest.Place{{Zone: "zone-b"}}}, "holds for 3 pods; " + notes},
		{ruletest.Rule{Pods: "web-*", Apart: &ruletest.Company{By: "node"}}, "holds for 3 pods; " + notes},
		{ruletest.Rule{Pods: "web-0", Placed: true}, "holds for 1 pod"},
		{ruletest.Rule{Pods: "web-*", Placed: true}, `web-1: has no place: it is not ours to place: scheduler "batch" places it`},
		{ruletest.Rule{Pods: "web-*", AllOrNothing: true}, `web-2: it has no place: it is not ours to place: scheduling gate "quota", and 1 of the others has one`},
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

// Law: a rule of any kind that holds names those of its pods that have no place, each once, and no other pod.
func TestRulesThatHoldNamePodsWithoutAPlace(t *testing.T) {
	draws := 40
	if testing.Short() {
		draws = 8
	}
	placeless := regexp.MustCompile(`^(.*?) (?:has no place|have no place|is not ours to place|are not ours to place): .`)
	more := regexp.MustCompile(` and (\d+) more$`)
	r := rand.New(rand.NewPCG(23, 1))
	held, silent := map[int]int{}, 0
	for range draws {
		s := ruletest.New(ruletest.Type("a.4", "cpu", "4").Offer("zone-a", "on-demand", 1).Offer("zone-b", "on-demand", 1), ruletest.Pool("default"), ruletest.Pool("other").Taint("other:NoSchedule"))
		has := map[string]bool{} // a place
		for i := range 1 + r.IntN(9) {
			name := fmt.Sprintf("%s-%d", []string{"web", "db"}[r.IntN(2)], i)
			pod := ruletest.Pod(name).Requests("cpu", "1").Label("app", "all")
			has["default/"+name] = false
			switch r.IntN(6) {
			case 0:
				pod = pod.On("disk=fast")
			case 1:
				pod = pod.Requests("cpu", "9")
			case 2:
				pod = pod.Edit(func(spec *corev1.PodSpec) { spec.SchedulerName = "batch" })
			case 3:
				pod = pod.Edit(func(spec *corev1.PodSpec) { spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}} })
			default:
				has["default/"+name] = true
			}
			s = s.Add(pod)
		}
		plan, err := s.Solve()
		require.NoError(t, err)
		much := 1000.0
		for _, pods := range []string{"", "web-*", "db-*"} {
			rules := []ruletest.Rule{
				{Placed: true},
				{AllOrNothing: true},
				{LandsOn: []ruletest.Place{{Zone: "zone-*"}}},
				{NeverOn: []ruletest.Place{{Pool: "other"}}},
				{Together: &ruletest.Company{By: "kubernetes.io/os"}},
				{Apart: &ruletest.Company{By: "node", Most: 9}},
				{Spread: &ruletest.Spread{By: "zone", Skew: 9}},
				{AtMostPerHour: &much},
				{Refused: &ruletest.Refusal{}},
				{Survives: "node", MayWait: true},
				{NeverOn: []ruletest.Place{ruletest.On("!gpu, kubernetes.io/os=linux")}, AtMostPerHour: &much},
			}
			for i := range rules {
				rules[i].Pods = pods
			}
			if pods == "" {
				rules = append(rules, ruletest.Rule{RulesCost: &ruletest.RulesCost{AtMostPerMonth: much}}, ruletest.Rule{RulesCost: &ruletest.RulesCost{AtMostPerMonth: much}, AtMostPerHour: &much})
			}
			for i, res := range plan.Check(rules...) {
				if !res.Holds() {
					continue
				}
				want := 0
				for name, placed := range has {
					if strings.HasPrefix(name, "default/"+strings.TrimSuffix(pods, "*")) && !placed {
						want++
					}
				}
				named := 0
				for _, note := range res.Notes {
					who := placeless.FindStringSubmatch(note)
					if who == nil {
						continue
					}
					assert.Contains(t, res.String(), note)
					list := who[1]
					if rest := more.FindStringSubmatch(list); rest != nil {
						n, _ := strconv.Atoi(rest[1])
						named, list = named+n, strings.TrimSuffix(list, rest[0])
					}
					for name := range strings.SplitSeq(strings.ReplaceAll(list, " and ", ", "), ", ") {
						placed, known := has[name]
						assert.True(t, known && !placed && strings.HasPrefix(name, "default/"+strings.TrimSuffix(pods, "*")), "%s: %s", name, note)
						named++
					}
				}
				assert.Equal(t, want, named, "%s", res)
				if held[i]++; want == 0 {
					silent++
				}
			}
		}
	}
	for i := range 13 {
		assert.Positive(t, held[i], "rule %d never held", i)
	}
	assert.Positive(t, silent)
}
