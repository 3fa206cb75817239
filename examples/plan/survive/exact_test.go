package survive_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/survive"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// small draws a few pods, with two types in three zones.
func small(r *rand.Rand) scheduling.Snapshot {
	var types []instancetypes.InstanceType
	for f, cpu := range []int64{2, 4} {
		t := instancetypes.InstanceType{
			Name: fmt.Sprintf("f%d.x%d", f, cpu), Requirements: requirements.MustParse(fmt.Sprintf("node.kubernetes.io/instance-type=f%d.x%d, karpenter.k8s.aws/instance-family=f%d", f, cpu, f)),
			Capacity: corev1.ResourceList{"cpu": *resource.NewQuantity(cpu, resource.DecimalSI), "memory": *resource.NewQuantity(cpu*4<<30, resource.BinarySI), "pods": resource.MustParse("20")},
		}
		for z := range 3 {
			t.Offerings = append(t.Offerings, instancetypes.Offering{
				Price: float64(cpu) * (0.04 + 0.01*r.Float64()), Available: true,
				Requirements: requirements.MustParse(fmt.Sprintf("topology.kubernetes.io/zone=z%d, karpenter.sh/capacity-type=on-demand", z)),
			})
		}
		types = append(types, t)
	}
	s := scheduling.Snapshot{Pools: []scheduling.Pool{{NodePool: nodepool.NodePool{Name: "general", APIVersion: nodepool.V1}, Types: types}}}
	for w := range 1 + r.IntN(3) {
		app := fmt.Sprintf("app%d", w)
		labels := map[string]string{"app": app}
		for i := range 1 + r.IntN(4) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("%s-%d", app, i), Labels: labels, OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: app, Controller: new(true)}}}}
			p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse([]string{"500m", "1", "1500m"}[w])}}}}
			if w != 1 {
				p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: labels}}}
			}
			s.Pods = append(s.Pods, p)
		}
	}
	return s
}

// spares are all sets of up to three nodes that cost less than a price.
func spares(pool *scheduling.Pool, below float64) [][]*corev1.Node {
	type offer struct {
		node  *corev1.Node
		price float64
	}
	var offers []offer
	for i := range pool.Types {
		t := &pool.Types[i]
		for k := range t.Offerings {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{nodepool.LabelKey: pool.Name}}, Status: corev1.NodeStatus{Capacity: t.Capacity, Allocatable: t.Capacity}}
			for _, set := range []requirements.Set{t.Requirements, t.Offerings[k].Requirements} {
				maps.Copy(n.Labels, set.Labels())
			}
			offers = append(offers, offer{n, t.Offerings[k].Price})
		}
	}
	var out [][]*corev1.Node
	var add func(from int, nodes []*corev1.Node, price float64)
	add = func(from int, nodes []*corev1.Node, price float64) {
		out = append(out, nodes)
		for i := from; i < len(offers) && len(nodes) < 3; i++ {
			if price+offers[i].price < below {
				n := offers[i].node.DeepCopy()
				n.Name = fmt.Sprintf("extra-%d", len(nodes))
				n.Labels[corev1.LabelHostname] = n.Name
				add(i, append(slices.Clip(nodes), n), price+offers[i].price)
			}
		}
	}
	add(0, nil, 0)
	return out
}

// No set of nodes that costs less than the bound makes all failures hold.
func TestNothingBelowTheBoundHolds(t *testing.T) {
	sets, bounds := 0, 0
	for seed := range uint64(longer(15, 150)) {
		s := small(rand.New(rand.NewPCG(seed, 11)))
		p, err := plan.Make(t.Context(), s, nil)
		require.NoError(t, err)
		kinds := [][]survive.Kind{{survive.Zone}, {survive.Node}, {survive.Zone, survive.Node}, {survive.Family}}[seed%4]
		report, err := survive.Of(t.Context(), p, nil, kinds)
		require.NoError(t, err)
		lower := report.Headroom.LowerBoundPerHour
		if lower == 0 {
			continue
		}
		bounds++
		for _, extra := range spares(&s.Pools[0], lower-1e-6) {
			sets++
			cluster := p.CarriedOut()
			cluster.Nodes = append(slices.Clip(cluster.Nodes), extra...)
			holds := true
			for i := range report.Failures {
				o := &report.Failures[i]
				after, err := plan.Make(t.Context(), lose(cluster, o.Failure), &plan.Options{Scheduling: &scheduling.Options{IgnorePreferences: true, LeaveZones: true}})
				require.NoError(t, err)
				if holds = after.Totals().Unplaced <= len(o.Lost); !holds {
					break
				}
			}
			assert.False(t, holds, "seed %d %v: %d nodes hold below the bound of %f", seed, kinds, len(extra), lower)
		}
	}
	t.Log(sets, "sets below", bounds, "bounds")
	assert.Positive(t, bounds)
}
