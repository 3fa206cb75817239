package admission

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// Stored reports whether an API server has stored the pod. The server gives it a UID and a
// priority, and only a stored pod is on a node.
func Stored(pod *corev1.Pod) bool {
	return pod.UID != "" || pod.Spec.Priority != nil || pod.Spec.NodeName != ""
}

// Bears reports whether LimitRanges or RuntimeClasses of the cluster may change a pod that is
// admitted.
func (c Cluster) Bears(pod *corev1.Pod) bool {
	return len(c.defaultsOf(pod)) > 0 || pod.Spec.RuntimeClassName != nil && c.runtimes[*pod.Spec.RuntimeClassName] != nil
}

// defaultsOf returns the items of LimitRanges that give the pod's containers requests and limits.
func (c Cluster) defaultsOf(pod *corev1.Pod) []corev1.LimitRangeItem {
	var out []corev1.LimitRangeItem
	for _, item := range c.limits[cmp.Or(pod.Namespace, corev1.NamespaceDefault)] {
		if item.Type == corev1.LimitTypeContainer {
			out = append(out, item.LimitRangeItem)
		}
	}
	return out
}

// Pod returns the pod as an API server stores it. It returns its argument if nothing changes. A
// stored pod is not admitted again, since LimitRanges and RuntimeClasses may be younger.
func (c Cluster) Pod(pod *corev1.Pod) *corev1.Pod {
	return c.admit(pod, !Stored(pod))
}

// Anew returns the pod that is stored when the controller of this pod makes another one. It is
// [Cluster.Pod] for the pod as if it had never been stored.
func (c Cluster) Anew(pod *corev1.Pod) *corev1.Pod {
	return c.admit(pod, true)
}

func (c Cluster) admit(pod *corev1.Pod, anew bool) *corev1.Pod {
	d := draft{pod: pod, out: pod}
	d.containers(nil)
	d.podLevel(pod.Spec.Resources)
	if limits := c.defaultsOf(pod); anew && len(limits) > 0 { // LimitRanges are applied after defaulting, which is repeated on reading
		d.containers(limits)
		d.podLevel(pod.Spec.Resources)
	}
	d.priority(c)
	if anew {
		d.runtime(c)
	}
	if finerThanMilli(d.out.Spec.Overhead) {
		d.spec().Overhead = rounded(d.out.Spec.Overhead)
	}
	d.labelKeys()
	return d.out
}

// WithLabelKeys returns the pod with the label keys of its constraints folded into their selectors,
// as an API server stores them. It returns its argument if nothing changes.
func WithLabelKeys(pod *corev1.Pod) *corev1.Pod {
	d := draft{pod: pod, out: pod}
	d.labelKeys()
	return d.out
}

// Missing returns the priority and runtime classes of a pod that the cluster lacks; an API server
// refuses such a pod. A pod with a priority was stored, so its classes are not checked.
func (c Cluster) Missing(pod *corev1.Pod) []string {
	if pod.Spec.Priority != nil {
		return nil
	}
	var out []string
	name := pod.Spec.PriorityClassName
	if _, system := systemPriorities[name]; name != "" && !system && c.priorities[name] == nil {
		out = append(out, fmt.Sprintf("PriorityClass %q", name))
	}
	if r := pod.Spec.RuntimeClassName; r != nil && *r != "" && c.runtimes[*r] == nil {
		out = append(out, fmt.Sprintf("RuntimeClass %q", *r))
	}
	return out
}

// Forbidden says why an API server refuses a pod that is not stored yet: it contradicts its
// RuntimeClass, or a LimitRange of its namespace. It is empty if the pod is not refused.
func (c Cluster) Forbidden(pod *corev1.Pod) string {
	if Stored(pod) {
		return ""
	}
	if why := c.outOfRange(c.Pod(pod)); why != "" {
		return why
	}
	name := pod.Spec.RuntimeClassName
	if name == nil || *name == "" {
		if len(pod.Spec.Overhead) > 0 {
			return "spec.overhead comes from a RuntimeClass, but the pod names none"
		}
		return ""
	}
	class := c.runtimes[*name]
	if class == nil {
		return ""
	}
	if given := overheadOf(class); len(pod.Spec.Overhead) > 0 && !equality.Semantic.DeepEqual(pod.Spec.Overhead, given) {
		return fmt.Sprintf("spec.overhead differs from that of its RuntimeClass %s", class.Name)
	}
	if class.Scheduling == nil {
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(class.Scheduling.NodeSelector)) {
		want := class.Scheduling.NodeSelector[key]
		if have, asked := pod.Spec.NodeSelector[key]; asked && have != want {
			return fmt.Sprintf("spec.nodeSelector requires %s=%s, but its RuntimeClass %s requires %s=%s", key, have, class.Name, key, want)
		}
	}
	return ""
}

func overheadOf(class *nodev1.RuntimeClass) corev1.ResourceList {
	if class.Overhead == nil {
		return nil
	}
	return class.Overhead.PodFixed
}

