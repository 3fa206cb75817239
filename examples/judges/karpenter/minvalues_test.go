//go:build !karpenter1.14

package karpenter_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/examples/judges/karpenter"
	"github.com/joinery-sdk/joinery/examples/judges/scenario"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/kwok"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Of 1,000 pools with minValues, those hold a pod that selects by labels of their nodes of which Karpenter says so.
func TestMinValuesAreKarpenters(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 4))
	catalogue := scenario.Cloud()
	text, err := scenario.CatalogueJSON(catalogue)
	require.NoError(t, err)
	ours, err := kwok.Read(text)
	require.NoError(t, err)
	values := map[string][]string{
		corev1.LabelTopologyZone:       scenario.Zones(),
		karpv1.CapacityTypeLabelKey:    {karpv1.CapacityTypeSpot, karpv1.CapacityTypeOnDemand},
		corev1.LabelArchStable:         {"amd64", "arm64"},
		scenario.LabelFamily:           {"c", "m", "r", "g", "a"},
		corev1.LabelInstanceTypeStable: nil,
	}
	for i := range catalogue {
		values[corev1.LabelInstanceTypeStable] = append(values[corev1.LabelInstanceTypeStable], catalogue[i].Name)
	}
	keys := []string{corev1.LabelTopologyZone, karpv1.CapacityTypeLabelKey, corev1.LabelArchStable, scenario.LabelFamily, corev1.LabelInstanceTypeStable}
	draw := func(key string) []string {
		from := values[key]
		var out []string
		for _, i := range rng.Perm(len(from))[:1+rng.IntN(min(len(from), 6))] {
			out = append(out, from[i])
		}
		return out
	}
	placed, refused := 0, 0
	for n := range 1000 {
		p := pool("web", func(p *karpv1.NodePool) {
			p.Spec.Template.Spec.NodeClassRef = class()
			p.Spec.Template.Spec.ExpireAfter = karpv1.MustParseNillableDuration("Never")
			p.Spec.Disruption.ConsolidateAfter = karpv1.MustParseNillableDuration("0s")
			for _, i := range rng.Perm(len(keys))[:1+rng.IntN(3)] {
				r := karpv1.NodeSelectorRequirementWithMinValues{Key: keys[i], Operator: corev1.NodeSelectorOpExists}
				most := len(values[keys[i]])
				if rng.IntN(2) == 0 {
					r.Operator, r.Values = corev1.NodeSelectorOpIn, draw(keys[i])
					most = len(r.Values)
				}
				if rng.IntN(3) > 0 {
					r.MinValues = new(1 + rng.IntN(min(most, 8)))
				}
				p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements, r)
			}
		})
		pod := pods(1, "p", []string{"100m", "1", "7"}[rng.IntN(3)], func(p *corev1.Pod) {
			var term corev1.NodeSelectorTerm
			for _, i := range rng.Perm(len(keys))[:rng.IntN(3)] {
				term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: keys[i], Operator: corev1.NodeSelectorOpIn, Values: draw(keys[i])})
			}
			if len(term.MatchExpressions) > 0 {
				p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}}}
			}
		})
		want, err := karpenter.Solve(t.Context(), input(pod, catalogue, p))
		require.NoError(t, err)
		read, err := nodepool.DecodeObject(p)
		require.NoError(t, err)
		got, err := plan.Make(t.Context(), scheduling.Snapshot{Pods: pod, Pools: []scheduling.Pool{{NodePool: read, Types: append([]instancetypes.InstanceType(nil), ours...)}}}, nil)
		require.NoError(t, err)
		assert.Equal(t, want.Placed(), len(got.Bindings()), "%d: %+v\n%+v", n, p.Spec.Template.Spec.Requirements, pod[0].Spec.Affinity)
		if want.Placed() > 0 {
			placed++
		} else {
			refused++
		}
	}
	fmt.Printf("%d pools hold the pod, %d do not\n", placed, refused)
	require.Greater(t, placed, 100)
	require.Greater(t, refused, 100)
}

// Under limits, a pool with minValues holds at least as many pods as Karpenter places in one round, where each claim counts as its largest type.
func TestMinValuesWithinLimitsAreKarpenters(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 5))
	catalogue := scenario.Cloud()
	text, err := scenario.CatalogueJSON(catalogue)
	require.NoError(t, err)
	ours, err := kwok.Read(text)
	require.NoError(t, err)
	keys := []string{scenario.LabelFamily, corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone}
	placed, more, none := 0, 0, 0
	for n := range 150 {
		p := pool("web", func(p *karpv1.NodePool) {
			p.Spec.Template.Spec.NodeClassRef = class()
			p.Spec.Template.Spec.ExpireAfter = karpv1.MustParseNillableDuration("Never")
			p.Spec.Disruption.ConsolidateAfter = karpv1.MustParseNillableDuration("0s")
			p.Spec.Limits = karpv1.Limits{corev1.ResourceCPU: *resource.NewQuantity(int64(1+rng.IntN(60)), resource.DecimalSI)}
			if rng.IntN(2) == 0 {
				p.Spec.Limits[corev1.ResourceMemory] = *resource.NewQuantity(int64(2+rng.IntN(240))<<30, resource.BinarySI)
			}
			for _, i := range rng.Perm(len(keys))[:1+rng.IntN(2)] {
				p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements, karpv1.NodeSelectorRequirementWithMinValues{Key: keys[i], Operator: corev1.NodeSelectorOpExists, MinValues: new(1 + rng.IntN(4))})
			}
		})
		pod := pods(1+rng.IntN(20), "p", []string{"1", "3", "7"}[rng.IntN(3)])
		want, err := karpenter.Solve(t.Context(), input(pod, catalogue, p))
		require.NoError(t, err)
		read, err := nodepool.DecodeObject(p)
		require.NoError(t, err)
		got, err := plan.Make(t.Context(), scheduling.Snapshot{Pods: pod, Pools: []scheduling.Pool{{NodePool: read, Types: append([]instancetypes.InstanceType(nil), ours...)}}}, nil)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, len(got.Bindings()), want.Placed(), "%d: %+v, limits %+v", n, p.Spec.Template.Spec.Requirements, p.Spec.Limits)
		placed += want.Placed()
		if more += len(got.Bindings()) - want.Placed(); len(got.Bindings()) == 0 {
			none++
		}
	}
	fmt.Printf("Karpenter places %d pods, we %d more; %d pools hold none\n", placed, more, none)
	require.Greater(t, placed, 100)
	require.Positive(t, none)
}
