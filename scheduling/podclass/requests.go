package podclass

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// Requests is what the scheduler counts for a pod: the sum of its containers and sidecars or, where that is more, the
// largest of its init steps, replaced by what the pod asks for as a whole, with overhead, and one slot. Of a running pod,
// what the kubelet has granted a container counts as well. The rules are those of the Kubernetes documentation ("Resource
// sharing within containers", sidecars; "Assign pod-level resources"; "Resize container resources").
func Requests(p *corev1.Pod, running bool) corev1.ResourceList {
	var states, initStates []corev1.ContainerStatus
	if running {
		states, initStates = p.Status.ContainerStatuses, p.Status.InitContainerStatuses
	}
	total := corev1.ResourceList{}
	for i := range p.Spec.Containers {
		total = resources.Add(total, granted(p, &p.Spec.Containers[i], states))
	}
	if len(p.Spec.InitContainers) > 0 {
		sidecars, peak := initSteps(p, initStates)
		total = resources.Max(resources.Add(total, sidecars), peak)
	}
	if whole := p.Spec.Resources; whole != nil {
		for name, q := range whole.Requests {
			if podLevel(name) {
				total[name] = q
			}
		}
	}
	if len(p.Spec.Overhead) > 0 {
		total = resources.Add(total, p.Spec.Overhead)
	}
	return resources.Add(total, corev1.ResourceList{corev1.ResourcePods: resources.Quantity(corev1.ResourcePods, 1)})
}

// initSteps returns what the sidecars take together, and the most that the pod takes while it starts: each init container
// that ends runs beside the sidecars that are listed before it.
func initSteps(p *corev1.Pod, states []corev1.ContainerStatus) (sidecars, peak corev1.ResourceList) {
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars = resources.Add(sidecars, granted(p, c, states))
		} else {
			peak = resources.Max(peak, resources.Add(c.Resources.Requests, sidecars))
		}
	}
	return sidecars, peak
}

// granted returns what a container counts for. While it is resized in place that is the largest of what it asks for, what
// the kubelet has allocated and what it runs with; a request that the kubelet can never meet doesn't count.
func granted(p *corev1.Pod, c *corev1.Container, states []corev1.ContainerStatus) corev1.ResourceList {
	i := slices.IndexFunc(states, func(s corev1.ContainerStatus) bool { return s.Name == c.Name })
	if i < 0 || states[i].Resources == nil {
		return c.Resources.Requests
	}
	held := resources.Max(states[i].Resources.Requests, states[i].AllocatedResources)
	if infeasible(p) {
		return held
	}
	return resources.Max(c.Resources.Requests, held)
}

// infeasible reports whether the kubelet has said that the resize that the pod waits for can't be had on its node.
func infeasible(p *corev1.Pod) bool {
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodResizePending })
	return i >= 0 && p.Status.Conditions[i].Reason == corev1.PodReasonInfeasible
}

// podLevel reports whether a pod can ask for the resource as a whole.
func podLevel(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// Totals works [Requests] of pending pods out, once for all pods whose containers ask for the same: clusters have many
// classes of pods, but few sizes. The zero value is ready to use; it is not safe for concurrent use.
type Totals struct {
	known map[string]corev1.ResourceList
	buf   []byte
	names []corev1.ResourceName
}

// Requests is what [Requests] gives for a pending pod. It must not be modified, for others share it.
func (t *Totals) Requests(p *corev1.Pod) corev1.ResourceList {
	t.buf = t.buf[:0]
	t.containers(p.Spec.Containers)
	t.containers(p.Spec.InitContainers)
	t.list(p.Spec.Overhead)
	if r := p.Spec.Resources; r != nil {
		t.list(r.Requests)
		t.list(r.Limits)
	}
	if list, ok := t.known[string(t.buf)]; ok {
		return list
	}
	list := Requests(p, false)
	if t.known == nil {
		t.known = map[string]corev1.ResourceList{}
	}
	t.known[string(t.buf)] = list
	return list
}

func (t *Totals) containers(cs []corev1.Container) {
	f := fingerprint{buf: t.buf}
	f.number(int64(len(cs)))
	for i := range cs {
		if policy := cs[i].RestartPolicy; policy != nil {
			f.text(string(*policy))
		}
		t.buf = append(f.buf, '|')
		t.list(cs[i].Resources.Requests)
		f.buf = t.buf
	}
	t.buf = f.buf
}

// list appends the quantities as they are, for their sum counts and not what each is rounded to.
func (t *Totals) list(l corev1.ResourceList) {
	t.names = t.names[:0]
	for name := range l {
		t.names = append(t.names, name)
	}
	slices.Sort(t.names)
	f := fingerprint{buf: t.buf}
	f.number(int64(len(t.names)))
	for _, name := range t.names {
		f.text(string(name))
		q := l[name]
		f.text(string(q.Format))
		milli := q.MilliValue()
		if n, ok := q.AsInt64(); ok {
			f.buf = append(f.buf, 'n')
			f.number(n)
		} else if resource.NewMilliQuantity(milli, q.Format).Cmp(q) == 0 {
			f.buf = append(f.buf, 'm')
			f.number(milli)
		} else {
			f.buf = append(f.buf, 't')
			f.text(q.String())
		}
	}
	t.buf = f.buf
}
