// Package quota counts pods against ResourceQuotas as an API server does. No plan counts them: a
// quota refuses a pod before any scheduler sees it.
package quota

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Admitted returns a pod as an API server stores it before it is counted: with the requests that
// follow from its limits, with what LimitRanges add, and with the overhead of its RuntimeClass. Only
// what quotas count is in the result. The LimitRanges, RuntimeClasses and PriorityClasses are those
// of s, whose pods do not matter. A pod that an API server has stored does not change.
func Admitted(p *corev1.Pod, s scheduling.Snapshot) *corev1.Pod {
	if p.UID != "" {
		return p
	}
	only := &corev1.Pod{ObjectMeta: p.ObjectMeta, Spec: corev1.PodSpec{
		Containers: p.Spec.Containers, InitContainers: p.Spec.InitContainers, Resources: p.Spec.Resources, Overhead: p.Spec.Overhead,
		RuntimeClassName: p.Spec.RuntimeClassName, PriorityClassName: p.Spec.PriorityClassName, Priority: p.Spec.Priority,
	}}
	only.Name, only.GenerateName, only.OwnerReferences, only.DeletionTimestamp = "pod", "", nil, nil
	if p.Spec.NodeName != "" { // LimitRanges may be younger than the pod
		only.UID = "running"
	}
	out := only
	alone := scheduling.Snapshot{Pods: []*corev1.Pod{only}, LimitRanges: s.LimitRanges, RuntimeClasses: s.RuntimeClasses, PriorityClasses: s.PriorityClasses}
	if problem, err := scheduling.Compile(alone, nil); err == nil && len(problem.Classes) == 1 {
		admitted := *problem.Classes[0].Template
		out = &admitted
	}
	out.Spec.Affinity, out.Spec.ActiveDeadlineSeconds = p.Spec.Affinity, p.Spec.ActiveDeadlineSeconds
	out.Status = p.Status
	return out
}

// Usage is what one pod takes of a quota, by the names that quotas have.
type Usage map[corev1.ResourceName]int64

// Of returns what an admitted pod takes. Pods that have ended are counted by count/pods alone.
// Overhead is counted with every request, and with limits that the pod has.
func Of(p *corev1.Pod) Usage {
	out := Usage{"count/pods": 1}
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return out
	}
	out[corev1.ResourcePods] = 1
	for name, q := range resources.OfPod(p, false) {
		n := resources.Request(name, q)
		switch {
		case name == corev1.ResourcePods:
		case isCompute(name) || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
			out[name], out["requests."+name] = n, n
		case strings.Contains(string(name), "/"): // an extended resource
			out["requests."+name] = n
		}
	}
	for name, q := range limits(p) {
		if isCompute(name) {
			out["limits."+name] = resources.Request(name, q)
		}
	}
	return out
}

func isCompute(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage
}

// limits adds up limits by the rules of requests.
func limits(p *corev1.Pod) corev1.ResourceList {
	asRequests := func(list []corev1.Container) []corev1.Container {
		list = slices.Clone(list)
		for i := range list {
			list[i].Resources = corev1.ResourceRequirements{Requests: list[i].Resources.Limits}
		}
		return list
	}
	all := corev1.Pod{Spec: corev1.PodSpec{Containers: asRequests(p.Spec.Containers), InitContainers: asRequests(p.Spec.InitContainers)}}
	if r := p.Spec.Resources; r != nil {
		all.Spec.Resources = &corev1.ResourceRequirements{Requests: r.Limits}
	}
	limited := resources.OfPod(&all, false)
	all.Spec.Overhead = corev1.ResourceList{}
	for name, q := range p.Spec.Overhead {
		if have, ok := limited[name]; ok && !have.IsZero() {
			all.Spec.Overhead[name] = q
		}
	}
	return resources.OfPod(&all, false)
}