// draft is a copy on write of a pod.
type draft struct {
	pod, out *corev1.Pod
}

func (d *draft) spec() *corev1.PodSpec {
	if d.out == d.pod {
		shallow := *d.pod
		d.out = &shallow
	}
	return &d.out.Spec
}

func (d *draft) containers(limits []corev1.LimitRangeItem) {
	if out, changed := admitted(d.out.Spec.InitContainers, limits, d.out.Spec.HostNetwork); changed {
		d.spec().InitContainers = out
	}
	if out, changed := admitted(d.out.Spec.Containers, limits, d.out.Spec.HostNetwork); changed {
		d.spec().Containers = out
	}
}

func admitted(containers []corev1.Container, limits []corev1.LimitRangeItem, hostNetwork bool) ([]corev1.Container, bool) {
	out, changed := containers, false
	edit := func(i int) *corev1.Container {
		if !changed {
			out, changed = slices.Clone(containers), true
		}
		return &out[i]
	}
	for i := range containers {
		c := containers[i].Resources
		requests := merged(c.Requests, c.Limits)
		lim := c.Limits
		for _, item := range limits {
			lim = merged(lim, item.Default)
			requests = merged(requests, item.DefaultRequest)
		}
		finer := finerThanMilli(requests)
		if finer {
			requests = rounded(requests)
		}
		if finer || len(requests) != len(c.Requests) {
			edit(i).Resources.Requests = requests
		}
		if len(lim) != len(c.Limits) {
			edit(i).Resources.Limits = lim
		}
		if ports, ok := admittedPorts(containers[i].Ports, hostNetwork); ok {
			edit(i).Ports = ports
		}
	}
	return out, changed
}

// finerThanMilli reports whether an API server rounds some quantity of the list.
func finerThanMilli(list corev1.ResourceList) bool {
	for _, q := range list {
		if _, whole := q.AsInt64(); !whole {
			if _, exact := q.AsScale(resource.Milli); !exact {
				return true
			}
		}
	}
	return false
}

// rounded returns the list as an API server stores it: each quantity is rounded up to a thousandth.
func rounded(list corev1.ResourceList) corev1.ResourceList {
	out := make(corev1.ResourceList, len(list))
	for name, q := range list {
		q = q.DeepCopy()
		q.RoundUp(resource.Milli)
		out[name] = q
	}
	return out
}

func admittedPorts(ports []corev1.ContainerPort, hostNetwork bool) ([]corev1.ContainerPort, bool) {
	out := slices.Clone(ports)
	for i := range out {
		if out[i].Protocol == "" {
			out[i].Protocol = corev1.ProtocolTCP
		}
		if hostNetwork && out[i].HostPort == 0 {
			out[i].HostPort = out[i].ContainerPort
		}
	}
	return out, !slices.Equal(out, ports)
}

// podLevel defaults what the pod asks for as a whole, given what was written. Hugepage limits come
// from those of the containers. Requests come from the sum of the containers' requests or, if there
// are none, from the pod's limits. Until Kubernetes 1.36 an API server did this before it applied
// LimitRanges; since 1.37 it does it afterwards (feature gate PodLevelResourcesFixDefaulting). The
// larger result counts, so that a plan holds with both.
func (d *draft) podLevel(written *corev1.ResourceRequirements) {
	if written == nil || len(written.Requests)+len(written.Limits) == 0 {
		return
	}
	containers := resources.OfPod(&corev1.Pod{Spec: corev1.PodSpec{Containers: d.out.Spec.Containers, InitContainers: d.out.Spec.InitContainers}}, false)
	requests, limits := written.Requests, written.Limits
	for name, q := range containers {
		if _, asked := requests[name]; !asked && strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			limits = merged(limits, corev1.ResourceList{name: q})
		}
	}
	if len(limits) > 0 {
		for name, q := range containers {
			if name == corev1.ResourceCPU || name == corev1.ResourceMemory {
				requests = merged(requests, corev1.ResourceList{name: q})
			}
		}
		requests = merged(requests, limits)
	}
	now := d.out.Spec.Resources
	requests, limits = resources.Max(now.Requests, rounded(requests)), resources.Max(now.Limits, limits)
	if !equality.Semantic.DeepEqual(requests, now.Requests) || !equality.Semantic.DeepEqual(limits, now.Limits) {
		d.spec().Resources = &corev1.ResourceRequirements{Requests: requests, Limits: limits, Claims: now.Claims}
	}
}

func (d *draft) priority(c Cluster) {
	if d.out.Spec.Priority != nil {
		return
	}
	name := d.out.Spec.PriorityClassName
	if value, ok := systemPriorities[name]; ok {
		d.spec().Priority = &value
		return
	}
	class := c.priorities[name]
	if name == "" {
		class = c.globalPriority
	}
	if class == nil {
		return
	}
	s := d.spec()
	s.Priority = new(class.Value)
	s.PriorityClassName = class.Name
	if s.PreemptionPolicy == nil {
		s.PreemptionPolicy = class.PreemptionPolicy
	}
}

