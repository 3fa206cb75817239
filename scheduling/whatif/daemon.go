package whatif

import (
	"slices"

	"github.com/joinery-sdk/joinery/instancetypes/resources"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/requirements/kube"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/internal/bind"
	"github.com/joinery-sdk/joinery/scheduling/internal/hostport"
	"github.com/joinery-sdk/joinery/scheduling/internal/podclass"
)

// daemonSet is the pod that a DaemonSet runs on each bought node.
type daemonSet struct {
	bind.Class
	pod *corev1.Pod
}

// compileDaemons reads the DaemonSets. It must run before any class is joined with the groups that count it.
func (e *engine) compileDaemons(s *scheduling.Snapshot) {
	for _, d := range s.DaemonSets {
		p, yes := e.admission.DaemonPod(d), true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: d.Name, UID: d.UID, Controller: &yes}}
		x := &daemonSet{bind.Class{Need: e.vector(resources.OfPod(p, false)), Ports: hostport.Of(p)}, p}
		asked, _ := kube.FromPod(&p.Spec)
		all, err := e.index.Read(p, asked.Required)
		if err != nil { // package scheduling counts it nowhere
			continue
		}
		x.Constraints, _ = all.Split()
		e.daemons[podclass.Name(p)] = x
	}
}

// daemonsOf are the DaemonSets that run on nodes of the shape, in the order in which their pods are bound.
func (e *engine) daemonsOf(shape int) []*daemonSet {
	names, _ := e.problem.Daemons(shape)
	var out []*daemonSet
	for _, name := range names {
		out = append(out, e.daemons[name])
	}
	return out
}

// expect adds the daemons that are still to start on the node. Their need is not free any more.
func (e *engine) expect(n *node, names []string) {
	for _, name := range names {
		d := e.daemons[name]
		n.Ports = append(n.Ports, d.Ports...)
		if len(d.MemberOf)+len(d.Terms) > 0 {
			n.daemons = append(n.daemons, &d.Class)
		}
	}
}

// countDaemons adds the node's daemons to the counts, or takes them off with sign -1.
func (e *engine) countDaemons(n *node, sign int32) {
	for _, d := range n.daemons {
		if n.bought != nil {
			e.cluster.Count(d, &n.Node, false, sign)
		} else {
			e.cluster.CountMoving(d, &n.Node, n.Values, false, sign)
		}
	}
}

// counted reports whether some constraint between pods counts a daemon on a bought node.
func (b *buying) counted() bool {
	return slices.ContainsFunc(b.bought, func(n int32) bool { return len(b.e.nodes[n].daemons) > 0 })
}
