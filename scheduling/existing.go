package scheduling

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
	"github.com/joinery-sdk/joinery/scheduling/internal/admission"
	"github.com/joinery-sdk/joinery/scheduling/internal/bind"
	"github.com/joinery-sdk/joinery/scheduling/internal/hostport"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
	"github.com/joinery-sdk/joinery/scheduling/internal/nodefeature"
	"github.com/joinery-sdk/joinery/scheduling/internal/nodekind"
	"github.com/joinery-sdk/joinery/scheduling/internal/podclass"
	"github.com/joinery-sdk/joinery/scheduling/internal/podfault"
	"github.com/joinery-sdk/joinery/scheduling/internal/taints"
	"github.com/joinery-sdk/joinery/scheduling/internal/topology"
	"github.com/joinery-sdk/joinery/scheduling/internal/volume"
)

// compileExisting lists the existing nodes with their free capacity: initialized nodes first, then
// by name.
func (p *Problem) compileExisting(running map[string][]*corev1.Pod) {
	known := make(map[string]bool, len(p.members))
	caches := sync.Pool{New: func() any { return new(podclass.Totals[[]int64]) }}
	requests := make([][][]int64, len(p.members)) // by member and pod
	inParallel(len(p.members), func(i int) {
		totals := caches.Get().(*podclass.Totals[[]int64])
		requests[i] = p.requestsOf(running[p.members[i].node.Name], totals)
		caches.Put(totals)
	})
	for i := range p.members {
		m := &p.members[i]
		known[m.node.Name] = true
		if m.inFlight {
			maps.Copy(m.labels, p.featuresOf(m.pool))
		}
		if m.inFlight && len(m.allocatable) == 0 && !m.leaving {
			p.Notes = append(p.Notes, fmt.Sprintf("claim %s does not say what its node will have, so the same capacity may be bought twice: ask its provider for the claim again", m.claim))
		}
		if m.leaving {
			note := fmt.Sprintf("node %s is being removed and takes no pods", m.node.Name)
			if k := p.moved[m.node.Name]; k > 0 {
				note += fmt.Sprintf("; pods planned elsewhere: %d", k)
			}
			p.Notes = append(p.Notes, note)
			for _, pod := range p.staying[m.node.Name] {
				if why := p.snapshot.Staying[podclass.Name(pod)]; why != "" {
					p.Notes = append(p.Notes, fmt.Sprintf("pod %s stays on node %s, and nothing is planned for it: %s", podclass.Name(pod), m.node.Name, why))
				}
			}
			continue
		}
		p.Existing = append(p.Existing, p.existing(m, running[m.node.Name], requests[i]))
	}
	for _, name := range slices.Sorted(maps.Keys(running)) {
		if !known[name] {
			pods, run := "pod "+podclass.Name(slices.MinFunc(running[name], podclass.Compare)), "runs"
			if n := len(running[name]); n > 1 {
				pods, run = fmt.Sprintf("%s and %d more", pods, n-1), "run"
			}
			p.Notes = append(p.Notes, fmt.Sprintf("node %s, which %s %s on, is not among the nodes, so nothing is planned for what runs there", name, pods, run))
		}
	}
	slices.SortStableFunc(p.Existing, func(a, b ExistingNode) int {
		switch {
		case a.Starting == b.Starting:
			return strings.Compare(a.Node.Name, b.Node.Name)
		case a.Starting:
			return 1
		}
		return -1
	})
	slices.Sort(p.Notes)
}

