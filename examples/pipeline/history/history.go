// Package history is a cluster over time: which pods ran on which nodes, and when. A [History] is
// read from snapshots in a folder, from the audit log of an API server, or from the log of
// Karpenter. It can be written as an audit log.
package history

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/instancetypes"
)

// History is a sequence of observations of one cluster. It must only be read. The zero value is
// empty.
type History struct {
	// Cluster has what does not change: pools, node classes, DaemonSets, volumes and budgets. Its
	// pods, nodes and claims do not count.
	Cluster *manifests.Snapshot
	// Observations are in order of time. There is at least one, and no two are of the same moment.
	Observations []Observation
	// Until is the end of the last observation.
	Until time.Time
	// Notes say what could not be read, with counts.
	Notes []string
}

// Observation is a cluster at one moment. It holds until the next one: changes in between are not
// known.
type Observation struct {
	At time.Time
	// Pods are sorted by namespace and name, Nodes by name. A pod with a node runs there; one
	// without a node waits.
	Pods  []*corev1.Pod
	Nodes []*corev1.Node
	// LastPodEvent is when a pod last came to or left a node, by node name, if known.
	LastPodEvent map[string]time.Time
	// TakenBack are the names, sorted, of the nodes that the cloud takes back, as far as it had
	// announced that by this moment. The source is Karpenter's log or a taint of
	// aws-node-termination-handler.
	TakenBack []string
}

// spotTaint is the taint that aws-node-termination-handler puts on a node whose spot machine is
// about to be taken back.
const spotTaint = "aws-node-termination-handler/spot-itn"

// New returns the history of the observations, in any order, until the given moment. Of two
// observations of one moment, the later one in the list is used. The error says that there is no
// observation, or that the end is not after the last one. Pods get the default topology spread of
// the cluster's manifests.
func New(cluster *manifests.Snapshot, list []Observation, until time.Time, notes ...string) (*History, error) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Observation) int { return a.At.Compare(b.At) })
	spread := map[*corev1.Pod]*corev1.Pod{}
	if cluster != nil && len(cluster.Defaults.Constraints) > 0 {
		spread = defaulted(list, cluster)
		names := map[string]bool{}
		for p := range spread {
			names[eviction.Name(p)] = true
		}
		notes = slices.Concat(notes, []string{fmt.Sprintf("recorded pods with the default topology spread, which have none of their own and are selected by a Service or a controller: %d", len(names))})
	}
	out := &History{Cluster: cluster, Until: until, Notes: notes}
	var back []string // so far
	for i, o := range list {
		if i+1 < len(list) && list[i+1].At.Equal(o.At) {
			continue
		}
		o.Pods, o.Nodes = slices.Clone(o.Pods), slices.Clone(o.Nodes)
		for k, p := range o.Pods {
			o.Pods[k] = cmp.Or(spread[p], p)
		}
		for _, n := range o.Nodes {
			if slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == spotTaint }) {
				back = append(back, n.Name)
			}
		}
		back = append(back, o.TakenBack...)
		slices.Sort(back)
		back = slices.Compact(back)
		o.TakenBack = slices.Clone(back)
		slices.SortStableFunc(o.Pods, func(a, b *corev1.Pod) int { return strings.Compare(eviction.Name(a), eviction.Name(b)) })
		slices.SortStableFunc(o.Nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
		out.Observations = append(out.Observations, o)
	}
	if len(out.Observations) == 0 {
		return nil, errors.New("history: nothing was observed")
	}
	if last := out.Observations[len(out.Observations)-1].At; !until.After(last) {
		return nil, fmt.Errorf("history: it ends at %s, which is not after the last observation at %s", stamp(until), stamp(last))
	}
	if cluster == nil {
		out.Cluster = &manifests.Snapshot{}
	}
	return out, nil
}

// defaulted returns the pods that get the default topology spread of the cluster, with it.
func defaulted(list []Observation, cluster *manifests.Snapshot) map[*corev1.Pod]*corev1.Pod {
	known := map[*corev1.Pod]bool{}
	var all []*corev1.Pod
	for _, o := range list {
		for _, p := range o.Pods {
			if !known[p] {
				known[p] = true
				all = append(all, p)
			}
		}
	}
	out := map[*corev1.Pod]*corev1.Pod{}
	for i, p := range cluster.Defaults.Pods(all) {
		if p != all[i] {
			out[all[i]] = p
		}
	}
	return out
}

// SameMachine reports whether two nodes of one name, from different observations, are one machine.
// Their UIDs decide if both are known. Otherwise a machine keeps its creation time, its type, zone
// and capacity type. Times of nodes with and without a UID are not compared, because they come from
// different sources.
func SameMachine(a, b *corev1.Node) bool {
	switch created := &b.CreationTimestamp; {
	case a.UID != "" && b.UID != "":
		return a.UID == b.UID
	case a.UID == b.UID && !a.CreationTimestamp.IsZero() && !created.IsZero() && !a.CreationTimestamp.Equal(created):
		return false
	}
	return !slices.ContainsFunc([]string{corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone, instancetypes.LabelCapacityType}, func(key string) bool {
		return a.Labels[key] != "" && b.Labels[key] != "" && a.Labels[key] != b.Labels[key]
	})
}

