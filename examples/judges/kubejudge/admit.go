package kubejudge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1conversion "k8s.io/kubernetes/pkg/apis/core/v1"
	podregistry "k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
)

// Admit returns the scenario as kube-scheduler would see it. Pods are defaulted, matchLabelKeys are
// folded into their selectors, claims get their default class, claims of ephemeral volumes are
// added, and the references between claims and volumes are completed on both sides. [Judge] and
// [Free] do this first by themselves; Admit is for other judges.
//
// The argument is not modified. The result shares with it only data that nothing changes. Errors
// are those of Judge.
func Admit(ctx context.Context, s Scenario) (Scenario, error) {
	if err := s.validate(); err != nil {
		return Scenario{}, fmt.Errorf("kubejudge: %w", err)
	}
	factory := informers.NewSharedInformerFactory(&client{}, 0)
	volumes, err := newVolumes(factory, &s)
	if err != nil {
		return Scenario{}, fmt.Errorf("kubejudge: %w", err)
	}
	admission := newAdmission(&s)
	var errs []error
	admit := func(pods []*corev1.Pod) []*corev1.Pod {
		out := make([]*corev1.Pod, 0, len(pods))
		for _, in := range pods {
			pod, err := admission.admit(ctx, in)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			errs = append(errs, volumes.addEphemeral(pod))
			out = append(out, pod)
		}
		return out
	}
	out := s
	out.Running, out.Pods = admit(s.Running), admit(s.Pods)
	if err := errors.Join(errs...); err != nil {
		return Scenario{}, fmt.Errorf("kubejudge: %w", err)
	}
	out.StorageClasses, out.PVs, out.PVCs = nil, nil, nil
	for _, in := range s.StorageClasses {
		out.StorageClasses = append(out.StorageClasses, volumes.classes[in.Name])
	}
	for _, key := range sortedKeys(volumes.pvs) {
		// The key was listed a moment ago, and these indexers have no other writer.
		obj, _, _ := volumes.pvs.GetByKey(key)
		out.PVs = append(out.PVs, obj.(*corev1.PersistentVolume))
	}
	for _, key := range sortedKeys(volumes.pvcs) {
		obj, _, _ := volumes.pvcs.GetByKey(key)
		out.PVCs = append(out.PVCs, obj.(*corev1.PersistentVolumeClaim))
	}
	return out, nil
}

// admission does to a pod what the API server and its admission plugins do between "create" and the
// scheduler's queue.
type admission struct {
	priorities map[string]*schedulingv1.PriorityClass
	global     *schedulingv1.PriorityClass
	runtimes   map[string]*nodev1.RuntimeClass
	limits     map[string][]*corev1.LimitRange // by namespace, each by name
}

func newAdmission(s *Scenario) *admission {
	a := &admission{
		priorities: make(map[string]*schedulingv1.PriorityClass, len(s.PriorityClasses)),
		runtimes:   make(map[string]*nodev1.RuntimeClass, len(s.RuntimeClasses)),
		limits:     map[string][]*corev1.LimitRange{},
	}
	for _, c := range s.PriorityClasses {
		a.priorities[c.Name] = c
		// Of several global defaults the API server takes the one of least value.
		if c.GlobalDefault && (a.global == nil || c.Value < a.global.Value) {
			a.global = c
		}
	}
	for _, c := range s.RuntimeClasses {
		a.runtimes[c.Name] = c
	}
	for _, in := range s.LimitRanges {
		l := in.DeepCopy()
		corev1conversion.SetObjectDefaults_LimitRange(l)
		ns := nameOf(l).Namespace
		a.limits[ns] = append(a.limits[ns], l)
	}
	for _, list := range a.limits {
		slices.SortFunc(list, func(a, b *corev1.LimitRange) int { return strings.Compare(a.Name, b.Name) })
	}
	return a
}

