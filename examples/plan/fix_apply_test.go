package plan_test

import (
	"cmp"
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
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/capacityquota"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// applied makes the change of a fix in a copy of a snapshot. It reads the fields of the fix, and no
// text.
func applied(s scheduling.Snapshot, f *plan.Fix) scheduling.Snapshot {
	var taints []corev1.Taint
	s.Pools = slices.Clone(s.Pools)
	for i := range s.Pools {
		p := &s.Pools[i]
		if p.Name != f.Pool {
			continue
		}
		taints = p.Taints
		switch f.Kind {
		case plan.AllowType:
			for key, values := range f.Allow {
				wider := p.Requirements.Get(key).Union(requirements.In(key, values...))
				p.Requirements, _ = p.Requirements.Without(requirements.KeysOf(key)).Intersect(requirements.MustOf(wider))
			}
		case plan.LabelPool:
			p.Labels = maps.Clone(p.Labels)
			if p.Labels == nil {
				p.Labels = map[string]string{}
			}
			p.Labels[f.Key] = f.Value
		case plan.RaiseLimit:
			p.Limits = maps.Clone(p.Limits)
			p.Limits[corev1.ResourceName(f.Key)] = resource.MustParse(f.Value)
		}
	}
	s.Quotas = slices.Clone(s.Quotas)
	for i := range s.Quotas {
		if q := &s.Quotas[i]; f.Kind == plan.RaiseQuota && q.Name == f.Quota {
			q.Limits = maps.Clone(q.Limits)
			q.Limits[corev1.ResourceName(f.Key)] = resource.MustParse(f.Value)
		}
	}
	change := map[string]bool{}
	for _, pod := range f.Pods {
		change[pod.Namespace+"/"+pod.Name] = true
	}
	s.Pods = slices.Clone(s.Pods)
	for i, pod := range s.Pods {
		if change[pod.Namespace+"/"+pod.Name] {
			s.Pods[i] = pod.DeepCopy()
			applyToPod(&s.Pods[i].Spec, f, taints)
		}
	}
	return s
}

func applyToPod(spec *corev1.PodSpec, f *plan.Fix, taints []corev1.Taint) {
	switch f.Kind {
	case plan.TolerateTaints:
		for _, t := range taints {
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
	case plan.RequestLess:
		for name, q := range f.Requests {
			for _, list := range []corev1.ResourceList{spec.Containers[0].Resources.Requests, spec.Containers[0].Resources.Limits} {
				if _, has := list[name]; has {
					list[name] = q
				}
			}
		}
	case plan.DropSelector:
		named := func(key string) bool { return requirements.AgentAliases().Key(key) == f.Key }
		maps.DeleteFunc(spec.NodeSelector, func(key, _ string) bool { return named(key) })
		if a := spec.Affinity; a != nil && a.NodeAffinity != nil {
			var terms []corev1.NodeSelectorTerm
			for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
				t.MatchExpressions = slices.DeleteFunc(t.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool { return named(e.Key) })
				if len(t.MatchExpressions) > 0 {
					terms = append(terms, t)
				}
			}
			a.NodeAffinity = nil
			if len(terms) > 0 {
				a.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}
			}
		}
	case plan.PreferOnly:
		prefer := func(required *[]corev1.PodAffinityTerm, preferred *[]corev1.WeightedPodAffinityTerm) {
			*preferred = append(*preferred, corev1.WeightedPodAffinityTerm{Weight: 100, PodAffinityTerm: (*required)[f.Index]})
			*required = slices.Delete(*required, f.Index, f.Index+1)
		}
		switch f.Constraint {
		case plan.TopologySpread:
			c := &spec.TopologySpreadConstraints[f.Index]
			c.WhenUnsatisfiable, c.MinDomains = corev1.ScheduleAnyway, nil
		case plan.PodAffinity:
			prefer(&spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, &spec.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		case plan.PodAntiAffinity:
			prefer(&spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, &spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		}
	}
}

// drawRefusals draws a pool, perhaps a quota, and workloads. Some ask for what the pool does not
// have, or for what others forbid.
func drawRefusals(seed uint64) scheduling.Snapshot {
	r := rand.New(rand.NewPCG(seed, 20))
	maybe := func() bool { return r.IntN(4) == 0 }
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	capacity := func(cpu string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("20")}
	}
	p := scheduling.Pool{NodePool: nodepool.New("default"), Types: []instancetypes.InstanceType{
		instancetypes.New("m-4", nil, capacity("4"), instancetypes.Offer("a", "on-demand", 0.2), instancetypes.Offer("b", "on-demand", 0.2)),
		instancetypes.New("m-8", nil, capacity("8"), instancetypes.Offer("a", "on-demand", 0.5)),
	}}
	if maybe() {
		p.Taints = []corev1.Taint{{Key: "batch", Value: "yes", Effect: corev1.TaintEffectNoSchedule}, {Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}}
	}
	if maybe() {
		p.Requirements = requirements.MustOf(requirements.In(corev1.LabelInstanceTypeStable, "m-4"))
	}
	if maybe() {
		p.Limits = corev1.ResourceList{corev1.ResourceName(one("cpu", "nodes")): resource.MustParse(one("1", "4"))}
	}
	s := scheduling.Snapshot{Pools: []scheduling.Pool{p}}
	if maybe() {
		s.Quotas = []capacityquota.Quota{{Name: "all", Limits: corev1.ResourceList{corev1.ResourceName(one("cpu", "nodes")): resource.MustParse(one("1", "4"))}}}
	}
	selector := func(app string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	}
	for w := range 1 + r.IntN(3) {
		app, n := fmt.Sprint("app-", w), 1+r.IntN(4)
		owner, spec := one("", "set"), corev1.PodSpec{Affinity: &corev1.Affinity{}}
		request := corev1.ResourceList{"cpu": resource.MustParse(one("500m", "1", "3", "6", "9500m")), "memory": resource.MustParse(one("1Gi", "1500Mi", "20Gi"))}
		spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: request}}}
		switch r.IntN(5) {
		case 0:
			spec.NodeSelector = map[string]string{one("team", corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone): one("a", "z")}
		case 1:
			spec.Affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: one("team", corev1.LabelTopologyZone), Operator: corev1.NodeSelectorOpIn, Values: []string{one("z", "y")}}},
			}}}}
		}
		term := func() corev1.PodAffinityTerm {
			return corev1.PodAffinityTerm{TopologyKey: one(corev1.LabelTopologyZone, corev1.LabelHostname), LabelSelector: selector(fmt.Sprint("app-", r.IntN(3)))}
		}
		for range r.IntN(3) {
			when := corev1.UnsatisfiableConstraintAction(one("DoNotSchedule", "ScheduleAnyway"))
			c := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: one(corev1.LabelTopologyZone, corev1.LabelHostname), WhenUnsatisfiable: when, LabelSelector: selector(app)}
			if domains := int32(3); when == corev1.DoNotSchedule && maybe() {
				c.MinDomains = &domains
			}
			spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, c)
		}
		near, away := &corev1.PodAffinity{}, &corev1.PodAntiAffinity{}
		for range r.IntN(3) {
			if maybe() {
				near.RequiredDuringSchedulingIgnoredDuringExecution = append(near.RequiredDuringSchedulingIgnoredDuringExecution, term())
			} else {
				away.RequiredDuringSchedulingIgnoredDuringExecution = append(away.RequiredDuringSchedulingIgnoredDuringExecution, term())
			}
		}
		spec.Affinity.PodAffinity, spec.Affinity.PodAntiAffinity = near, away
		for i := range n {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("%s-%d", app, i), Labels: map[string]string{"app": app}}, Spec: *spec.DeepCopy()}
			if owner != "" {
				yes := true
				pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app, UID: "u", Controller: &yes}}
			}
			s.Pods = append(s.Pods, pod)
		}
	}
	return s
}

