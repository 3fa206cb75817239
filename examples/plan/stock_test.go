package plan_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// machine is a type of 4 cores with one offering for each zone, as the edit leaves it.
func machine(name string, edit func(*instancetypes.Offering), zones ...string) instancetypes.InstanceType {
	t := instancetypes.InstanceType{Name: name, Requirements: requirements.MustOf(requirements.In(corev1.LabelInstanceTypeStable, name), requirements.In(corev1.LabelTopologyZone, zones...), requirements.In(instancetypes.LabelCapacityType, "on-demand"))}
	t.Capacity = corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("10")}
	for _, zone := range zones {
		o := instancetypes.Offering{Requirements: requirements.MustOf(requirements.In(corev1.LabelTopologyZone, zone), requirements.In(instancetypes.LabelCapacityType, "on-demand")), Price: 0.3, Available: true}
		edit(&o)
		t.Offerings = append(t.Offerings, o)
	}
	return t
}

func pending(n int, edit func(*corev1.Pod)) []*corev1.Pod {
	var out []*corev1.Pod
	for i := range n {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("p-%d", i), Labels: map[string]string{"app": "p"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("3")},
		}}}}}
		edit(p)
		out = append(out, p)
	}
	return out
}

// A reason names what decides: counts that the plan has used up, minValues, offerings that are off; and another pool only where there is one.
func TestReasonsNameWhatDecides(t *testing.T) {
	plain := func(*corev1.Pod) {}
	counted := func(n int) func(*instancetypes.Offering) {
		return func(o *instancetypes.Offering) { o.ReservationCount = n }
	}
	any := func(*instancetypes.Offering) {}
	spread := func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}
	}
	for name, c := range map[string]struct {
		pool  nodepool.NodePool
		types []instancetypes.InstanceType
		pods  []*corev1.Pod
		stage scheduling.Stage
		want  string
	}{
		"stock": {nodepool.NodePool{}, []instancetypes.InstanceType{machine("m", counted(2), "a")}, pending(3, plain), scheduling.StageOffering, "the plan takes 2 machines of m as"},
		"reservation": {nodepool.NodePool{}, []instancetypes.InstanceType{machine("m", func(o *instancetypes.Offering) {
			o.ReservationCount, o.Commitment = 1, "lease"
		}, "a")}, pending(2, plain), scheduling.StageOffering, "(from lease), and there are no more"},
		"minValues":           {nodepool.NodePool{MinValues: map[string]int{corev1.LabelInstanceTypeStable: 3}}, []instancetypes.InstanceType{machine("m", any, "a"), machine("n", any, "a")}, pending(1, plain), scheduling.StageOffering, "minValues of node.kubernetes.io/instance-type: the pool requires 3 values, but the types that hold the pod have 2"},
		"minValues of zones":  {nodepool.NodePool{MinValues: map[string]int{corev1.LabelTopologyZone: 2}}, []instancetypes.InstanceType{machine("m", any, "a", "b")}, pending(1, spread), scheduling.StageOffering, "minValues of topology.kubernetes.io/zone: the pool requires 2 values, but the spread"},
		"too few zones":       {nodepool.NodePool{MinValues: map[string]int{corev1.LabelTopologyZone: 4}}, []instancetypes.InstanceType{instancetypes.New("m", nil, corev1.ResourceList{"cpu": resource.MustParse("4")}, instancetypes.Offer("a", "spot", 1), instancetypes.Offer("b", "spot", 1), instancetypes.Offer("c", "spot", 1))}, pending(1, plain), scheduling.StageOffering, "minValues of topology.kubernetes.io/zone: the pool requires 4 values, but the types that hold the pod have 3"},
		"off":                 {nodepool.NodePool{}, []instancetypes.InstanceType{machine("m", func(o *instancetypes.Offering) { o.Available = false }, "a")}, pending(1, plain), scheduling.StageOffering, "all of its offerings are not available now"},
		"types of other kind": {nodepool.NodePool{Requirements: requirements.MustOf(requirements.In(corev1.LabelTopologyZone, "c"))}, []instancetypes.InstanceType{machine("m", any, "a")}, pending(1, plain), scheduling.StageOffering, "no instance type meets the pool's own requirements"},
	} {
		c.pool.Name = "main"
		p, err := plan.Make(t.Context(), scheduling.Snapshot{Pods: c.pods, Pools: []scheduling.Pool{{NodePool: c.pool, Types: c.types}}}, nil)
		require.NoError(t, err, name)
		require.NotEmpty(t, p.Unplaced(), name)
		reason := p.Unplaced()[0].Reasons()[0]
		assert.Equal(t, c.stage, reason.Stage, name)
		assert.Contains(t, reason.String(), c.want, name)
		assert.NotContains(t, reason.String(), "another pool", name)
	}
}

