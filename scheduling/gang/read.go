package gang

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/requirements"
)

// The API groups of objects of the kind PodGroup.
const (
	Kubernetes   = "scheduling.k8s.io"     // spec.schedulingGroup of a pod names them (KEP-4671)
	Coscheduling = "scheduling.x-k8s.io"   // the label scheduling.x-k8s.io/pod-group names them
	Volcano      = "scheduling.volcano.sh" // the annotation scheduling.k8s.io/group-name names them
)

// AnnotationValues is the annotation of a PodGroup that allows its nodes more than one value of its
// key.
const AnnotationValues = "joinery-sdk.dev/group-values"

// PodGroup is what planning reads of a PodGroup. The object is of one of three API groups:
// [Kubernetes], [Coscheduling] or [Volcano].
type PodGroup struct {
	// API is its API group, without the version.
	API             string
	Namespace, Name string
	// Minimum is how many of its pods must run together. It is 0 for a group whose pods are
	// independent, as with the policy basic.
	Minimum int
	// Key is the label key whose value their nodes must share; empty for none.
	Key string
	// Values is how many values of Key their nodes may have together; 0 means 1. No API has such a
	// field, so it is the annotation [AnnotationValues].
	Values int
	// Whole is its disruption mode: either all or none of its pods are disrupted.
	Whole bool
}

// Decode reads a PodGroup from JSON. The error is that of the JSON, or names another kind, a number
// below zero, an invalid annotation [AnnotationValues], or a misspelt field. Other fields that
// Decode does not know are ignored, because later versions of the APIs may have them.
func Decode(data []byte) (PodGroup, error) {
	var o struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`

			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			MinMember        int `json:"minMember"`
			SchedulingPolicy struct {
				Gang *struct {
					MinCount int `json:"minCount"`
				} `json:"gang"`
			} `json:"schedulingPolicy"`
			DisruptionMode        json.RawMessage `json:"disruptionMode"` // "PodGroup" in v1alpha2, {"all": {}} later
			SchedulingConstraints struct {
				Topology []struct {
					Key string `json:"key"`
				} `json:"topology"`
			} `json:"schedulingConstraints"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return PodGroup{}, fmt.Errorf("gang: %w", err)
	}
	api, _, _ := strings.Cut(o.APIVersion, "/")
	if o.Kind != "PodGroup" || api != Kubernetes && api != Coscheduling && api != Volcano {
		return PodGroup{}, fmt.Errorf("gang: %q %q is not a known PodGroup", o.APIVersion, o.Kind)
	}
	out := PodGroup{API: api, Namespace: cmp.Or(o.Metadata.Namespace, corev1.NamespaceDefault), Name: o.Metadata.Name, Minimum: o.Spec.MinMember}
	bad := func(path, format string, args ...any) error {
		return fmt.Errorf("gang: PodGroup %s/%s: %s "+format, append([]any{out.Namespace, out.Name, path}, args...)...)
	}
	field := "minMember"
	if g := o.Spec.SchedulingPolicy.Gang; api == Kubernetes && g != nil {
		out.Minimum, field = g.MinCount, "schedulingPolicy.gang.minCount"
	}
	if out.Minimum < 0 {
		return PodGroup{}, bad("spec."+field, "is %d, must not be negative", out.Minimum)
	}
	if path, meant := misspelt(data, "", fieldsOf(api)); path != "" {
		return PodGroup{}, bad(path, "is an unknown field (did you mean %q?)", meant)
	}
	var mode struct {
		All *struct{} `json:"all"`
	}
	out.Whole = string(o.Spec.DisruptionMode) == `"PodGroup"` || json.Unmarshal(o.Spec.DisruptionMode, &mode) == nil && mode.All != nil
	for _, t := range o.Spec.SchedulingConstraints.Topology {
		out.Key = t.Key // an API server allows one
	}
	if text, ok := o.Metadata.Annotations[AnnotationValues]; ok {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return PodGroup{}, bad("metadata.annotations["+AnnotationValues+"]", "is %q, and must be a number of at least 1", text)
		}
		out.Values = n
	}
	return out, nil
}

// fieldsOf returns the fields below which misspelt ones are looked for, by path, and what else may
// be there.
func fieldsOf(api string) map[string][]string {
	top := []string{"apiVersion", "kind", "metadata", "spec", "status"}
	switch api {
	case Coscheduling:
		return map[string][]string{"": top, "spec": {"minMember", "minResources", "scheduleTimeoutSeconds", "maxScheduleTime"}}
	case Volcano:
		return map[string][]string{"": top, "spec": {"minMember", "minTaskMember", "queue", "priorityClassName", "minResources", "networkTopology", "subGroupPolicy"}}
	}
	return map[string][]string{
		"":                           top,
		"spec":                       {"schedulingPolicy", "schedulingConstraints", "disruptionMode", "podGroupTemplateRef", "resourceClaims", "priorityClassName", "priority"},
		"spec.schedulingPolicy":      {"basic", "gang"},
		"spec.schedulingPolicy.gang": {"minCount"},
		"spec.schedulingConstraints": {"topology"},
	}
}

