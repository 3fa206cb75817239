package manifests

import (
	"encoding/json"
	"fmt"
	"iter"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/joinery-sdk/joinery/scheduling/capacityquota"
	"github.com/joinery-sdk/joinery/scheduling/defaultspread"
	"github.com/joinery-sdk/joinery/scheduling/gang"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/nodeclaim"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/overlay"
)

// Snapshot is the cluster of the manifests. Each list is sorted by namespace and name, so it does
// not depend on the order of documents and files. The default namespace is "default". A snapshot
// must only be read; objects may share parts. The zero value is an empty cluster.
type Snapshot struct {
	// Pods are the pods of Pod manifests: running if spec.nodeName is set, otherwise pending.
	// Finished pods are included.
	Pods []*corev1.Pod
	// Workloads are controllers with the pods that they still have to create. Controllers that want
	// none are left out.
	Workloads []Workload

	DaemonSets []*appsv1.DaemonSet
	Nodes      []*corev1.Node
	Namespaces []*corev1.Namespace

	PersistentVolumes      []*corev1.PersistentVolume
	PersistentVolumeClaims []*corev1.PersistentVolumeClaim
	StorageClasses         []*storagev1.StorageClass
	CSINodes               []*storagev1.CSINode
	CSIDrivers             []*storagev1.CSIDriver
	VolumeAttachments      []*storagev1.VolumeAttachment
	CSIStorageCapacities   []*storagev1.CSIStorageCapacity

	PodDisruptionBudgets []*policyv1.PodDisruptionBudget
	PriorityClasses      []*schedulingv1.PriorityClass
	RuntimeClasses       []*nodev1.RuntimeClass
	LimitRanges          []*corev1.LimitRange

	// NodePools, NodeClaims and NodeOverlays are sorted by name, then kind.
	NodePools    []nodepool.NodePool
	NodeClaims   []nodeclaim.NodeClaim
	NodeOverlays []overlay.NodeOverlay
	// PodGroups are sorted by namespace, name and API group.
	PodGroups []gang.PodGroup
	// Buffers are the CapacityBuffers, sorted by namespace and name.
	Buffers []Buffer
	// Quotas are the CapacityQuotas, sorted by name.
	Quotas []capacityquota.Quota
	// NodeClasses are the objects with a cloud's own settings.
	NodeClasses []NodeClass
	// Settings is the data of the ConfigMap karpenter-global-settings, or nil if there is none.
	Settings map[string]string

	// Defaults has the constraints of [Options.Spread], and the Services and controllers of the
	// input, which have the selectors for them. Its method Pods gives the constraints to pods.
	// Without Options.Spread it changes no pod.
	Defaults defaultspread.Defaults

	// Notes say what was skipped or is missing but not needed, in a stable order.
	Notes []string

	positions map[identity]Position
}

// NodeClass is an object with a cloud's own settings, such as EC2NodeClass.
type NodeClass struct {
	APIVersion, Kind, Name string
	// Position is the place of the object in the input.
	Position Position
	// Raw is the object as JSON.
	Raw json.RawMessage
	// Value is the result of the decoder of [Options.Classes], or nil without one.
	Value any
}

// ClassOf returns the node class that a pool refers to, by group, kind and name, or false if it is
// missing. If no kind is given, a pool of karpenter.sh/v1alpha5 means an AWSNodeTemplate, and a
// later one an EC2NodeClass.
func (s *Snapshot) ClassOf(pool nodepool.NodePool) (NodeClass, bool) {
	ref := pool.NodeClass
	for _, c := range s.NodeClasses {
		if c.Name == ref.Name && c.Kind == classKind(pool) && (ref.Group == "" || ref.Group == group(c.APIVersion)) {
			return c, true
		}
	}
	return NodeClass{}, false
}

func classKind(pool nodepool.NodePool) string {
	switch {
	case pool.NodeClass.Kind != "":
		return pool.NodeClass.Kind
	case pool.APIVersion == nodepool.V1Alpha5:
		return "AWSNodeTemplate"
	}
	return "EC2NodeClass"
}

type identity struct{ kind, namespace, name string }

// String returns "Pod shop/web-0", or "Node n1" for an object without a namespace.
func (i identity) String() string {
	switch {
	case i.name == "":
		return i.kind
	case i.namespace == "":
		return i.kind + " " + short(i.name)
	}
	return i.kind + " " + short(i.namespace) + "/" + short(i.name)
}

// short cuts names that are too long for any object.
func short(name string) string {
	const most = 253
	if len(name) > most {
		return name[:most] + "..."
	}
	return name
}

// Position returns where an object is in the input, or false if it is missing. The namespace is ""
// for kinds without one.
func (s *Snapshot) Position(kind, namespace, name string) (Position, bool) {
	p, ok := s.positions[identity{kind, namespace, name}]
	return p, ok
}

// CountPods returns the number of pods that [Snapshot.AllPods] yields.
func (s *Snapshot) CountPods() int {
	n := len(s.Pods)
	for i := range s.Workloads {
		n += s.Workloads[i].Len()
	}
	return n
}

// AllPods yields the pods of manifests and then those that the workloads still have to create,
// always in the same order. The created pods are new structs that share everything except the name
// with their siblings.
func (s *Snapshot) AllPods() iter.Seq[*corev1.Pod] {
	return func(yield func(*corev1.Pod) bool) {
		for _, p := range s.Pods {
			if !yield(p) {
				return
			}
		}
		for i := range s.Workloads {
			for p := range s.Workloads[i].Pods() {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// note adds a note to the snapshot.
func (s *Snapshot) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}