func (p *Problem) existing(m *member, pods []*corev1.Pod, requests [][]int64) ExistingNode {
	n, lasting := m.node, m.taints
	r := ExistingNode{Node: n, InFlight: m.inFlight, Starting: m.starting, running: pods, attached: p.volumes.Attached(n.Name, pods), Taints: lasting, labels: m.labels}
	r.labels[taints.Key] = taints.Value(p.taints.Intern(lasting))
	r.Labels = requirements.FromLabels(r.labels)

	r.Free = make([]int64, len(p.Resources))
	for i, name := range p.Resources {
		q, promised := m.allocatable[name]
		if promised {
			r.Free[i] = resources.Capacity(name, q)
		}
		if driver, ok := volume.Driver(name); ok {
			if room := p.volumes.AttachRoom(n.Name, driver, pods); room != volume.Unlimited || !m.starting || !promised {
				r.Free[i] = room
			}
			if !m.starting && p.volumes.Lacks(n.Name, driver) {
				r.Free[i] = 0
			}
		}
	}
	whole := slices.Clone(r.Free)
	present := make([]bool, len(p.daemons))
	take := func(requests []int64, ports []hostport.Port) {
		subtract(r.Free, requests)
		tags, limits := topology.PortTags(ports)
		r.Tags = append(r.Tags, tags...)
		r.Limits = append(r.Limits, limits...)
	}
	for i, pod := range pods {
		ports := hostport.Of(pod)
		r.ports = append(r.ports, ports...)
		take(requests[i], ports)
		for k, d := range p.daemons {
			present[k] = present[k] || d.owns(pod)
		}
	}
	r.bare = slices.Clone(r.Free)
	ports, left := slices.Clip(r.ports), slices.Clone(r.Free)
	for i, d := range p.daemons {
		if present[i] || !taints.Tolerates(d.pod.Spec.Tolerations, lasting) || !d.required.Compatible(r.Labels, requirements.Keys{}) {
			continue
		}
		lacks := func(free []int64) int {
			for k, q := range d.vector {
				if q > 0 && q > free[k] {
					return k
				}
			}
			return -1
		}
		note := func(format string, args ...any) {
			p.Notes = append(p.Notes, fmt.Sprintf("node %s "+format, append([]any{n.Name}, args...)...))
		}
		if k := lacks(whole); k >= 0 {
			note("is too small for DaemonSet %s: short of %s", podclass.Name(d.pod), p.Resources[k])
			continue
		}
		take(d.vector, d.ports) // newVerifier gives back what cannot start
		r.expected, r.DaemonSets = append(r.expected, i), append(r.DaemonSets, podclass.Name(d.pod))
		short := lacks(left)
		if short >= 0 {
			note("has no room for DaemonSet %s: short of %s", podclass.Name(d.pod), p.Resources[short])
		}
		if k := slices.IndexFunc(d.ports, func(port hostport.Port) bool { return slices.ContainsFunc(ports, port.Conflicts) }); k >= 0 {
			note("has no room for DaemonSet %s: %s is taken", podclass.Name(d.pod), d.ports[k])
			continue
		}
		r.missing, ports = append(r.missing, i), append(ports, d.ports...)
		if short < 0 {
			subtract(left, d.vector)
		}
	}
	return r
}

// room is the free capacity of a node before planning. Daemons that are still to start are not
// subtracted.
type room struct {
	labels requirements.Set
	taints []corev1.Taint
	free   corev1.ResourceList
}

// rooms returns the room of each node that takes pods.
func (p *Problem) rooms(running map[string][]*corev1.Pod) []room {
	var out []room
	for i := range p.members {
		m := &p.members[i]
		if m.leaving {
			continue
		}
		r := room{requirements.FromLabels(m.labels), m.taints, m.allocatable.DeepCopy()}
		for _, pod := range running[m.node.Name] {
			for name, q := range resources.OfPod(p.admission.Pod(pod), true) {
				if left, ok := r.free[name]; ok {
					left.Sub(q)
					r.free[name] = left
				}
			}
		}
		out = append(out, r)
	}
	return out
}

