package kubejudge

import (
	"cmp"
	"slices"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/controller/daemon"
	daemonutil "k8s.io/kubernetes/pkg/controller/daemon/util"
)

// Daemons returns the pods that the DaemonSet controller would create on the nodes, and a binding
// for each. Daemon pods come before all others: add the pods to [Scenario.Pods] and put their
// bindings at the head of the plan. The controller's own code decides which node gets which pod. A
// node where the set's pod already runs, by its owner reference, gets none.
//
// A pod is named after its set and its node. Both results are sorted by node, and then by namespace
// and name of the set. The pods have a node affinity to their node, as the controller gives them;
// they are not admitted yet.
func Daemons(sets []*appsv1.DaemonSet, nodes []*corev1.Node, running []*corev1.Pod) ([]*corev1.Pod, []Binding) {
	type place struct {
		node string
		set  types.NamespacedName
	}
	have := map[place]bool{}
	for _, p := range running {
		if owner := metav1.GetControllerOfNoCopy(p); owner != nil && owner.Kind == "DaemonSet" {
			have[place{p.Spec.NodeName, types.NamespacedName{Namespace: nameOf(p).Namespace, Name: owner.Name}}] = true
		}
	}
	nodes, sets = slices.Clone(nodes), slices.Clone(sets)
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(sets, func(a, b *appsv1.DaemonSet) int {
		return cmp.Or(cmp.Compare(nameOf(a).Namespace, nameOf(b).Namespace), cmp.Compare(a.Name, b.Name))
	})
	var pods []*corev1.Pod
	var plan []Binding
	for _, node := range nodes {
		for _, set := range sets {
			// A copy, for the controller's code appends tolerations to the template that it is
			// handed.
			set = set.DeepCopy()
			set.Namespace = nameOf(set).Namespace
			if have[place{node.Name, nameOf(set)}] {
				continue
			}
			if should, _ := daemon.NodeShouldRunDaemonPod(logr.Discard(), node, set); !should {
				continue
			}
			template := daemonutil.CreatePodTemplate(set.Spec.Template, nil, "")
			pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
			pod.Namespace, pod.Name = set.Namespace, set.Name+"-"+node.Name
			pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
			pod.Spec.Affinity = daemonutil.ReplaceDaemonSetPodNodeNameNodeAffinity(pod.Spec.Affinity, node.Name)
			pods = append(pods, pod)
			plan = append(plan, Binding{Pod: nameOf(pod), Node: node.Name})
		}
	}
	return pods, plan
}