// Lacks returns those of the names of a quota that each container must set, and that the admitted
// pod does not. The API server refuses such a pod, whatever the quota allows.
func Lacks(p *corev1.Pod, hard corev1.ResourceList) []corev1.ResourceName {
	var out []corev1.ResourceName
	for _, name := range slices.Sorted(maps.Keys(hard)) {
		of, isLimit := strings.CutPrefix(string(name), "limits.")
		resource := corev1.ResourceName(strings.TrimPrefix(of, "requests."))
		if resource != corev1.ResourceCPU && resource != corev1.ResourceMemory {
			continue
		}
		sets := func(r *corev1.ResourceRequirements) bool {
			list := r.Requests
			if isLimit {
				list = r.Limits
			}
			_, ok := list[resource]
			return ok
		}
		if p.Spec.Resources != nil && sets(p.Spec.Resources) {
			continue
		}
		for i := range p.Spec.Containers {
			if !sets(&p.Spec.Containers[i].Resources) {
				out = append(out, name)
				break
			}
		}
		for i := range p.Spec.InitContainers {
			if !sets(&p.Spec.InitContainers[i].Resources) && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// Covers reports whether a quota counts an admitted pod: whether the pod is in each of its scopes. A
// quota with an unknown scope covers none.
func Covers(s *corev1.ResourceQuotaSpec, p *corev1.Pod) bool {
	return !slices.ContainsFunc(terms(s), func(r corev1.ScopedResourceSelectorRequirement) bool {
		in, known := scope(r, p)
		return !in || !known
	})
}

// UnknownScopes returns the scopes of a quota that this package cannot read.
func UnknownScopes(s *corev1.ResourceQuotaSpec) []string {
	var out []string
	for _, r := range terms(s) {
		if _, known := scope(r, &corev1.Pod{}); !known {
			out = append(out, string(r.ScopeName))
		}
	}
	return out
}

func terms(s *corev1.ResourceQuotaSpec) []corev1.ScopedResourceSelectorRequirement {
	var out []corev1.ScopedResourceSelectorRequirement
	for _, name := range s.Scopes {
		out = append(out, corev1.ScopedResourceSelectorRequirement{ScopeName: name, Operator: corev1.ScopeSelectorOpExists})
	}
	if s.ScopeSelector != nil {
		out = append(out, s.ScopeSelector.MatchExpressions...)
	}
	return out
}

func scope(r corev1.ScopedResourceSelectorRequirement, p *corev1.Pod) (in, known bool) {
	deadline := p.Spec.ActiveDeadlineSeconds != nil && *p.Spec.ActiveDeadlineSeconds >= 0
	switch r.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return deadline, true
	case corev1.ResourceQuotaScopeNotTerminating:
		return !deadline, true
	case corev1.ResourceQuotaScopeBestEffort:
		return bestEffort(p), true
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !bestEffort(p), true
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return crossesNamespaces(p.Spec.Affinity), true
	case corev1.ResourceQuotaScopeVolumeAttributesClass: // of claims
	case corev1.ResourceQuotaScopePriorityClass:
		class := p.Spec.PriorityClassName
		switch r.Operator {
		case corev1.ScopeSelectorOpIn:
			return class != "" && slices.Contains(r.Values, class), true
		case corev1.ScopeSelectorOpNotIn:
			return !slices.Contains(r.Values, class), true
		case corev1.ScopeSelectorOpExists:
			return class != "", true
		case corev1.ScopeSelectorOpDoesNotExist:
			return class == "", true
		}
	}
	return false, false
}

// bestEffort reports whether no part of the pod asks for cpu or memory.
func bestEffort(p *corev1.Pod) bool {
	asks := func(r *corev1.ResourceRequirements) bool {
		for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				if q := list[name]; q.Sign() > 0 {
					return true
				}
			}
		}
		return false
	}
	one := func(c corev1.Container) bool { return asks(&c.Resources) }
	return !slices.ContainsFunc(p.Spec.Containers, one) && !slices.ContainsFunc(p.Spec.InitContainers, one) && (p.Spec.Resources == nil || !asks(p.Spec.Resources))
}

func crossesNamespaces(a *corev1.Affinity) bool {
	crosses := func(t corev1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 || t.NamespaceSelector != nil }
	weighted := func(t corev1.WeightedPodAffinityTerm) bool { return crosses(t.PodAffinityTerm) }
	if a == nil {
		return false
	}
	if near := a.PodAffinity; near != nil && (slices.ContainsFunc(near.RequiredDuringSchedulingIgnoredDuringExecution, crosses) || slices.ContainsFunc(near.PreferredDuringSchedulingIgnoredDuringExecution, weighted)) {
		return true
	}
	apart := a.PodAntiAffinity
	return apart != nil && (slices.ContainsFunc(apart.RequiredDuringSchedulingIgnoredDuringExecution, crosses) || slices.ContainsFunc(apart.PreferredDuringSchedulingIgnoredDuringExecution, weighted))
}

// Add adds what n pods take. The sums stay within int64.
func (u Usage) Add(one Usage, n int) {
	for name, v := range one {
		if v > (math.MaxInt64-u[name])/int64(n) {
			u[name] = math.MaxInt64
		} else {
			u[name] += v * int64(n)
		}
	}
}

// Over returns what the usage exceeds, such as "requests.cpu 20.5 of 10". Both amounts have one unit.
// A quota refuses only pods that would take some of what is exceeded: fresh is what new pods take.
func (u Usage) Over(fresh Usage, hard corev1.ResourceList) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(hard)) {
		resource := corev1.ResourceName(strings.TrimPrefix(strings.TrimPrefix(string(name), "requests."), "limits."))
		if most := resources.Capacity(resource, hard[name]); u[name] > most && fresh[name] > 0 {
			has, of := amounts(resource, u[name], most)
			out = append(out, fmt.Sprintf("%s %s of %s", name, has, of))
		}
	}
	return out
}

// amounts writes two amounts of a resource in the unit that suits the second.
func amounts(name corev1.ResourceName, has, of int64) (string, string) {
	unit, suffix := int64(1), ""
	switch {
	case name == corev1.ResourceCPU:
		unit = 1000
	case name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		for _, s := range []resource.Quantity{resource.MustParse("1Ki"), resource.MustParse("1Mi"), resource.MustParse("1Gi"), resource.MustParse("1Ti")} {
			if of >= s.Value() {
				unit, suffix = s.Value(), strings.TrimPrefix(s.String(), "1")
			}
		}
	}
	in := func(n int64, digits int) string {
		text := strconv.FormatFloat(float64(n)/float64(unit), 'f', digits, 64)
		if strings.Contains(text, ".") {
			text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
		}
		return text + suffix
	}
	for digits := 3; ; digits++ {
		if a, b := in(has, digits), in(of, digits); a != b || digits > 12 {
			return a, b
		}
	}
}
