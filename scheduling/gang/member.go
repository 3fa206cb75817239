package gang

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/scheduling"
)

// group is a group and its pods.
type group struct {
	Group
	pods     []*corev1.Pod // to place
	running  int
	need     int // how many of pods must be placed together; 0 if enough run
	priority int32
	demand   []float64 // of the needed pods, by resource
	kind     int       // groups of one kind need the same
	held     []string  // values of the key that nodes of its running pods have, in order
	heldBy   map[types.NamespacedName]string
}

// read finds the pods of the groups.
func (a *admission) read(groups []Group) {
	for _, g := range groups {
		a.groups = append(a.groups, group{Group: g, heldBy: map[types.NamespacedName]string{}})
	}
	place, nodes := map[types.NamespacedName]*corev1.Pod{}, map[string]*corev1.Node{}
	for _, c := range a.base.Classes {
		for _, pod := range c.Pods {
			place[nameOf(pod)] = pod
		}
	}
	for i := range a.base.Existing {
		nodes[a.base.Existing[i].Node.Name] = a.base.Existing[i].Node
	}
	kept := map[types.NamespacedName]bool{} // their places are kept for them
	for _, x := range a.base.Ignored {
		if _, there := nodes[x.Pod.Status.NominatedNodeName]; there {
			kept[nameOf(x.Pod)] = true
		}
	}
	leaving := map[string]bool{}
	for _, n := range a.snapshot.Nodes {
		leaving[n.Name] = nodes[n.Name] == nil
	}
	for _, pod := range a.snapshot.Pods {
		at, name := a.groupOf(pod), nameOf(pod)
		if at < 0 || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		g, anew := &a.groups[at], place[name]
		switch on := cmp.Or(pod.Spec.NodeName, pod.Status.NominatedNodeName); {
		case anew != nil: // also one whose leaving node still runs it
			pod = anew
		case pod.DeletionTimestamp != nil || leaving[pod.Spec.NodeName]:
			continue
		case pod.Spec.NodeName != "" || kept[name]:
			g.running++
			if n := nodes[on]; n != nil && g.Key != "" {
				if v, ok := n.Labels[g.Key]; ok {
					g.held, g.heldBy[name] = append(g.held, v), v
				}
			}
			continue
		}
		a.of[name] = at
		g.pods = append(g.pods, pod)
		g.priority = max(g.priority, priorityOf(pod))
	}
	a.reasons = make([]*scheduling.Reason, len(a.groups))
	for i := range a.groups {
		g := &a.groups[i]
		slices.Sort(g.held)
		g.held = slices.Compact(g.held)
		slices.SortFunc(g.pods, func(x, y *corev1.Pod) int {
			return cmp.Or(cmp.Compare(priorityOf(y), priorityOf(x)), scheduling.ComparePods(x, y))
		})
		g.need = max(0, cmp.Or(g.Minimum, g.running+len(g.pods))-g.running)
		for _, pod := range g.pods[:min(g.need, len(g.pods))] {
			a.needed[nameOf(pod)] = true
		}
		switch {
		case g.Waits != "":
			a.reasons[i] = &scheduling.Reason{Stage: scheduling.StageGroup, Detail: fmt.Sprintf("group %s waits: %s", g.Name, g.Waits)}
		case g.need > len(g.pods):
			a.reasons[i] = &scheduling.Reason{Stage: scheduling.StageGroup, Detail: fmt.Sprintf("group %s waits: it needs %d pods, and there are %d", g.Name, g.Minimum, g.running+len(g.pods))}
		}
	}
	a.drafts = a.mostDrafts()
	a.trials = min(mostTrials, draftedPods/max(1, len(a.of)))
}

// groupOf is the position of the pod's group; -1 for none.
func (a *admission) groupOf(pod *corev1.Pod) int {
	return slices.IndexFunc(a.groups, func(g group) bool { return g.Member(pod) })
}

func priorityOf(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

func nameOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(pod.Namespace, corev1.NamespaceDefault), Name: pod.Name}
}

// whole is the set of all groups that do not wait for something that no purchase brings.
func (a *admission) whole() []bool {
	out := make([]bool, len(a.groups))
	for i := range out {
		out[i] = a.reasons[i] == nil
	}
	return out
}
