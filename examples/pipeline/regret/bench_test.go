package regret_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline/history"
	"github.com/joinery-sdk/joinery/examples/pipeline/regret"
)

// A day of 1,152 pods, of which four come and four go every five minutes, on nodes that are larger than they need.
func BenchmarkDayOfThousandPods(b *testing.B) {
	x := thousand(b)
	pods := map[string]bool{}
	for _, o := range x.history.Observations {
		for _, p := range o.Pods {
			pods[p.Name] = true
		}
	}
	above := 0.0
	for b.Loop() {
		r, err := regret.Audit(b.Context(), x.history, x.sale, nil)
		if err != nil || r.Bound > r.Policy || r.Policy > r.Paid {
			b.Fatal(err, r.Bill)
		}
		above = 100*float64(r.Policy)/float64(r.Bound) - 100
	}
	b.ReportMetric(float64(len(pods)), "pods")
	b.ReportMetric(above, "%above-bound")
}

func thousand(b *testing.B) drawn {
	b.Helper()
	sizes := []size{{2, 8, 0.096}, {4, 16, 0.192}, {8, 32, 0.384}, {16, 64, 0.768}, {4, 8, 0.17}, {8, 16, 0.34}}
	var list []history.Observation
	var pods []*corev1.Pod
	var nodes []*corev1.Node
	made := 0
	at := start()
	for step := range 288 {
		for k := range 4 { // each stays for four hours
			made++
			p := pod(fmt.Sprintf("p-%04d", made), fmt.Sprintf("app-%d", made%6), 1+made%3, 1+made%5)
			if k == 0 || len(nodes) == 0 {
				nodes = append(nodes, node(fmt.Sprintf("n-%03d", step), 3, sizes[3], "zone-a", at))
			}
			pods = append(pods, on(p, nodes[len(nodes)-1].Name))
		}
		if step >= 48 {
			pods, nodes = pods[4:], nodes[1:]
		}
		o := history.Observation{At: at}
		o.Pods, o.Nodes = append(o.Pods, pods...), append(o.Nodes, nodes...)
		list = append(list, o)
		at = at.Add(5 * 60 * 1e9)
	}
	h, err := history.New(pools(b), list, at)
	if err != nil {
		b.Fatal(err)
	}
	sale, err := h.Sale(market(b, sizes))
	if err != nil {
		b.Fatal(err)
	}
	return drawn{history: h, sale: sale, sizes: sizes}
}
