package scheduling_test

import (
	"context"
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

// allOnOne is a packer that puts everything onto one large node.
type allOnOne struct{}

func (allOnOne) Pack(_ context.Context, _ *scheduling.Problem, r scheduling.Round) (scheduling.Outcome, error) {
	bin := scheduling.OutcomeBin{Shape: 1}
	for i, item := range r.Items {
		fmt.Println("pack", item.Count, "x", item.Name, "for good:", r.Final)
		bin.Shares = append(bin.Shares, scheduling.Share{Item: i, Count: item.Count})
	}
	return scheduling.Outcome{Bins: []scheduling.OutcomeBin{bin}, AsPacked: true}, nil // not the cheapest, but on one node
}

// A packer gets several rounds of items to pack. The last round is the final one.
func ExamplePacker() {
	p, err := scheduling.Compile(scheduling.Snapshot{Pods: []*corev1.Pod{pod("web-0"), pod("web-1")}, Pools: []scheduling.Pool{pool("default")}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := p.Solve(context.Background(), allOnOne{})
	for _, n := range result.NewNodes() {
		fmt.Println(n.Name, "is a", n.InstanceType.Name, "with", len(n.Pods), "pods", err)
	}
	// Output:
	// pack 2 x shop/web-0 for good: false
	// pack 2 x shop/web-0 for good: true
	// default-0 is a large with 2 pods <nil>
}

func ExampleUnplaced_Reasons() {
	giant := pod("giant-0", func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list("16", "1Gi") })
	p, err := scheduling.Compile(scheduling.Snapshot{Pods: []*corev1.Pod{giant}, Pools: []scheduling.Pool{pool("default")}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, reason := range solve(p, nothing).Unplaced()[0].Reasons() {
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

// A node that was just bought takes the pods, and nothing more is bought for them.
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

// twice is a packer that remembers its rounds.
type twice struct{ rounds []scheduling.Round }

func (t *twice) Pack(_ context.Context, _ *scheduling.Problem, r scheduling.Round) (scheduling.Outcome, error) {
	t.rounds = append(t.rounds, r)
	return scheduling.Outcome{Bins: []scheduling.OutcomeBin{{Shares: []scheduling.Share{{Item: 0, Count: r.Items[0].Count}}}}}, nil
}

// The chosen round comes once more, as the final round, to be packed for a low cost.
func ExampleRound() {
	var _ scheduling.Round
	p, err := scheduling.Compile(scheduling.Snapshot{Pods: []*corev1.Pod{pod("web-0")}, Pools: []scheduling.Pool{pool("default")}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	var packer twice
	_, err = p.Solve(context.Background(), &packer)
	for _, r := range packer.rounds {
		fmt.Println("round", r.Number, "with", len(r.Items), "item, final:", r.Final, err)
	}
	// Output:
	// round 0 with 1 item, final: false <nil>
	// round 0 with 1 item, final: true <nil>
}