// admit returns a defaulted deep copy. A pod keeps its UID; one without gets its name as UID, for
// the owner references of its ephemeral claims and kube-scheduler's caches need one.
func (a *admission) admit(ctx context.Context, in *corev1.Pod) (*corev1.Pod, error) {
	pod := in.DeepCopy()
	key := nameOf(pod)
	pod.Namespace = key.Namespace
	// What an API server has stored is not admitted again: limit ranges and runtime classes may be
	// younger.
	stored := pod.UID != "" || pod.Spec.Priority != nil || pod.Spec.NodeName != ""
	if pod.UID == "" {
		pod.UID = types.UID(key.String())
	}
	if !stored {
		if err := a.runtimeClass(pod); err != nil {
			return nil, err
		}
	}
	if err := a.priority(pod); err != nil {
		return nil, err
	}
	corev1conversion.SetObjectDefaults_Pod(pod)
	limits := a.limits[pod.Namespace]
	if stored {
		limits = nil
	}
	if !hasLabelKeys(pod) && pod.Spec.Resources == nil && len(limits) == 0 {
		return pod, nil // the round trip through the internal type is the dearest step
	}

	// The API server's pod strategy folds matchLabelKeys into the selectors and, since 1.37, fills
	// in what a pod asks for as a whole; its admission plugin applies limit ranges. Both speak the
	// internal type.
	status := pod.Status
	internal := &core.Pod{}
	if err := corev1conversion.Convert_v1_Pod_To_core_Pod(pod, internal, nil); err != nil {
		return nil, fmt.Errorf("pod %q: %w", key, err)
	}
	for _, l := range limits {
		if err := limitranger.PodMutateLimitFunc(l, internal); err != nil {
			return nil, fmt.Errorf("pod %q: LimitRange %q: %w", key, l.Name, err)
		}
	}
	podregistry.Strategy.PrepareForCreate(ctx, internal)
	out := &corev1.Pod{}
	if err := corev1conversion.Convert_core_Pod_To_v1_Pod(internal, out, nil); err != nil {
		return nil, fmt.Errorf("pod %q: %w", key, err)
	}
	corev1conversion.SetObjectDefaults_Pod(out) // as when it is read back, for limits that a range gives are defaults of requests, too
	out.Status = status
	return out, nil
}

func (a *admission) priority(pod *corev1.Pod) error {
	if pod.Spec.Priority != nil {
		return nil
	}
	value := int32(0)
	switch name := pod.Spec.PriorityClassName; {
	case name == "system-cluster-critical":
		value = 2_000_000_000
	case name == "system-node-critical":
		value = 2_000_001_000
	case name != "":
		class, ok := a.priorities[name]
		if !ok {
			return fmt.Errorf("pod %q: no PriorityClass %q", nameOf(pod), name)
		}
		value = class.Value
	case a.global != nil:
		value = a.global.Value
		pod.Spec.PriorityClassName = a.global.Name
	}
	pod.Spec.Priority = &value
	return nil
}

func (a *admission) runtimeClass(pod *corev1.Pod) error {
	if pod.Spec.RuntimeClassName == nil {
		return nil
	}
	class, ok := a.runtimes[*pod.Spec.RuntimeClassName]
	if !ok {
		return fmt.Errorf("pod %q: no RuntimeClass %q", nameOf(pod), *pod.Spec.RuntimeClassName)
	}
	if class.Overhead != nil && pod.Spec.Overhead == nil {
		pod.Spec.Overhead = class.Overhead.DeepCopy().PodFixed
	}
	if class.Scheduling == nil {
		return nil
	}
	if len(class.Scheduling.NodeSelector) > 0 && pod.Spec.NodeSelector == nil {
		pod.Spec.NodeSelector = map[string]string{}
	}
	for _, k := range slices.Sorted(maps.Keys(class.Scheduling.NodeSelector)) {
		want := class.Scheduling.NodeSelector[k]
		if have, ok := pod.Spec.NodeSelector[k]; ok && have != want {
			return fmt.Errorf("pod %q: nodeSelector %q: RuntimeClass %q wants %q, the pod %q", nameOf(pod), k, class.Name, want, have)
		}
		pod.Spec.NodeSelector[k] = want
	}
	for _, t := range class.Scheduling.Tolerations {
		if !slices.ContainsFunc(pod.Spec.Tolerations, func(have corev1.Toleration) bool { return have.MatchToleration(&t) }) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, t)
		}
	}
	return nil
}

// hasLabelKeys reports whether some term has matchLabelKeys or mismatchLabelKeys.
func hasLabelKeys(pod *corev1.Pod) bool {
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if len(c.MatchLabelKeys) > 0 {
			return true
		}
	}
	if pod.Spec.Affinity == nil {
		return false
	}
	var terms []corev1.PodAffinityTerm
	if a := pod.Spec.Affinity.PodAffinity; a != nil {
		terms = append(terms, a.RequiredDuringSchedulingIgnoredDuringExecution...)
		for _, w := range a.PreferredDuringSchedulingIgnoredDuringExecution {
			terms = append(terms, w.PodAffinityTerm)
		}
	}
	if a := pod.Spec.Affinity.PodAntiAffinity; a != nil {
		terms = append(terms, a.RequiredDuringSchedulingIgnoredDuringExecution...)
		for _, w := range a.PreferredDuringSchedulingIgnoredDuringExecution {
			terms = append(terms, w.PodAffinityTerm)
		}
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool {
		return len(t.MatchLabelKeys) > 0 || len(t.MismatchLabelKeys) > 0
	})
}
