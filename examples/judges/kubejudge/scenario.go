package kubejudge

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Scenario is everything that kube-scheduler would know when the first pod of the plan is bound.
//
// Objects may be written by a user or exported from a cluster. Missing defaults are filled in on
// copies. A namespace left out means "default". The zero Scenario is an empty cluster.
type Scenario struct {
	// Nodes are all nodes: those that run and those that the plan buys, with labels, taints and
	// status.allocatable.
	Nodes []*corev1.Node
	// Running are the pods that already have a spec.nodeName. Finished ones are left out, as
	// kube-scheduler does, and so are those whose node is not in Nodes.
	Running []*corev1.Pod
	// Pods are the pods that the plan binds. A pod without a binding is never looked at. One whose
	// spec.nodeName is set may be bound to that node only.
	Pods []*corev1.Pod

	// CSINodes carry the attach limit of each driver by node. A node without one has no attach
	// limit.
	CSINodes          []*storagev1.CSINode
	CSIDrivers        []*storagev1.CSIDriver
	StorageClasses    []*storagev1.StorageClass
	CSICapacities     []*storagev1.CSIStorageCapacity
	PVs               []*corev1.PersistentVolume
	PVCs              []*corev1.PersistentVolumeClaim
	VolumeAttachments []*storagev1.VolumeAttachment

	// Namespaces matter to namespaceSelector. If a pod's namespace is not listed, it is assumed to
	// exist without labels of its own.
	Namespaces      []*corev1.Namespace
	PriorityClasses []*schedulingv1.PriorityClass
	RuntimeClasses  []*nodev1.RuntimeClass
	// LimitRanges give requests and limits to containers of their namespace that have none. Pods
	// that break them are still judged.
	LimitRanges []*corev1.LimitRange

	// DefaultConstraints are those of the plugin PodTopologySpread. If there is at least one, its
	// defaultingType is List. Services and controllers give pods the selectors.
	DefaultConstraints     []corev1.TopologySpreadConstraint
	Services               []*corev1.Service
	ReplicationControllers []*corev1.ReplicationController
	ReplicaSets            []*appsv1.ReplicaSet
	StatefulSets           []*appsv1.StatefulSet
}

// Binding says that a pod goes to a node.
type Binding struct {
	Pod  types.NamespacedName
	Node string
}

// String returns "namespace/pod -> node".
func (b Binding) String() string { return b.Pod.String() + " -> " + b.Node }

// nameOf returns the pod's key, with the namespace that an API server would put it in.
func nameOf(o metav1.Object) types.NamespacedName {
	ns := o.GetNamespace()
	if ns == "" {
		ns = metav1.NamespaceDefault
	}
	return types.NamespacedName{Namespace: ns, Name: o.GetName()}
}

// validate reports every object that cannot be told from another, for a judge that picks one of two
// is no judge.
func (s *Scenario) validate() error {
	var errs []error
	nodes := map[string]bool{}
	for i, n := range s.Nodes {
		switch {
		case n.Name == "":
			errs = append(errs, fmt.Errorf("nodes[%d]: no name", i))
		case nodes[n.Name]:
			errs = append(errs, fmt.Errorf("nodes[%d]: a second node %q", i, n.Name))
		}
		nodes[n.Name] = true
	}
	pods := map[types.NamespacedName]bool{}
	check := func(field string, list []*corev1.Pod) {
		for i, p := range list {
			key := nameOf(p)
			switch {
			case p.Name == "":
				errs = append(errs, fmt.Errorf("%s[%d]: no name", field, i))
			case pods[key]:
				errs = append(errs, fmt.Errorf("%s[%d]: a second pod %q", field, i, key))
			}
			pods[key] = true
		}
	}
	check("running", s.Running)
	check("pods", s.Pods)
	for i, p := range s.Running {
		if p.Spec.NodeName == "" {
			errs = append(errs, fmt.Errorf("running[%d]: pod %q has no spec.nodeName", i, nameOf(p)))
		}
	}
	return errors.Join(errs...)
}
