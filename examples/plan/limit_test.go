package plan_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
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
	"github.com/joinery-sdk/joinery/scheduling/capacityquota"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// scarcity is a drawn problem whose limits are too small for all pods.
type scarcity struct {
	snapshot scheduling.Snapshot
	apps     [][]*corev1.Pod
	kind     string
}

func drawScarcity(seed int) scarcity {
	rng := rand.New(rand.NewPCG(uint64(seed), 71))
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	gpus, kind := rng.IntN(6) == 0, one("cpu", "cpu", "memory", "nodes", "cpu and memory", "quota", "stock")
	stock := 0
	if kind == "stock" {
		stock = 1 + rng.IntN(2)
	}
	var types []instancetypes.InstanceType
	sizes := []int{2, 4, 8, 16}[:1+rng.IntN(4)]
	if rng.IntN(2) == 0 {
		sizes = append([]int{1}, sizes...)
	}
	zonePrices := rng.IntN(2) == 0
	for _, size := range sizes {
		for _, family := range []struct {
			name        string
			memory, gpu int
			price       float64
		}{{"c", 2, 0, 0.04}, {"m", 4, 0, 0.048}, {"r", 8, 0, 0.063}, {"g", 4, 1, 0.3}} {
			if family.gpu > 0 && !gpus {
				continue
			}
			var offers []instancetypes.Offering
			for z, zone := range []string{"a", "b", "c"} {
				price := family.price * float64(size)
				if zonePrices {
					price *= 1 + 0.1*float64(z)
				}
				o := instancetypes.Offer(zone, "on-demand", price)
				if stock > 0 {
					o = o.Stock(fmt.Sprintf("%s-%d-%s", family.name, size, zone), stock)
				}
				offers = append(offers, o)
			}
			capacity := corev1.ResourceList{
				"cpu": *resource.NewQuantity(int64(size), resource.DecimalSI), "memory": resource.MustParse(fmt.Sprintf("%dGi", size*family.memory)), "pods": *resource.NewQuantity(int64(min(110, 8+8*size)), resource.DecimalSI),
			}
			if family.gpu > 0 {
				capacity["nvidia.com/gpu"] = *resource.NewQuantity(int64(max(1, size/4)), resource.DecimalSI)
			}
			overhead := corev1.ResourceList{"cpu": *resource.NewMilliQuantity(int64(60+5*size), resource.DecimalSI), "memory": *resource.NewQuantity(int64(300+20*size)<<20, resource.BinarySI)}
			t := instancetypes.New(fmt.Sprintf("%s-%d", family.name, size), nil, capacity, offers...)
			t.Overhead = instancetypes.Overhead{KubeReserved: overhead}
			types = append(types, t)
		}
	}
	out := scarcity{kind: kind}
	priorities := rng.IntN(3) == 0
	var cpu, memory int64
	for a := range 2 + rng.IntN(5) {
		m, mib := int64(50*(1+rng.IntN(20))), int64(256*(1+rng.IntN(24)))
		n := 1 + rng.IntN(25)
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{"app": fmt.Sprint(a)}}}
		requests := corev1.ResourceList{"cpu": *resource.NewMilliQuantity(m, resource.DecimalSI), "memory": *resource.NewQuantity(mib<<20, resource.BinarySI)}
		if gpus && rng.IntN(3) == 0 {
			requests["nvidia.com/gpu"], n = resource.MustParse("1"), min(n, 6)
		}
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}
		spread := func(key string, skew int32) {
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}})
		}
		switch rng.IntN(8) {
		case 0, 1, 2:
			spread(corev1.LabelTopologyZone, 1)
		case 3:
			spread(corev1.LabelTopologyZone, 2)
		case 4:
			spread(corev1.LabelHostname, int32(1+rng.IntN(3)))
		case 5:
			p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: one("a", "b", "c")}
		}
		if priorities && rng.IntN(2) == 0 {
			high := int32(100)
			p.Spec.Priority = &high
		}
		var app []*corev1.Pod
		for i := range n {
			pod := p.DeepCopy()
			pod.Name = fmt.Sprintf("app%d-%d", a, i)
			app = append(app, pod)
			cpu, memory = cpu+m, memory+mib
		}
		out.apps = append(out.apps, app)
	}
	share := 0.15 + 0.7*rng.Float64()
	cores, gib := max(2, int64(share*float64(cpu)/1000)), max(8, int64(share*float64(memory)/1024))
	limits := corev1.ResourceList{}
	switch kind {
	case "cpu", "quota":
		limits["cpu"] = *resource.NewQuantity(max(cores, int64(share*float64(gib)/4)), resource.DecimalSI)
	case "memory":
		limits["memory"] = resource.MustParse(fmt.Sprintf("%dGi", gib))
	case "cpu and memory":
		limits["cpu"] = *resource.NewQuantity(cores, resource.DecimalSI)
		limits["memory"] = resource.MustParse(fmt.Sprintf("%dGi", gib))
	case "nodes":
		limits["nodes"] = *resource.NewQuantity(max(1, cores/int64(sizes[len(sizes)-1])), resource.DecimalSI)
	}
	if gpus && rng.IntN(2) == 0 {
		limits["nvidia.com/gpu"] = *resource.NewQuantity(int64(1+rng.IntN(3)), resource.DecimalSI)
	}
	pool := nodepool.New("default")
	if kind == "quota" {
		out.snapshot.Quotas = []capacityquota.Quota{{Name: "quota", Limits: limits}}
	} else {
		pool.Limits = limits
	}
	out.snapshot.Pools = []scheduling.Pool{{NodePool: pool, Types: types}}
	return out
}

