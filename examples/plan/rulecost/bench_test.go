package rulecost_test

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/rulecost"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Five thousand pods of fifty workloads, a third of which spread over zones, in a pool with all of a region for sale.
func BenchmarkFiveThousandPods(b *testing.B) {
	types, _ := ec2.Catalogue("us-east-1")
	s := scheduling.Snapshot{Pools: []scheduling.Pool{{Types: types, NodePool: nodepool.NodePool{Name: "default", Requirements: requirements.MustParse(
		"karpenter.k8s.aws/instance-category in (c,m,r), karpenter.sh/capacity-type=on-demand, kubernetes.io/arch=amd64, kubernetes.io/os=linux")}}}}
	rng := rand.New(rand.NewPCG(5, 5))
	for w := range 50 {
		spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			"cpu": *resource.NewMilliQuantity(int64(100*(1+rng.IntN(20))), resource.DecimalSI), "memory": *resource.NewQuantity(int64(256*(1+rng.IntN(24)))<<20, resource.BinarySI),
		}}}}}
		own := map[string]string{"app": fmt.Sprint("w", w)}
		if w%3 == 0 {
			spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: own}}}
		}
		for i := range 100 {
			s.Pods = append(s.Pods, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop", Name: fmt.Sprintf("w%d-%d", w, i), Labels: own,
					OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: fmt.Sprint("w", w), Controller: new(true)}},
				},
				Spec: spec,
			})
		}
	}
	p, err := plan.Make(b.Context(), s, nil)
	require.NoError(b, err)
	require.Empty(b, p.Unplaced())
	spent := time.Duration(0) // of all cores
	for b.Loop() {
		before := cpu(b)
		report, err := rulecost.Of(b.Context(), p, s, nil, nil)
		require.NoError(b, err)
		spent += cpu(b) - before
		dearest := report.Rules[0]
		require.Equal(b, rulecost.Verified, dearest.State)
		b.StopTimer()
		after, err := plan.Make(b.Context(), dearest.Rules[0].Lift(s), nil)
		require.NoError(b, err)
		require.InDelta(b, (p.Cost() - after.Cost()).Dollars(), dearest.PerHour, 1e-9)
		require.Greater(b, dearest.PerHour, report.PerHour/10, "spot capacity is far cheaper than half of what is bought")
		require.Equal(b, "karpenter.sh/capacity-type", dearest.Rules[0].Key)
		b.StartTimer()
	}
	b.ReportMetric(spent.Seconds()/float64(b.N), "cpu-s/op")
	require.LessOrEqual(b, b.Elapsed()/time.Duration(b.N), 5*time.Second, "on two idle cores")
}

// cpu is the time that all cores have spent on this process.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
