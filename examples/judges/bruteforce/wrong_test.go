package bruteforce_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
)

// A plan of other pods, pools or prices is noticed. So the judge can fail.
func TestWrongPlansAreNoticed(t *testing.T) {
	s := shop(several(3, "web")...)
	p, err := plan.Make(t.Context(), s, nil)
	require.NoError(t, err)
	require.Empty(t, violations(s, p))
	require.Empty(t, overLimits(s, p))

	apart := shop(several(3, "web", inAffinity(corev1.LabelHostname, "web", true))...)
	assert.Len(t, violations(apart, p), 2, "two pods stand beside the first")
	assert.NotEmpty(t, violations(shop(several(4, "web")...), p), "a pod is forgotten")
	dear := shop(s.Pods...)
	dear.Pools[0].Types[0].Offerings = dear.Pools[0].Types[0].Offerings[1:]
	assert.NotEmpty(t, violations(dear, p), "nobody sells the node")
	limited := shop(s.Pods...)
	limited.Pools[0].Limits = corev1.ResourceList{"cpu": resource.MustParse("3")}
	assert.Len(t, overLimits(limited, p), 1)
}

// Plans that ignore preferences are like plans of pods without preferences. They may differ only
// because pods that differ in their preferences are distinguished, and so are planned in another
// order.
func TestIgnoredPreferences(t *testing.T) {
	var more, less []uint64
	differ := 0
	for i := range *problems {
		seed := *from + uint64(i)
		w := ways(draw(seed))[1]
		ignored, err := plan.Make(t.Context(), w.snapshot, w.options)
		require.NoError(t, err)
		without, err := plan.Make(t.Context(), withoutPreferences(w.snapshot), w.options)
		require.NoError(t, err)
		switch {
		case len(ignored.Bindings()) != len(without.Bindings()):
			differ++
			t.Logf("seed %d: %d pods are placed if preferences are ignored, and %d if there are none", seed, len(ignored.Bindings()), len(without.Bindings()))
		case ignored.Cost() > without.Cost():
			more = append(more, seed)
		case ignored.Cost() < without.Cost():
			less = append(less, seed)
		}
	}
	assert.LessOrEqual(t, 100*(len(more)+len(less)+differ), *problems)
	t.Logf("of %d plans that ignore preferences, %d cost more than without preferences %d, and %d less %d", *problems, len(more), more, len(less), less)
}

func withoutPreferences(s scheduling.Snapshot) scheduling.Snapshot {
	s.Pods = slices.Clone(s.Pods)
	for i, p := range s.Pods {
		p = p.DeepCopy()
		p.Spec.TopologySpreadConstraints = slices.DeleteFunc(p.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
			return c.WhenUnsatisfiable == corev1.ScheduleAnyway
		})
		if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil {
			a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = nil
		}
		if a := p.Spec.Affinity; a != nil && a.PodAffinity != nil {
			a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = nil
		}
		if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
			a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = nil
		}
		s.Pods[i] = p
	}
	return s
}
