package scheduling

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
)

// Class is a set of pending pods that are alike in everything that bears on placement. Work is done once a class, not
// once a pod.
type Class struct {
	// Pods are the members, by namespace and name, numbers in names counted as numbers.
	Pods []*corev1.Pod
	// Template is one of them as an API server would have stored it.
	Template *corev1.Pod
	// Requests is what each of them takes, the pod slot included.
	Requests corev1.ResourceList
	// Required holds the labels that its node must have, deprecated keys renamed, and what volumes and own constraints
	// add to them.
	Required requirements.Alternatives
	// Preferred holds the soft terms of node affinity, heaviest first.
	Preferred []requirements.Preference
	// Refusal is set where the pods can go nowhere whatever is bought, such as for a claim that does not exist.
	Refusal *Reason

	requests []int64 // by Problem.Resources
	priority int32
	hardOK   []bool // by taint set: the class tolerates its NoSchedule and NoExecute taints
	softOK   []bool // and its PreferNoSchedule taints too
	soft     []Preference
	asked    requirements.Alternatives // what the pods themselves ask, before volumes and own constraints
	topology topology
	memberOf []int // groups, in order
	ports    []hostPort
}

// Name is namespace and name of the first pod; it identifies the class.
func (c *Class) Name() string { return podName(c.Pods[0]) }

func podName(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

// comparePods orders by namespace, then name, with runs of digits compared as numbers: web-2 comes before web-10.
func comparePods(a, b *corev1.Pod) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), compareNatural(a.Name, b.Name), strings.Compare(a.Name, b.Name))
}

func compareNatural(a, b string) int {
	for a != "" && b != "" {
		da, db := digits(a), digits(b)
		if da > 0 && db > 0 {
			x, y := strings.TrimLeft(a[:da], "0"), strings.TrimLeft(b[:db], "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); c != 0 {
				return c
			}
			a, b = a[da:], b[db:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// sortPods sorts a fresh slice; lists that come sorted, as expanded workloads do, cost one pass.
func sortPods(pods []*corev1.Pod) {
	if !slices.IsSortedFunc(pods, comparePods) {
		slices.SortStableFunc(pods, comparePods)
	}
}

// classify groups pending pods by what bears on placement, and returns the classes in the order of their first pods.
func classify(pods []*corev1.Pod) []*Class {
	labels := usedLabels(pods)
	f := fingerprint{labels: labels}
	byPrint := map[string]*Class{}
	var out []*Class
	var last *Class
	for _, p := range pods {
		if last != nil && sameTemplate(last.Pods[0], p) {
			last.Pods = append(last.Pods, p)
			continue
		}
		print := f.of(p)
		c, ok := byPrint[string(print)]
		if !ok {
			c = &Class{}
			byPrint[string(print)] = c
			out = append(out, c)
		}
		c.Pods = append(c.Pods, p)
		last = c
	}
	for _, c := range out {
		sortPods(c.Pods)
	}
	slices.SortStableFunc(out, func(a, b *Class) int { return comparePods(a.Pods[0], b.Pods[0]) })
	return out
}

// effective is what the scheduler counts for a pod: the largest of its init steps and the sum of its containers, with
// sidecars, overhead and pod-level resources, and one slot. For running pods what the kubelet has granted counts too.
func effective(p *corev1.Pod, running bool) corev1.ResourceList {
	list := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{UseStatusResources: running})
	return resources.Add(list, corev1.ResourceList{corev1.ResourcePods: resources.Quantity(corev1.ResourcePods, 1)})
}

// fill works out what the class asks, from its first pod.
func (c *Class) fill(s *Snapshot, aliases requirements.Aliases) error {
	c.Template = s.Admission.Pod(c.Pods[0])
	c.Requests = effective(c.Template, false)
	asked, err := requirements.FromPod(&c.Template.Spec)
	if err != nil {
		return &InvalidError{Pod: podName(c.Pods[0]), Err: err}
	}
	c.Required = aliases.Alternatives(asked.Required)
	c.asked = c.Required
	for _, p := range asked.Preferred {
		if renamed, err := aliases.Set(p.Nodes); err == nil {
			c.Preferred = append(c.Preferred, requirements.Preference{Weight: p.Weight, Nodes: renamed})
		}
	}
	if c.Template.Spec.Priority != nil {
		c.priority = *c.Template.Spec.Priority
	}
	c.ports = hostPorts(c.Template)
	for _, name := range resources.Names(c.Requests) {
		if q := c.Requests[name]; q.Sign() < 0 {
			return &InvalidError{Pod: podName(c.Pods[0]), Err: errors.New("request of " + string(name) + " is negative")}
		}
	}
	return nil
}

// InvalidError is a pod that no API server would have stored.
type InvalidError struct {
	Pod string // namespace/name
	Err error
}

// Error is "scheduling: pod namespace/name: what is wrong".
func (e *InvalidError) Error() string { return "scheduling: pod " + e.Pod + ": " + e.Err.Error() }

// Unwrap gives the cause.
func (e *InvalidError) Unwrap() error { return e.Err }
