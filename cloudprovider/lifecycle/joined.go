package lifecycle

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// Works reports whether a node is ready and has none of the taints that mark a node as not ready.
func Works(node *corev1.Node) bool {
	return !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable
	}) && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// Lacks says what a node that has joined still lacks to count as initialized. It is empty if
// nothing is missing. The node has to be ready, and without startup taints and the taint
// node.cloudprovider.kubernetes.io/uninitialized. It has to offer some of every resource that was
// both requested and promised, because device plugins start later than their node. Resources that
// count volumes are not required, because a node never lists them: its CSINode has the limit.
func Lacks(node *corev1.Node, startup []corev1.Taint, requests, promised corev1.ResourceList) string {
	if !Works(node) {
		return "the node is not ready"
	}
	for _, t := range node.Spec.Taints {
		if t.Key == "node.cloudprovider.kubernetes.io/uninitialized" || slices.ContainsFunc(startup, func(s corev1.Taint) bool { return s.MatchTaint(&t) }) {
			return "the node has the taint " + t.ToString()
		}
	}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		asked, capacity, have := requests[name], promised[name], node.Status.Allocatable[name]
		if !asked.IsZero() && !capacity.IsZero() && have.IsZero() && !resources.CountsVolumes(name) {
			return fmt.Sprintf("the node does not offer %s yet", name)
		}
	}
	return ""
}
