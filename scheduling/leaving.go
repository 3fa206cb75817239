package scheduling

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/bind"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
	"github.com/joinery-sdk/joinery/scheduling/internal/podclass"
	"github.com/joinery-sdk/joinery/scheduling/internal/taints"
	"github.com/joinery-sdk/joinery/scheduling/internal/topology"
)

// leavingNode is a node that is being removed. It takes no pods. Until it is gone kube-scheduler counts the pods there, and it is a domain of
// spreads.
type leavingNode struct {
	node   *corev1.Node
	labels map[string]string // those that it shows, and its name under the key of matchFields
	taints []corev1.Taint
	pods   []*corev1.Pod
}

// leavingNodes are those that have joined, in the order of the snapshot.
func (p *Problem) leavingNodes() []leavingNode {
	var out []leavingNode
	for i := range p.members {
		m := &p.members[i]
		if !m.leaving || m.inFlight {
			continue
		}
		n := leavingNode{node: m.node, labels: map[string]string{}, taints: slices.Clip(m.node.Spec.Taints), pods: p.staying[m.node.Name]}
		maps.Copy(n.labels, m.node.Labels)
		if m.node.Spec.Unschedulable {
			n.taints = append(n.taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
		}
		n.labels[requirements.NodeNameKey], n.labels[taints.Key] = m.node.Name, taints.Value(p.taints.Intern(n.taints))
		out = append(out, n)
	}
	return out
}

// origins say which pod of a leaving node ends before each pod of the class is bound, by Class.order.
func (p *Problem) origins(c *Class) []topology.Origin {
	if len(p.origin) == 0 {
		return nil
	}
	var out []topology.Origin
	for k, pod := range c.order() {
		o, ok := p.origin[pod]
		if !ok {
			continue
		}
		for len(out) < k {
			out = append(out, topology.Origin{Node: -1})
		}
		out = append(out, o)
	}
	return out
}

// order is the pods in the order in which they are assigned: those that are pending now, then those that leaving nodes still run.
func (c *Class) order() []*corev1.Pod {
	if c.inOrder != nil {
		return c.inOrder
	}
	return c.Pods
}

// putInOrder sets the order of each class, and where the pods of leaving nodes come from.
func (p *Problem) putInOrder() {
	p.origin = map[*corev1.Pod]topology.Origin{}
	for n := range p.leaving {
		for k, old := range p.leaving[n].pods {
			if next, ok := p.successor[old]; ok {
				p.origin[next] = topology.Origin{Node: n, Pod: k}
			}
		}
	}
	for _, c := range p.Classes {
		moves := func(pod *corev1.Pod) bool { _, ok := p.origin[pod]; return ok }
		if slices.ContainsFunc(c.Pods, moves) {
			stays := slices.DeleteFunc(slices.Clone(c.Pods), moves)
			c.inOrder = append(stays, slices.DeleteFunc(slices.Clone(c.Pods), func(pod *corev1.Pod) bool { return !moves(pod) })...)
		}
	}
}

// leavingForTopology are the leaving nodes as package topology reads them.
func (p *Problem) leavingForTopology() []topology.Node {
	var out []topology.Node
	for _, n := range p.leaving {
		out = append(out, topology.Node{Labels: requirements.FromLabels(n.labels), Running: withLabelKeys(n.pods)})
	}
	return out
}

// verifiedLeaving is a leaving node with its pods as the verifier counts them.
type verifiedLeaving struct {
	bind.Node
	pods []leavingPod
}

type leavingPod struct {
	bind.Class
	terminating bool
	claims      []string // that no other pod may use meanwhile
}

// leave counts the leaving nodes and their pods.
func (v *verifier) leave(constraints [][]interpod.Constraints, memberOf func(*corev1.Pod) []int32) {
	v.leaving = make([]verifiedLeaving, len(v.p.leaving))
	for i := range v.p.leaving {
		from, n := &v.p.leaving[i], &v.leaving[i]
		v.cluster.Describe(&n.Node, from.labels, from.taints)
		for k, pod := range from.pods {
			own := leavingPod{bind.Class{Constraints: constraints[i][k]}, pod.DeletionTimestamp != nil, v.p.volumes.Exclusive(pod)}
			if memberOf != nil {
				own.MemberOf = memberOf(pod)
			}
			n.pods = append(n.pods, own)
			v.cluster.Count(&n.pods[k].Class, &n.Node, own.terminating, 1)
			for _, claim := range own.claims {
				v.claimed[claim]++
			}
		}
		v.cluster.CountNode(&n.Node, 1)
	}
}

// end stops counting the pod of a leaving node that the pod replaces, or counts it again with sign 1. Without one, or when its node is gone, it
// does nothing.
func (r *verification) end(pod *corev1.Pod, sign int32) {
	o, ok := r.p.origin[pod]
	if !ok || o.Node < r.gone {
		return
	}
	r.count(o, sign)
	if sign < 0 {
		r.ended[o] = true
	} else {
		delete(r.ended, o)
	}
}

// count counts a pod of a leaving node, or stops that with sign -1.
func (r *verification) count(o topology.Origin, sign int32) {
	n := &r.leaving[o.Node]
	pod := &n.pods[o.Pod]
	r.cluster.Count(&pod.Class, &n.Node, pod.terminating, sign)
	for _, claim := range pod.claims {
		r.claimed[claim] += int(sign)
	}
}

// depart takes the next leaving node away, with the pods that are still there.
func (r *verification) depart() {
	n := &r.leaving[r.gone]
	for k := range n.pods {
		if o := (topology.Origin{Node: r.gone, Pod: k}); !r.ended[o] {
			r.count(o, -1)
		}
	}
	r.cluster.CountNode(&n.Node, -1)
	r.gone++
}

// outlast places what others let in beside leaving nodes, and binds what was refused after one of these after the other is gone.
func (r *verification) outlast(held, order []binding, open []seat) []binding {
	held = r.complete(held, open)
	for r.gone < len(r.leaving) {
		r.depart()
		bound := boundBy(held)
		held = append(held, r.bind(slices.DeleteFunc(slices.Clone(order), func(b binding) bool { return bound[b.pod] }))...)
	}
	return held
}

// Notes are [Problem.Notes], and one for the placed pods that wait until leaving nodes are gone.
func (r *Result) Notes() []string {
	out := slices.Clip(r.state.p.Notes)
	var first *corev1.Pod
	last := 0
	for _, b := range r.state.bound {
		if b.gone > 0 && first == nil {
			first = b.pod
		}
		last = max(last, b.gone)
	}
	if first == nil {
		return out
	}
	var names []string
	for _, n := range r.state.p.leaving[:last] {
		names = append(names, n.node.Name)
	}
	return append(out, fmt.Sprintf("%d pods, %s the first, wait until %s gone: until then kube-scheduler refuses them for the pods there, or because a leaving node counts for their spread",
		r.state.waiting(), podclass.Name(first), areGone(names)))
}

// areGone names nodes with their verb.
func areGone(nodes []string) string {
	switch n := len(nodes); {
	case n == 1:
		return "node " + nodes[0] + " is"
	case n <= 3:
		return "nodes " + strings.Join(nodes[:n-1], ", ") + " and " + nodes[n-1] + " are"
	default:
		return fmt.Sprintf("node %s and %d other leaving ones are", nodes[0], n-1)
	}
}

// waiting counts the pods that wait until leaving nodes are gone.
func (s *state) waiting() int {
	n := 0
	for _, b := range s.bound {
		if b.gone > 0 {
			n++
		}
	}
	return n
}
