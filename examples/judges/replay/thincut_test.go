package replay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/examples/judges/replay"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// spreadDeployments are deployments of fifty replicas of usual sizes: each spreads over zones, and every third keeps its
// replicas on nodes of their own. Every pod is an object of its own, as a list from an API server is.
func spreadDeployments(pods int) []*corev1.Pod {
	cpu := []string{"100m", "250m", "500m", "1", "2"}
	memory := []string{"256Mi", "512Mi", "1Gi", "2Gi", "4Gi"}
	var out []*corev1.Pod
	for i := range pods {
		d := i / 50
		labels := map[string]string{"app": fmt.Sprintf("app-%d", d)}
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("app-%d-%d", d, i%50), Labels: labels}}
		p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu[d%5]), corev1.ResourceMemory: resource.MustParse(memory[(d/5)%5]),
		}}}}
		selector := &metav1.LabelSelector{MatchLabels: labels}
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector,
		}}
		if d%3 == 0 {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: selector}},
			}}
		}
		out = append(out, p)
	}
	return out
}

// The first proof that the design holds, before anything was built on it: 5,000 pods through classes, items and bins,
// accepted by kube-scheduler in the plan's own order.
func TestThinCut(t *testing.T) {
	types, err := ec2.Catalogue("us-east-1")
	require.NoError(t, err)
	s := scheduling.Snapshot{
		Pods: spreadDeployments(5000),
		Pools: []scheduling.Pool{{Types: types, NodePool: nodepool.NodePool{Name: "default", Requirements: requirements.MustParse(
			"karpenter.k8s.aws/instance-category in (c,m,r), karpenter.k8s.aws/instance-generation>4, kubernetes.io/arch=amd64, karpenter.sh/capacity-type=on-demand")}}},
	}
	var packed *plan.Plan
	for range 3 {
		start := time.Now()
		packed, err = plan.Make(t.Context(), s, nil)
		require.NoError(t, err)
		t.Logf("compile + solve %v, %d rounds, %d nodes, %.2f USD/h, gap %.1f%%", time.Since(start), packed.Rounds,
			len(packed.Packing.Bins), packed.Packing.Cost.Dollars(), packed.Packing.GapPercent())
	}
	require.Empty(t, packed.Unplaced())
	require.NoError(t, packed.Instance.VerifyBound(packed.Packing))
	nodes, order := replay.Plan(packed)
	scenario := kubejudge.Scenario{Nodes: nodes, Pods: s.Pods}
	require.Len(t, order, 5000)
	start := time.Now()
	verdict, err := kubejudge.Judge(t.Context(), scenario, order)
	require.NoError(t, err)
	t.Logf("judged in %v", time.Since(start))
	require.True(t, verdict.Valid(), verdict.String())
}
