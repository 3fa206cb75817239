package gang

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/scheduling"
)

// label is the label that pods of a group with a Key have in the planned snapshot. Its value is the position of the group.
const label = "joinery-sdk.dev/group"

// together gives the pods of groups with a Key required affinity to each other: package scheduling then chooses one domain for all, by the price of
// all, and kube-scheduler's rules for pods that are the first of their kind hold. Other pods are those of the snapshot.
func (a *admission) together(s scheduling.Snapshot) scheduling.Snapshot {
	keyed := false
	for _, g := range a.groups {
		keyed = keyed || g.Key != ""
	}
	if !keyed {
		return s
	}
	type shared struct {
		affinity *corev1.Affinity
		group    int
	}
	made := map[shared]*corev1.Affinity{} // replicas go on sharing what they share
	pods := make([]*corev1.Pod, len(s.Pods))
	for i, pod := range s.Pods {
		pods[i] = pod
		at := a.groupOf(pod)
		if at < 0 || a.groups[at].Key == "" {
			continue
		}
		own := *pod
		own.Labels = maps.Clone(pod.Labels)
		if own.Labels == nil {
			own.Labels = map[string]string{}
		}
		own.Labels[label] = strconv.Itoa(at)
		id := shared{pod.Spec.Affinity, at}
		if made[id] == nil {
			made[id] = beside(pod.Spec.Affinity, a.groups[at].Key, strconv.Itoa(at))
		}
		own.Spec.Affinity = made[id]
		pods[i] = &own
	}
	s.Pods = pods
	return s
}

// beside is affinity with one more required term: to pods with a value of the label, by the key, in any namespace.
func beside(a *corev1.Affinity, key, value string) *corev1.Affinity {
	out := &corev1.Affinity{}
	if a != nil {
		out = a.DeepCopy()
	}
	if out.PodAffinity == nil {
		out.PodAffinity = &corev1.PodAffinity{}
	}
	required := &out.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	*required = append(*required, corev1.PodAffinityTerm{
		TopologyKey: key, NamespaceSelector: &metav1.LabelSelector{}, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: value}},
	})
	return out
}