// misspelt returns the path of a field that is near a known one, and the name that was meant; empty
// if there is none.
func misspelt(data []byte, at string, known map[string][]string) (path, meant string) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil { // not an object
		return "", ""
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		below := strings.TrimPrefix(at+"."+name, ".")
		if near, ok := requirements.Nearest(name, known[at]); ok && !slices.Contains(known[at], name) {
			return below, near
		}
		if known[below] != nil {
			if path, meant := misspelt(fields[name], below, known); path != "" {
				return path, meant
			}
		}
	}
	return "", ""
}

// reference is what a pod says of its group: a PodGroup of an API, or a controller's group, which
// needs no object.
type reference struct{ api, namespace, name string }

// Labels and annotations by which controllers mark the pods of a group.
const (
	labelCoscheduling = "scheduling.x-k8s.io/pod-group"
	annotationVolcano = "scheduling.k8s.io/group-name"
	labelKueue        = "kueue.x-k8s.io/pod-group-name"
	annotationKueue   = "kueue.x-k8s.io/pod-group-total-count"
	labelLWS          = "leaderworkerset.sigs.k8s.io/group-key"
	annotationLWS     = "leaderworkerset.sigs.k8s.io/size"
	labelJobSet       = "jobset.sigs.k8s.io/jobset-name"
)

// Read finds the groups of pods, sorted by name: those of PodGroups, of Kueue, of LeaderWorkerSets
// and of JobSets. Pods whose PodGroup is missing wait, as they do in their scheduler. A JobSet does
// not say how many pods it makes, so its group is all of its existing pods. Nil pods are left out.
//
// linked returns the name of a pod's PodGroup of scheduling.k8s.io, its spec.schedulingGroup. The
// oldest API that this module is built with does not have that field. nil means that no pod has
// one.
//
// Pods that have succeeded count where the scheduler counts them, and make the minimum smaller.
// Volcano's gang plugin counts them with those that are allocated (JobInfo.ReadyTaskNum). Kueue
// composes a pod group of pods that are runnable or have succeeded (runnableOrSucceededPods).
// kube-scheduler, and with it the coscheduling plugin, never sees them: its informer selects pods
// that have neither succeeded nor failed. The pods of a LeaderWorkerSet always restart. A failed
// pod counts nowhere: its controller makes another.
func Read(pods []*corev1.Pod, objects []PodGroup, linked func(*corev1.Pod) string) []Group {
	members, size, succeeded := map[reference]map[types.NamespacedName]bool{}, map[reference]int{}, map[reference]int{}
	for _, pod := range pods {
		if pod == nil {
			continue
		}
		r, n, ok := referenceOf(pod, linked)
		if !ok {
			continue
		}
		if members[r] == nil {
			members[r] = map[types.NamespacedName]bool{}
		}
		members[r][nameOf(pod)], size[r] = true, max(size[r], n)
		if pod.Status.Phase == corev1.PodSucceeded {
			succeeded[r]++
		}
	}
	known := map[reference]PodGroup{}
	for _, g := range objects {
		known[reference{g.API, cmp.Or(g.Namespace, corev1.NamespaceDefault), g.Name}] = g
	}
	var out []Group
	for _, r := range slices.SortedFunc(maps.Keys(members), func(a, b reference) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name), cmp.Compare(a.api, b.api))
	}) {
		set := members[r]
		g := Group{Name: r.namespace + "/" + r.name, Minimum: size[r], Member: func(pod *corev1.Pod) bool { return set[nameOf(pod)] }}
		if r.api == Kubernetes || r.api == Coscheduling || r.api == Volcano {
			object, there := known[r]
			if there && object.Minimum == 0 {
				continue
			}
			g.Minimum, g.Key, g.Values, g.Whole = object.Minimum, object.Key, object.Values, object.Whole
			if !there {
				g.Waits = fmt.Sprintf("its PodGroup of %s does not exist", r.api)
			}
		}
		if counts := r.api == Volcano || r.api == labelKueue; counts && g.Minimum > 0 {
			g.Minimum = max(1, g.Minimum-succeeded[r])
		}
		out = append(out, g)
	}
	return out
}

// referenceOf returns the pod's group and, if the pod says it, how many pods the group has.
func referenceOf(pod *corev1.Pod, linked func(*corev1.Pod) string) (reference, int, bool) {
	namespace := nameOf(pod).Namespace
	if linked != nil {
		if name := linked(pod); name != "" {
			return reference{Kubernetes, namespace, name}, 0, true
		}
	}
	size := func(annotation string) int {
		n, err := strconv.Atoi(pod.Annotations[annotation])
		if err != nil {
			return 0
		}
		return max(0, n)
	}
	switch {
	case pod.Labels[labelCoscheduling] != "":
		return reference{Coscheduling, namespace, pod.Labels[labelCoscheduling]}, 0, true
	case pod.Annotations[annotationVolcano] != "":
		return reference{Volcano, namespace, pod.Annotations[annotationVolcano]}, 0, true
	case pod.Labels[labelKueue] != "":
		return reference{labelKueue, namespace, pod.Labels[labelKueue]}, size(annotationKueue), true
	case pod.Labels[labelLWS] != "":
		return reference{labelLWS, namespace, pod.Labels[labelLWS]}, size(annotationLWS), true
	case pod.Labels[labelJobSet] != "":
		return reference{labelJobSet, namespace, pod.Labels[labelJobSet]}, 0, true
	}
	return reference{}, 0, false
}
