package admission

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DaemonPod returns the pod that a DaemonSet runs on each of its nodes: its template with the
// tolerations that the DaemonSet controller adds, admitted. The pod is named after the DaemonSet
// and bound to no node.
func (c Cluster) DaemonPod(ds *appsv1.DaemonSet) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: cmp.Or(ds.Namespace, corev1.NamespaceDefault), Name: ds.Name, Labels: ds.Spec.Template.Labels, Annotations: ds.Spec.Template.Annotations},
		Spec:       ds.Spec.Template.Spec,
	}
	pod.Spec.Tolerations = slices.Clone(pod.Spec.Tolerations)
	for _, t := range DaemonTolerations(pod.Spec.HostNetwork) {
		if !slices.ContainsFunc(pod.Spec.Tolerations, func(have corev1.Toleration) bool { return have.MatchToleration(&t) }) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, t)
		}
	}
	return c.Anew(pod)
}

// DaemonTolerations returns what the DaemonSet controller adds to its pods, as the Kubernetes
// documentation lists it. Nodes that are not ready, unreachable, under pressure or cordoned are
// tolerated, and, by pods on the host's network, also nodes without a network.
func DaemonTolerations(hostNetwork bool) []corev1.Toleration {
	exists := func(key string, effect corev1.TaintEffect) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
	}
	out := []corev1.Toleration{
		exists(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute),
		exists(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute),
		exists(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule),
		exists(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule),
		exists(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule),
		exists(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule),
	}
	if hostNetwork {
		out = append(out, exists(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule))
	}
	return out
}