// A fix is tried with the stock that the plan leaves.
func TestFixesKnowWhatThePlanHasTaken(t *testing.T) {
	stock := []instancetypes.InstanceType{machine("m", func(o *instancetypes.Offering) { o.ReservationCount = 1 }, "a")}
	tainted := nodepool.NodePool{Name: "b", Taints: []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectNoSchedule}}}
	for _, refused := range []int{1, 2} { // pool b has one machine of its own
		p, err := plan.Make(t.Context(), scheduling.Snapshot{
			Pods:  pending(1+refused, func(*corev1.Pod) {}),
			Pools: []scheduling.Pool{{NodePool: nodepool.NodePool{Name: "a"}, Types: stock}, {NodePool: tainted, Types: stock}},
		}, nil)
		require.NoError(t, err)
		u := p.Unplaced()[0]
		require.Len(t, u.Pods, refused)
		fix := p.Fix(u.Class, u.Reasons(), true)
		assert.Equal(t, [2]int{1, refused}, [2]int{fix.Placed, fix.Refused})
	}
}

// Pods whose own requirement leaves them only a stock that is used up, by selector or by affinity,
// may fit without it.
func TestARequirementMayLeaveOnlyWhatIsSoldOut(t *testing.T) {
	licensed := func(value string, count int) instancetypes.InstanceType {
		return instancetypes.New("blade-"+value, map[string]string{"licence": value, corev1.LabelOSStable: value}, corev1.ResourceList{"cpu": resource.MustParse("4")}, instancetypes.Offer("hall", "on-demand", 0.3).Stock("blades-"+value, count))
	}
	types := []instancetypes.InstanceType{licensed("a", 1), licensed("b", 5)}
	for name, edit := range map[string]func(*corev1.Pod){
		"selector":    func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"licence": "a"} },
		"an old name": func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"beta.kubernetes.io/os": "a"} },
		"affinity": func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "licence", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"b"}}},
			}}}}}
		},
	} {
		p, err := plan.Make(t.Context(), scheduling.Snapshot{Pods: pending(3, edit), Pools: []scheduling.Pool{{NodePool: nodepool.New("a"), Types: types}}}, nil)
		require.NoError(t, err)
		require.Len(t, p.Unplaced(), 1, name)
		u := p.Unplaced()[0]
		fix := p.Fix(u.Class, u.Reasons(), true)
		require.NotNil(t, fix, name)
		key := "licence"
		if name == "an old name" {
			key = corev1.LabelOSStable
		}
		assert.Equal(t, []any{plan.DropSelector, key, 2}, []any{fix.Kind, fix.Key, fix.Placed}, name)
	}
}

// Two pools that share a stock do not sell it twice, and one that is sold out sells nothing.
func TestPoolsShareAStock(t *testing.T) {
	size := corev1.ResourceList{"cpu": resource.MustParse("4")}
	for left, placed := range map[int]int{0: 0, 1: 1, 2: 2, 3: 3} {
		blade := instancetypes.New("blade", nil, size, instancetypes.Offer("hall", "on-demand", 0.3).Stock("blades", left))
		p, err := plan.Make(t.Context(), scheduling.Snapshot{
			Pods:  pending(3, func(*corev1.Pod) {}),
			Pools: []scheduling.Pool{{NodePool: nodepool.New("a"), Types: []instancetypes.InstanceType{blade}}, {NodePool: nodepool.New("b"), Types: []instancetypes.InstanceType{blade}}},
		}, nil)
		require.NoError(t, err)
		assert.Len(t, p.Bindings(), placed, "%d left", left)
	}
}

// A catalogue that nothing can be planned with is an error that names the fault, and prices of a layer are looked at, too.
func TestCataloguesAreValidated(t *testing.T) {
	sold := func(price float64) []instancetypes.InstanceType {
		return []instancetypes.InstanceType{instancetypes.New("blade", nil, corev1.ResourceList{"cpu": resource.MustParse("4")}, instancetypes.Offer("hall", "on-demand", price))}
	}
	for _, price := range []float64{math.NaN(), math.Inf(1), -1} {
		layer := instancetypes.PriceSourceFunc(func(instancetypes.PriceQuery, []instancetypes.Quote) []instancetypes.Quote {
			return []instancetypes.Quote{{Price: price}}
		})
		for name, c := range map[string]struct {
			types  []instancetypes.InstanceType
			layers []instancetypes.PriceSource
		}{"the catalogue": {sold(price), nil}, "a layer": {sold(1), []instancetypes.PriceSource{layer}}} {
			_, err := plan.Make(t.Context(), scheduling.Snapshot{
				Pods: pending(1, func(*corev1.Pod) {}), Pools: []scheduling.Pool{{NodePool: nodepool.New("main"), Types: c.types}},
			}, &plan.Options{Objective: &plan.Objective{Prices: c.layers}})
			require.Error(t, err, "%v in %s", price, name)
			assert.Contains(t, err.Error(), "pool main")
			assert.Contains(t, err.Error(), "[0].offerings[0].price")
		}
	}
}

