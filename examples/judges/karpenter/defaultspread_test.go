//go:build !karpenter1.14

package karpenter_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/joinery-sdk/joinery/scheduling/defaultspread"
)

// Karpenter gives the pods of 1,000 namespaces the same default constraints: selectors that take the same of all pods there, or none.
func TestDefaultSpreadIsKarpenters(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 3))
	scheme := apiScheme(t)
	constraints := []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule}}
	some := func() map[string]string {
		out := map[string]string{}
		for _, key := range []string{"app", "tier", "track"} {
			if rng.IntN(2) == 0 {
				out[key] = []string{"a", "b"}[rng.IntN(2)]
			}
		}
		return out
	}
	pods, given := 0, 0
	for range 1000 {
		var objects []client.Object
		d := defaultspread.Defaults{Constraints: constraints}
		for i := range rng.IntN(3) {
			s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("s", i)}, Spec: corev1.ServiceSpec{Selector: some()}}
			if rng.IntN(6) == 0 {
				s.Spec.Selector = nil
			}
			d.Services, objects = append(d.Services, s), append(objects, s)
		}
		var list []*corev1.Pod
		for i := range 4 {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("p", i), UID: types.UID(fmt.Sprint(i)), Labels: some()}}
			if rng.IntN(6) == 0 {
				p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 2, TopologyKey: "rack", WhenUnsatisfiable: corev1.ScheduleAnyway}}
			}
			meta := metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("c", i), UID: types.UID(fmt.Sprint("c", i))}
			ref := metav1.OwnerReference{APIVersion: "apps/v1", Name: meta.Name, UID: meta.UID, Controller: new(rng.IntN(5) > 0)}
			selector := &metav1.LabelSelector{MatchLabels: some()}
			if rng.IntN(3) == 0 {
				selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpExists}}
			}
			switch rng.IntN(6) {
			case 0:
				ref.Kind = "ReplicaSet"
				o := &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector}}
				d.ReplicaSets, objects = append(d.ReplicaSets, o), append(objects, o)
			case 1:
				ref.Kind = "StatefulSet"
				o := &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector}}
				d.StatefulSets, objects = append(d.StatefulSets, o), append(objects, o)
			case 2:
				ref.APIVersion, ref.Kind = "v1", "ReplicationController"
				o := &corev1.ReplicationController{ObjectMeta: meta, Spec: corev1.ReplicationControllerSpec{Selector: selector.MatchLabels}}
				d.ReplicationControllers, objects = append(d.ReplicationControllers, o), append(objects, o)
			case 3:
				ref.Kind = "DaemonSet"
			case 4:
				ref.APIVersion, ref.Kind = "batch/v1", "Job"
			case 5:
				ref.Kind = "StatefulSet" // it is gone
			}
			p.OwnerReferences = []metav1.OwnerReference{ref}
			list = append(list, p)
		}
		ctx := options.ToContext(t.Context(), &options.Options{SchedulerConfig: &options.SchedulerConfiguration{PodTopologySpread: &options.PodTopologySpreadConfig{DefaultConstraints: constraints}}})
		theirs := make([]*corev1.Pod, len(list))
		for i := range list {
			theirs[i] = list[i].DeepCopy()
		}
		scheduling.NewDefaultTopologySpreadInjector(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()).Inject(ctx, theirs)
		for i, p := range d.Pods(list) {
			pods++
			require.Len(t, p.Spec.TopologySpreadConstraints, len(theirs[i].Spec.TopologySpreadConstraints), "%+v", list[i])
			for k, c := range p.Spec.TopologySpreadConstraints {
				want, err := metav1.LabelSelectorAsSelector(theirs[i].Spec.TopologySpreadConstraints[k].LabelSelector)
				require.NoError(t, err)
				got, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
				require.NoError(t, err)
				for range 20 {
					have := labels.Set(some())
					assert.Equal(t, want.Matches(have), got.Matches(have), "%s: %s, want %s", have, got, want)
				}
				given++
			}
		}
	}
	fmt.Printf("%d pods, %d of them constrained\n", pods, given)
	require.Positive(t, given)
}
