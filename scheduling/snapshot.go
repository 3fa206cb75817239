// Package scheduling turns pods, pools and a cluster into what each pod still needs of a node, or why it can't have one.
//
// [Compile] reads a [Snapshot] once: pods become classes (pods that are alike in everything that bears on placement),
// instance types become shapes (what is left of a type once the daemons of a pool run on it), and existing nodes become
// rooms. Everything after that is a dialogue of rounds with a packer, in the manner of a state machine that returns
// work: [Problem.Start] settles which class goes to which domains, [State.Round] says what to pack, the packer answers
// with an [Outcome], and [State.Advance] settles again, from the start, with what was learnt. When [State.Done],
// [State.Result] says where every pod goes and in which order kube-scheduler will accept the bindings, and
// [State.Explain] why the others go nowhere.
//
// # What is decided here, and what by the packer
//
// Scheduling decides domains, the packer decides bins. A constraint on a domain (spread, affinity and anti-affinity over
// zones, capacity types or any label; volumes) is settled by giving pods to combinations of label values. A constraint
// within one node (host ports, anti-affinity and spread by hostname, attach limits) crosses as tags and limits: at most so
// many things with a tag while I am here. Pods that must share a node cross as one bundle. Taints cross as a
// pseudo-label: to tolerate is to accept its value.
//
// # Where the parts are
//
// Package podclass says which pods are alike and in what order they come, package volume where their volumes let them go,
// package admission what an API server makes of them, and package topology gives them to domains. Here they are put
// together: compiling, rounds, results and explanations.
//
// What a node must be is an element of package requirements throughout: nothing here compares labels by itself.
//
// All work depends on classes, domains and offerings; only dealing pods out at the end depends on pods. Nothing here
// reads a clock, and the same snapshot gives the same result whatever the order of its lists.
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
	// MostPods says what counts where pods exclude each other, so that some have to stay out: about as many pods as can be,
	// even if one stays out that Karpenter would place. By default nobody loses a place that Karpenter would give him, where
	// pools have no limits.
	MostPods bool
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
