package resources

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// OfPod returns what the scheduler counts for a pod: the sum of its containers and sidecars or, if
// that is more, the largest of its init steps. Pod-level requests replace that result for the
// resources that they name. Then overhead and one pod slot are added. The rules are those of the
// Kubernetes documentation ("Resource sharing within containers", sidecars; "Assign pod-level
// resources"; "Resize container resources").
//
// running says that the pod is bound to a node, so that its status counts: while a pod is resized
// in place, what the kubelet has granted counts too. kube-scheduler 1.37 compares three sums over
// all containers: requested, granted and in use. Earlier versions compare these for each container.
// The larger result counts, so that a plan is right with both.
func OfPod(p *corev1.Pod, running bool) corev1.ResourceList {
	total := sum(p, asked)
	whole, hasWhole := heldByPod(p)
	switch {
	case !running || !resized(p, total, whole, hasWhole):
		if p.Spec.Resources != nil {
			replace(total, p.Spec.Resources.Requests, p.Spec.Resources.Requests)
		}
	default:
		total = Max(ofContainers(p, whole, hasWhole), ofSums(p, total, whole, hasWhole))
	}
	add(total, p.Spec.Overhead)
	add(total, corev1.ResourceList{corev1.ResourcePods: Quantity(corev1.ResourcePods, 1)})
	return total
}

// ofContainers is the rule of kube-scheduler until 1.36: for each container the largest of
// requested, granted and in use.
func ofContainers(p *corev1.Pod, whole held, hasWhole bool) corev1.ResourceList {
	total := sum(p, func(c *corev1.Container, state *corev1.ContainerStatus) corev1.ResourceList {
		if state == nil || state.Resources == nil || initStep(p, c) {
			return c.Resources.Requests
		}
		runs := Max(state.Resources.Requests, state.AllocatedResources)
		if infeasible(p) {
			return runs
		}
		return Max(c.Resources.Requests, runs)
	})
	if r := p.Spec.Resources; r != nil {
		replace(total, r.Requests, effective(p, r.Requests, whole, hasWhole))
	}
	return total
}

// ofSums is the rule of kube-scheduler since 1.37: the largest of the sums of requested, granted
// and in use.
func ofSums(p *corev1.Pod, spec corev1.ResourceList, whole held, hasWhole bool) corev1.ResourceList {
	allocated, runs := whole.allocated, whole.runs
	if !hasWhole || allocated == nil || runs == nil {
		orAsked := func(c *corev1.Container) corev1.ResourceList {
			if infeasible(p) {
				return nil
			}
			return c.Resources.Requests
		}
		allocated = sum(p, func(c *corev1.Container, state *corev1.ContainerStatus) corev1.ResourceList {
			if state != nil && state.AllocatedResources != nil {
				return state.AllocatedResources
			}
			return orAsked(c)
		})
		runs = sum(p, func(c *corev1.Container, state *corev1.ContainerStatus) corev1.ResourceList {
			switch {
			case state != nil && state.Resources != nil && state.Resources.Requests != nil:
				return state.Resources.Requests
			case state != nil && state.AllocatedResources != nil:
				return state.AllocatedResources
			}
			return orAsked(c)
		})
	}
	total := Max(runs, allocated)
	if !infeasible(p) {
		total = Max(spec, total)
	}
	if r := p.Spec.Resources; r != nil && slices.ContainsFunc(Names(r.Requests), podLevel) {
		all := effective(p, r.Requests, whole, hasWhole)
		replace(total, all, all)
	}
	return total
}

// effective returns what a pod takes as a whole, from its requests and its status.
func effective(p *corev1.Pod, requests corev1.ResourceList, whole held, hasWhole bool) corev1.ResourceList {
	switch {
	case !hasWhole:
		return requests
	case infeasible(p):
		return Max(whole.runs, whole.allocated)
	}
	return Max(requests, Max(whole.runs, whole.allocated))
}

// replace replaces the sums of the containers with amounts of the pod as a whole, for the names of
// a list.
func replace(total, names, amounts corev1.ResourceList) {
	for name := range names {
		if podLevel(name) {
			total[name] = amounts[name]
		}
	}
}

