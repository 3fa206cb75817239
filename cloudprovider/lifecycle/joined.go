package lifecycle

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// Works reports whether a node is ready, and known to be by those who taint nodes that are not.
func Works(node *corev1.Node) bool {
	return !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable
	}) && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// Lacks says what a node that has joined still lacks to count as initialized; empty = nothing. It has to be ready, without startup
// taints, and to offer some of every resource that was both asked for and promised: device plugins come later than their node.
// Volumes are counted by its CSINode.
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
