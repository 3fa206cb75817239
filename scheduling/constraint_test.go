package scheduling_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/constraint"
	"github.com/joinery-sdk/joinery/scheduling/whatif"
)

// A constraint may read anything of a pod, even what no scheduler looks at. Each pod has its own
// answer.
func TestConstraintsReadPodsNotClasses(t *testing.T) {
	odd := map[string]struct {
		edit func(*corev1.Pod)
		when func(*corev1.Pod) bool
	}{
		"label":      {func(p *corev1.Pod) { p.Labels = map[string]string{"app": "web", "licence": "x"} }, func(p *corev1.Pod) bool { return p.Labels["licence"] == "x" }},
		"annotation": {func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }, func(p *corev1.Pod) bool { return p.Annotations["a"] == "b" }},
		"name":       {func(*corev1.Pod) {}, func(p *corev1.Pod) bool { return p.Name == "web-1" || p.Name == "web-3" }},
		"account":    {func(p *corev1.Pod) { p.Spec.ServiceAccountName = "s" }, func(p *corev1.Pod) bool { return p.Spec.ServiceAccountName == "s" }},
		"image":      {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "i" }, func(p *corev1.Pod) bool { return p.Spec.Containers[0].Image == "i" }},
		"owner": {func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "j"}} }, func(p *corev1.Pod) bool {
			return len(p.OwnerReferences) > 0
		}},
	}
	safe := requirements.MustOf(requirements.In(instancetypes.LabelCapacityType, "on-demand"))
	for name, c := range odd {
		t.Run(name, func(t *testing.T) {
			s := scheduling.Snapshot{Pods: []*corev1.Pod{pod("web-0"), pod("web-1", c.edit), pod("web-2"), pod("web-3", c.edit)}, Pools: []scheduling.Pool{pool("default")}}
			rules := []scheduling.Constraint{constraint.Require(c.when, safe)}
			p, err := scheduling.Compile(s, &scheduling.Options{Constraints: rules})
			require.NoError(t, err)
			require.Len(t, p.Classes, 2)
			for _, class := range p.Classes {
				for _, pod := range class.Pods {
					assert.Equal(t, !c.when(pod), class.Required.Matches(map[string]string{instancetypes.LabelCapacityType: "spot"}), pod.Name)
				}
			}
			refuse := constraint.Func(func(p *corev1.Pod, required requirements.Alternatives) (requirements.Alternatives, *scheduling.Reason) {
				if c.when(p) {
					return required, &scheduling.Reason{Stage: scheduling.StagePod}
				}
				return required, nil
			})
			w, err := whatif.Compile(s, &whatif.Options{Constraints: []scheduling.Constraint{constraint.Named("licence", refuse)}})
			require.NoError(t, err)
			for _, pod := range s.Pods {
				if c.when(pod) {
					assert.Equal(t, `constraint "licence" refuses it`, w.Refuses(pod))
				} else {
					assert.Empty(t, w.Refuses(pod))
				}
			}
		})
	}
}

// A constraint removes nodes. It adds none that the manifest does not ask for.
func TestConstraintsOnlyNarrow(t *testing.T) {
	spot := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{instancetypes.LabelCapacityType: "spot"} }
	answer := func(set requirements.Set) scheduling.Constraint {
		return constraint.Named("wide", constraint.Func(func(*corev1.Pod, requirements.Alternatives) (requirements.Alternatives, *scheduling.Reason) {
			return requirements.AnyOf(set), nil
		}))
	}
	compile := func(c scheduling.Constraint) *scheduling.Class {
		p, err := scheduling.Compile(scheduling.Snapshot{Pods: []*corev1.Pod{pod("web-0", spot)}, Pools: []scheduling.Pool{pool("default")}}, &scheduling.Options{Constraints: []scheduling.Constraint{c}})
		require.NoError(t, err)
		return p.Classes[0]
	}
	assert.Equal(t, "karpenter.sh/capacity-type in (spot)", compile(answer(requirements.Set{})).Required.String())
	other := compile(answer(requirements.MustParse("karpenter.sh/capacity-type=on-demand")))
	require.NotNil(t, other.Refusal)
	assert.Equal(t, `constraint "wide" allows nodes with karpenter.sh/capacity-type in (on-demand), but the pod requires karpenter.sh/capacity-type in (spot)`, other.Refusal.Detail)
	required := compile(constraint.Named("safe", constraint.Require(nil, requirements.MustParse("karpenter.sh/capacity-type=on-demand"))))
	require.NotNil(t, required.Refusal)
	assert.Equal(t, `constraint "safe" allows nodes with karpenter.sh/capacity-type in (on-demand), but the pod requires karpenter.sh/capacity-type in (spot)`, required.Refusal.Detail)
}

