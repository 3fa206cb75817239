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

// outOfRange says which bound of a LimitRange of its namespace a pod breaks; empty for none. The
// pod's requests and limits must be filled in. The rules are those of the Kubernetes documentation
// ("Limit Ranges"): a minimum needs a request, a maximum a limit, a ratio both. If a default limit
// is below the request, the pod is also invalid.
func (c Cluster) outOfRange(pod *corev1.Pod) string {
	containers := slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers)
	for _, item := range c.limits[cmp.Or(pod.Namespace, corev1.NamespaceDefault)] {
		if item.Type == corev1.LimitTypePod {
			if why := item.broken(total(pod)); why != "" {
				return fmt.Sprintf("LimitRange %s: pod: %s", item.of, why)
			}
			continue
		}
		for _, k := range containers {
			if why := cmp.Or(item.broken(k.Resources), item.contradicted(k.Resources)); why != "" {
				return fmt.Sprintf("LimitRange %s: container %s: %s", item.of, k.Name, why)
			}
		}
	}
	return ""
}

// broken says which bound the resources break; empty for none.
func (i *limitItem) broken(r corev1.ResourceRequirements) string {
	for _, name := range resources.Names(i.Min) {
		least := i.Min[name]
		request, requested := r.Requests[name]
		limit, limited := r.Limits[name]
		switch {
		case !requested:
			return fmt.Sprintf("no %s request, and the minimum is %s", name, &least)
		case compare(request, least) < 0:
			return fmt.Sprintf("the %s request %s is below the minimum %s", name, &request, &least)
		case limited && compare(limit, least) < 0:
			return fmt.Sprintf("the %s limit %s is below the minimum %s", name, &limit, &least)
		}
	}
	for _, name := range resources.Names(i.Max) {
		most := i.Max[name]
		request := r.Requests[name]
		limit, limited := r.Limits[name]
		switch {
		case !limited:
			return fmt.Sprintf("no %s limit, and the maximum is %s", name, &most)
		case compare(limit, most) > 0:
			return fmt.Sprintf("the %s limit %s is above the maximum %s", name, &limit, &most)
		case compare(request, most) > 0:
			return fmt.Sprintf("the %s request %s is above the maximum %s", name, &request, &most)
		}
	}
	for _, name := range resources.Names(i.MaxLimitRequestRatio) {
		most := i.MaxLimitRequestRatio[name]
		request, limit := r.Requests[name], r.Limits[name]
		if request.IsZero() || limit.IsZero() || ratio(limit, request) > float64(most.MilliValue()) {
			return fmt.Sprintf("the %s limit %s is more than %s times the request %s", name, &limit, &most, &request)
		}
	}
	return ""
}

// contradicted says which request is above the item's default limit; empty for none.
func (i *limitItem) contradicted(r corev1.ResourceRequirements) string {
	for _, name := range resources.Names(i.Default) {
		if request, limit := r.Requests[name], r.Limits[name]; compare(request, limit) > 0 {
			return fmt.Sprintf("the %s request %s is above the default limit %s", name, &request, &limit)
		}
	}
	return ""
}

// compare orders amounts as an API server does: in whole thousandths, rounded up, or in whole units
// if thousandths would overflow.
func compare(a, b resource.Quantity) int {
	if max(a.Value(), b.Value()) > resource.MaxMilliValue {
		return cmp.Compare(a.Value(), b.Value())
	}
	return cmp.Compare(a.MilliValue(), b.MilliValue())
}

// ratio returns a thousand times a / b.
func ratio(a, b resource.Quantity) float64 {
	return float64(a.MilliValue()) / float64(b.MilliValue()) * 1000
}

// total returns the sum of what the containers of a pod request and are limited to, or what the pod
// does as a whole.
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