func (d *draft) runtime(c Cluster) {
	if d.out.Spec.RuntimeClassName == nil {
		return
	}
	class := c.runtimes[*d.out.Spec.RuntimeClassName]
	if class == nil {
		return
	}
	if given := overheadOf(class); len(given) > 0 && (d.out.Spec.Overhead == nil || Stored(d.pod)) { // a successor gets the present overhead
		if !equality.Semantic.DeepEqual(d.out.Spec.Overhead, given) {
			d.spec().Overhead = given
		}
	}
	if class.Scheduling == nil {
		return
	}
	selector := map[string]string{}
	maps.Copy(selector, class.Scheduling.NodeSelector)
	maps.Copy(selector, d.out.Spec.NodeSelector) // see Forbidden
	if !maps.Equal(selector, d.out.Spec.NodeSelector) {
		d.spec().NodeSelector = selector
	}
	for _, t := range class.Scheduling.Tolerations {
		if !slices.Contains(d.out.Spec.Tolerations, t) {
			d.spec().Tolerations = append(slices.Clip(d.out.Spec.Tolerations), t)
		}
	}
}

// labelKeys folds matchLabelKeys and mismatchLabelKeys of pod affinity and of spreads into the
// selectors, with the values of the pod's own labels.
func (d *draft) labelKeys() {
	labels := d.out.Labels
	if !slices.ContainsFunc(keyedOf(&d.out.Spec), func(k keyed) bool { return len(k.missing(labels)) > 0 }) {
		return
	}
	s := d.spec()
	s.TopologySpreadConstraints, s.Affinity = slices.Clone(s.TopologySpreadConstraints), s.Affinity.DeepCopy()
	for _, k := range keyedOf(s) {
		*k.selector = &metav1.LabelSelector{
			MatchLabels: (*k.selector).MatchLabels, MatchExpressions: slices.Concat((*k.selector).MatchExpressions, k.missing(labels)),
		}
	}
}

// keyed is the selector of a constraint and the label keys to fold into it.
type keyed struct {
	selector        **metav1.LabelSelector
	match, mismatch []string
}

// keyedOf lists the selectors of pod affinity and of spreads that have such keys. A nil selector
// stays nil.
func keyedOf(s *corev1.PodSpec) []keyed {
	var out []keyed
	add := func(selector **metav1.LabelSelector, match, mismatch []string) {
		if *selector != nil && len(match)+len(mismatch) > 0 {
			out = append(out, keyed{selector, match, mismatch})
		}
	}
	for i := range s.TopologySpreadConstraints {
		t := &s.TopologySpreadConstraints[i]
		add(&t.LabelSelector, t.MatchLabelKeys, nil)
	}
	if s.Affinity == nil {
		return out
	}
	for _, a := range []*corev1.PodAffinity{s.Affinity.PodAffinity, (*corev1.PodAffinity)(s.Affinity.PodAntiAffinity)} { // the types have the same fields
		if a == nil {
			continue
		}
		for i := range a.RequiredDuringSchedulingIgnoredDuringExecution {
			t := &a.RequiredDuringSchedulingIgnoredDuringExecution[i]
			add(&t.LabelSelector, t.MatchLabelKeys, t.MismatchLabelKeys)
		}
		for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
			t := &a.PreferredDuringSchedulingIgnoredDuringExecution[i].PodAffinityTerm
			add(&t.LabelSelector, t.MatchLabelKeys, t.MismatchLabelKeys)
		}
	}
	return out
}

// missing returns an expression for each key that the pod has, unless the selector already has it.
func (k keyed) missing(labels map[string]string) []metav1.LabelSelectorRequirement {
	var out []metav1.LabelSelectorRequirement
	add := func(keys []string, op metav1.LabelSelectorOperator) {
		for _, key := range keys {
			value, ok := labels[key]
			same := func(e metav1.LabelSelectorRequirement) bool {
				return e.Key == key && e.Operator == op && slices.Equal(e.Values, []string{value})
			}
			if ok && !slices.ContainsFunc((*k.selector).MatchExpressions, same) && !slices.ContainsFunc(out, same) {
				out = append(out, metav1.LabelSelectorRequirement{Key: key, Operator: op, Values: []string{value}})
			}
		}
	}
	add(k.match, metav1.LabelSelectorOpIn)
	add(k.mismatch, metav1.LabelSelectorOpNotIn)
	return out
}

// WithAllLabelKeys returns running pods with selectors extended by their matchLabelKeys.
func WithAllLabelKeys(pods []*corev1.Pod) []*corev1.Pod {
	out := slices.Clone(pods)
	for i, pod := range out {
		if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil { // only anti-affinity affects other pods
			out[i] = WithLabelKeys(pod)
		}
	}
	return out
}