// A constraint that narrows the argument itself leaves nothing of it. The text then says so, and
// not that it allows no node at all.
func TestAConstraintThatLeavesNothing(t *testing.T) {
	spot := requirements.AnyOf(requirements.MustParse("karpenter.sh/capacity-type=spot"))
	narrows := constraint.Func(func(_ *corev1.Pod, required requirements.Alternatives) (requirements.Alternatives, *scheduling.Reason) {
		return required.Intersect(requirements.AnyOf(requirements.MustParse("karpenter.sh/capacity-type=on-demand"))), nil
	})
	o := scheduling.Options{Constraints: []scheduling.Constraint{constraint.Named("safe", narrows)}}
	_, refusal := o.Narrowed(pod("a"), spot)
	require.NotNil(t, refusal)
	assert.Equal(t, `constraint "safe" allows none of the nodes that the pod may have: karpenter.sh/capacity-type in (spot)`, refusal.Detail)
}

// Constraints, functions and conditions that are nil restrict nothing, alone or beside others.
func TestNilConstraints(t *testing.T) {
	safe := requirements.MustParse("karpenter.sh/capacity-type=on-demand")
	for name, c := range map[string]struct {
		constraint scheduling.Constraint
		want       string
	}{
		"nil":           {nil, "anything"},
		"named nil":     {constraint.Named("none", nil), "anything"},
		"nil function":  {constraint.Func(nil), "anything"},
		"named nothing": {constraint.Named("none", constraint.Func(nil)), "anything"},
		"for all pods":  {constraint.Require(nil, safe), safe.String()},
	} {
		o := scheduling.Options{Constraints: []scheduling.Constraint{nil, c.constraint, nil}}
		left, refusal := o.Narrowed(pod("a"), requirements.AnyOf(requirements.Set{}))
		require.Nil(t, refusal, name)
		want := requirements.AnyOf(requirements.Set{})
		if c.want != "anything" {
			want = requirements.AnyOf(requirements.MustParse(c.want))
		}
		assert.True(t, want.Equal(left), name)
		s := scheduling.Snapshot{Pods: []*corev1.Pod{pod("a")}, Pools: []scheduling.Pool{pool("default")}}
		_, err := scheduling.Compile(s, &o)
		require.NoError(t, err)
		_, err = whatif.Compile(s, &whatif.Options{Constraints: o.Constraints})
		require.NoError(t, err)
	}
}

// A price of preferences that cannot be meant is an error. 0 and an infinite price can.
func TestPreferencePriceIsChecked(t *testing.T) {
	for price, ok := range map[float64]bool{0: true, 0.5: true, math.Inf(1): true, -1: false, -1e-9: false, math.Inf(-1): false, math.NaN(): false} {
		_, err := scheduling.Compile(scheduling.Snapshot{}, &scheduling.Options{PreferencePrice: &price})
		assert.Equal(t, ok, err == nil, price)
		_, err = whatif.Compile(scheduling.Snapshot{}, &whatif.Options{PreferencePrice: &price})
		assert.Equal(t, ok, err == nil, price)
		if !ok {
			assert.ErrorContains(t, err, "scheduling: Options.PreferencePrice is ")
		}
	}
}

// The zero value of alternatives has no nodes, so a constraint that answers it refuses the pod.
func TestAConstraintWithoutAlternatives(t *testing.T) {
	none := constraint.Func(func(*corev1.Pod, requirements.Alternatives) (requirements.Alternatives, *scheduling.Reason) {
		return requirements.Alternatives{}, nil
	})
	s := scheduling.Snapshot{Pods: []*corev1.Pod{pod("web-0")}, Pools: []scheduling.Pool{pool("default")}}
	p, err := scheduling.Compile(s, &scheduling.Options{Constraints: []scheduling.Constraint{none}})
	require.NoError(t, err)
	require.NotNil(t, p.Classes[0].Refusal)
	require.Equal(t, scheduling.StagePod, p.Classes[0].Refusal.Stage)
}

