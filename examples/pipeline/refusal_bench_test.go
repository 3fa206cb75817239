package pipeline_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/examples/plan"
)

// refusedFor are causes of a refusal.
var refusedFor = []struct {
	name  string
	spoil func(*corev1.Pod)
}{
	{"a label that nothing has", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "fast"} }},
	{"a zone of another region", func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "eu-west-1a"}
	}},
	{"an architecture that the pool excludes", func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{corev1.LabelArchStable: "arm64"}
	}},
	{"more than any machine has", func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("5k")
	}},
	{"a resource that nothing has", func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests["example.com/card"] = resource.MustParse("1")
	}},
	{"racks that nothing has", func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "rack", Operator: corev1.NodeSelectorOpIn, Values: []string{"r1", "r2"}},
			}}},
		}}}
	}},
}

// A cluster in which many workloads are refused, each for one of several causes. To explain ten
// times as many must not take much more than ten times as long.
func BenchmarkRefusals(b *testing.B) {
	for _, refused := range []int{200, 2000} {
		b.Run(fmt.Sprintf("refused=%d", refused), func(b *testing.B) {
			pods := deployments(refused, refused, false)
			cause := map[string]string{} // by name
			for i, p := range pods {
				p.Namespace = "refused"
				refusedFor[i%len(refusedFor)].spoil(p)
				cause[p.Name] = refusedFor[i%len(refusedFor)].name
			}
			s := snapshot(b, append(pods, deployments(2000, 20, true)...))
			packed, err := plan.Make(b.Context(), s, nil)
			if err != nil {
				b.Fatal(err)
			}
			if n := len(packed.Unplaced()); n != refused {
				b.Fatalf("%d classes are refused, want %d", n, refused)
			}
			b.ReportAllocs()
			for b.Loop() {
				unplaced := packed.Unplaced()
				for i, f := range packed.FirstFixes(false) {
					p := unplaced[i].Pods[0]
					if len(unplaced[i].Reasons()) == 0 {
						b.Fatalf("%s: no reason", cause[p.Name])
					}
					if p.Spec.NodeSelector[corev1.LabelArchStable] != "" && f.Text == "" && f.Untried == 0 {
						b.Fatalf("%s: no fix", cause[p.Name])
					}
				}
			}
			b.ReportMetric(float64(refused)*float64(b.N)/b.Elapsed().Seconds(), "refusals/s")
		})
	}
}
