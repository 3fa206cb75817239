package karpenter

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
)

// Input is what Karpenter knows when it provisions. Objects are expected as an API server hands
// them out: defaulted, with matchLabelKeys folded into selectors and claims of ephemeral volumes in
// PVCs (kubejudge.Admit does that). A namespace left out means "default". The zero Input has
// nothing to place.
type Input struct {
	// Pods are the pending pods.
	Pods []*corev1.Pod
	// NodePools count as ready. Static ones and those being deleted buy no nodes, as in Karpenter.
	NodePools []*karpv1.NodePool
	// InstanceTypes are the types by name of the pool. A pool without any buys no nodes. They are
	// shared, not copied: Karpenter caches their allocatable inside them, under a lock.
	InstanceTypes map[string][]*cloudprovider.InstanceType
	DaemonSets    []*appsv1.DaemonSet

	// Nodes are the nodes that run. One with the label karpenter.sh/nodepool counts as that pool's,
	// registered and initialized. One that is being deleted gets no pods.
	Nodes []*corev1.Node
	// Running are the pods on them, with spec.nodeName, daemonset pods included.
	Running []*corev1.Pod

	CSINodes       []*storagev1.CSINode
	StorageClasses []*storagev1.StorageClass
	PVs            []*corev1.PersistentVolume
	PVCs           []*corev1.PersistentVolumeClaim
	Namespaces     []*corev1.Namespace

	// WellKnownLabels are the label keys that a cloud provider registers with Karpenter, such as
	// karpenter.k8s.aws/instance-category. A new node may have such a label even if its pool does
	// not mention it. Karpenter's own keys need not be listed.
	WellKnownLabels []string
	// Workers is how many nodes are tried at a time; 0 means 2.
	Workers int
	// IgnorePreferences is --preference-policy=Ignore.
	IgnorePreferences bool
	// BestEffortMinValues is --min-values-policy=BestEffort.
	BestEffortMinValues bool
}
