package scheduling

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling/admission"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
	"github.com/joinery-sdk/joinery/scheduling/volume"
)

// Snapshot is everything that bears on where pods can go, at one moment. It is plain data and is only read; pods that
// share slices or maps of their specs (replicas made from one template) are recognised as alike without being compared.
// The zero value is an empty cluster.
type Snapshot struct {
	// Pods are all pods, in any order: those with a node are running there, the others are pending.
	Pods []*corev1.Pod
	// Nodes are the nodes that exist.
	Nodes []*corev1.Node
	// Pools are what may be bought.
	Pools []Pool
	// DaemonSets run on every node that their pods tolerate and select.
	DaemonSets []*appsv1.DaemonSet
	// Namespaces are needed for their labels, where affinity selects by them.
	Namespaces []*corev1.Namespace
	// Volumes are what decides where pods with volumes can go.
	Volumes volume.Objects
	// Admission holds what an API server consults before it stores a pod.
	Admission admission.Cluster
}

// Pool is a node pool with everything that its cloud can offer it, types that its requirements shut out included: they
// make refusals explain themselves. Pools may share one slice of types.
type Pool struct {
	nodepool.NodePool
	Types []instancetypes.InstanceType
}

// Options are the choices of [Compile] that a snapshot does not make. nil means defaults.
type Options struct {
	// IgnorePreferences drops every soft constraint from the start. By default they are tried as if they were hard and
	// given up one at a time.
	IgnorePreferences bool
	// Constraints are rules of the caller's own, applied to every class of pods after the built-in ones.
	Constraints []Constraint
}

// knownNamespaces is every namespace that an object or a pod names, with its labels; each carries its own name as a
// label, as the API server sees to.
func (s *Snapshot) knownNamespaces() map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, p := range s.Pods {
		if _, ok := out[p.Namespace]; !ok {
			out[p.Namespace] = map[string]string{corev1.LabelMetadataName: p.Namespace}
		}
	}
	for _, n := range s.Namespaces {
		set := map[string]string{corev1.LabelMetadataName: n.Name}
		maps.Copy(set, n.Labels)
		out[n.Name] = set
	}
	return out
}
