package simulate_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// related draws a cluster whose apps have constraints on their own pods and on those of others, by any key. Pods run wherever
// they have room, because what keeps pods apart is ignored while they run.
func related(r *rand.Rand) scheduling.Snapshot {
	var s scheduling.Snapshot
	zones := []string{"a", "b", "c"}[:1+r.IntN(3)]
	var list []instancetypes.InstanceType
	for i := range 1 + r.IntN(3) {
		var offers []instancetypes.Offering
		for _, zone := range zones {
			offers = append(offers, instancetypes.Offer(zone, instancetypes.CapacityTypeOnDemand, float64(int(1)<<i)))
		}
		list = append(list, instancetypes.New(fmt.Sprintf("t%d", i), nil, amounts(int64(4000)<<i), offers...))
	}
	pool := nodepool.New("p")
	if r.IntN(5) == 0 {
		pool.Limits = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(12+r.Int64N(30), resource.DecimalSI)}
	}
	s.Pools = []scheduling.Pool{{NodePool: pool, Types: list}}
	free := map[string]int64{}
	for i := range 1 + r.IntN(4) {
		t, name := one(r, list...), fmt.Sprintf("n%d", i)
		n := t.Node(name, one(r, t.Offerings...), map[string]string{"karpenter.sh/nodepool": "p", "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true", corev1.LabelHostname: name})
		n.CreationTimestamp, free[name] = metav1.NewTime(fragment.Now().Add(-time.Hour)), n.Status.Allocatable.Cpu().MilliValue()
		s.Nodes = append(s.Nodes, n)
	}
	apps := []string{"a", "b", "c", "d"}[:1+r.IntN(4)]
	for _, app := range apps {
		yes := true
		template := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Labels: map[string]string{"app": app}, OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app, UID: "1", Controller: &yes}}}}
		template.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: amounts(one[int64](r, 500, 1000, 1500))}}}
		template.Status.Phase, template.Spec.Affinity = corev1.PodRunning, &corev1.Affinity{}
		key := func() string { return one(r, corev1.LabelTopologyZone, corev1.LabelTopologyZone, corev1.LabelHostname) }
		terms := func() []corev1.PodAffinityTerm {
			return []corev1.PodAffinityTerm{{TopologyKey: key(), LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": one(r, apps...)}}}}
		}
		if r.IntN(2) == 0 {
			template.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms()}
		}
		if r.IntN(5) == 0 {
			template.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms()}
		}
		if r.IntN(4) == 0 {
			template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1 + r.Int32N(2), TopologyKey: key(), WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: template.Labels}}}
		}
		for k := range 1 + r.IntN(4) {
			p, on := template.DeepCopy(), one(r, s.Nodes...).Name
			p.Name, p.Spec.NodeName = fmt.Sprintf("%s-%d", app, k), on
			if need := p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue(); free[on] >= need {
				free[on] -= need
				s.Pods = append(s.Pods, p)
			}
		}
	}
	return s
}

// lost returns the snapshot without a node, whose pods wait for another. The node still counts against the limits of its pool,
// because its successors are bought before it goes.
func lost(s scheduling.Snapshot, node string) scheduling.Snapshot {
	out := s
	out.Nodes, out.Pods, out.Pools = nil, nil, slices.Clone(s.Pools)
	for _, n := range s.Nodes {
		if n.Name != node {
			out.Nodes = append(out.Nodes, n)
			continue
		}
		for name, limit := range out.Pools[0].Limits {
			if limit.Sub(n.Status.Capacity[name]); limit.Sign() < 0 {
				limit = resource.Quantity{}
			}
			out.Pools[0].Limits = corev1.ResourceList{name: limit}
		}
	}
	for _, p := range s.Pods {
		if p.Spec.NodeName == node {
			p = p.DeepCopy()
			p.Spec.NodeName, p.Status.Phase = "", corev1.PodPending
		}
		out.Pods = append(out.Pods, p)
	}
	return out
}