// A program applies every kind of fix from its fields alone: planned again, the pods of its classes
// have a place, and no other pod has lost one.
func TestFixesAreApplied(t *testing.T) {
	kinds := map[string]int{}
	tried, harmful := 0, 0
	for seed := range uint64(600) {
		s := drawRefusals(seed)
		p, err := plan.Make(t.Context(), s, nil)
		require.NoError(t, err)
		for r := range p.Refusals(t.Context()) {
			for i := range r.Fixes {
				f := &r.Fixes[i]
				kinds[cmp.Or(string(f.Constraint), string(f.Kind))]++
				assert.Equal(t, f.Kind == plan.PreferOnly, f.Constraint != "", f.Text)
				again, err := plan.Make(t.Context(), applied(s, f), nil)
				require.NoError(t, err)
				placed := map[*scheduling.Class]int{}
				for class, c := range p.Problem.Classes {
					for _, b := range again.Bindings() {
						if slices.ContainsFunc(c.Pods, func(pod *corev1.Pod) bool { return pod.Name == b.Pod.Name }) {
							placed[c]++
						}
					}
					if slices.Contains(f.Classes, class) {
						assert.Equal(t, len(c.Pods), placed[c], "seed %d: %s: %s", seed, f.Text, c.Name())
					}
				}
				tried++
				if len(again.Bindings()) < len(p.Bindings()) || slices.ContainsFunc(p.Bindings(), func(b scheduling.Binding) bool {
					return !slices.ContainsFunc(again.Bindings(), func(x scheduling.Binding) bool { return x.Pod.Name == b.Pod.Name })
				}) {
					harmful++
				}
			}
		}
	}
	assert.Zero(t, harmful, "of %d", tried)
	for _, kind := range []string{
		string(plan.TolerateTaints), string(plan.AllowType), string(plan.LabelPool), string(plan.RaiseLimit), string(plan.RaiseQuota), string(plan.RequestLess),
		string(plan.DropSelector), string(plan.TopologySpread), string(plan.PodAffinity), string(plan.PodAntiAffinity),
	} {
		assert.Positive(t, kinds[kind], kind)
	}
}

