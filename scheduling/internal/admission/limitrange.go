package admission

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// limitItem is an item of a LimitRange, with the name of the object.
type limitItem struct {
	corev1.LimitRangeItem
	of string
}

// outOfRange says what of a pod, whose requests and limits are filled in, a LimitRange of its namespace forbids; empty for nothing. The rules
// are those of the Kubernetes documentation ("Limit Ranges"): a minimum needs a request, a maximum a limit, a ratio both.
func (c Cluster) outOfRange(pod *corev1.Pod) string {
	items := c.limits[cmp.Or(pod.Namespace, corev1.NamespaceDefault)]
	for _, item := range items {
		why := ""
		if item.Type == corev1.LimitTypePod {
			why = item.forbids(total(pod))
		}
		if item.Type == corev1.LimitTypeContainer {
			for _, k := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
				if text := item.forbids(k.Resources); text != "" && why == "" {
					why = fmt.Sprintf("container %s: %s", k.Name, text)
				}
			}
		}
		if why != "" {
			return fmt.Sprintf("LimitRange %s: %s", item.of, why)
		}
	}
	if len(items) == 0 {
		return ""
	}
	for _, k := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) { // a default limit may be below what is asked
		for _, name := range resources.Names(k.Resources.Limits) {
			if asked, limit := k.Resources.Requests[name], k.Resources.Limits[name]; compare(asked, limit) > 0 {
				return fmt.Sprintf("container %s asks for %s of %s, and its limit is %s, with the defaults of LimitRange %s", k.Name, &asked, name, &limit, items[0].of)
			}
		}
	}
	return ""
}

// forbids says which bound the resources break; empty for none.
func (i *limitItem) forbids(r corev1.ResourceRequirements) string {
	for _, name := range resources.Names(i.Min) {
		least := i.Min[name]
		asked, ok := r.Requests[name]
		limit, limited := r.Limits[name]
		switch {
		case !ok:
			return fmt.Sprintf("at least %s of %s must be asked for", &least, name)
		case compare(asked, least) < 0:
			return fmt.Sprintf("%s of %s is asked for, and at least %s must be", &asked, name, &least)
		case limited && compare(limit, least) < 0:
			return fmt.Sprintf("the limit of %s is %s, and at least %s must be", name, &limit, &least)
		}
	}
	for _, name := range resources.Names(i.Max) {
		most := i.Max[name]
		asked := r.Requests[name]
		limit, limited := r.Limits[name]
		switch {
		case !limited:
			return fmt.Sprintf("%s must have a limit of at most %s", name, &most)
		case compare(limit, most) > 0:
			return fmt.Sprintf("the limit of %s is %s, and at most %s may be", name, &limit, &most)
		case compare(asked, most) > 0:
			return fmt.Sprintf("%s of %s is asked for, and at most %s may be", &asked, name, &most)
		}
	}
	for _, name := range resources.Names(i.MaxLimitRequestRatio) {
		most := i.MaxLimitRequestRatio[name]
		asked, limit := r.Requests[name], r.Limits[name]
		if asked.IsZero() || limit.IsZero() || ratio(limit, asked) > float64(most.MilliValue()) {
			return fmt.Sprintf("the limit of %s is %s and the request %s; at most %s times the request is allowed", name, &limit, &asked, &most)
		}
	}
	return ""
}

// compare orders amounts as an API server does: in whole thousandths, rounded up, or in whole units where these would overflow.
func compare(a, b resource.Quantity) int {
	if max(a.Value(), b.Value()) > resource.MaxMilliValue {
		return cmp.Compare(a.Value(), b.Value())
	}
	return cmp.Compare(a.MilliValue(), b.MilliValue())
}

// ratio is a thousand times a / b.
func ratio(a, b resource.Quantity) float64 {
	return float64(a.MilliValue()) / float64(b.MilliValue()) * 1000
}

// total is what the containers of a pod ask for and are limited to together, or the pod as a whole.
func total(pod *corev1.Pod) corev1.ResourceRequirements {
	sum := func(of func(*corev1.ResourceRequirements) corev1.ResourceList) corev1.ResourceList {
		p := &corev1.Pod{}
		part := func(list []corev1.Container) []corev1.Container {
			out := slices.Clone(list)
			for i := range out {
				out[i].Resources = corev1.ResourceRequirements{Requests: of(&list[i].Resources)}
			}
			return out
		}
		p.Spec.Containers, p.Spec.InitContainers = part(pod.Spec.Containers), part(pod.Spec.InitContainers)
		if r := pod.Spec.Resources; r != nil {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: of(r)}
		}
		list := resources.OfPod(p, false)
		delete(list, corev1.ResourcePods)
		return list
	}
	return corev1.ResourceRequirements{
		Requests: sum(func(r *corev1.ResourceRequirements) corev1.ResourceList { return r.Requests }),
		Limits:   sum(func(r *corev1.ResourceRequirements) corev1.ResourceList { return r.Limits }),
	}
}
