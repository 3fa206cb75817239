package bruteforce_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/judges/bruteforce"
)

// Two pods that spread over zones: kube-scheduler counts zones with nodes, so one node is enough.
// Plans count all zones for sale, so they buy two.
func ExampleNewSearch() {
	s := shop(several(2, "web", spreads(corev1.LabelTopologyZone, "web", 1))...)
	for _, counting := range []bruteforce.Counting{bruteforce.WithNodes, bruteforce.ForSale} {
		search := bruteforce.NewSearch(s, counting, nil, 100_000)
		fmt.Println(told(search.Cheapest(s.Pods, bruteforce.Billionths(10))))
	}
	// Output:
	// $0.1000, bought-0: small in a on-demand of default at $0.1000, web-0 to node 0, web-1 to node 0
	// $0.6000, bought-0: small in a on-demand of default at $0.1000, bought-1: small in b on-demand of default at $0.5000, web-0 to node 0, web-1 to node 1
}

func ExampleNew() {
	nodes := []*corev1.Node{machine("a1", "a"), machine("b1", "b")}
	running, pod := labelled("web-0", "web", "a1"), labelled("web-1", "web", "", spreads(corev1.LabelTopologyZone, "web", 1))
	m := bruteforce.New(nodes, nil, []*corev1.Pod{running, pod}, nil)
	state := m.Start()
	for n, node := range nodes {
		fmt.Printf("%s: %q\n", node.Name, state.Refuses(m.Kind("shop/web-1"), n))
	}
	// Output:
	// a1: "PodTopologySpread"
	// b1: ""
}
