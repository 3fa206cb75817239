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

	"github.com/joinery-sdk/joinery/scheduling/defaultspread"
	"github.com/joinery-sdk/joinery/scheduling/gang"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/nodeclaim"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/overlay"
)

// Snapshot is what manifests say of a cluster, each list sorted by namespace and name, so that it does not depend on the
// order of documents and files. Namespaces that are left out are "default". It is to be read, not changed; objects may
// share parts. The zero value is an empty cluster.
type Snapshot struct {
	// Pods are those of Pod manifests: running where spec.nodeName is set, pending where not, finished ones too.
	Pods []*corev1.Pod
	// Workloads are controllers with the pods that they still have to create; those that want none are left out.
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
	// NodeClasses are the objects with a cloud's own settings.
	NodeClasses []NodeClass
	// Settings are the data of the ConfigMap karpenter-global-settings; nil if there is none.
	Settings map[string]string

	// Defaults are [Options.Spread] with the Services and controllers that give pods the selectors; its method Pods gives the constraints
	// to pods. Without Options.Spread it changes no pod.
	Defaults defaultspread.Defaults

	// Notes are remarks for people on what was skipped or is missing but can be done without, in a stable order.
	Notes []string

	positions map[identity]Position
}

// NodeClass is an object with a cloud's own settings, such as EC2NodeClass.
type NodeClass struct {
	APIVersion, Kind, Name string
	// Position is where the object stands.
	Position Position
	// Raw is the object as JSON.
	Raw json.RawMessage
	// Value is what the decoder of [Options.Classes] made of it; nil without one.
	Value any
}

// ClassOf is the node class that a pool refers to, by group, kind and name; false if it is not there. A pool of karpenter.sh/v1alpha5 that names no
// kind means an AWSNodeTemplate, and a later one an EC2NodeClass.
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

// String is "Pod shop/web-0", or "Node n1" for what belongs to no namespace.
func (i identity) String() string {
	switch {
	case i.name == "":
		return i.kind
	case i.namespace == "":
		return i.kind + " " + short(i.name)
	}
	return i.kind + " " + short(i.namespace) + "/" + short(i.name)
}

// short cuts names that no object can have.
func short(name string) string {
	const most = 253
	if len(name) > most {
		return name[:most] + "..."
	}
	return name
}

// Position is where an object stands in the input, false if it is not there. The namespace is "" for kinds without.
func (s *Snapshot) Position(kind, namespace, name string) (Position, bool) {
	p, ok := s.positions[identity{kind, namespace, name}]
	return p, ok
}

// CountPods is the number of pods that [Snapshot.AllPods] yields.
func (s *Snapshot) CountPods() int {
	n := len(s.Pods)
	for i := range s.Workloads {
		n += s.Workloads[i].Len()
	}
	return n
}

// AllPods yields the pods of manifests and then those that the workloads still have to create, always in the same order.
// The created ones are new structs, each sharing everything but its name with its siblings.
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

// note adds a remark that counts.
func (s *Snapshot) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}
