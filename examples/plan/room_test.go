package plan_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// drawScarceNodes draws a few nodes, and more pods than they have room for. Pods have priorities, and follow others or keep away from
// them. Every third time there is a pool with a limit, too.
func drawScarceNodes(seed int) (s scheduling.Snapshot, apps [][]*corev1.Pod) {
	rng := rand.New(rand.NewPCG(uint64(seed), 73))
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	pod := func(app, name string, millis int) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": app}}}
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": *resource.NewMilliQuantity(int64(millis), resource.DecimalSI)}}}}
		return p
	}
	pool := rng.IntN(3) == 0
	nodes := 1 + rng.IntN(3)
	if pool {
		nodes = rng.IntN(3)
		p := nodepool.New("default")
		p.Limits = corev1.ResourceList{"cpu": *resource.NewQuantity(int64(2+rng.IntN(7)), resource.DecimalSI)}
		var types []instancetypes.InstanceType
		for _, cpu := range []int{2, 4}[rng.IntN(2):] {
			capacity := corev1.ResourceList{"cpu": *resource.NewQuantity(int64(cpu), resource.DecimalSI), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("20")}
			types = append(types, instancetypes.New(fmt.Sprint("m-", cpu), nil, capacity, instancetypes.Offer("a", "on-demand", 0.05*float64(cpu)), instancetypes.Offer("b", "on-demand", 0.06*float64(cpu))))
		}
		s.Pools = []scheduling.Pool{{NodePool: p, Types: types}}
	}
	for i := range nodes {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i), Labels: map[string]string{corev1.LabelHostname: fmt.Sprint("n", i), corev1.LabelTopologyZone: one("a", "b")}}}
		n.Status.Allocatable = corev1.ResourceList{"cpu": *resource.NewQuantity(int64(1+rng.IntN(4)), resource.DecimalSI), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("20")}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		s.Nodes = append(s.Nodes, n)
		if rng.IntN(2) == 0 {
			p := pod(one("0", "1", "2"), fmt.Sprint("running-", i), 50*(1+rng.IntN(8)))
			p.Spec.NodeName, p.Status.Phase = n.Name, corev1.PodRunning
			s.Pods = append(s.Pods, p)
		}
	}
	kinds := 2 + rng.IntN(2)
	for a := range kinds {
		p := pod(fmt.Sprint(rng.IntN(kinds)), "", 250*(1+rng.IntN(7)))
		priority := int32(100 * rng.IntN(3))
		p.Spec.Priority = &priority
		term := corev1.PodAffinityTerm{TopologyKey: one(corev1.LabelHostname, corev1.LabelTopologyZone), LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint(rng.IntN(kinds))}}}
		switch rng.IntN(6) {
		case 0, 1:
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
		case 2:
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
		case 3:
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: term.TopologyKey, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}
		}
		var app []*corev1.Pod
		for i := range 1 + rng.IntN(4) {
			q := p.DeepCopy()
			q.Name = fmt.Sprintf("app%d-%d", a, i)
			app = append(app, q)
		}
		apps = append(apps, app)
	}
	return s, apps
}

// Where there is too little room, no part of the pods has more of them placed, from the highest priority down: the plan of the part is
// legal for the whole, too. All parts are planned. If no plan is made of fewer pods, 26 of 427 problems are beaten; else 3.
func TestNoPartOfFewPodsHasMoreRoom(t *testing.T) {
	n := 60
	switch divide, err := strconv.Atoi(os.Getenv("JOINERY_LONG")); {
	case err == nil:
		n = 1000 / max(1, divide)
	case testing.Short():
		n = 15
	}
	if more, err := strconv.Atoi(os.Getenv("JOINERY_DRAWS")); err == nil {
		n = more
	}
	problems, beaten := 0, 0
	for seed := 1; seed <= n; seed++ {
		s, apps := drawScarceNodes(seed)
		running := s.Pods
		placed := func(counts []int) (by [3]int, all, asked int) {
			snapshot := s
			snapshot.Pods = append([]*corev1.Pod(nil), running...)
			for a, k := range counts {
				snapshot.Pods, asked = append(snapshot.Pods, apps[a][:k]...), asked+k
			}
			p, err := plan.Make(t.Context(), snapshot, &plan.Options{Packing: &binpack.Options{Effort: binpack.EffortFast}})
			require.NoError(t, err)
			for _, b := range p.Bindings() {
				by[2-*b.Pod.Spec.Priority/100]++
			}
			return by, len(p.Bindings()), asked
		}
		most := make([]int, len(apps))
		for a := range apps {
			most[a] = len(apps[a])
		}
		whole, all, asked := placed(most)
		if all == asked {
			continue
		}
		problems++
		counts, best, which := make([]int, len(apps)), whole, ""
		for next := true; next; {
			if part, _, _ := placed(counts); better(part, best) {
				best, which = part, fmt.Sprint(counts)
			}
			next = false
			for a := range counts {
				if counts[a]++; counts[a] <= most[a] {
					next = true
					break
				}
				counts[a] = 0
			}
		}
		if which != "" {
			beaten++
			t.Logf("problem %d: of %v pods %v are placed by priority, of %s %v", seed, most, whole, which, best)
		}
	}
	t.Logf("%d of %d problems are beaten by a part", beaten, problems)
	require.LessOrEqual(t, 50*beaten, problems, "at most 2% of the problems are beaten by a part")
}

// better reports whether more pods of the highest priority in which the two differ are placed.
func better(a, b [3]int) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] > b[i]
		}
	}
	return false
}
