package cloudprovider

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Register returns the node as it should be once it has joined: with the labels of its instance,
// and with the taints and startup taints of its claim. Call it once for each node, when the node
// first appears, and write the result to the API server. No provider can put all labels on a
// machine before it knows which machine it gets. A node without them accepts no pods that select
// them, so more and more nodes would be bought. After this one call, labels and taints belong to
// the cluster: a startup taint that was removed stays removed.
//
// Labels that the node has with another value are replaced. A taint is not added if the node has
// one with the same key and effect. The result shares no mutable data with the arguments.
func (i Instance) Register(c NodeClaim, node *corev1.Node) *corev1.Node {
	out := node.DeepCopy()
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	maps.Copy(out.Labels, i.Labels)
	for _, t := range slices.Concat(c.Taints, c.StartupTaints) {
		if !slices.ContainsFunc(out.Spec.Taints, func(have corev1.Taint) bool { return have.MatchTaint(&t) }) {
			out.Spec.Taints = append(out.Spec.Taints, *t.DeepCopy())
		}
	}
	return out
}
