package plan

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Apply returns the snapshot with the change made. The planner tries a fix with this method, too. It
// modifies neither s nor its objects: what changes is copied. Pools, quotas and pods are found by
// their names; those that s does not have are left out. A fix without a Kind changes nothing.
func (f *Fix) Apply(s scheduling.Snapshot) scheduling.Snapshot {
	var taints []corev1.Taint
	s = editPool(s, f.Pool, func(p *scheduling.Pool) {
		taints = append(taints, p.Taints...)
		f.applyToPool(p)
	})
	if f.Setting != "" { // it limits all pools
		for _, p := range s.Pools {
			s = editPool(s, p.Name, func(p *scheduling.Pool) {
				if q, err := resource.ParseQuantity(f.Value); err == nil && p.MaxNodes > 0 {
					p.MaxNodes = max(p.MaxNodes, q.Value())
				}
			})
		}
	}
	if f.Kind == RaiseQuota {
		s = editQuota(s, f.Quota, func(l corev1.ResourceList) { setQuantity(l, corev1.ResourceName(f.Key), f.Value) })
	}
	if len(f.Pods) == 0 {
		return s
	}
	change := map[types.NamespacedName]bool{}
	for _, pod := range f.Pods {
		change[nameOf(pod)] = true
	}
	s.Pods = slices.Clone(s.Pods)
	for i, pod := range s.Pods {
		if change[nameOf(pod)] {
			s.Pods[i] = pod.DeepCopy()
			f.applyToPod(&s.Pods[i].Spec, taints)
		}
	}
	return s
}

// edit returns the change of pods with the pods to change: all of the workloads whose templates the
// user changes. These are the workloads of the refused pods, or if wide is true, of all pods of the
// classes; of other pods, those of their class. Its text says how many pods are changed beside
// those that it names.
func (t *trials) edit(c change, classes []int, wide bool) change {
	named, workloads, what := map[types.NamespacedName]bool{}, map[string]bool{}, "placed pod"
	add := func(pods []*corev1.Pod) {
		for _, pod := range pods {
			workloads[WorkloadOf(pod)] = true
		}
	}
	for _, u := range t.refused {
		if c.others != nil || !slices.Contains(classes, u.Class) {
			continue
		}
		if add(u.Pods); wide {
			add(t.p.Problem.Classes[u.Class].Pods)
		}
		for _, pod := range u.Pods {
			named[nameOf(pod)] = true
		}
	}
	if c.others != nil {
		add(c.others.Pods)
		named[nameOf(c.others.Pods[0])], what = true, "pod"
	}
	more := 0
	for _, of := range t.p.Problem.Classes {
		for _, pod := range of.Pods {
			if workloads[WorkloadOf(pod)] {
				c.of.Pods = append(c.of.Pods, pod)
				if !named[nameOf(pod)] {
					more++
				}
			}
		}
	}
	switch more {
	case 0:
	case 1:
		c.text += fmt.Sprintf(" (also for 1 %s like it)", what)
	default:
		c.text += fmt.Sprintf(" (also for %d %ss like it)", more, what)
	}
	return c
}

func (f *Fix) applyToPool(p *scheduling.Pool) {
	switch f.Kind {
	case AllowType:
		var b requirements.Builder
		for r := range p.Requirements.All() {
			if values := f.Allow[r.Key()]; len(values) > 0 {
				r = r.Union(requirements.In(r.Key(), values...))
			}
			b.Add(r)
		}
		if wider, err := b.Set(); err == nil {
			p.Requirements = wider
		}
	case LabelPool:
		p.Labels = maps.Clone(p.Labels)
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		p.Labels[f.Key] = f.Value
		if labelled, err := p.Requirements.Without(requirements.KeysOf(f.Key)).Intersect(requirements.FromLabels(map[string]string{f.Key: f.Value})); err == nil {
			p.Requirements = labelled
		}
	case RaiseLimit:
		p.Limits = maps.Clone(p.Limits)
		setQuantity(p.Limits, corev1.ResourceName(f.Key), f.Value)
	case TolerateTaints, RaiseQuota, RaiseSetting, RequestLess, DropSelector, PreferOnly: // no change of a pool
	}
}