// Of several terms over the same topology key, the fix names the one that is in the way. It is
// found, though the first one has the same key.
func TestFixesNameTheTerm(t *testing.T) {
	s := drawRefusals(0)
	loud, quiet := s.Pods[0].DeepCopy(), s.Pods[0].DeepCopy()
	loud.Name, loud.Labels, loud.Spec = "loud", map[string]string{"app": "loud"}, corev1.PodSpec{Containers: loud.Spec.Containers}
	quiet.Name, quiet.Labels, quiet.Spec = "quiet", map[string]string{"app": "quiet"}, *loud.Spec.DeepCopy()
	for _, pod := range []*corev1.Pod{loud, quiet} {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
	}
	loud.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "a"}
	quiet.Spec.NodeSelector = loud.Spec.NodeSelector
	first := int32(10)
	loud.Spec.Priority = &first
	away := &corev1.PodAntiAffinity{}
	for _, app := range []string{"nobody", "loud"} {
		away.RequiredDuringSchedulingIgnoredDuringExecution = append(away.RequiredDuringSchedulingIgnoredDuringExecution, corev1.PodAffinityTerm{
			TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		})
	}
	quiet.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: away}
	s.Pods = []*corev1.Pod{loud, quiet}
	s.Pools[0].NodePool = nodepool.New("default")
	p, err := plan.Make(t.Context(), s, nil)
	require.NoError(t, err)
	require.Len(t, p.Unplaced(), 1)
	f := p.FirstFixes(false)[0]
	assert.Equal(t, [2]any{plan.PodAntiAffinity, 1}, [2]any{f.Constraint, f.Index})
	assert.Equal(t, "would fit if its anti-affinity to app=loud by topology.kubernetes.io/zone were preferred", f.What)
	require.Len(t, f.Pods, 1)
	assert.Equal(t, "quiet", f.Pods[0].Name)
	again, err := plan.Make(t.Context(), applied(s, &f), nil)
	require.NoError(t, err)
	assert.Empty(t, again.Unplaced())
}