// A command for a node that goes in any case strands no more pods than a plan of the cluster without that node leaves without a
// place. This holds for all but 40 of 4,000 draws, in which pods with affinity meet pods that keep each other away.
func TestNoPodIsStrandedThatAPlanPlaces(t *testing.T) {
	planned, partly, missed := 0, 0, 0
	for seed := range uint64(drawings(t)) {
		r := rand.New(rand.NewPCG(seed, 40))
		s := related(r)
		sim, nominated, err := simulate.New(s)
		require.NoError(t, err)
		c := simulate.Objects{}.Cluster(s, nominated, fragment.Now())
		gone := one(r, s.Nodes...).Name
		c.Interruptions = []deprovision.Interruption{{Node: gone, Deadline: fragment.Now().Add(time.Hour)}}
		result, err := giveback.Make(t.Context(), c, sim, &giveback.Options{Methods: []eligibility.Method{eligibility.Interruption}})
		require.NoError(t, err)
		require.Len(t, result.Commands, 1)
		fresh, err := plan.Make(t.Context(), lost(s, gone), nil)
		require.NoError(t, err)
		x, unplaced := &result.Commands[0], 0
		for _, u := range fresh.Unplaced() {
			unplaced += len(u.Pods)
		}
		if planned++; unplaced > 0 {
			partly++
		}
		if len(x.Stranded) > unplaced {
			missed++
			t.Logf("%d: %s: %d and not %d: %s", seed, gone, len(x.Stranded), unplaced, x.Why)
		}
	}
	t.Logf("of %d plans, %d leave pods without a place, and %d commands strand more", planned, partly, missed)
	assert.Greater(t, partly, drawings(t)/8)
	assert.LessOrEqual(t, missed, 1+planned/100)
}

// The pods of a node that its command does not move are stranded by that command, also those that first moved to another node that
// must go. Its reason says how many they are, and names pods of its own nodes only.
func TestCommandsNameTheirOwnStrandedPods(t *testing.T) {
	name := regexp.MustCompile(`x/[a-z]-[0-9]+`)
	stranded := 0
	for seed := range uint64(drawings(t)) {
		r := rand.New(rand.NewPCG(seed, 41))
		s := related(r)
		if r.IntN(2) == 0 {
			s.Pools[0].Limits = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(4, resource.DecimalSI)}
		}
		sim, nominated, err := simulate.New(s)
		require.NoError(t, err)
		c := simulate.Objects{}.Cluster(s, nominated, fragment.Now())
		for _, n := range s.Nodes {
			if r.IntN(2) == 0 {
				c.Interruptions = append(c.Interruptions, deprovision.Interruption{Node: n.Name, Deadline: fragment.Now().Add(time.Duration(1+r.IntN(90)) * time.Minute)})
			}
		}
		result, err := giveback.Make(t.Context(), c, sim, &giveback.Options{})
		require.NoError(t, err)
		for i := range result.Commands {
			x := &result.Commands[i]
			own, lose := map[string]bool{}, []string(nil)
			for _, n := range x.Nodes {
				for _, p := range n.Pods {
					own["x/"+p.Name] = true
					if !slices.Contains(x.Pods(), p) {
						lose = append(lose, p.Name)
					}
				}
			}
			var listed []string
			for _, p := range x.Stranded {
				listed = append(listed, p.Name)
			}
			assert.ElementsMatch(t, lose, listed, "%d: %s", seed, x.Why)
			for _, pod := range name.FindAllString(x.Why, -1) {
				assert.True(t, own[pod], "%d: %v: %s", seed, x.Nodes[0].Name, x.Why)
			}
			if text := fmt.Sprintf("though %d pods lose their places: ", len(lose)); len(lose) > 1 {
				assert.Contains(t, x.Why, text, seed)
			} else {
				assert.Equal(t, len(lose) == 1, strings.Contains(x.Why, "though a pod loses its place: x/"), "%d: %s", seed, x.Why)
			}
			stranded += len(lose)
		}
	}
	assert.Greater(t, stranded, drawings(t))
}
