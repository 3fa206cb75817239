package scheduling_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

func ExampleCompile() {
	p, err := scheduling.Compile(scheduling.Snapshot{
		Pods:  []*corev1.Pod{pod("web-0"), pod("web-1")},
		Pools: []scheduling.Pool{pool("default")},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(p.Classes), "class of", len(p.Classes[0].Pods), "pods,", len(p.Shapes), "shapes")
	// Output: 1 class of 2 pods, 2 shapes
}

// A round says what to pack; whoever packs answers with an outcome.
func ExampleState() {
	p, err := scheduling.Compile(scheduling.Snapshot{Pods: []*corev1.Pod{pod("web-0"), pod("web-1")}, Pools: []scheduling.Pool{pool("default")}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	state := p.Start()
	for _, item := range state.Round() {
		fmt.Println("pack", item.Count, "x", item.Name)
	}
	state = state.Advance(scheduling.Outcome{Bins: []scheduling.OutcomeBin{{Shape: 1, Offering: 0, Shares: []scheduling.Share{{Item: 0, Count: 2}}}}})
	result := state.Result()
	fmt.Println(state.Done(), len(result.Bins), "node with", len(result.Bins[0].Pods), "pods of type", p.InstanceType(result.Bins[0].Shape).Name)
	// Output:
	// pack 2 x shop/web-0
	// true 1 node with 2 pods of type large
}

func ExampleState_Explain() {
	giant := pod("giant-0", func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list("16", "1Gi") })
	p, err := scheduling.Compile(scheduling.Snapshot{Pods: []*corev1.Pod{giant}, Pools: []scheduling.Pool{pool("default")}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, reason := range p.Start().Advance(scheduling.Outcome{}).Explain(0) {
		fmt.Println(reason.Stage, "-", reason)
	}
	// Output: resource - pool "default": 2 types: none is large enough; nearest large, short of 8 of cpu
}

// onlyOnDemand keeps pods of one namespace off spot nodes.
type onlyOnDemand struct{ namespace string }

func (o onlyOnDemand) Narrow(p *corev1.Pod, required requirements.Alternatives) (requirements.Alternatives, *scheduling.Reason) {
	if p.Namespace != o.namespace {
		return required, nil
	}
	safe := requirements.MustOf(requirements.In(instancetypes.LabelCapacityType, instancetypes.CapacityTypeOnDemand))
	return required.Intersect(requirements.AnyOf(safe)), nil
}

func ExampleConstraint() {
	p, err := scheduling.Compile(scheduling.Snapshot{Pods: []*corev1.Pod{pod("web-0")}, Pools: []scheduling.Pool{pool("default")}},
		&scheduling.Options{Constraints: []scheduling.Constraint{onlyOnDemand{"shop"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Classes[0].Required)
	// Output: karpenter.sh/capacity-type in (on-demand)
}

func ExampleReason() {
	r := scheduling.Reason{Pool: "spot", Stage: scheduling.StageTaint, Key: "dedicated", Detail: "taint dedicated=batch:NoSchedule is not tolerated"}
	fmt.Println(r)
	// Output: pool "spot": taint dedicated=batch:NoSchedule is not tolerated
}

// A node that was bought a moment ago takes the pods, and nothing is bought for them once more.
func ExampleNodeClaim() {
	bought := scheduling.NodeClaim{
		Name: "default-0", Labels: map[string]string{nodepool.LabelKey: "default"}, Capacity: list("2", "8Gi"), Allocatable: list("1900m", "7Gi"),
	}
	p, err := scheduling.Compile(scheduling.Snapshot{
		Pods: []*corev1.Pod{pod("web-0")}, NodeClaims: []scheduling.NodeClaim{bought},
		Pools: []scheduling.Pool{pool("default", func(p *nodepool.NodePool) { p.Limits = list("3", "32Gi") })},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Existing[0].Node.Name, p.Existing[0].InFlight, p.Existing[0].Free[0], "of cpu free;", p.Pools[0].Left[0], "left to buy")
	// Output: default-0 true 1900 of cpu free; 1000 left to buy
}
