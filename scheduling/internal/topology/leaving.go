package topology

import (
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
)

// leaving is a node that takes no pods and will be gone. Until then kube-scheduler counts its pods, and it is a domain of spreads.
type leaving struct {
	Node
	pods   []interpod.Constraints // their anti-affinity and the groups that they are in
	values []int32
}

func (p *Problem) readLeaving(nodes []Node) {
	keeps := p.readRunning(nodes)
	for i := range nodes {
		p.leaving = append(p.leaving, leaving{Node: nodes[i], pods: keeps[i]})
	}
}

// placeLeaving finds the groups and values that leaving nodes count for.
func (p *Problem) placeLeaving() {
	for i := range p.leaving {
		n := &p.leaving[i]
		n.values = p.valuesOf(&n.Node)
		for k, pod := range n.Running {
			n.pods[k].MemberOf = p.index.MemberOf(pod.Namespace, pod.Labels)
		}
	}
}

// Leaves reports whether leaving nodes bear on where pods may go: a constraint counts one of their pods or keeps pods from it, or they are
// domains of a spread.
func (p *Problem) Leaves() bool {
	for i := range p.leaving {
		for k := range p.leaving[i].pods {
			if c := &p.leaving[i].pods[k]; len(c.MemberOf)+len(c.Terms) > 0 {
				return true
			}
		}
	}
	if len(p.leaving) == 0 {
		return false
	}
	for i := range p.groups {
		if p.groups[i].spread && !p.withinNode[i] {
			return true
		}
	}
	return false
}

// stay counts a pod of a leaving node, or stops that with n -1.
func (s *assigner) stay(o Origin, n int32) {
	node := &s.p.leaving[o.Node]
	passes := func(filter int32) bool { return s.p.filters[filter].passes(node.Labels) }
	s.state.Add(&node.pods[o.Pod], node.values, passes, node.Running[o.Pod].DeletionTimestamp != nil, n)
}

// stayAll counts all pods of leaving nodes.
func (s *assigner) stayAll() {
	if s.p.choice.Gone {
		return
	}
	for i := range s.p.leaving {
		for k := range s.p.leaving[i].Running {
			s.stay(Origin{i, k}, 1)
		}
	}
}

// lift stops counting the pods that the next n pods of a class replace, or counts them again with sign 1.
func (s *assigner) lift(class, n int, sign int32) {
	from := s.p.classes[class].From
	if s.p.choice.Gone {
		return
	}
	for k := s.assigned[class]; k < min(s.assigned[class]+n, len(from)); k++ {
		if from[k].Node >= 0 {
			s.stay(from[k], sign)
		}
	}
}
