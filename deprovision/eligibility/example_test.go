package eligibility_test

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// A node has its pool, which says how old it may get and how long it has to be quiet.
func ExampleNode() {
	created := time.Date(2026, 1, 8, 12, 0, 0, 0, time.UTC)
	n := eligibility.Node{
		Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a", CreationTimestamp: metav1.NewTime(created)}},
		Pool: &nodepool.NodePool{Name: "default", APIVersion: nodepool.V1, Disruption: nodepool.Disruption{ExpireAfter: after(28 * 24 * time.Hour)}},
	}
	expires, ok := n.ExpiresAt()
	fmt.Println(n.Name(), "of pool", n.PoolName(), "expires:", ok, expires.Format(time.DateOnly))
	fmt.Println("empty:", n.Empty(), "- life that is left:", n.Lifetime(created.Add(7*24*time.Hour)))
	// Output:
	// node-a of pool default expires: true 2026-02-05
	// empty: true - life that is left: 0.75
}

// The controller's record of a node goes before what node and pool say: here it was bought when nodes lived for a day.
func ExampleClaim() {
	n := node()
	n.Claim = eligibility.Claim{Created: now().Add(-20 * time.Hour), LastPodEvent: now().Add(-5 * time.Minute), ExpireAfter: after(24 * time.Hour)}
	left, _ := n.RemainingLife(now())
	fmt.Println("created", n.Created().Format(time.DateTime))
	fmt.Println("quiet for", now().Sub(n.QuietSince()), "and to live for", left)
	// Output:
	// created 2026-01-14 16:00:00
	// quiet for 5m0s and to live for 4h0m0s
}

// Which methods could take the node now? A pod's annotation stops some of them, and leaves others.
func ExampleMethod() {
	n := node(with(pod(protected)))
	for _, m := range []eligibility.Method{eligibility.Interruption, eligibility.Expiration, eligibility.Drift, eligibility.Consolidation} {
		fmt.Println(m, len(eligibility.Blockers(n, m, eviction.Budgets{}, now(), eligibility.Rules{})) == 0)
	}
	// Output:
	// interruption true
	// expiration true
	// drift false
	// consolidation false
}

// All that stands in the way is listed, not only the first: a kind for programs, a line for people.
func ExampleBlocker() {
	n := node(with(pod(protected)))
	n.Nominated = true
	for _, b := range eligibility.Blockers(n, eligibility.Consolidation, eviction.Budgets{}, now(), eligibility.Rules{}) {
		fmt.Printf("%s (pod %q): %s\n", b.Kind, b.Pod, b.Text)
	}
	// Output:
	// nominated (pod ""): pending pods are about to go there
	// pod-protected (pod "shop/web-0"): annotation karpenter.sh/do-not-disrupt=true
}

// A program distinguishes blockers by kind: some pass by themselves, others need a change.
func ExampleKind() {
	passes := []eligibility.Kind{eligibility.TooEarly, eligibility.MinimumAge, eligibility.Nominated, eligibility.Uninitialized}
	n := node(with(pod(protected)))
	n.Nominated = true
	for _, b := range eligibility.Blockers(n, eligibility.Drift, eviction.Budgets{}, now(), eligibility.Rules{}) {
		fmt.Println(b.Kind, "- passes by itself:", slices.Contains(passes, b.Kind))
	}
	// Output:
	// nominated - passes by itself: true
	// pod-protected - passes by itself: false
}

// Prices are integers, so that sums do not depend on their order.
func ExamplePrice() {
	hour := eligibility.Dollars(0.192)
	fmt.Println(int64(hour), hour.Dollars(), hour.Times(24).Dollars())
	// Output: 192000000 0.192 4.608
}

// A node of a cluster without a provisioner needs its labels and a price.
func ExampleFromNode() {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"node.kubernetes.io/instance-type": "m.large", "beta.kubernetes.io/instance-type": "m.large"}}}
	x := eligibility.FromNode(n, nil, nil, eligibility.Dollars(0.1))
	keep := eligibility.Rules{Keep: func(n *eligibility.Node) string {
		if n.InstanceType == "m.large" {
			return "the licence is bound to m.large"
		}
		return ""
	}}
	fmt.Println(x.InstanceType, len(eligibility.Blockers(&x, eligibility.Consolidation, eviction.Budgets{}, now(), eligibility.Rules{})), "blockers")
	fmt.Println(eligibility.Blockers(&x, eligibility.Consolidation, eviction.Budgets{}, now(), keep)[0])
	// Output:
	// m.large 0 blockers
	// the licence is bound to m.large
}

// A node that was never ready and must not be disrupted is repaired all the same.
func ExampleRepair() {
	node := eligibility.Node{
		Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: "a", Labels: map[string]string{"karpenter.sh/registered": "true"}, Annotations: map[string]string{"karpenter.sh/do-not-disrupt": "true"},
		}},
		Pool:   &nodepool.NodePool{Name: "default", APIVersion: nodepool.V1},
		Repair: &eligibility.Repair{Why: "condition KernelReady is False for more than 10m0s"},
	}
	for _, method := range []eligibility.Method{eligibility.Drift, eligibility.Unhealthy} {
		fmt.Println(method, eligibility.Blockers(&node, method, eviction.Budgets{}, time.Now(), eligibility.Rules{}))
	}
	// Output:
	// drift [it is not initialized yet annotation karpenter.sh/do-not-disrupt=true]
	// unhealthy []
}

func ExamplePrice_String() {
	fmt.Println(eligibility.Dollars(7.1), eligibility.Dollars(0.0058), eligibility.Dollars(0.0058).Dollars())
	// Output: $7.10 $0.0058 0.0058
}