// Progress tells of the plan, and not of the plans that are made to try a fix.
func TestFixesAreTriedInSilence(t *testing.T) {
	made, told, during := false, 0, 0
	o := &plan.Options{Packing: &binpack.Options{Progress: func(binpack.Progress) {
		if told++; made {
			during++
		}
	}}}
	p, err := plan.Make(t.Context(), scheduling.Snapshot{
		Pods: pending(40, func(pod *corev1.Pod) {
			if pod.Name > "p-2" {
				pod.Spec.NodeSelector = map[string]string{"team": "web"}
			}
		}),
		Pools: []scheduling.Pool{{NodePool: nodepool.New("main"), Types: []instancetypes.InstanceType{machine("m", func(*instancetypes.Offering) {}, "a", "b"), machine("n", func(o *instancetypes.Offering) { o.Price = 0.31 }, "a")}}},
	}, o)
	require.NoError(t, err)
	made = true
	require.NotEmpty(t, p.Unplaced())
	fixes, _ := p.Fixes(t.Context(), p.Unplaced()[0])
	require.NotEmpty(t, fixes)
	assert.Positive(t, told)
	assert.Zero(t, during)
	assert.NotNil(t, o.Packing.Progress, "options are not changed")
}

// An objective that no plan can aim at is an error that names the field, whatever the field.
func TestObjectivesAreValidated(t *testing.T) {
	s := scheduling.Snapshot{Pods: pending(1, func(*corev1.Pod) {}), Pools: []scheduling.Pool{{NodePool: nodepool.New("main"), Types: []instancetypes.InstanceType{machine("m", func(*instancetypes.Offering) {}, "a")}}}}
	for _, wrong := range []float64{math.NaN(), math.Inf(1), -1} {
		for want, o := range map[string]*plan.Objective{
			"factor 0":                              {Factors: []plan.Factor{{Times: wrong}}},
			"the price of each node":                {PerNode: wrong},
			"the part for interruptions":            {Interruption: wrong},
			"the cost of an interruption":           {Interruptions: &plan.Interruptions{Cost: wrong}},
			"the part of a workload in a spot pool": {Spread: plan.Spread{Workload: wrong}},
			"the part of the plan in a spot pool":   {Spread: plan.Spread{Plan: wrong}},
		} {
			_, err := plan.Make(t.Context(), s, &plan.Options{Objective: o})
			require.ErrorContains(t, err, want, "%v", wrong)
		}
	}
	_, err := plan.Make(t.Context(), s, &plan.Options{Objective: &plan.Objective{MostCPU: -1, MostNodes: -1}})
	require.ErrorContains(t, err, "the most vCPUs")
	require.ErrorContains(t, err, "the most nodes")
}

// A refusal names each count that the plan has used up, in every zone, once and in the order of the
// types. Offerings that share a count are named together.
func TestAllCountsThatAreUsedUpAreNamed(t *testing.T) {
	as := func(typ, zone string) string {
		return fmt.Sprintf("%s as karpenter.sh/capacity-type in (on-demand), topology.kubernetes.io/zone in (%s)", typ, zone)
	}
	each := func(o *instancetypes.Offering) { o.ReservationCount = 1 }
	shared := func(o *instancetypes.Offering) { o.ReservationCount, o.Commitment = 2, "blades" }
	for name, c := range map[string]struct {
		types []instancetypes.InstanceType
		pods  int
		want  string
	}{
		"two zones":       {[]instancetypes.InstanceType{machine("m", each, "a", "b")}, 3, "1 machine of " + as("m", "a") + ", 1 machine of " + as("m", "b")},
		"two types":       {[]instancetypes.InstanceType{machine("m", each, "b"), machine("n", each, "a")}, 3, "1 machine of " + as("m", "b") + ", 1 machine of " + as("n", "a")},
		"one shared":      {[]instancetypes.InstanceType{machine("m", shared, "a", "b"), machine("n", shared, "a")}, 3, "2 machines of " + as("m", "a") + " or " + as("m", "b") + " or " + as("n", "a") + " (from blades)"},
		"shared and own":  {[]instancetypes.InstanceType{machine("m", shared, "a"), machine("n", each, "a")}, 4, "2 machines of " + as("m", "a") + " (from blades), 1 machine of " + as("n", "a")},
		"more than a few": {[]instancetypes.InstanceType{machine("m", each, "a", "b", "c", "d", "e", "f")}, 7, "1 machine of " + as("m", "d") + ", 2 other counts that are used up"},
	} {
		for range 2 {
			p, err := plan.Make(t.Context(), scheduling.Snapshot{Pods: pending(c.pods, func(*corev1.Pod) {}), Pools: []scheduling.Pool{{NodePool: nodepool.New("main"), Types: c.types}}}, nil)
			require.NoError(t, err, name)
			require.Len(t, p.Unplaced(), 1, name)
			detail := p.Unplaced()[0].Reasons()[0].Detail
			assert.Contains(t, detail, c.want+", and there are no more", name)
			for _, typ := range c.types {
				for _, o := range typ.Offerings {
					zone, _ := o.Requirements.Get(corev1.LabelTopologyZone).Single()
					assert.True(t, strings.Contains(detail, as(typ.Name, zone)) || strings.Contains(detail, " other counts"), "%s: %s", name, detail)
				}
			}
		}
	}
}
