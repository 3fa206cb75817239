package plan_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// A refusal names the requirement of the pod that excludes every type, and the fix without it is offered: where the only large enough type lacks a
// label that the pod asks for, and where another requirement is met by the types that lack its label.
func TestWhatExcludesATypeIsNamed(t *testing.T) {
	sized := func(cpu string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("50")}
	}
	types := []instancetypes.InstanceType{
		instancetypes.New("small", map[string]string{"disk": "ssd"}, sized("4"), instancetypes.Offer("a", "on-demand", 0.2), instancetypes.Offer("b", "on-demand", 0.2)),
		instancetypes.New("large", map[string]string{"generation": "2"}, sized("16"), instancetypes.Offer("b", "on-demand", 0.8)),
	}
	ask := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	for name, c := range map[string]struct {
		cpu      string
		asks     []corev1.NodeSelectorRequirement
		key, why string
	}{
		"a label that the large type lacks": {"9", []corev1.NodeSelectorRequirement{ask("disk", corev1.NodeSelectorOpExists)}, "disk", "large would fit, but is excluded by the pod's disk"},
		"another value":                     {"9", []corev1.NodeSelectorRequirement{ask("generation", corev1.NodeSelectorOpIn, "1")}, "generation", "it requires generation in (1)"},
		"types without a label are asked for": {
			"1",
			[]corev1.NodeSelectorRequirement{ask("disk", corev1.NodeSelectorOpDoesNotExist), ask(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, "c")},
			corev1.LabelTopologyZone,
			"it requires topology.kubernetes.io/zone in (c)",
		},
		"types without a value are asked for": {
			"1",
			[]corev1.NodeSelectorRequirement{ask("disk", corev1.NodeSelectorOpNotIn, "ssd"), ask(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, "c")},
			corev1.LabelTopologyZone,
			"it requires topology.kubernetes.io/zone in (c)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
			p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(c.cpu)}}}}
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: c.asks}}}}}
			made, err := plan.Make(t.Context(), scheduling.Snapshot{Pods: []*corev1.Pod{p}, Pools: []scheduling.Pool{{NodePool: nodepool.New("default"), Types: types}}}, nil)
			require.NoError(t, err)
			refused := 0
			for r := range made.Refusals(t.Context()) {
				refused++
				assert.Contains(t, r.Reasons[0].String(), c.why)
				var dropped []string
				for _, f := range r.Fixes {
					if f.Kind == plan.DropSelector {
						dropped = append(dropped, f.Key)
					}
				}
				assert.Equal(t, []string{c.key}, dropped)
			}
			assert.Equal(t, 1, refused)
		})
	}
}

// drawnType is a type and the labels of its offerings, and whether each is for sale.
type drawnType struct {
	typ     instancetypes.InstanceType
	nodes   []map[string]string
	forSale []bool
}

// drawType draws a type of some size with labels of its own. Zone and capacity type are labels of
// its offerings, and the type may list them, too.
func drawType(r *rand.Rand, name, cpu string) drawnType {
	var out drawnType
	own := map[string]string{}
	for _, key := range []string{"acme.io/disk", "acme.io/gen"} {
		if r.IntN(3) > 0 {
			own[key] = fmt.Sprint(r.IntN(2))
		}
	}
	var offers []instancetypes.Offering
	zones, kinds := map[string]bool{}, map[string]bool{}
	for _, at := range r.Perm(4)[:1+r.IntN(4)] {
		zone, kind := []string{"a", "b"}[at%2], []string{"on-demand", "spot"}[at/2]
		o := instancetypes.Offer(zone, kind, float64(1+r.IntN(9)))
		o.Available = r.IntN(5) > 0
		labels := maps.Clone(own)
		labels[corev1.LabelTopologyZone], labels[instancetypes.LabelCapacityType] = zone, kind
		zones[zone], kinds[kind] = true, true
		offers, out.nodes, out.forSale = append(offers, o), append(out.nodes, labels), append(out.forSale, o.Available)
	}
	out.typ = instancetypes.New(name, own, corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("50")}, offers...)
	if r.IntN(2) == 0 { // as a catalogue that lists no offerings' labels among those of the type
		out.typ.Requirements = requirements.FromLabels(own)
	}
	return out
}

