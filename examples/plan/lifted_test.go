package plan_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
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

// asking returns a pod with node selector terms, one for each list. No list, or an empty one, asks
// for nothing.
func asking(t *testing.T, cpu string, terms [][]requirements.Requirement) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}
	if len(terms) == 0 || slices.ContainsFunc(terms, func(term []requirements.Requirement) bool { return len(term) == 0 }) {
		return p
	}
	var selector corev1.NodeSelector
	for _, term := range terms {
		list, ok := kube.Expressions(requirements.MustOf(term...))
		require.True(t, ok)
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: list})
	}
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &selector}}
	return p
}

// without returns the requirements of other keys.
func without(asks []requirements.Requirement, keys []string) []requirements.Requirement {
	return slices.DeleteFunc(slices.Clone(asks), func(r requirements.Requirement) bool { return slices.Contains(keys, r.Key()) })
}

var (
	excludedBy = regexp.MustCompile(`(\S+) (?:would fit, but )?is excluded by (.*)`)
	requirer   = regexp.MustCompile(`the (pool|pod)'s !?([^ ,]+)`)
)

// A refusal that says of a type what excludes it is right: without exactly these requirements of
// the pod and the pool, the type holds the pod.
func TestATypeHoldsThePodWithoutWhatExcludesIt(t *testing.T) {
	const seed = 5
	r := rand.New(rand.NewPCG(22, seed))
	values := map[string][]string{
		"acme.io/disk": {"0", "1", "2"}, "acme.io/gen": {"0", "1", "2"}, corev1.LabelTopologyZone: {"a", "b", "moon"},
		instancetypes.LabelCapacityType: {"on-demand", "spot", "lent"}, corev1.LabelInstanceTypeStable: {"small", "large", "huge"}, "acme.io/none": {"0"},
	}
	keys := []string{"acme.io/disk", "acme.io/gen", corev1.LabelTopologyZone, instancetypes.LabelCapacityType, corev1.LabelInstanceTypeStable, "acme.io/none"}
	ask := func(key string) requirements.Requirement {
		list := values[key]
		switch value := list[r.IntN(len(list))]; r.IntN(12) {
		case 0:
			return requirements.Exists(key)
		case 1:
			return requirements.NotIn(key, value)
		case 2:
			return requirements.In(key, value, list[r.IntN(len(list))])
		default:
			return requirements.In(key, value)
		}
	}
	said, n := map[string]int{}, 6000
	if testing.Short() {
		n = 3000
	}
	for i := range n {
		types := []drawnType{drawType(r, "small", "2"), drawType(r, "large", "16")}
		cpu := []string{"1", "9"}[r.IntN(2)]
		var daemons []*appsv1.DaemonSet
		if r.IntN(4) == 0 { // a large node has no room for 9 beside it
			d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "agent"}}
			d.Spec.Template.Spec = asking(t, "8", nil).Spec
			if r.IntN(2) == 0 {
				key := keys[r.IntN(4)]
				d.Spec.Template.Spec.NodeSelector = map[string]string{key: values[key][r.IntN(2)]}
			}
			daemons = []*appsv1.DaemonSet{d}
		}
		terms, poolAsks := make([][]requirements.Requirement, 1+r.IntN(5)/4), []requirements.Requirement(nil)
		for _, key := range keys {
			for k := range terms {
				if r.IntN(4) == 0 {
					terms[k] = append(terms[k], ask(key))
				}
			}
			if r.IntN(3) == 0 && key != "acme.io/none" {
				poolAsks = append(poolAsks, ask(key))
			}
		}
		plans := func(terms [][]requirements.Requirement, poolAsks []requirements.Requirement, cpu string, types ...instancetypes.InstanceType) *plan.Plan {
			pool := nodepool.New("default")
			pool.Requirements = requirements.MustOf(poolAsks...)
			made, err := plan.Make(t.Context(), scheduling.Snapshot{Pods: []*corev1.Pod{asking(t, cpu, terms)}, DaemonSets: daemons, Pools: []scheduling.Pool{{NodePool: pool, Types: types}}}, nil)
			require.NoError(t, err)
			return made
		}
		made := plans(terms, poolAsks, cpu, types[0].typ, types[1].typ)
		if len(made.Unplaced()) == 0 {
			continue
		}
		detail := made.Unplaced()[0].Reasons()[0].Detail
		found := excludedBy.FindStringSubmatch(detail)
		if found == nil {
			continue
		}
		by, short := found[2], ""
		if at := strings.Index(by, ", and does not have enough "); at >= 0 {
			by, short = by[:at], by[at:]
			cpu, daemons = "1", nil // what else it lacks
		}
		lifted := map[string][]string{}
		for _, x := range requirer.FindAllStringSubmatch(by, -1) {
			lifted[x[1]] = append(lifted[x[1]], x[2])
		}
		for k := range terms {
			terms[k] = without(terms[k], lifted["pod"])
		}
		typ := types[slices.IndexFunc(types, func(d drawnType) bool { return d.typ.Name == found[1] })].typ
		after := plans(terms, without(poolAsks, lifted["pool"]), cpu, typ)
		if !assert.Empty(t, after.Unplaced(), "%d: %s", i, detail) {
			t.Log(after.Unplaced()[0].Reasons())
		}
		kind := "pod "
		if len(lifted["pod"]) == 0 {
			kind = "pool "
		} else if len(lifted["pool"]) > 0 {
			kind = "both "
		}
		said[kind+fmt.Sprint(strings.Contains(by, "none has both"), short != "", strings.Contains(detail, "would fit"))]++
	}
	t.Log(said)
	for _, kind := range []string{"pool false false true", "pool false true false", "pod false false true", "both false false true", "both true false true"} {
		assert.GreaterOrEqual(t, said[kind], 2, kind)
	}
}