// A refusal names what asks for the labels that no node has, unless it is the manifest. If several
// rules each suffice, it names the first of them.
func TestReasonsNameWhatAsks(t *testing.T) {
	rule := func(name, nodes string) scheduling.Constraint {
		return constraint.Named(name, constraint.Require(nil, requirements.MustParse(nodes)))
	}
	selects := func(labels map[string]string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.NodeSelector = labels }
	}
	reach := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk"}}
	reach.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "lic", Operator: corev1.NodeSelectorOpIn, Values: []string{"db2"}}},
	}}}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: pod("a").Namespace, Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "disk"}}
	stored := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	}
	const none = "it requires lic in (db2), a label that nothing in the pool has"
	const db2 = "lic in (db2)"
	within := func(*corev1.Pod) requirements.Set { return requirements.MustParse(db2) }
	for name, c := range map[string]struct {
		edit    func(*corev1.Pod)
		options scheduling.Options
		want    string
	}{
		"the manifest":                {selects(map[string]string{"lic": "db2"}), scheduling.Options{}, none},
		"a constraint":                {nil, scheduling.Options{Constraints: []scheduling.Constraint{rule("licences", db2)}}, none + `; constraint "licences" requires lic in (db2)`},
		"both":                        {selects(map[string]string{"lic": "db2"}), scheduling.Options{Constraints: []scheduling.Constraint{rule("licences", db2)}}, none},
		"each of two constraints":     {nil, scheduling.Options{Constraints: []scheduling.Constraint{rule("a", db2), rule("b", db2)}}, none + `; constraint "a" requires lic in (db2)`},
		"two constraints together":    {nil, scheduling.Options{Constraints: []scheduling.Constraint{rule("a", "lic in (db2,x)"), rule("b", "lic in (db2,y)")}}, none + `; constraint "a" requires lic in (db2,x); constraint "b" requires lic in (db2,y)`},
		"one of two constraints":      {nil, scheduling.Options{Constraints: []scheduling.Constraint{rule("spot", "karpenter.sh/capacity-type=spot"), rule("b", db2)}}, none + `; constraint "b" requires lic in (db2)`},
		"a choice of the caller":      {nil, scheduling.Options{Within: within}, none + "; the caller's choice of nodes requires lic in (db2)"},
		"volumes":                     {stored, scheduling.Options{}, none + "; its volumes require lic in (db2)"},
		"two that contradict":         {nil, scheduling.Options{Constraints: []scheduling.Constraint{rule("a", db2), rule("b", "lic in (x)")}}, `constraint "b" allows nodes with lic in (x), but the pod requires lic in (db2); constraint "a" requires lic in (db2)`},
		"a constraint and volumes":    {stored, scheduling.Options{Constraints: []scheduling.Constraint{rule("a", "lic in (x)")}}, `its volumes and its requirements on nodes contradict each other; constraint "a" requires lic in (x)`},
		"the manifest and volumes":    {func(p *corev1.Pod) { stored(p); selects(map[string]string{"lic": "x"})(p) }, scheduling.Options{Constraints: []scheduling.Constraint{rule("spot", "karpenter.sh/capacity-type=spot")}}, "its volumes and its requirements on nodes contradict each other"},
		"a constraint and a choice":   {nil, scheduling.Options{Within: within, Constraints: []scheduling.Constraint{rule("a", "lic in (x)")}}, `its requirements on nodes contradict each other; constraint "a" requires lic in (x); the caller's choice of nodes requires lic in (db2)`},
		"a constraint without a name": {nil, scheduling.Options{Constraints: []scheduling.Constraint{constraint.Require(nil, requirements.MustParse(db2))}}, none + "; a constraint of the caller requires lic in (db2)"},
		"one that narrows its argument": {nil, scheduling.Options{Constraints: []scheduling.Constraint{rule("spot", "karpenter.sh/capacity-type=spot"), constraint.Named("b", constraint.Func(func(_ *corev1.Pod, required requirements.Alternatives) (requirements.Alternatives, *scheduling.Reason) {
			return required.Intersect(requirements.AnyOf(requirements.MustParse(db2))), nil
		}))}}, none + `; constraint "b" requires lic in (db2)`},
	} {
		edit := c.edit
		if edit == nil {
			edit = func(*corev1.Pod) {}
		}
		s := scheduling.Snapshot{Pods: []*corev1.Pod{pod("a", edit)}, Pools: []scheduling.Pool{pool("default")}, PersistentVolumes: []*corev1.PersistentVolume{reach}, PersistentVolumeClaims: []*corev1.PersistentVolumeClaim{claim}}
		p, err := scheduling.Compile(s, &c.options)
		require.NoError(t, err)
		reasons := solve(p, nothing).Unplaced()[0].Reasons()
		require.Len(t, reasons, 1, name)
		assert.Equal(t, c.want, reasons[0].Detail, name)
	}
}