// A refusal says of a type that is large enough which single requirements exclude all of its
// offerings, and whose they are. If no offering remains without these, it also names the
// requirements that exclude the offerings together. If an offering that cannot be bought now would
// suit the pod, it names that instead.
func TestTheRequirementThatExcludesATypeIsNamed(t *testing.T) {
	const seed = 3
	r := rand.New(rand.NewPCG(22, seed))
	keys := []string{"acme.io/disk", "acme.io/gen", corev1.LabelTopologyZone, instancetypes.LabelCapacityType}
	values := map[string][]string{"acme.io/disk": {"0", "1"}, "acme.io/gen": {"0", "1"}, corev1.LabelTopologyZone: {"a", "b"}, instancetypes.LabelCapacityType: {"on-demand", "spot"}}
	single, together, mixed := 0, 0, 0
	for i := range 2000 {
		types := []drawnType{drawType(r, "small", "2"), drawType(r, "large", "16")}
		var podAsks, poolAsks []requirements.Requirement
		for _, key := range keys {
			ask := requirements.In(key, values[key][r.IntN(2)])
			if r.IntN(8) == 0 {
				ask = requirements.Exists(key)
			}
			who := r.IntN(9)
			if who < 4 || who == 8 {
				podAsks = append(podAsks, ask)
			}
			if who == 8 {
				ask = requirements.In(key, values[key][r.IntN(2)])
			}
			if who == 4 || who == 5 || who == 8 {
				poolAsks = append(poolAsks, ask)
			}
		}
		pool := nodepool.New("default")
		pool.Requirements = requirements.MustOf(poolAsks...)
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("9")}}}}
		list, ok := kube.Expressions(requirements.MustOf(podAsks...))
		require.True(t, ok)
		if len(list) > 0 {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: list}}}}}
		}
		made, err := plan.Make(t.Context(), scheduling.Snapshot{Pods: []*corev1.Pod{p}, Pools: []scheduling.Pool{{NodePool: pool, Types: []instancetypes.InstanceType{types[0].typ, types[1].typ}}}}, nil)
		require.NoError(t, err)
		if len(made.Unplaced()) == 0 {
			continue
		}
		reason := made.Unplaced()[0].Reasons()[0]
		if reason.Nearest == nil || reason.Nearest.Type != "large" || reason.Nearest.ShutOutBy == "" || reason.Stage == scheduling.StageOffering {
			assert.NotContains(t, reason.Detail, "excluded by its offerings")
			continue
		}
		by := reason.Nearest.ShutOutBy
		large := types[1]
		excludes := func(ask requirements.Requirement, node map[string]string, pods bool) bool {
			value, has := node[ask.Key()]
			at := slices.IndexFunc(poolAsks, func(o requirements.Requirement) bool { return o.Key() == ask.Key() })
			if at >= 0 && (!poolAsks[at].Overlaps(ask) || !has) { // the pool gives its nodes a label that the type lacks
				return pods && !poolAsks[at].Overlaps(ask)
			}
			return has && !ask.Contains(value) || !has && !ask.AllowsAbsent()
		}
		var want, some []string
		partly := map[int]int{} // by offering, how many of some exclude it
		note := func(asks []requirements.Requirement, whose string, pods bool) {
			for _, ask := range asks {
				var at []int
				all := 0
				for k, node := range large.nodes {
					if large.forSale[k] {
						all++
						partly[k] += 0
						if excludes(ask, node, pods) {
							at = append(at, k)
						}
					}
				}
				if len(at) == all {
					want = append(want, whose+ask.String())
				} else if len(at) > 0 {
					some = append(some, whose+ask.String())
					for _, k := range at {
						partly[k]++
					}
				}
			}
		}
		byKey := func(a, b requirements.Requirement) int { return strings.Compare(a.Key(), b.Key()) }
		slices.SortFunc(podAsks, byKey)
		slices.SortFunc(poolAsks, byKey)
		note(poolAsks, "the pool's ", false)
		note(podAsks, "the pod's ", true)
		missing := slices.ContainsFunc(large.nodes, func(node map[string]string) bool {
			k := slices.IndexFunc(large.nodes, func(o map[string]string) bool { return maps.Equal(o, node) })
			return !large.forSale[k] && !slices.ContainsFunc(poolAsks, func(ask requirements.Requirement) bool { return excludes(ask, node, false) }) &&
				!slices.ContainsFunc(podAsks, func(ask requirements.Requirement) bool { return excludes(ask, node, true) })
		})
		if strings.Contains(reason.Detail, "large would fit, but is not available now as ") {
			assert.True(t, missing, "%d: %s", i, reason.Detail)
		} else if !strings.Contains(reason.Detail, "large would fit, but is excluded by "+by) {
			assert.Contains(t, reason.Detail, "it requires ", "%d", i)
			allowed := func(key string) bool { // the pool allows a node with the label
				return slices.ContainsFunc(slices.Concat(types[0].nodes, large.nodes), func(node map[string]string) bool {
					return node[key] != "" && !slices.ContainsFunc(poolAsks, func(ask requirements.Requirement) bool { return excludes(ask, node, false) })
				})
			}
			assert.True(t, slices.ContainsFunc(podAsks, func(ask requirements.Requirement) bool {
				return strings.HasPrefix(reason.Detail, "it requires "+ask.String()) && (slices.Contains(want, "the pod's "+ask.String()) || !allowed(ask.Key()))
			}), "%d: %s", i, reason.Detail)
		}
		others := "its offerings, because none has both " + strings.Join(some, " and ")
		switch enough := slices.Contains(slices.Collect(maps.Values(partly)), 0); {
		case len(want) == 0:
			together++
			want = []string{others}
		case enough:
			single++
		default:
			mixed++
			want = append(want, others)
		}
		assert.Equal(t, strings.Join(want, " and "), by, "%d: %s", i, reason.Detail)
	}
	t.Log(single, together, mixed)
	assert.Greater(t, single, 300)
	assert.Greater(t, together, 10)
	assert.Greater(t, mixed, 10)
}