// setQuantity replaces the quantity of a listed resource.
func setQuantity(list corev1.ResourceList, name corev1.ResourceName, value string) {
	if q, err := resource.ParseQuantity(value); err == nil {
		if _, ok := list[name]; ok {
			list[name] = q
		}
	}
}

// lower lowers the quantity of a listed resource. Pods of one workload may request different
// amounts, for example after their template was changed.
func lower(list corev1.ResourceList, name corev1.ResourceName, q resource.Quantity) {
	if have, ok := list[name]; ok && have.Cmp(q) > 0 {
		list[name] = q
	}
}

func (f *Fix) applyToPod(spec *corev1.PodSpec, taints []corev1.Taint) {
	switch f.Kind {
	case TolerateTaints:
		for _, t := range taints {
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: t.Effect})
		}
	case RequestLess:
		if len(spec.Containers) != 1 || len(spec.InitContainers) > 0 {
			return // which of several containers should shrink is for the user to decide
		}
		for name, q := range f.Requests {
			lower(spec.Containers[0].Resources.Requests, name, q)
			lower(spec.Containers[0].Resources.Limits, name, q)
		}
	case DropSelector:
		forget(spec, f.Key)
	case PreferOnly:
		switch a := spec.Affinity; {
		case f.Constraint == TopologySpread && f.Index < len(spec.TopologySpreadConstraints):
			if it := &spec.TopologySpreadConstraints[f.Index]; it.TopologyKey == f.Key {
				it.WhenUnsatisfiable, it.MinDomains = corev1.ScheduleAnyway, nil // an API server would refuse both together
			}
		case f.Constraint == PodAffinity && a != nil && a.PodAffinity != nil:
			f.prefer(&a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, &a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		case f.Constraint == PodAntiAffinity && a != nil && a.PodAntiAffinity != nil:
			f.prefer(&a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, &a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		}
	case AllowType, LabelPool, RaiseLimit, RaiseSetting, RaiseQuota: // no change of pods
	}
}

// prefer moves the required term to the preferred terms.
func (f *Fix) prefer(hard *[]corev1.PodAffinityTerm, soft *[]corev1.WeightedPodAffinityTerm) {
	if i := f.Index; i < len(*hard) && (*hard)[i].TopologyKey == f.Key {
		*soft = append(*soft, corev1.WeightedPodAffinityTerm{Weight: 100, PodAffinityTerm: (*hard)[i]})
		*hard = slices.Delete(*hard, i, i+1)
	}
}

// forget removes the label from the pod's requirements of nodes. A term that requires nothing else
// is removed with it, because an empty term matches no node; without terms there is no requirement.
func forget(spec *corev1.PodSpec, key string) {
	is := func(k string) bool { return requirements.AgentAliases().Key(k) == key }
	maps.DeleteFunc(spec.NodeSelector, func(k, _ string) bool { return is(k) })
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return
	}
	required := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	var kept []corev1.NodeSelectorTerm
	for _, t := range required.NodeSelectorTerms {
		had := len(t.MatchExpressions)
		t.MatchExpressions = slices.DeleteFunc(t.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool { return is(e.Key) })
		if left := len(t.MatchExpressions); left == had || left+len(t.MatchFields) > 0 {
			kept = append(kept, t)
		}
	}
	if len(kept) == 0 && len(required.NodeSelectorTerms) > 0 {
		spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
		return
	}
	required.NodeSelectorTerms = kept
}

func editPool(s scheduling.Snapshot, name string, how func(*scheduling.Pool)) scheduling.Snapshot {
	s.Pools = slices.Clone(s.Pools)
	for i := range s.Pools {
		if s.Pools[i].Name == name {
			how(&s.Pools[i])
		}
	}
	return s
}

func editQuota(s scheduling.Snapshot, name string, how func(corev1.ResourceList)) scheduling.Snapshot {
	s.Quotas = slices.Clone(s.Quotas)
	for i := range s.Quotas {
		if q := &s.Quotas[i]; q.Name == name {
			q.Limits = maps.Clone(q.Limits)
			how(q.Limits)
		}
	}
	return s
}
