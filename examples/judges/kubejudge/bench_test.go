package kubejudge_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
)

// mixed is n pods, a fifth each plain, spread over zones, spread over nodes, affine by zone and anti-affine by node,
// with a node for every five pods over three zones, and a plan for them that is right.
func mixed(n int) (kubejudge.Scenario, []kubejudge.Binding) {
	var s kubejudge.Scenario
	count := n / 5 // as many as anti-affinity asks
	for i := range count {
		s.Nodes = append(s.Nodes, node(fmt.Sprintf("n%04d", i), fmt.Sprintf("zone-%d", i%3), func(n *corev1.Node) {
			n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("64")
		}))
	}
	s.Pods = concat(
		pods(n/5, "plain"),
		pods(n/5, "zonal", spread(corev1.LabelTopologyZone)),
		pods(n/5, "wide", spread(corev1.LabelHostname)),
		pods(n/5, "near", near("near")),
		pods(n/5, "apart", apart(corev1.LabelHostname, "apart")),
	)
	var binds []kubejudge.Binding
	for i, p := range s.Pods {
		at := i % count
		if p.Labels["app"] == "near" {
			at -= at % 3 // the first zone's
		}
		binds = append(binds, kubejudge.Binding{Pod: key(p.Name), Node: s.Nodes[at].Name})
	}
	return s, binds
}

func BenchmarkJudge(b *testing.B) {
	for _, n := range []int{10, 200, 1500} {
		s, binds := mixed(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				verdict, err := kubejudge.Judge(b.Context(), s, binds)
				if err != nil || !verdict.Valid() {
					b.Fatal(err, verdict)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "pods/s")
		})
	}
}

func BenchmarkFree(b *testing.B) {
	s, _ := mixed(200)
	for b.Loop() {
		verdict, err := kubejudge.Free(b.Context(), s, nil)
		if err != nil || len(verdict.Accepted) < 190 {
			b.Fatal(err, verdict)
		}
	}
}