// A DaemonSet whose pods keep away from a pod is named, by whatever label they keep away.
func TestDaemonSetsThatKeepPodsAwayAreNamed(t *testing.T) {
	capacity := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("50")}
	types := []instancetypes.InstanceType{instancetypes.New("t", nil, capacity, instancetypes.Offer("a", "on-demand", 0.2), instancetypes.Offer("b", "spot", 0.1))}
	for _, key := range []string{corev1.LabelHostname, corev1.LabelTopologyZone, instancetypes.LabelCapacityType, corev1.LabelArchStable} {
		web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"app": "web"}}}
		web.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}
		daemon := func(name string, affinity *corev1.Affinity) *appsv1.DaemonSet {
			ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
			ds.Spec.Template.Labels = map[string]string{"app": name}
			ds.Spec.Template.Spec = *web.Spec.DeepCopy()
			ds.Spec.Template.Spec.Affinity = affinity
			return ds
		}
		term := corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: web.Labels}}
		away := &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
		s := scheduling.Snapshot{
			Pools: []scheduling.Pool{{NodePool: nodepool.New("general"), Types: types}}, Pods: []*corev1.Pod{web},
			DaemonSets: []*appsv1.DaemonSet{daemon("agent", away), daemon("other", nil)},
		}
		p, err := plan.Make(t.Context(), s, nil)
		require.NoError(t, err)
		for r := range p.Refusals(t.Context()) {
			assert.Equal(t, fmt.Sprintf(`pool "general": other pods stand in the way: the pods of DaemonSet shop/agent, which keep away from app=web by %s`, key), r.Reasons[0].String())
		}
		assert.Empty(t, p.Bindings(), key)
	}
}
