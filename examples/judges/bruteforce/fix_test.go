package bruteforce_test

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// tryFixes makes the change of each fix, to all pods of the workloads that it changes, and plans
// again: as many pods of each class must be placed as before, and as many more of its classes as it
// says. Which pods of a class have the places does not matter. What the fix costs is compared with
// what it says.
func (out *outcome) tryFixes(ctx context.Context, w way, p *plan.Plan) {
	class, had := map[string]int{}, map[int]int{}
	for i, c := range p.Problem.Classes {
		for _, pod := range c.Pods {
			class[pod.Name] = i
		}
	}
	for _, b := range p.Bindings() {
		had[class[b.Pod.Name]]++
	}
	for r := range p.Refusals(ctx) {
		for i := range r.Fixes {
			f := &r.Fixes[i]
			again, err := plan.Make(ctx, changed(w.snapshot, f), w.options)
			if err != nil {
				out.err = fmt.Errorf("%s: %w", f.Text, err)
				return
			}
			out.fixes++
			want, more := maps.Clone(had), 0
			for _, b := range again.Bindings() {
				i := class[b.Pod.Name]
				if want[i]--; want[i] < 0 && slices.Contains(f.Classes, i) {
					more++
				}
			}
			maps.DeleteFunc(want, func(_, n int) bool { return n <= 0 })
			if len(want) > 0 || more < f.Placed {
				out.wrong = append(out.wrong, fmt.Sprintf("with the fix %q %d of %d pods get places, and there is no place for so many others, by class: %v", f.Text, more, f.Placed, want))
			} else if more := again.Cost().Dollars() - p.Cost().Dollars(); more > f.PerHour+1e-6 {
				out.dear = append(out.dear, fmt.Sprintf("%s: adds $%.4f, not $%.4f", f.Text, more, f.PerHour))
			}
		}
	}
}

// changed is the snapshot with the change that the fields of a fix say.
func changed(s scheduling.Snapshot, f *plan.Fix) scheduling.Snapshot {
	var taints []corev1.Taint
	s.Pools = slices.Clone(s.Pools)
	for i := range s.Pools {
		if p := &s.Pools[i]; p.Name == f.Pool {
			taints = p.Taints
			changePool(p, f)
		}
	}
	s.Pods = slices.Clone(s.Pods)
	for i, pod := range s.Pods {
		if slices.ContainsFunc(f.Pods, func(x *corev1.Pod) bool { return plan.WorkloadOf(x) == plan.WorkloadOf(pod) }) && pod.Spec.NodeName == "" {
			s.Pods[i] = pod.DeepCopy()
			changePod(&s.Pods[i].Spec, f, taints)
		}
	}
	return s
}

func changePool(p *scheduling.Pool, f *plan.Fix) {
	switch f.Kind {
	case plan.AllowType:
		var all []requirements.Requirement
		for r := range p.Requirements.All() {
			if values := f.Allow[r.Key()]; len(values) > 0 {
				r = r.Union(requirements.In(r.Key(), values...))
			}
			all = append(all, r)
		}
		p.Requirements = requirements.MustOf(all...)
	case plan.LabelPool:
		labels := map[string]string{f.Key: f.Value}
		for key, value := range p.Labels {
			if key != f.Key {
				labels[key] = value
			}
		}
		p.Labels = labels
	case plan.RaiseLimit:
		p.Limits = p.Limits.DeepCopy()
		p.Limits[corev1.ResourceName(f.Key)] = resource.MustParse(f.Value)
	default: // it changes pods
	}
}

func changePod(spec *corev1.PodSpec, f *plan.Fix, taints []corev1.Taint) {
	switch f.Kind {
	case plan.TolerateTaints:
		for _, t := range taints {
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
	case plan.RequestLess:
		for name, q := range f.Requests {
			if requests := spec.Containers[0].Resources.Requests; q.Cmp(requests[name]) < 0 {
				requests[name] = q
			}
		}
	case plan.DropSelector:
		delete(spec.NodeSelector, f.Key)
		if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
			return
		}
		required := &spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		var left []corev1.NodeSelectorTerm
		for _, t := range (*required).NodeSelectorTerms {
			t.MatchExpressions = slices.DeleteFunc(t.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool { return e.Key == f.Key })
			if len(t.MatchExpressions)+len(t.MatchFields) > 0 {
				left = append(left, t)
			}
		}
		if *required = (&corev1.NodeSelector{NodeSelectorTerms: left}); len(left) == 0 {
			*required = nil
		}
	case plan.PreferOnly:
		preferOnly(spec, f)
	default: // it changes a pool
	}
}

func preferOnly(spec *corev1.PodSpec, f *plan.Fix) {
	move := func(required *[]corev1.PodAffinityTerm, preferred *[]corev1.WeightedPodAffinityTerm) {
		*preferred = append(*preferred, corev1.WeightedPodAffinityTerm{Weight: 100, PodAffinityTerm: (*required)[f.Index]})
		*required = slices.Delete(*required, f.Index, f.Index+1)
	}
	switch f.Constraint {
	case plan.TopologySpread:
		c := &spec.TopologySpreadConstraints[f.Index]
		c.WhenUnsatisfiable, c.MinDomains = corev1.ScheduleAnyway, nil
	case plan.PodAffinity:
		a := spec.Affinity.PodAffinity
		move(&a.RequiredDuringSchedulingIgnoredDuringExecution, &a.PreferredDuringSchedulingIgnoredDuringExecution)
	case plan.PodAntiAffinity:
		a := spec.Affinity.PodAntiAffinity
		move(&a.RequiredDuringSchedulingIgnoredDuringExecution, &a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}
