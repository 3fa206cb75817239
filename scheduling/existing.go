package scheduling

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/hostport"
	"github.com/joinery-sdk/joinery/scheduling/internal/taints"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
	"github.com/joinery-sdk/joinery/scheduling/podclass"
	"github.com/joinery-sdk/joinery/scheduling/volume"
)

// Taints of nodes on their way out; karpenter.sh sets them.
const (
	taintDisrupted  = "karpenter.sh/disrupted"
	taintDisruption = "karpenter.sh/disruption" // the name before v1
)

// leaving reports whether the node is on its way out, so that nothing new may go there.
func leaving(n *corev1.Node) bool {
	if n.DeletionTimestamp != nil {
		return true
	}
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == taintDisrupted || t.Key == taintDisruption
	})
}

// compileRooms works out what the existing nodes have free. Nodes that are initialized come first, then by name.
func (p *Problem) compileRooms(running map[string][]*corev1.Pod, aliases requirements.Aliases) {
	startup := map[string][]corev1.Taint{}
	for _, pool := range p.snapshot.Pools {
		startup[pool.Name] = pool.StartupTaints
	}
	known := make(map[string]bool, len(p.snapshot.Nodes))
	for _, n := range p.snapshot.Nodes {
		known[n.Name] = true
		if leaving(n) {
			note := fmt.Sprintf("node %s is being removed and takes no pods", n.Name)
			if k := p.moved[n.Name]; k > 0 {
				note += fmt.Sprintf("; %d of its own are planned elsewhere", k)
			}
			p.Notes = append(p.Notes, note)
			continue
		}
		p.Existing = append(p.Existing, p.existing(n, running[n.Name], startup, aliases))
	}
	for _, name := range slices.Sorted(maps.Keys(running)) {
		if !known[name] {
			p.Notes = append(p.Notes, fmt.Sprintf("node %s, which %d pods run on, is not among the nodes", name, len(running[name])))
		}
	}
	slices.SortStableFunc(p.Existing, func(a, b ExistingNode) int {
		if x, y := taints.StartingUp(a.Node), taints.StartingUp(b.Node); x != y {
			if x {
				return 1
			}
			return -1
		}
		return strings.Compare(a.Node.Name, b.Node.Name)
	})
	slices.Sort(p.Notes)
}

func (p *Problem) existing(n *corev1.Node, pods []*corev1.Pod, startup map[string][]corev1.Taint, aliases requirements.Aliases) ExistingNode {
	labels := aliases.Labels(n.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	if _, ok := labels[corev1.LabelHostname]; !ok {
		labels[corev1.LabelHostname] = n.Name
	}
	labels[requirements.NodeNameKey] = n.Name
	lasting := lastingTaints(n, startup[labels[nodepool.LabelKey]])
	r := ExistingNode{Node: n, running: pods, attached: p.volumes.Attached(pods), taintSet: p.taints.Intern(lasting), taints: lasting}
	labels[taints.Key] = taints.Value(r.taintSet)
	r.Labels = requirements.FromLabels(labels)

	r.Free = make([]int64, len(p.Resources))
	for i, name := range p.Resources {
		if q, ok := n.Status.Allocatable[name]; ok {
			r.Free[i] = resources.Capacity(name, q)
		} else if q, ok := n.Status.Capacity[name]; ok {
			r.Free[i] = resources.Capacity(name, q)
		}
	}
	for i, name := range p.Resources {
		if driver, ok := volume.Driver(name); ok {
			r.Free[i] = p.volumes.AttachRoom(n.Name, driver, pods)
		}
	}
	present := make([]bool, len(p.daemons))
	take := func(list corev1.ResourceList, ports []hostport.Port) {
		subtract(r.Free, p.vector(list))
		tags, limits := hostport.Tags(ports)
		r.Tags = append(r.Tags, tags...)
		r.Limits = append(r.Limits, limits...)
	}
	var last *corev1.Pod
	var list corev1.ResourceList
	for _, pod := range pods {
		if last == nil || !podclass.SameTemplate(last, pod) || len(pod.Status.ContainerStatuses) > 0 {
			list = podclass.Requests(p.snapshot.Admission.Pod(pod), true)
		}
		last = pod
		r.ports = append(r.ports, hostport.Of(pod)...)
		take(list, hostport.Of(pod))
		for i, d := range p.daemons {
			present[i] = present[i] || d.owns(pod)
		}
	}
	for i, d := range p.daemons {
		if !present[i] && d.tolerates(lasting) && d.required.Compatible(r.Labels, requirements.Keys{}) {
			take(d.requests, d.ports)
			r.missing = append(r.missing, i)
			if short := slices.IndexFunc(r.Free, func(f int64) bool { return f < 0 }); short >= 0 {
				p.Notes = append(p.Notes, fmt.Sprintf("node %s has no room for DaemonSet %s/%s: short of %s", n.Name, d.namespace, d.name, p.Resources[short]))
			}
		}
	}
	return r
}

// lastingTaints leaves out what will be gone when a starting node is ready, and spells out a cordon.
func lastingTaints(n *corev1.Node, startup []corev1.Taint) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range n.Spec.Taints {
		if taints.StartingUp(n) && (taints.Ephemeral(t) || slices.ContainsFunc(startup, func(s corev1.Taint) bool { return s.MatchTaint(&t) })) {
			continue
		}
		out = append(out, t)
	}
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if n.Spec.Unschedulable && !slices.ContainsFunc(out, func(t corev1.Taint) bool { return t.MatchTaint(&cordon) }) {
		out = append(out, cordon)
	}
	return out
}

// spare is what is free of a node for pods of the class, where so much is left: volumes that are attached already need no
// more room.
func (p *Problem) spare(c *Class, r *ExistingNode, left []int64) []int64 {
	for _, a := range c.shared {
		if slices.Contains(r.attached, a.Volume) {
			left = slices.Clone(left)
			at := slices.Index(p.Resources, a.Limit)
			left[at] = max(left[at], 0) + 1
		}
	}
	return left
}