// resized reports whether the status of a running pod may make it count for more than its spec, or
// for something else. It is fast for the many pods for which it is false.
func resized(p *corev1.Pod, spec corev1.ResourceList, whole held, hasWhole bool) bool {
	if infeasible(p) {
		return true
	}
	if hasWhole && (p.Spec.Resources != nil || !within(whole.runs, spec) || !within(whole.allocated, spec)) {
		return true
	}
	more := func(containers []corev1.Container, states []corev1.ContainerStatus) bool {
		for i := range containers {
			state := stateOf(states, containers[i].Name)
			if state == nil {
				continue
			}
			requests := containers[i].Resources.Requests
			if state.Resources != nil && !within(state.Resources.Requests, requests) || !within(state.AllocatedResources, requests) {
				return true
			}
		}
		return false
	}
	return more(p.Spec.Containers, p.Status.ContainerStatuses) || more(p.Spec.InitContainers, p.Status.InitContainerStatuses)
}

// within reports whether no amount of a list exceeds that of another list.
func within(list, other corev1.ResourceList) bool {
	for name, q := range list {
		if most, ok := other[name]; !ok || q.Cmp(most) > 0 {
			return false
		}
	}
	return true
}

// InStatus reports whether the status of a running pod may change the resources that count for the
// pod, as it does while the pod is resized in place.
func InStatus(p *corev1.Pod) bool {
	if len(p.Status.ContainerStatuses)+len(p.Status.InitContainerStatuses) > 0 {
		return true
	}
	_, ok := heldByPod(p)
	return ok
}

// held is what the kubelet has allocated to a pod as a whole, and what the pod runs with.
type held struct{ allocated, runs corev1.ResourceList }

// heldByPod reads the status of a pod. It returns false if the status does not say what the pod
// runs with. The fields are new in k8s.io/api v0.35, and this module compiles with v0.34, so they
// are found by name.
func heldByPod(p *corev1.Pod) (held, bool) {
	field := func(name string) any {
		if f := reflect.ValueOf(&p.Status).Elem().FieldByName(name); f.IsValid() {
			return f.Interface()
		}
		return nil
	}
	actual, _ := field("Resources").(*corev1.ResourceRequirements)
	if actual == nil {
		return held{}, false
	}
	allocated, _ := field("AllocatedResources").(corev1.ResourceList)
	return held{allocated, actual.Requests}, true
}

// asked returns what a container requests.
func asked(c *corev1.Container, _ *corev1.ContainerStatus) corev1.ResourceList {
	return c.Resources.Requests
}

// sum adds up the containers and sidecars of a pod or, if that is more, returns the largest of its
// init steps. An init container that ends runs together with the sidecars listed before it. A state
// is nil if the pod's status does not have the container.
func sum(p *corev1.Pod, of func(*corev1.Container, *corev1.ContainerStatus) corev1.ResourceList) corev1.ResourceList {
	total := corev1.ResourceList{}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		add(total, of(c, stateOf(p.Status.ContainerStatuses, c.Name)))
	}
	if len(p.Spec.InitContainers) == 0 {
		return total
	}
	var sidecars, peak corev1.ResourceList
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		counts := of(c, stateOf(p.Status.InitContainerStatuses, c.Name))
		if sidecar(c) {
			sidecars = Add(sidecars, counts)
		} else {
			peak = Max(peak, Add(counts, sidecars))
		}
	}
	return Max(Add(total, sidecars), peak)
}

// sidecar reports whether an init container runs as long as the pod.
func sidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// initStep reports whether a container of the pod is an init container that ends.
func initStep(p *corev1.Pod, c *corev1.Container) bool {
	for i := range p.Spec.InitContainers {
		if c == &p.Spec.InitContainers[i] {
			return !sidecar(c)
		}
	}
	return false
}

// stateOf returns the state of a container, or nil if there is none.
func stateOf(states []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	i := slices.IndexFunc(states, func(s corev1.ContainerStatus) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &states[i]
}

// infeasible reports whether the kubelet has said that the requested resize is impossible on the
// pod's node.
func infeasible(p *corev1.Pod) bool {
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodResizePending })
	return i >= 0 && p.Status.Conditions[i].Reason == corev1.PodReasonInfeasible
}

// podLevel reports whether a pod can request the resource as a whole.
func podLevel(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}