// parts returns the parts of the problem's pods that are planned alone, by name.
func (s scarcity) parts(seed, placed int) map[string][]*corev1.Pod {
	rng := rand.New(rand.NewPCG(uint64(seed), 72))
	out := map[string][]*corev1.Pod{}
	all := slices.Concat(s.apps...)
	for a := range s.apps {
		out[fmt.Sprint("without ", a)] = slices.Concat(slices.Concat(s.apps[:a]...), slices.Concat(s.apps[a+1:]...))
		out[fmt.Sprint("only ", a)] = s.apps[a]
	}
	for k := range 2 {
		for _, p := range all {
			if rng.IntN(2) == 0 {
				out[fmt.Sprint("half ", k)] = append(out[fmt.Sprint("half ", k)], p)
			}
		}
	}
	for _, by := range []corev1.ResourceName{"cpu", "memory"} {
		list := slices.Clone(all)
		slices.SortStableFunc(list, func(a, b *corev1.Pod) int {
			x, y := a.Spec.Containers[0].Resources.Requests[by], b.Spec.Containers[0].Resources.Requests[by]
			return cmp.Or(cmp.Compare(podPriority(b), podPriority(a)), x.Cmp(y))
		})
		for _, more := range []int{1, 5} {
			out[fmt.Sprint("least ", by, " ", more)] = list[:min(len(list), placed+more)]
		}
	}
	return out
}

func podPriority(p *corev1.Pod) int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

// Where a limit binds, planning only a part of the pods seldom places more of them than planning all. The plan of a part is legal for
// the whole, too. Of the first 200 problems, 56 of 177 are beaten by one of about fourteen parts if the planner never plans fewer pods
// of its own, by 124 of 4,138 pods; else 27 of 176, by 42 of 4,178.
func TestPartsSeldomHaveMoreRoomThanTheWhole(t *testing.T) {
	n, beaten, parts, better, missed, total := 40, 0, 0, 0, 0, 0
	switch divide, err := strconv.Atoi(os.Getenv("JOINERY_LONG")); {
	case err == nil:
		n = 200 / max(1, divide)
	case testing.Short():
		n = 5
	}
	problems, kinds := 0, map[string]int{}
	for seed := 1; seed <= n; seed++ {
		s := drawScarcity(seed)
		placed := func(pods []*corev1.Pod) (by map[int32]int, all int) {
			snapshot := s.snapshot
			snapshot.Pods = pods
			p, err := plan.Make(t.Context(), snapshot, &plan.Options{Packing: &binpack.Options{Effort: binpack.EffortFast}})
			require.NoError(t, err)
			by = map[int32]int{}
			for _, b := range p.Bindings() {
				by[podPriority(b.Pod)]++
			}
			return by, len(p.Bindings())
		}
		pods := slices.Concat(s.apps...)
		whole, all := placed(pods)
		if all == len(pods) {
			continue
		}
		problems, total = problems+1, total+all
		worst, which, list := 0, "", s.parts(seed, all)
		for _, name := range slices.Sorted(maps.Keys(list)) {
			part, _ := placed(list[name])
			parts++
			if more := cmp.Or(part[100]-whole[100], part[0]-whole[0]); more > 0 {
				better++
				if more > worst {
					worst, which = more, name
				}
			}
		}
		if worst > 0 {
			beaten, missed = beaten+1, missed+worst
			kinds[s.kind]++
			t.Logf("problem %d (%s): %d of %d pods are placed, %d more %s", seed, s.kind, all, len(pods), worst, which)
		}
	}
	t.Logf("%d of %d problems are beaten by a part, by %d of %d pods %v; %d of %d parts are better", beaten, problems, missed, total, kinds, better, parts)
	if !testing.Short() {
		require.LessOrEqual(t, 1000*missed, 15*total, "pods that a part places beyond the whole, against all placed pods")
		most := 0.045 * float64(parts)
		require.LessOrEqual(t, float64(better), most+2*math.Sqrt(most), "parts that are better than the whole, against all parts, within two standard deviations of so small a sample")
	}
}