// fits reports whether some node with such labels could hold a pod of the class if it were alone
// there: an existing node, or one that a pool can buy.
func (p *Problem) fits(c *Class, where requirements.Alternatives, rooms []room) bool {
	holds := func(free corev1.ResourceList) bool {
		for name, q := range c.Requests {
			if left := free[name]; left.Cmp(q) < 0 && q.Sign() > 0 {
				return false
			}
		}
		return true
	}
	for i := range rooms {
		if holds(rooms[i].free) && taints.Tolerates(c.Template.Spec.Tolerations, rooms[i].taints) && where.Compatible(rooms[i].labels, requirements.Keys{}) {
			return true
		}
	}
	for i := range p.snapshot.Pools {
		pool := &p.snapshot.Pools[i]
		set, err := p.asked(pool)
		if err != nil || pool.IsStatic() || pool.Metadata.DeletionTimestamp != nil || !taints.Tolerates(c.Template.Spec.Tolerations, pool.Taints) {
			continue
		}
		if set, err = set.Intersect(nodekind.SomeHost()); err != nil {
			continue
		}
		for k := range pool.Types {
			t := &pool.Types[k]
			if labels, err := set.Intersect(t.Requirements); err == nil && holds(t.Allocatable()) && !where.Intersect(requirements.AnyOf(p.aliases.Both(labels))).IsImpossible() {
				return true
			}
		}
	}
	return false
}

// scope returns what the requests of a pod on a node depend on besides its own requests: nothing
// for a stored pod. Only a nominated pod may not be stored yet.
func (p *Problem) scope(pod *corev1.Pod) []string {
	if admission.Stored(pod) || !p.admission.Bears(pod) {
		return nil
	}
	if name := pod.Spec.RuntimeClassName; name != nil {
		return []string{podclass.Namespace(pod), *name}
	}
	return []string{podclass.Namespace(pod)}
}

// spare returns left, the free capacity of a node, with one more attach slot for each volume of the
// class that is already attached.
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

// take counts an existing node or a claim against the limits.
func (r *PoolState) take(capacity corev1.ResourceList) {
	switch {
	case r.NodesLeft > 0:
		r.NodesLeft--
	case r.NodesLeft == 0:
		r.NodesOver++
	}
	for i, name := range r.Limited {
		if q, ok := capacity[name]; ok {
			left := r.Left[i] - r.Over[i] - resources.Request(name, q)
			r.Left[i], r.Over[i] = max(0, left), max(0, -left)
		}
	}
}

// leavingNode is a node that is being removed. It takes no pods. Until it is gone, kube-scheduler
// counts the pods there, and the node is a domain of spreads.
type leavingNode struct {
	node   *corev1.Node
	labels map[string]string // those that it shows, and its name under the key of matchFields
	taints []corev1.Taint
	pods   []*corev1.Pod
}

// leavingNodes returns the leaving nodes that have joined, by the number of their pods and then by
// name. In this order they are assumed to go.
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
	slices.SortFunc(out, func(a, b leavingNode) int {
		return cmp.Or(cmp.Compare(len(a.pods), len(b.pods)), strings.Compare(a.node.Name, b.node.Name))
	})
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
	claims      []string // those that no other pod may use meanwhile
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

// origins returns, by Class.order, the pod of a leaving node that ends before each pod of the class
// is bound.
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

// order returns the pods in the order of assignment: those that are pending now, then those that
// leaving nodes still run.
func (c *Class) order() []*corev1.Pod {
	if c.inOrder != nil {
		return c.inOrder
	}
	return c.Pods
}

// putInOrder sets the order of each class, and the leaving nodes from which its pods come.
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

// leavingForTopology returns the leaving nodes as package topology reads them.
func (p *Problem) leavingForTopology() []topology.Node {
	var out []topology.Node
	for _, n := range p.leaving {
		out = append(out, topology.Node{Labels: requirements.FromLabels(n.labels), Running: admission.WithAllLabelKeys(n.pods)})
	}
	return out
}

// daemon is a DaemonSet and the pod that it runs.
type daemon struct {
	uid      apitypes.UID
	pod      *corev1.Pod // named after the DaemonSet
	requests corev1.ResourceList
	vector   []int64 // the requests, by Problem.Resources
	required requirements.Alternatives
	ports    []hostport.Port
}