// End returns when observation i ends.
func (h *History) End(i int) time.Time {
	if i+1 < len(h.Observations) {
		return h.Observations[i+1].At
	}
	return h.Until
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// change is one change of one pod or node.
type change struct {
	at time.Time
	// Exactly one of these is set.
	pod  *corev1.Pod  // the pod after the change
	node *corev1.Node // the node after the change
	bind *binding
	gone *removal
	name *registration
	back string // a claim or a node that the cloud takes back
}

type binding struct{ pod, node string }

// removal is a pod or a node that is gone. UID is empty if the source does not have it.
type removal struct {
	kind, name, uid string
}

// registration says which node a claim has become.
type registration struct{ claim, node string }

// player replays changes.
type player struct {
	pods    map[string]*corev1.Pod
	nodes   map[string]*corev1.Node
	claims  map[string]string // name of the node by claim
	ended   map[string]bool   // by UID, because a status may be written after the end
	touched map[string]time.Time
	back    []string // nodes that the cloud takes back
}

func (p *player) play(c change) {
	switch {
	case c.back != "":
		p.back = append(p.back, cmp.Or(p.claims[c.back], c.back))
	case c.pod != nil:
		key := eviction.Name(c.pod)
		before := p.pods[key]
		if p.ended[string(c.pod.UID)] && c.pod.UID != "" {
			return
		}
		pod := c.pod
		if before != nil && before.UID == pod.UID && pod.Spec.NodeName == "" && before.Spec.NodeName != "" {
			pod = placed(pod, before.Spec.NodeName) // an event that was written late
		}
		p.moved(before, pod, c.at)
		p.pods[key] = pod
	case c.bind != nil:
		if before := p.pods[c.bind.pod]; before != nil {
			pod := placed(before, c.bind.node)
			p.moved(before, pod, c.at)
			p.pods[c.bind.pod] = pod
		}
	case c.node != nil:
		if c.node.UID == "" || !p.ended[string(c.node.UID)] {
			p.nodes[c.node.Name] = c.node
		}
	case c.name != nil:
		p.claims[c.name.claim] = c.name.node
		if n := p.nodes[c.name.claim]; n != nil && c.name.claim != c.name.node {
			delete(p.nodes, c.name.claim)
			if p.nodes[c.name.node] == nil {
				renamed := *n
				renamed.Name = c.name.node
				p.nodes[c.name.node] = &renamed
			}
		}
	case c.gone.kind == "Pod":
		if before := p.pods[c.gone.name]; before != nil && (c.gone.uid == "" || c.gone.uid == string(before.UID)) {
			p.ended[string(before.UID)] = true
			p.moved(before, nil, c.at)
			delete(p.pods, c.gone.name)
		}
	case c.gone.kind == "NodeClaim":
		delete(p.nodes, cmp.Or(p.claims[c.gone.name], c.gone.name))
	default:
		if before := p.nodes[c.gone.name]; before != nil && (c.gone.uid == "" || before.UID == "" || c.gone.uid == string(before.UID)) {
			p.ended[string(before.UID)] = true
			delete(p.nodes, c.gone.name)
		}
	}
}

// moved records at the nodes of a pod that it came or left.
func (p *player) moved(before, after *corev1.Pod, at time.Time) {
	node := func(pod *corev1.Pod) string {
		if pod == nil || eviction.Ended(pod) {
			return ""
		}
		return pod.Spec.NodeName
	}
	if a, b := node(before), node(after); a != b {
		for _, name := range []string{a, b} {
			if name != "" {
				p.touched[name] = at
			}
		}
	}
}

func placed(p *corev1.Pod, node string) *corev1.Pod {
	q := *p
	q.Spec.NodeName = node
	return &q
}

// observations replays the changes from the first observation on. It observes the cluster at the
// end of each step in which something happened.
func observations(first Observation, changes []change, step time.Duration) []Observation {
	slices.SortStableFunc(changes, func(a, b change) int { return a.at.Compare(b.at) })
	p := player{pods: map[string]*corev1.Pod{}, nodes: map[string]*corev1.Node{}, claims: map[string]string{}, ended: map[string]bool{}, touched: map[string]time.Time{}}
	for _, pod := range first.Pods {
		p.pods[eviction.Name(pod)] = pod
	}
	for _, n := range first.Nodes {
		p.nodes[n.Name] = n
	}
	var out []Observation
	if len(first.Pods)+len(first.Nodes) > 0 {
		out = append(out, first)
	}
	for i, c := range changes {
		p.play(c)
		at := ceil(c.at, step)
		if i+1 < len(changes) && ceil(changes[i+1].at, step).Equal(at) {
			continue
		}
		o := Observation{At: at, LastPodEvent: map[string]time.Time{}, TakenBack: slices.Clone(p.back)}
		for _, pod := range p.pods {
			if !eviction.Ended(pod) {
				o.Pods = append(o.Pods, pod)
			}
		}
		for name, n := range p.nodes {
			o.Nodes = append(o.Nodes, n)
			if t, ok := p.touched[name]; ok && !t.Before(n.CreationTimestamp.Time) { // otherwise of an earlier machine
				o.LastPodEvent[name] = t
			}
		}
		out = append(out, o)
	}
	return out
}

// ceil returns the end of the step that contains the moment.
func ceil(t time.Time, step time.Duration) time.Time {
	if down := t.Truncate(step); !down.Equal(t) {
		return down.Add(step)
	}
	return t
}
