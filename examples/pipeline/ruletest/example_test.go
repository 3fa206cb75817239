package ruletest_test

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/regret"
	"github.com/joinery-sdk/joinery/examples/pipeline/ruletest"
)

// example is a market of two types, so that the output of examples is short.
func example() ruletest.Scenario {
	return ruletest.New(
		ruletest.Type("m.2", "cpu", "2", "memory", "8Gi").Offer("zone-a", "on-demand", 0.10).Offer("zone-a", "spot", 0.04),
		ruletest.Type("m.8", "cpu", "8", "memory", "32Gi").Offer("zone-a", "on-demand", 0.40).Offer("zone-b", "on-demand", 0.40),
		ruletest.Pool("default"),
	)
}

// printer prints what a test would be told.
type printer struct{}

func (printer) Helper()                           {}
func (printer) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (printer) Fatalf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// In a test, t takes the place of printer{}.
func Example() {
	plan := example().Add(ruletest.Deployment("shop/web", 3).Requests("cpu", "500m").Spreads("zone", 1)).Plan(printer{})
	plan.Pods("shop/web-*").ArePlaced().AreTogether("zone")
	// Output:
	// rule: pods shop/web-* are together by zone is broken
	//   shop/web-1: is on new node default-1 (m.8, zone-b, on-demand, pool default), but 2 of them are on zone zone-a
	//   moved by topology spread of app=web by topology.kubernetes.io/zone with skew 1: without it the rule holds, for $0.40/h less
}

// A job of four is bought in part where a limit has room for two. As a group it waits, and nothing is bought for it.
func ExampleAllOrNothing() {
	two := ruletest.New(ruletest.Type("m.2", "cpu", "2", "memory", "8Gi").Offer("zone-a", "on-demand", 0.10), ruletest.Pool("default").Limit("cpu", "4"))
	job := ruletest.Deployment("lab/train", 4).Requests("cpu", "1500m")
	group := `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {namespace: lab, name: train}, spec: {minMember: 4}}`
	for _, s := range []ruletest.Scenario{two.Add(job), two.Add(job.Label("scheduling.x-k8s.io/pod-group", "train")).Manifests(group)} {
		plan, err := s.Solve()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(plan.Check(ruletest.AllOrNothing("lab/train-*"))[0])
	}
	// Output:
	// rule: pods lab/train-* are all placed, or none is broken
	//   lab/train-2: it has no place, and 2 of the others have one; likewise 1 more
	//   moved by limit of 4 cpu of pool "default": without it the rule holds, for $0.20/h more
	// rule: pods lab/train-* are all placed, or none holds for 4 pods; lab/train-0, lab/train-1, lab/train-2 and lab/train-3 have no place: pool "default": group lab/train needs 4 of its pods at once, but only 2 of them can be placed; for the others: the limit of 4 cpu leaves 0; the smallest type that holds it, m.2, counts 2
}