// compileDaemons reads the DaemonSets. Like the DaemonSet controller, it ignores terms of node
// affinity that cannot be read. A pod with other faults is never bound, so its DaemonSet is left
// out.
func (p *Problem) compileDaemons() {
	for _, ds := range p.snapshot.DaemonSets {
		if ds.DeletionTimestamp != nil {
			continue
		}
		pod := p.admission.DaemonPod(ds)
		asked, _ := kube.FromPod(&pod.Spec)
		if faults := podfault.Text(podfault.Of(pod, "", nodeAffinity(&pod.Spec))); faults != "" {
			p.Notes = append(p.Notes, fmt.Sprintf("DaemonSet %s cannot be read: %s", podclass.Name(pod), faults))
		}
		if len(podfault.Of(pod, "", nil)) > 0 {
			continue
		}
		p.daemons = append(p.daemons, &daemon{
			uid: ds.UID, pod: pod, requests: resources.OfPod(pod, false), required: withFeatures(asked.Required, &pod.Spec), ports: hostport.Of(pod),
		})
	}
	slices.SortStableFunc(p.daemons, func(a, b *daemon) int { return podclass.Compare(a.pod, b.pod) })
}

// owns reports whether the running pod belongs to the daemon.
func (d *daemon) owns(pod *corev1.Pod) bool {
	return podclass.Namespace(pod) == d.pod.Namespace && slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == "DaemonSet" && (d.uid != "" && o.UID == d.uid || o.Name == d.pod.Name)
	})
}

// Labels that Karpenter sets when a node has registered, and when it is ready with all resources.
const (
	labelRegistered  = "karpenter.sh/registered"
	labelInitialized = "karpenter.sh/initialized"
)

// featuresOf returns, as labels, the features that a pool's future nodes declare. They are those of
// the pool's newest node. Without one the pool declares all features, because its kubelets may be as
// new as the cluster.
func (p *Problem) featuresOf(pool string) map[string]string {
	if newest := p.newest(pool); newest != nil {
		return nodefeature.Declared(newest)
	}
	return nodefeature.All()
}

// assumedOf returns the features that the pool's nodes are assumed to have, because no node shows
// them, and that pending pods and daemons need.
func (p *Problem) assumedOf(pool string) []string {
	if p.newest(pool) != nil {
		return nil
	}
	var pods []*corev1.Pod
	for _, c := range p.Classes {
		pods = append(pods, c.Template)
	}
	for _, d := range p.daemons {
		pods = append(pods, d.pod)
	}
	notes := map[string]bool{}
	for _, pod := range pods {
		for _, name := range nodefeature.Needed(&pod.Spec) {
			notes[fmt.Sprintf("pool %s: its nodes are assumed to declare the node feature %s, which pods need; it has no node that confirms this", pool, name)] = true
		}
	}
	return slices.Sorted(maps.Keys(notes))
}

// newest returns the pool's newest node that shows its kubelet; nil if none does.
func (p *Problem) newest(pool string) *corev1.Node {
	var nodes []*corev1.Node
	for i := range p.members {
		if m := &p.members[i]; !m.inFlight && m.pool == pool {
			nodes = append(nodes, m.node)
		}
	}
	return nodefeature.Newest(nodes)
}

// promisedOf returns the resources that a node shows. If a resource is missing or zero there, the
// promised one is used.
func promisedOf(shown, promised corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	maps.Copy(out, shown)
	for name, q := range promised {
		if own, ok := out[name]; !ok || own.IsZero() {
			out[name] = q
		}
	}
	return out
}

// overNodes tries to spread by hostname over the existing nodes, whose least count can rise, where
// some pods would go to new nodes.
func (d *decisions) overNodes() {
	c := d.best.p.topology.Choice()
	c.OverNodes = true
	d.try(c)
}
