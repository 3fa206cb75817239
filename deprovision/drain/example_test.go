package drain_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision/drain"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
)

// Ordinary pods leave first and critical daemons last, because pods that end may still need DNS, logs and network.
func ExampleTier() {
	p := drain.Of([]*corev1.Pod{
		pod("cni", daemon, critical), pod("dns", critical), pod("log", daemon), pod("web-0"),
	}, eviction.Budgets{}, now(), time.Time{})
	for _, s := range p.Steps {
		fmt.Printf("%d %s: %s\n", s.Tier, s.Tier, s.Pod.Name)
	}
	// Output:
	// 0 ordinary: web-0
	// 1 daemon: log
	// 2 critical: dns
	// 3 critical daemon: cni
}

// A step says whether its pod can go now, has to wait, or moves by force only.
func ExampleStep() {
	p := drain.Of([]*corev1.Pod{pod("web-0"), pod("log", daemon)}, budgets(0), now(), time.Time{})
	for _, s := range p.Steps {
		fmt.Printf("%s waits (for good: %t): %s\n", s.Pod.Name, s.Never, s.Wait)
	}
	// Output:
	// web-0 waits (for good: false): PodDisruptionBudget shop/web allows 0 disruptions
	// log waits (for good: false): pods of tier ordinary go first
}

// The node goes in 30 seconds. Pods that want longer than that to end are deleted now, with the time that is left.
func ExampleForced() {
	p := drain.Of([]*corev1.Pod{pod("db-0", grace(60)), pod("web-0", grace(10))}, budgets(1), now(), now().Add(30*time.Second))
	for _, f := range p.Forced {
		fmt.Println("delete", f.Pod.Name, "with", f.Grace)
	}
	// Output: delete db-0 with 30s
}
