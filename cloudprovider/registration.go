package cloudprovider

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Register returns the node as it has to be once it has joined: with the labels of its instance, and with the taints and startup taints of its
// claim. Call it once for each node, when it shows for the first time, and write what it returns to the API server: no provider can put all labels on a
// machine before it knows which one it gets, and a node without them takes no pods that select them, so that more and more would be bought.
// Afterwards labels and taints belong to the cluster: a startup taint that was removed stays removed.
//
// Labels that the node has with another value are replaced. Taints with the key and effect of one that the node has are not added. It shares nothing
// with its arguments that can be changed.
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