// Without a test, rules are data.
func ExamplePlan_Check() {
	plan, err := example().Add(ruletest.Pod("web").Requests("cpu", "1").On("karpenter.sh/capacity-type=on-demand")).Solve()
	if err != nil {
		fmt.Println(err)
		return
	}
	rules, err := ruletest.Parse(manifests.File{Name: "rules.yaml", Data: []byte(`
- pods: web
  landsOn: {capacityType: spot}
- rule: the whole plan is cheap
  atMostPerHour: 0.10
`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range plan.Check(rules...) {
		fmt.Println(r)
	}
	// Output:
	// rule: pods web land on capacity type spot (rules.yaml:2) is broken
	//   default/web: is on new node default-0 (m.2, zone-a, on-demand, pool default): its capacity type is on-demand, not spot
	//   moved by required node affinity karpenter.sh/capacity-type in (on-demand) of default/web, which the rule contradicts
	// rule "the whole plan is cheap" (rules.yaml:4) holds for 1 pod
}

func ExampleParse() {
	_, err := ruletest.Parse(manifests.File{Name: "rules.yaml", Data: []byte("- pods: web\n  landOn: zone-a\n")})
	fmt.Println(err)
	// Output: rules.yaml:2: rules[0].landOn: unknown field "landOn": did you mean "landsOn"?
}

func ExamplePool() {
	spot := ruletest.Pool("spot").Only("karpenter.sh/capacity-type=spot").Taint("dedicated=batch:NoSchedule").Weight(10).Limit("cpu", "4")
	plan := example().Add(spot, ruletest.Pod("etl").Requests("cpu", "1").Tolerates("dedicated=batch")).Plan(printer{})
	plan.Pods("etl").LandOn(ruletest.Place{Pool: "spot"}).CostAtMost(0.04)
	fmt.Println("kept")
	// Output: kept
}

func ExampleExistingNode() {
	node := ruletest.ExistingNode("ip-10-0-0-1", "cpu", "4", "memory", "16Gi").Label("topology.kubernetes.io/zone", "zone-a")
	plan := example().Add(node, ruletest.Pod("db").RunningOn("ip-10-0-0-1"), ruletest.Pod("web").Requests("cpu", "1")).Plan(printer{})
	plan.Pods("web").LandOn(ruletest.Place{Node: "ip-*"}).AreNear("node", "db").CostAtMost(0)
	fmt.Println("kept")
	// Output: kept
}

func ExampleDaemonSet() {
	agent := ruletest.DaemonSet("kube-system/agent").Requests("cpu", "1500m")
	plan := example().Add(agent, ruletest.Pod("web").Requests("cpu", "1")).Plan(printer{})
	plan.Pods("web").LandOn(ruletest.Place{InstanceType: "m.8"})
	fmt.Println("kept: the small type has no room beside the agent")
	// Output: kept: the small type has no room beside the agent
}

func ExampleWorkload_Edit() {
	web := ruletest.Deployment("web", 2).Edit(func(s *corev1.PodSpec) {
		s.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
	})
	example().Add(web).Plan(printer{}).Pods("web-*").AreApart("node")
	fmt.Println("kept: a host port is there once a node")
	// Output: kept: a host port is there once a node
}

func ExampleScenario_Manifests() {
	plan := example().Manifests(`
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: main, image: web, resources: {requests: {cpu: 16}}}]}
`).Plan(printer{})
	plan.Pods("web").AreRefused(ruletest.Refusal{Stage: "resource", Text: "m.8, short of 8 of cpu"})
	fmt.Println("kept")
	// Output: kept
}

func ExampleRule() {
	limit := 0.01
	fmt.Println(ruletest.Rule{Pods: "web", AtMostPerHour: &limit}.Validate())
	fmt.Println(ruletest.Rule{Pods: "web"}.Validate())
	// Output:
	// <nil>
	// ruletest: rule: pods web: the rule demands nothing; want one of placed, allOrNothing, landsOn, neverOn, together, apart, spread, atMostPerHour, refused, survives, rulesCost, regret
}

func ExampleOn() {
	plan := example().Add(ruletest.Pod("web").Requests("cpu", "1")).Plan(printer{})
	plan.Pods("web").LandOn(ruletest.On("kubernetes.io/arch=amd64, karpenter.sh/capacity-type in (spot)"))
	fmt.Println("kept")
	// Output: kept
}

// Types of a test's own keep it short and its prices fixed: what EC2 charges tomorrow does not matter to the rule.
func ExampleInstanceType() {
	small := ruletest.Type("s.1", "cpu", "1", "memory", "2Gi").
		Label("example.com/disk", "ssd").
		Offer("zone-a", "on-demand", 0.02)
	plan := ruletest.New(small, ruletest.Pool("default"), ruletest.Pod("db").On("example.com/disk=ssd")).Plan(printer{})
	plan.Pods("db").LandOn(ruletest.Place{InstanceType: "s.1"}).CostAtMost(0.02)
	fmt.Println("kept")
	// Output: kept
}

// What scenarios of a team have in common is a list of objects; each test adds to it.
func ExampleObject() {
	base := []ruletest.Object{
		ruletest.Type("m.4", "cpu", "4", "memory", "16Gi").Offer("zone-a", "on-demand", 0.20),
		ruletest.Pool("default"),
		ruletest.DaemonSet("kube-system/agent").Requests("cpu", "500m"),
	}
	plan := ruletest.New(base...).Add(ruletest.Deployment("web", 3).Requests("cpu", "1")).Plan(printer{})
	plan.Pods("web-*").AreTogether("node").CostAtMost(0.20)
	fmt.Println("kept")
	// Output: kept
}

// A result names every pod that breaks the rule and why; what moved it is found by planning again.
func ExampleResult() {
	plan, err := example().Add(ruletest.Deployment("web", 2).Requests("cpu", "1").Apart("node")).Solve()
	if err != nil {
		fmt.Println(err)
		return
	}
	rule := ruletest.Rule{Pods: "web-*", Together: &ruletest.Company{By: "node"}}
	result := plan.Check(rule)[0]
	fmt.Println(result.Holds(), "for", result.Pods, "pods")
	blame := func(b ruletest.Breach) string { return b.Pod + ": " + b.Why }
	for _, b := range result.Breaches {
		fmt.Println(blame(b))
	}
	fmt.Println("moved by", result.MovedBy)
	// Output:
	// false for 2 pods
	// default/web-1: is on new node default-1 (m.2, zone-a, spot, pool default), but 1 of them is on node default-0
	// moved by [pod anti-affinity to app=web by kubernetes.io/hostname: without it the rule holds, for $0.04/h less]
}

// notes collects what a test would be told: any test framework can report rules, by three methods.
type notes struct{ lines []string }

func (n *notes) Helper() {}

func (n *notes) Errorf(format string, args ...any) {
	n.lines = append(n.lines, strings.SplitN(fmt.Sprintf(format, args...), "\n", 2)[0])
}

func (n *notes) Fatalf(format string, args ...any) { n.Errorf(format, args...) }

// What is reported to need not be a test of go test.
func ExampleTB() {
	var n notes
	var tb ruletest.TB = &n
	plan := example().Add(ruletest.Pod("web").Requests("cpu", "1")).Plan(tb)
	plan.Pods("web").ArePlaced().LandOn(ruletest.Place{Zone: "zone-b"})
	fmt.Println(n.lines)
	// Output: [rule: pods web land on zone zone-b is broken]
}

// Demands on pods chain, and a name of one's own starts what is reported.
func ExamplePods() {
	plan := example().Add(
		ruletest.Deployment("shop/web", 2).Requests("cpu", "1").Spreads("zone", 1),
		ruletest.Pod("shop/cache").Requests("cpu", "1").Near("zone", "app=web"),
	).Plan(printer{})
	webs := plan.Pods("shop/web-*")
	webs.ArePlaced().AreSpread("zone", 1)
	plan.Pods("shop/*").Labelled("app=cache").Called("the cache is beside a server").AreNear("zone", "shop/web-*")
	fmt.Println("kept")
	// Output: kept
}

// Evenly over zones, and over how many.
func ExampleSpread() {
	plan, err := ruletest.New(ruletest.Pool("default"), ruletest.Deployment("shop/web", 4).Requests("cpu", "1").Spreads("zone", 1)).Solve()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range plan.Check(ruletest.Rule{Pods: "shop/web-*", Spread: &ruletest.Spread{By: "zone", AtLeast: 3, Skew: 1}}) {
		fmt.Println(r)
	}
	// Output: rule: pods shop/web-* are spread by zone over 3 at least, with a skew of at most 1 holds for 4 pods
}

// A platform team bounds what its own rules may cost; an exception is written down.
func ExampleRulesCost() {
	only := ruletest.Pool("default").Only("karpenter.sh/capacity-type=on-demand")
	plan, err := ruletest.New(ruletest.Type("m.4", "cpu", "4", "memory", "16Gi").Offer("zone-a", "on-demand", 0.20).Offer("zone-a", "spot", 0.08), only,
		ruletest.Deployment("web", 3).Requests("cpu", "1")).Solve()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range plan.Check(
		ruletest.Rule{Name: "cheap rules", RulesCost: &ruletest.RulesCost{AtMostPerMonth: 50}},
		ruletest.Rule{Name: "spot is not for us", RulesCost: &ruletest.RulesCost{AtMostPerMonth: 50, Except: "*capacity-type*"}},
	) {
		fmt.Println(r)
	}
	// Output:
	// rule "cheap rules" is broken
	//   NodePool default: karpenter.sh/capacity-type in (on-demand) costs $87.60 a month, verified by a plan without it, want at most $50.00; other plans may save up to $87.60
	// rule "spot is not for us" holds: there are no such rules
}

// What a day cost is compared with what it had to cost. [regret.Audit] reckons the report of a recorded day.
func ExampleRegret() {
	plan, err := example().Solve()
	if err != nil {
		fmt.Println(err)
		return
	}
	const hour = regret.Amount(3600e9)
	day := &regret.Report{Bill: regret.Bill{Paid: 120 * hour, Policy: 105 * hour, Present: 100 * hour}}
	most := 15.0
	fmt.Println(plan.Recorded(day).Check(ruletest.Rule{Name: "no waste", Regret: &ruletest.Regret{AboveBound: &most}})[0])
	// Output:
	// rule "no waste" is broken
	//   $120.00 was paid, 20.0% above the $100.00 that any policy must pay that knows only the present, want at most 15%
}
