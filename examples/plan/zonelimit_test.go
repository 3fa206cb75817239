package plan_test

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// drawLimited draws pods that spread over zones, in a pool whose limit may not cover a node in each zone.
func drawLimited(seed uint64) scheduling.Snapshot {
	r := rand.New(rand.NewPCG(seed, 97))
	types := zonalTypes(r, []string{"a", "b", "c"}, 0.06)
	pool := nodepool.New("default")
	if k := r.IntN(3); k == 0 {
		pool.Limits = corev1.ResourceList{"cpu": *resource.NewQuantity(int64(2+r.IntN(14)), resource.DecimalSI)}
	} else if k == 1 {
		pool.Limits = corev1.ResourceList{"nodes": *resource.NewQuantity(int64(1+r.IntN(3)), resource.DecimalSI)}
	}
	s := scheduling.Snapshot{Pools: []scheduling.Pool{{NodePool: pool, Types: types}}}
	for app := range 1 + r.IntN(2) {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{"app": fmt.Sprint(app)}}}
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			"cpu": *resource.NewMilliQuantity(int64(250*(1+r.IntN(8))), resource.DecimalSI), "memory": *resource.NewQuantity(1<<30, resource.BinarySI),
		}}}}
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: int32(1 + r.IntN(2)), TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
		}}
		for k := range 1 + r.IntN(6) {
			pod := p.DeepCopy()
			pod.Name = fmt.Sprintf("app%d-%d", app, k)
			s.Pods = append(s.Pods, pod)
		}
	}
	return s
}

// sellingOnly returns the snapshot with offerings in these zones only.
func sellingOnly(s scheduling.Snapshot, zones map[string]bool) scheduling.Snapshot {
	pool := scheduling.Pool{NodePool: s.Pools[0].NodePool}
	for _, x := range s.Pools[0].Types {
		offers := slices.DeleteFunc(slices.Clone(x.Offerings), func(o instancetypes.Offering) bool { return !zones[zoneOf(o)] })
		if len(offers) > 0 {
			pool.Types = append(pool.Types, instancetypes.New(x.Name, nil, x.Capacity, offers...))
		}
	}
	s.Pools = []scheduling.Pool{pool}
	return s
}

func zoneOf(o instancetypes.Offering) string {
	zone, _ := o.Requirements.Get(corev1.LabelTopologyZone).Single()
	return zone
}

func zonesOf(p *plan.Plan) map[string]bool {
	out := map[string]bool{}
	for _, n := range p.NewNodes() {
		out[n.Zone] = true
	}
	return out
}

// Where spreads and limits leave zones out, those that are left cost little more than the best ones of as many, which are found by selling
// nothing elsewhere. If closed zones are never opened instead of others, and spreads cannot avoid a zone, plans are 21.6% above these in the
// mean of 237 problems, and 3 place fewer pods; else 2.0%, and 1.
func TestWhichZonesStayOpen(t *testing.T) {
	n, found, fewer, above := 400, 0, 0, 0.0
	if testing.Short() {
		n = 40
	}
	for seed := range n {
		s := drawLimited(uint64(seed))
		p, err := plan.Make(t.Context(), s, nil)
		require.NoError(t, err)
		used, most, least := zonesOf(p), len(p.Bindings()), p.Cost().Dollars()
		sold := map[string]bool{}
		for _, x := range s.Pools[0].Types {
			for _, o := range x.Offerings {
				sold[zoneOf(o)] = true
			}
		}
		if len(used) == 0 || len(used) == len(sold) {
			continue
		}
		for k := 1; k < 8; k++ {
			some := map[string]bool{"a": k&1 > 0, "b": k&2 > 0, "c": k&4 > 0}
			if bits.OnesCount(uint(k)) != len(used) {
				continue
			}
			q, err := plan.Make(t.Context(), sellingOnly(s, some), nil)
			require.NoError(t, err)
			if n := len(q.Bindings()); len(zonesOf(q)) == len(used) && n >= most {
				if n > most {
					most, least = n, q.Cost().Dollars()
				}
				least = min(least, q.Cost().Dollars())
			}
		}
		if found++; most > len(p.Bindings()) {
			fewer++
		} else {
			above += p.Cost().Dollars()/least - 1
		}
	}
	t.Logf("%d problems: %d place fewer pods, %.1f%% above the best zones in the mean", found, fewer, 100*above/float64(found))
	assert.LessOrEqual(t, 100*fewer, 2*found)
	assert.Less(t, above/float64(found), 0.03)
}
