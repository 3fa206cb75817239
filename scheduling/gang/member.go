package gang

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/scheduling"
)

// group is a group and its pods.
type group struct {
	Group
	pods     []*corev1.Pod // to place
	running  int
	selects  bool // constraints of its needed pods select pods of other groups
	need     int  // how many of pods must be placed together; 0 if enough run
	priority int32
	demand   []float64 // of the needed pods, by resource
	kind     int       // groups of one kind need the same
	held     []string  // values of the key on nodes of its running pods, in order
	heldBy   map[types.NamespacedName]string
}

// read finds the pods of the groups.
func (a *admission) read(groups []Group) {
	for _, g := range groups {
		a.groups = append(a.groups, group{Group: g, heldBy: map[types.NamespacedName]string{}})
	}
	a.pending = map[types.NamespacedName]bool{}
	place, nodes := map[types.NamespacedName]*corev1.Pod{}, map[string]map[string]string{}
	for _, c := range a.base.Classes {
		for _, pod := range c.Pods {
			place[nameOf(pod)] = pod
			a.pending[nameOf(pod)] = pod.Spec.NodeName == ""
		}
	}
	for i := range a.base.Existing {
		nodes[a.base.Existing[i].Node.Name] = a.base.Existing[i].Labels.Labels()
	}
	for _, n := range a.snapshot.Nodes {
		if nodes[n.Name] == nil { // it leaves, and a pod may stay there
			nodes[n.Name] = n.Labels
		}
	}
	runs := Running(a.base)
	for _, pod := range a.snapshot.Pods {
		at, name := a.groupOf(pod), nameOf(pod)
		if at < 0 || ended(pod) {
			continue
		}
		g, anew := &a.groups[at], place[name]
		switch {
		case anew != nil: // also if its leaving node still runs it
			pod = anew
		case runs(pod):
			g.running++
			if v, ok := nodes[cmp.Or(pod.Spec.NodeName, pod.Status.NominatedNodeName)][g.Key]; ok {
				g.held, g.heldBy[name] = append(g.held, v), v
			}
			continue
		case pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil: // it ends with its node
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
			a.reasons[i] = &scheduling.Reason{Stage: scheduling.StageGroup, Detail: fmt.Sprintf("group %s waits: it needs %d pods, but there are %d", g.Name, g.Minimum, g.running+len(g.pods))}
		}
	}
	a.selectPods()
	a.drafts = a.mostDrafts()
	a.trials[byDraft] = min(mostTrials, draftedPods/max(1, len(a.of)))
	a.trials[bySearch] = mostSearches
}

// selectPods finds the pods that affinity or a hard spread of needed pods selects, and, repeatedly,
// those that the constraints of these pods select. A needed pod may have a place only beside them.
// Namespaces are ignored, because an additional pod only costs time.
func (a *admission) selectPods() {
	a.selected = map[types.NamespacedName]bool{}
	for g := range a.groups {
		seen, queue := make([]bool, len(a.base.Classes)), []*corev1.Pod(nil)
		for i, c := range a.base.Classes {
			if slices.ContainsFunc(c.Pods, func(pod *corev1.Pod) bool { return a.needed[nameOf(pod)] && a.of[nameOf(pod)] == g }) {
				seen[i], queue = true, append(queue, c.Pods[0])
			}
		}
		for ; len(queue) > 0; queue = queue[1:] {
			for _, selector := range selectorsOf(queue[0]) {
				for i, c := range a.base.Classes {
					if !seen[i] && selector.Matches(labels.Set(c.Pods[0].Labels)) {
						seen[i], queue = true, append(queue, c.Pods[0])
					}
				}
			}
		}
		for i, c := range a.base.Classes {
			if !seen[i] {
				continue
			}
			for _, pod := range c.Pods {
				name := nameOf(pod)
				if of, ok := a.of[name]; ok && of != g {
					a.groups[g].selects = true
				}
				a.selected[name] = a.selected[name] || !a.needed[name]
			}
		}
	}
}

// selectorsOf returns the selectors of a pod's required affinity and hard spreads.
func selectorsOf(pod *corev1.Pod) []labels.Selector {
	var all []*metav1.LabelSelector
	if affinity := pod.Spec.Affinity; affinity != nil && affinity.PodAffinity != nil {
		for _, term := range affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			all = append(all, term.LabelSelector)
		}
	}
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.DoNotSchedule {
			all = append(all, c.LabelSelector)
		}
	}
	var out []labels.Selector
	for _, s := range all {
		if selector, err := metav1.LabelSelectorAsSelector(s); err == nil { // a pod with another is refused
			out = append(out, selector)
		}
	}
	return out
}

// Running returns a function that reports which pods of a problem's snapshot run, or will run
// without a plan. These are bound pods that are not being deleted, and pods whose place on a node
// is kept for them. Pods of leaving nodes run only if they are in [scheduling.Snapshot.Staying].
// The others do not: their controllers create them again, or they end.
func Running(p *scheduling.Problem) func(*corev1.Pod) bool {
	snapshot, stays, kept := p.Snapshot(), map[string]bool{}, map[*corev1.Pod]bool{}
	for i := range p.Existing {
		stays[p.Existing[i].Node.Name] = true
	}
	leaving := map[string]bool{}
	for _, n := range snapshot.Nodes {
		leaving[n.Name] = !stays[n.Name]
	}
	for _, x := range p.Ignored {
		kept[x.Pod] = stays[x.Pod.Status.NominatedNodeName]
	}
	return func(pod *corev1.Pod) bool {
		if ended(pod) || pod.DeletionTimestamp != nil {
			return false
		}
		if pod.Spec.NodeName == "" {
			return kept[pod]
		}
		return !leaving[pod.Spec.NodeName] || snapshot.Staying[nameOf(pod).String()] != ""
	}
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// groupOf returns the position of the pod's group; -1 for none.
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

// whole returns the set of all groups, without those that wait for something that no purchase
// brings.
func (a *admission) whole() []bool {
	out := make([]bool, len(a.groups))
	for i := range out {
		out[i] = a.reasons[i] == nil
	}
	return out
}
