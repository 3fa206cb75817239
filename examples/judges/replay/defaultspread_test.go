package replay_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/helper"

	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/examples/judges/replay"
	"github.com/joinery-sdk/joinery/examples/judges/scenario"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling/defaultspread"
)

// withDefaults draws default constraints, and gives pods labels, Services and controllers that select by these.
func withDefaults(s scenario.Scenario, rng *rand.Rand) *defaultspread.Defaults {
	d := &defaultspread.Defaults{}
	for _, c := range []corev1.TopologySpreadConstraint{
		{MaxSkew: 1 + rng.Int32N(2), TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule},
		{MaxSkew: 1 + rng.Int32N(3), TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule},
		{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway},
	} {
		if rng.IntN(2) == 0 {
			d.Constraints = append(d.Constraints, c)
		}
	}
	yes, seen := true, map[string]bool{}
	pick := func(kind string, n int) string { return fmt.Sprint(kind, "-", rng.IntN(n)) }
	for _, list := range [][]*corev1.Pod{s.Pods, s.Running} {
		for _, p := range list {
			metav1.SetMetaDataLabel(&p.ObjectMeta, "service", pick("service", 4))
			metav1.SetMetaDataLabel(&p.ObjectMeta, "set", pick("set", 6))
			namespace := p.Namespace
			if namespace == "" {
				namespace = metav1.NamespaceDefault
			}
			meta := metav1.ObjectMeta{Namespace: namespace, Name: p.Labels["set"]}
			by := map[string]string{"set": p.Labels["set"]}
			ref := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: meta.Name, UID: "u", Controller: &yes}
			switch rng.IntN(6) {
			case 0:
				ref.Kind = "StatefulSet"
			case 1:
				ref.APIVersion, ref.Kind = "v1", "ReplicationController"
			case 2:
				ref.APIVersion, ref.Kind = "example.com/v1", "Other"
			case 3:
				ref.Controller = nil
			case 4:
				ref.Name = "gone"
			}
			if len(p.OwnerReferences) == 0 {
				p.OwnerReferences = []metav1.OwnerReference{ref}
			}
			if id := ref.Kind + namespace + meta.Name; !seen[id] {
				seen[id] = true
				d.ReplicaSets = append(d.ReplicaSets, &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{
					MatchLabels: by, MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "service", Operator: metav1.LabelSelectorOpExists}},
				}}})
				d.StatefulSets = append(d.StatefulSets, &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: by}}})
				d.ReplicationControllers = append(d.ReplicationControllers, &corev1.ReplicationController{ObjectMeta: meta, Spec: corev1.ReplicationControllerSpec{Selector: by}})
			}
			if id := namespace + p.Labels["service"]; !seen[id] && rng.IntN(2) == 0 {
				seen[id] = true
				d.Services = append(d.Services, &corev1.Service{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: p.Labels["service"]}, Spec: corev1.ServiceSpec{Selector: map[string]string{"service": p.Labels["service"]}},
				})
			}
		}
	}
	return d
}

// kube-scheduler accepts plans with default constraints, which its own configuration has and no pod.
func TestPlansWithDefaultSpreadAreAccepted(t *testing.T) {
	n := *scenarios / 2
	outcomes, given := make([]outcome, n), make([]int, n)
	inParallel(n, func(i int) {
		s := drawn(*from + uint64(i))
		d := withDefaults(s, rand.New(rand.NewPCG(s.Seed, 15)))
		outcomes[i] = judgeWith(t.Context(), s, func(ctx context.Context, s scenario.Scenario) (*plan.Plan, error) {
			snapshot, err := replay.Snapshot(s)
			if err != nil {
				return nil, err
			}
			own := snapshot.Pods
			snapshot.Pods = d.Pods(own)
			for k := range own {
				if own[k] != snapshot.Pods[k] {
					given[i]++
				}
			}
			return plan.Make(ctx, snapshot, nil)
		}, func(c *kubejudge.Scenario) {
			c.DefaultConstraints, c.Services, c.ReplicationControllers, c.ReplicaSets, c.StatefulSets = d.Constraints, d.Services, d.ReplicationControllers, d.ReplicaSets, d.StatefulSets
		})
	})
	placed, constrained := 0, 0
	for i := range outcomes {
		o := &outcomes[i]
		placed, constrained = placed+o.placed, constrained+given[i]
		if o.refused() {
			t.Errorf("%s\n%v\n%s", o.scenario, o.err, o.verdict)
		}
	}
	fmt.Printf("%d scenarios, %d pods placed, %d with default constraints\n", n, placed, constrained)
	assert.Positive(t, constrained)
}

// The selectors are those that kube-scheduler's own code finds.
func TestDefaultSelectors(t *testing.T) {
	compared, some := 0, 0
	for seed := range uint64(100) {
		s := scenario.Generate(seed, scenario.Options{Pods: 30})
		d := withDefaults(s, rand.New(rand.NewPCG(seed, 16)))
		d.Constraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "rack", WhenUnsatisfiable: corev1.DoNotSchedule}}
		factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
		for _, o := range d.Services {
			require.NoError(t, factory.Core().V1().Services().Informer().GetIndexer().Add(o))
		}
		for _, o := range d.ReplicationControllers {
			require.NoError(t, factory.Core().V1().ReplicationControllers().Informer().GetIndexer().Add(o))
		}
		for _, o := range d.ReplicaSets {
			require.NoError(t, factory.Apps().V1().ReplicaSets().Informer().GetIndexer().Add(o))
		}
		for _, o := range d.StatefulSets {
			require.NoError(t, factory.Apps().V1().StatefulSets().Informer().GetIndexer().Add(o))
		}
		for i, p := range d.Pods(s.Pods) {
			in := p
			if p.Namespace == "" {
				in = p.DeepCopy()
				in.Namespace = metav1.NamespaceDefault
			}
			theirs := helper.DefaultSelector(in, factory.Core().V1().Services().Lister(), factory.Core().V1().ReplicationControllers().Lister(), factory.Apps().V1().ReplicaSets().Lister(), factory.Apps().V1().StatefulSets().Lister())
			compared++
			switch {
			case len(s.Pods[i].Spec.TopologySpreadConstraints) > 0:
				assert.Same(t, s.Pods[i], p)
			case theirs.Empty():
				assert.Same(t, s.Pods[i], p, p.Name)
			default:
				some++
				ours, err := metav1.LabelSelectorAsSelector(p.Spec.TopologySpreadConstraints[0].LabelSelector)
				require.NoError(t, err)
				assert.Equal(t, theirs.String(), ours.String(), p.Name)
			}
		}
	}
	fmt.Printf("%d pods compared, %d with selectors\n", compared, some)
	assert.Greater(t, some, compared/4)
}