// A value that is spelt almost like one that the pool allows gets a hint; one that differs on
// purpose gets none.
func TestAZoneThatThePoolDoesNotAllow(t *testing.T) {
	size := corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi")}
	for zone, want := range map[string]string{
		"us-east-1aa": `it requires topology.kubernetes.io/zone in (us-east-1aa), but the pool allows topology.kubernetes.io/zone in (us-east-1a,us-east-1b) (did you mean "us-east-1a"?)`,
		"us-east-1c":  "it requires topology.kubernetes.io/zone in (us-east-1c), but the pool allows topology.kubernetes.io/zone in (us-east-1a,us-east-1b)",
		"moon":        "it requires topology.kubernetes.io/zone in (moon), but the pool allows topology.kubernetes.io/zone in (us-east-1a,us-east-1b)",
	} {
		s := scheduling.Snapshot{
			Pods: []*corev1.Pod{asking(t, "1", [][]requirements.Requirement{{requirements.In(corev1.LabelTopologyZone, zone)}})},
			Pools: []scheduling.Pool{{NodePool: nodepool.New("p", requirements.In(corev1.LabelTopologyZone, "us-east-1a", "us-east-1b")), Types: []instancetypes.InstanceType{
				instancetypes.New("small", nil, size, instancetypes.Offer("us-east-1a", "on-demand", 0.1), instancetypes.Offer("us-east-1c", "on-demand", 0.1)),
			}}},
		}
		made, err := plan.Make(t.Context(), s, nil)
		require.NoError(t, err)
		assert.Equal(t, want, made.Unplaced()[0].Reasons()[0].Detail)
	}
}

// A zone that no type has is named as such, with a hint, also if the pool excludes types that do
// not list the zones of their offerings.
func TestAZoneThatNoTypeHas(t *testing.T) {
	size := corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi")}
	types := []instancetypes.InstanceType{
		instancetypes.New("small", nil, size, instancetypes.Offer("hall-1", "on-demand", 0.1), instancetypes.Offer("hall-3", "on-demand", 0.1)),
		instancetypes.New("large", nil, size, instancetypes.Offer("hall-1", "on-demand", 0.3), instancetypes.Offer("hall-4", "on-demand", 0.3)),
	}
	for zone, want := range map[string]string{
		"moon":    "it requires topology.kubernetes.io/zone in (moon), which no type of the pool offers (offered: hall-1, hall-3)",
		"hall-33": `it requires topology.kubernetes.io/zone in (hall-33), which no type of the pool offers (did you mean "hall-3"?)`,
		"hall-4":  "it requires topology.kubernetes.io/zone in (hall-4); large would fit, but is excluded by the pool's node.kubernetes.io/instance-type in (small)",
	} {
		for _, listed := range []bool{true, false} {
			list := slices.Clone(types)
			for i := range list {
				if !listed {
					list[i].Requirements = requirements.FromLabels(map[string]string{corev1.LabelInstanceTypeStable: list[i].Name})
				}
			}
			s := scheduling.Snapshot{
				Pods:  []*corev1.Pod{asking(t, "1", [][]requirements.Requirement{{requirements.In(corev1.LabelTopologyZone, zone)}})},
				Pools: []scheduling.Pool{{NodePool: nodepool.New("p", requirements.In(corev1.LabelInstanceTypeStable, "small")), Types: list}},
			}
			made, err := plan.Make(t.Context(), s, nil)
			require.NoError(t, err)
			assert.Equal(t, want, made.Unplaced()[0].Reasons()[0].Detail)
		}
	}
}
