package plan_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// seats is a simple simulator: every pod takes one seat of its node, and nothing can be bought. For
// real clusters package whatif answers the questions.
type seats []seat

type seat struct {
	node string
	free int
}

// Simulate puts each pod on the first node with a free seat.
func (s seats) Simulate(_ context.Context, q plan.Question) (plan.Answer, error) {
	after := slices.DeleteFunc(slices.Clone(s), func(x seat) bool { return slices.Contains(q.Remove, x.node) })
	var a plan.Answer
	for _, pod := range q.Pods {
		at := slices.IndexFunc(after, func(x seat) bool { return x.free > 0 })
		if at < 0 {
			return plan.Answer{Unplaced: []*corev1.Pod{pod}, Why: pod.Name + ": all seats are taken"}, nil
		}
		after[at].free--
		a.Placements = append(a.Placements, plan.Placement{Pod: pod, Node: after[at].node})
	}
	a.After = func() plan.Simulator { return after }
	a.Rebased = a.After
	return a, nil
}

// Two nodes run one pod each. One of them has a seat for both, so the other can go.
func Example() {
	now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	node := func(name string, dollars float64) eligibility.Node {
		yes := true
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-" + name,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", Controller: &yes}},
		}}
		return eligibility.FromNode(n, []*corev1.Pod{pod}, nil, deprovision.Dollars(dollars))
	}
	cluster := deprovision.Cluster{Nodes: []eligibility.Node{node("large", 0.2), node("small", 0.1)}, Now: now}
	cluster.Pools = []nodepool.NodePool{*cluster.Nodes[0].Pool} // it has both

	r, err := plan.Make(context.Background(), cluster, seats{{"large", 3}, {"small", 0}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range r.Commands {
		fmt.Printf("%s %s: %s, saves %s an hour\n", c.Kind, c.Nodes[0].Name, c.Why, c.SavingsPerHour)
		for _, p := range c.Placements {
			fmt.Println("  move", p.Pod.Name, "to", p.Node)
		}
	}
	for _, v := range r.Verdicts {
		fmt.Println(v.Node, "is", v.Outcome)
	}
	// Output:
	// delete small: its pods fit on other nodes, saves $0.10 an hour
	//   move web-small to large
	// large is would-not-fit
	// small is chosen
}
