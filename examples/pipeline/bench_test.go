package pipeline_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// deployments makes pods of the given number of deployments, of usual sizes. Spread ones ask for an even spread over
// zones, and every third of them for one replica a node.
func deployments(pods, count int, spread bool) []*corev1.Pod {
	cpu := []string{"100m", "250m", "500m", "1", "2"}
	memory := []string{"256Mi", "512Mi", "1Gi", "2Gi", "4Gi"}
	out := make([]*corev1.Pod, 0, pods)
	size := (pods + count - 1) / count
	for i := range pods {
		d := i / size
		labels := map[string]string{"app": fmt.Sprintf("app-%d", d)}
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("app-%d-%d", d, i%size), Labels: labels}}
		p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu[d%5]), corev1.ResourceMemory: resource.MustParse(memory[(d/5)%5]),
		}}}}
		if spread {
			selector := &metav1.LabelSelector{MatchLabels: labels}
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector,
			}}
			if d%3 == 0 {
				p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: selector}},
				}}
			}
		}
		out = append(out, p)
	}
	return out
}

func snapshot(tb testing.TB, pods []*corev1.Pod) scheduling.Snapshot {
	tb.Helper()
	types, err := ec2.Catalogue("us-east-1")
	if err != nil {
		tb.Fatal(err)
	}
	return scheduling.Snapshot{
		Pods: pods,
		Pools: []scheduling.Pool{{Types: types, NodePool: nodepool.NodePool{Name: "default", Requirements: requirements.MustParse(
			"karpenter.k8s.aws/instance-category in (c,m,r), karpenter.k8s.aws/instance-generation>4, kubernetes.io/arch=amd64, karpenter.sh/capacity-type=on-demand")}}},
	}
}

// Every pod is an object of its own, as a list from an API server is; nothing is precomputed.
func BenchmarkRun(b *testing.B) {
	for _, c := range []struct {
		pods, deployments int
		spread            bool
	}{{1000, 40, false}, {10000, 400, false}, {100000, 1000, false}, {1000, 40, true}, {5000, 100, true}, {10000, 400, true}, {100000, 1000, true}} {
		b.Run(fmt.Sprintf("pods=%d/spread=%v", c.pods, c.spread), func(b *testing.B) {
			s := snapshot(b, deployments(c.pods, c.deployments, c.spread))
			b.ReportAllocs()
			for b.Loop() {
				packed, err := plan.Make(b.Context(), s, nil)
				if err != nil {
					b.Fatal(err)
				}
				if n := len(packed.Bindings()); n != c.pods {
					b.Fatalf("%d of %d pods placed", n, c.pods)
				}
			}
		})
	}
}
