package bruteforce

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// matchesNode is NodeAffinity: the node selector and one of the required terms must match.
func matchesNode(spec *corev1.PodSpec, n *corev1.Node) bool {
	for key, value := range spec.NodeSelector {
		if has, ok := n.Labels[key]; !ok || has != value {
			return false
		}
	}
	a := spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	return slices.ContainsFunc(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool {
		return matchesTerm(t, n)
	})
}

// matchesTerm says that a term without expressions matches no node.
func matchesTerm(t corev1.NodeSelectorTerm, n *corev1.Node) bool {
	for _, e := range t.MatchExpressions {
		value, has := n.Labels[e.Key]
		if !matchesExpression(e, value, has) {
			return false
		}
	}
	for _, e := range t.MatchFields { // metadata.name is the only one
		if !matchesExpression(e, n.Name, true) {
			return false
		}
	}
	return len(t.MatchExpressions)+len(t.MatchFields) > 0
}

func matchesExpression(e corev1.NodeSelectorRequirement, value string, has bool) bool {
	switch e.Operator {
	case corev1.NodeSelectorOpIn:
		return has && slices.Contains(e.Values, value)
	case corev1.NodeSelectorOpNotIn:
		return !has || !slices.Contains(e.Values, value)
	case corev1.NodeSelectorOpExists:
		return has
	case corev1.NodeSelectorOpDoesNotExist:
		return !has
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		is, err := strconv.ParseInt(value, 10, 64)
		than, err2 := strconv.ParseInt(e.Values[0], 10, 64)
		return has && err == nil && err2 == nil && (e.Operator == corev1.NodeSelectorOpGt && is > than || e.Operator == corev1.NodeSelectorOpLt && is < than)
	}
	return false
}

// toleratesAll is TaintToleration: every taint of the effects NoSchedule and NoExecute must be
// tolerated.
func toleratesAll(tolerations []corev1.Toleration, taints []corev1.Taint) bool {
	return !slices.ContainsFunc(taints, func(taint corev1.Taint) bool {
		return taint.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
			return (t.Effect == "" || t.Effect == taint.Effect) && (t.Key == "" && t.Operator == corev1.TolerationOpExists ||
				t.Key == taint.Key && (t.Operator == corev1.TolerationOpExists || t.Value == taint.Value))
		})
	})
}

// portsConflict is NodePorts: two host ports conflict if port and protocol are equal, and their
// addresses are equal or one of them is any address.
func portsConflict(a, b *corev1.PodSpec) bool {
	for _, p := range hostPorts(a) {
		for _, q := range hostPorts(b) {
			if p.HostPort == q.HostPort && p.Protocol == q.Protocol && (p.HostIP == q.HostIP || p.HostIP == "" || q.HostIP == "") {
				return true
			}
		}
	}
	return false
}

// hostPorts are the host ports of a pod, with the default protocol, and no address for any.
func hostPorts(spec *corev1.PodSpec) (out []corev1.ContainerPort) {
	for _, c := range spec.Containers {
		for _, p := range c.Ports {
			if p.HostPort == 0 {
				continue
			}
			if p.Protocol == "" {
				p.Protocol = corev1.ProtocolTCP
			}
			if p.HostIP == "0.0.0.0" {
				p.HostIP = ""
			}
			out = append(out, p)
		}
	}
	return out
}

// amount is cpu in thousandths, memory in bytes, and a number of pods.
type amount [3]int64

func amountOf(list corev1.ResourceList) amount {
	return amount{list.Cpu().MilliValue(), list.Memory().Value(), list.Pods().Value()}
}

// requestOf is what a pod takes: the sum of its containers, and one place.
func requestOf(spec *corev1.PodSpec) amount {
	sum := amount{2: 1}
	for _, c := range spec.Containers {
		r := amountOf(c.Resources.Requests)
		sum[0], sum[1] = sum[0]+r[0], sum[1]+r[1]
	}
	return sum
}
