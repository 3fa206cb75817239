package whatif

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/internal/admission"
	"github.com/joinery-sdk/joinery/scheduling/internal/bind"
	"github.com/joinery-sdk/joinery/scheduling/internal/hostport"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
	"github.com/joinery-sdk/joinery/scheduling/internal/nodefeature"
	"github.com/joinery-sdk/joinery/scheduling/internal/podclass"
	"github.com/joinery-sdk/joinery/scheduling/internal/volume"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Options are the choices of the caller. nil means defaults.
type Options struct {
	// Constraints are further rules, and Aliases labels that agents set, as in
	// [scheduling.Options].
	Constraints []scheduling.Constraint
	Aliases     *requirements.Aliases
	// Cost is what a node to buy counts as, as in [scheduling.Options]. If it is set, every [Price]
	// of questions, orders and answers is such a cost.
	Cost func(labels requirements.Set, pricePerHour float64) float64
	// PreferencePrice is the price of a preference, as in [scheduling.Options]; see
	// [Answer.Forgone].
	PreferencePrice *float64
	// Together names pods that must share a label value, as in [scheduling.Options]. A pod that
	// moves gets a node with the value of the label that other pods of its set have.
	Together func(*corev1.Pod) (set, label string)
	// LeaveZones lets spreads leave a zone, as in [scheduling.Options]; see [Question.LeaveDomains].
	LeaveZones bool
	// Static also compiles static pools (replicas). Nodes of these pools are bought only if
	// [Question.Buy] names them, never because pods need them. The caller must keep the replicas
	// and limits of these pools.
	Static bool
}

// Compile compiles the snapshot. It costs O(pods + classes x labels + pools x types). Pending pods
// have no place; see [Cluster.Reserve]. The order of the snapshot's pods and nodes does not matter.
// The error is that of [scheduling.Compile].
func Compile(s scheduling.Snapshot, opts *Options) (*Cluster, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	s.Pods, s.Nodes = slices.Clone(s.Pods), slices.Clone(s.Nodes) // in whatever order they are listed
	podclass.Sort(s.Pods)
	slices.SortFunc(s.Nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	e := &engine{
		admission: admission.NewCluster(s.PriorityClasses, s.RuntimeClasses, s.LimitRanges),
		podAt:     make(map[*corev1.Pod]int32, len(s.Pods)), nodeAt: map[string]int32{},
		preferencePrice: preferencePriceOf(&o),
		daemons:         map[string]*daemonSet{}, offerAt: map[[2]int]int{}, bucketAt: map[string]int32{}, taken: map[string]bool{}, labels: map[string][2]map[string]string{}, static: map[string]bool{},
	}
	known := make(map[string]bool, len(s.Nodes))
	for _, n := range s.Nodes {
		known[n.Name] = true
	}
	var live []*corev1.Pod
	for _, p := range s.Pods {
		if podclass.Ended(p) || p.Spec.NodeName != "" && !known[p.Spec.NodeName] || p.Spec.NodeName == "" && p.DeletionTimestamp != nil {
			continue
		}
		live = append(live, p)
	}
	groups := podclass.Split(podclass.Group(live, nil, s.DaemonSets), func(p *corev1.Pod) string {
		apart := podclass.NotOurs(p) // pods with the same constraints may have different schedulers
		if p.Spec.NodeName != "" && e.admission.Bears(p) {
			apart += "; made anew where it goes"
		}
		if len(o.Constraints) > 0 {
			apart += e.answer(p, o.Constraints)
		}
		if o.Together != nil {
			set, label := o.Together(p)
			apart += fmt.Sprintf("; %q by %q", set, label)
		}
		return apart
	})
	if err := e.compileClasses(s, groups, o); err != nil {
		return nil, err
	}
	e.compileOffers()
	e.compileNodes(&s)
	e.divide()
	e.cluster.Start()
	if slices.ContainsFunc(e.nodes, func(n node) bool {
		return n.shifts() || len(n.daemons) > 0 || slices.ContainsFunc(n.pods, func(p int32) bool { return e.pods[p].leaving() })
	}) {
		e.cluster.Low = interpod.NewState(e.index, e.cluster.Values)
	}
	for i := range e.nodes {
		for _, p := range e.nodes[i].pods {
			e.count(p, &e.nodes[i], 1)
		}
		e.countDaemons(&e.nodes[i], 1)
		e.countNode(&e.nodes[i], 1)
	}
	e.refine()
	e.sell(o.LeaveZones)
	e.measure()
	e.shun()
	return e.first(), nil
}

// unfixed returns the pools with static ones as pools without replicas and limits.
func (e *engine) unfixed(pools []scheduling.Pool) []scheduling.Pool {
	out := slices.Clone(pools)
	for i := range out {
		if out[i].IsStatic() {
			e.static[out[i].Name], out[i].Replicas, out[i].Limits = true, nil, nil
		}
	}
	return out
}

func (e *engine) compileClasses(s scheduling.Snapshot, groups [][]*corev1.Pod, o Options) error {
	e.classes = make([]class, len(groups))
	classAt := map[*corev1.Pod]int32{} // by the pod that stands for the class in the problem
	in := s
	in.Pods, in.VolumeAttachments = nil, e.unused(s)
	in.Pools = reopened(s.Pools, s.Nodes)
	if o.Static {
		in.Pools = e.unfixed(in.Pools)
	}
	for i, pods := range groups {
		c := &e.classes[i]
		r := representative(e.admitted(pods[0]))
		if c.refusal = podclass.NotOurs(r); c.refusal == "" {
			classAt[r] = int32(i)
			in.Pods = append(in.Pods, r)
		}
		for _, p := range pods {
			if p.Spec.NodeName != "" && isDaemon(p) {
				in.Pods = append(in.Pods, p)
			}
			e.podAt[p] = int32(len(e.pods))
			e.pods = append(e.pods, pod{object: p, class: int32(i), node: -1, terminating: p.DeletionTimestamp != nil})
		}
	}
	var err error
	if e.problem, err = scheduling.Compile(in, &scheduling.Options{IgnorePreferences: true, Constraints: o.Constraints, Aliases: o.Aliases, PreferencePrice: o.PreferencePrice, Cost: o.Cost}); err != nil {
		return err
	}
	e.dims = len(e.problem.Resources)
	for i, c := range e.problem.Classes {
		for _, r := range c.Pods {
			k := &e.classes[classAt[r]]
			k.Required, k.Need, k.movable, k.problem = c.Required, e.vector(c.Requests), true, i
			if c.Refusal != nil {
				k.refusal, k.movable = c.Refusal.Detail, false
			}
		}
	}
	for _, i := range e.problem.Ignored {
		e.classes[classAt[i.Pod]].refusal = i.Why
	}
	hostless := slices.ContainsFunc(e.problem.Existing, func(n scheduling.ExistingNode) bool { return !n.Labels.Has(corev1.LabelHostname) })
	e.index = interpod.NewIndex(requirements.Aliases{}, interpod.Namespaces(s.Pods, s.DaemonSets, s.Namespaces), hostless)
	var asked requirements.Keys // label keys that some class asks about
	for i, pods := range groups {
		c := &e.classes[i]
		c.template = e.admitted(pods[0])
		if c.Need == nil {
			c.Need = e.vector(resources.OfPod(c.template, false))
		}
		c.Number, c.Ports, c.Tolerations = i, hostport.Of(c.template), c.template.Spec.Tolerations
		if c.movable {
			if bad := unreadable(c.template); bad != nil {
				c.refusal, c.movable = "it cannot be read: "+bad.Error(), false
			}
		}
		if !c.movable { // of a pod that does not move only its anti-affinity matters
			c.Constraints = e.index.Keeps(c.template)
			continue
		}
		like := e.problem.Classes[c.problem]
		all, err := e.index.Read(c.template, like.Asked)
		if err != nil {
			return &scheduling.InvalidError{What: "pod " + podclass.Name(pods[0]), Err: err}
		}
		soft := softly{nodes: like.Preferred}
		c.Constraints, soft.Constraints = all.Split()
		if len(soft.nodes)+len(soft.Terms)+len(soft.Spreads) > 0 {
			c.soft = &soft
		}
		asked = asked.Union(c.Required.Keys())
		for _, w := range soft.nodes {
			asked = asked.Union(w.Nodes.Keys())
		}
	}
	e.compileDaemons(&s)
	e.join()
	e.together(groups, o.Together)
	e.cluster = bind.New(e.index, asked)
	return nil
}

// sell finds out which values of spreads are for sale to the pods of each class.
func (e *engine) sell(leaveZones bool) {
	e.cluster.State.Begin()
	for i := range e.classes {
		c := &e.classes[i]
		spreads := [][]interpod.Spread{c.Spreads}
		if c.soft != nil {
			spreads = append(spreads, c.soft.Spreads)
		}
		for _, list := range spreads {
			for k := range list {
				group := list[k].Group
				key := e.keyOf(group)
				if !c.movable || key == corev1.LabelHostname || e.fine[e.index.Groups()[group].Key] || leaveZones && key == corev1.LabelTopologyZone {
					continue
				}
				for _, v := range e.valuesFor(c, key, true) {
					list[k].Sold = append(list[k].Sold, e.cluster.Values.Of(e.index.Groups()[group].Key, v))
				}
			}
		}
	}
}

func isDaemon(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "DaemonSet" })
}

func (e *engine) vector(list corev1.ResourceList) []int64 {
	out := make([]int64, e.dims)
	for i, name := range e.problem.Resources {
		if q, ok := list[name]; ok {
			out[i] = min(resources.Request(name, q), mostNeeded)
		}
	}
	return out
}

// Amounts are capped far above what machines have, so that sums over a cluster do not overflow. A
// pod that needs more than the cap fits nowhere.
const (
	mostFree   = 1 << 50
	mostNeeded = 1 << 51
	mostPrice  = 1e9 // dollars
)

func (e *engine) compileNodes(s *scheduling.Snapshot) {
	existing, nodes := map[string]*scheduling.ExistingNode{}, slices.Clone(s.Nodes)
	for i := range e.problem.Existing {
		r := &e.problem.Existing[i]
		existing[r.Node.Name] = r
		if r.InFlight {
			nodes = append(nodes, r.Node)
		}
	}
	pools := map[string]int32{}
	for i := range e.problem.Pools {
		p := &e.problem.Pools[i]
		pools[p.Name] = int32(i)
		left := make([]int64, 0, len(p.Left)+1) // negative where the pool is over a limit
		for k := range p.Left {
			left = append(left, p.Left[k]-p.Over[k])
		}
		count := int64(p.NodesLeft - p.NodesOver)
		if p.NodesLeft < 0 {
			count = math.MaxInt32
		}
		e.left = append(e.left, append(left, count))
	}
	e.budgets = budgetsOf(e.problem)
	for i, n := range nodes {
		x := node{name: n.Name, object: n, alive: true, pool: -1, leaving: existing[n.Name] == nil}
		x.Free = make([]int64, e.dims)
		r := existing[n.Name]
		if r == nil || r.Starting {
			e.describe(&x)
		}
		if r != nil {
			now := x.Node
			x.labels = r.Labels.Labels()
			e.cluster.Describe(&x.Node, x.labels, r.Taints)
			for d, f := range r.Free {
				x.Free[d] = max(min(f, mostFree), -mostFree)
			}
			x.inFlight, x.coming = r.InFlight, r.InFlight || r.Starting
			x.joining = r.InFlight || r.Starting && (x.LabelClass != now.LabelClass || !slices.Equal(x.Values, now.Values))
			x.target = !x.coming
			e.expect(&x, r.DaemonSets)
		}
		if p, ok := pools[cmp.Or(x.labels[nodepool.LabelKey], x.labels[nodepool.ProvisionerLabelKey])]; ok && !x.inFlight { // a claim is charged until it is gone
			x.pool = p
			for _, name := range e.problem.Pools[p].Limited {
				x.usage = append(x.usage, resources.Request(name, n.Status.Capacity[name]))
			}
		}
		if !x.inFlight {
			x.charges = e.problem.Charges(x.labels, n.Status.Capacity)
		}
		e.nodes = append(e.nodes, x)
		e.nodeAt[n.Name] = int32(i)
	}
	for i := range e.pods {
		p := &e.pods[i]
		at, ok := e.nodeAt[p.object.Spec.NodeName]
		if !ok {
			continue
		}
		n := &e.nodes[at]
		n.pods = append(n.pods, int32(i))
		n.Ports = append(n.Ports, e.classes[p.class].Ports...)
		if isDaemon(p.object) && !n.leaving {
			continue // package scheduling has charged it
		}
		used := e.classes[p.class].Need
		if resources.InStatus(p.object) || e.admission.Bears(p.object) {
			used = e.vector(resources.OfPod(e.admission.Pod(p.object), true))
			for d, name := range e.problem.Resources { // volumes, which it does not know
				if _, attached := volume.Driver(name); attached {
					used[d] = e.classes[p.class].Need[d]
				}
			}
		}
		for d, q := range used {
			n.Free[d] = max(n.Free[d]-q, -mostFree)
		}
	}
	e.attach(s)
	e.line()
	for i := range s.NodeClaims { // their nodes may not exist yet
		e.taken[s.NodeClaims[i].Name], e.taken[s.NodeClaims[i].NodeName] = true, true
	}
	for i := range e.nodes {
		e.taken[e.nodes[i].name] = true
	}
}

// describe describes the node by its own labels and taints.
func (e *engine) describe(n *node) {
	n.labels = map[string]string{}
	maps.Copy(n.labels, n.object.Labels)
	n.labels[requirements.NodeNameKey] = n.name
	maps.Copy(n.labels, nodefeature.Declared(n.object))
	taints := slices.Clone(n.object.Spec.Taints)
	if n.object.Spec.Unschedulable {
		taints = append(taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	e.cluster.Describe(&n.Node, n.labels, taints)
}

// line orders the classes for placement, sorts the nodes by free capacity, and finds pods' nodes.
func (e *engine) line() {
	there := make([]bool, len(e.pods))
	for i := range e.pods {
		there[i] = e.pods[i].object.Spec.NodeName == ""
		e.pods[i].node = -1
	}
	for i := range e.nodes {
		for _, p := range e.nodes[i].pods {
			there[p] = true
		}
	}
	e.rank(there)
	free := make([]float64, e.dims)
	for i := range e.nodes {
		for d, f := range e.nodes[i].Free {
			free[d] += float64(max(0, f))
		}
	}
	w := weights(free)
	slices.SortFunc(e.nodes, func(a, b node) int {
		return cmp.Or(cmp.Compare(w.size(a.Free), w.size(b.Free)), strings.Compare(a.name, b.name))
	})
	for i := range e.nodes {
		e.nodeAt[e.nodes[i].name] = int32(i)
		if e.nodes[i].leaving {
			e.leaving = append(e.leaving, int32(i))
		}
		for _, p := range e.nodes[i].pods {
			if e.pods[p].values == nil || !e.nodes[i].leaving { // else its node is the reserved one
				e.pods[p].node = int32(i)
			}
		}
	}
}

// first returns the first version of the store, whose nodes are in line.
func (e *engine) first() *Cluster {
	e.stock()
	e.at = &Cluster{e: e}
	return e.at
}

// attach charges nodes with the volumes of pods that never move. The needs of classes lack them.
func (e *engine) attach(s *scheduling.Snapshot) {
	index := volume.NewIndex(volume.Objects{
		Persistent: s.PersistentVolumes, Claims: s.PersistentVolumeClaims, Classes: s.StorageClasses, CSINodes: s.CSINodes,
	})
	for d, name := range e.problem.Resources {
		driver, ok := volume.Driver(name)
		if !ok {
			continue
		}
		for i := range e.nodes {
			n := &e.nodes[i]
			var staying []*corev1.Pod
			for _, p := range n.pods {
				if o := e.pods[p].object; !e.classes[e.pods[p].class].movable && !isDaemon(o) { // package scheduling has charged daemons
					staying = append(staying, o)
				}
			}
			if len(staying) > 0 && !n.leaving {
				n.Free[d] -= index.AttachRoom(n.name, driver, nil) - index.AttachRoom(n.name, driver, staying)
			}
		}
	}
}

// rank orders the classes for placement: large ones first, then by first pod. Only existing pods
// that can move count. Daemons end with their nodes, which must not change the order.
func (e *engine) rank(there []bool) {
	total, first := make([]float64, e.dims), make([]*corev1.Pod, len(e.classes))
	for i := range e.pods { // in order within a class
		c := e.pods[i].class
		if !there[i] || !e.classes[c].movable {
			continue
		}
		for d, q := range e.classes[c].Need {
			total[d] += float64(q)
		}
		if first[c] == nil {
			first[c] = e.pods[i].object
		}
	}
	w := weights(total)
	var order []int32
	for i := range e.classes {
		if first[i] != nil {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(w.size(e.classes[b].Need), w.size(e.classes[a].Need)), podclass.Compare(first[a], first[b]))
	})
	for rank, i := range order {
		e.classes[i].rank = int32(rank)
	}
}

// scale is what a unit of each resource counts for.
type scale []float64

// weights returns the scale of amounts with these sums. Memory counts as on common machines beside
// cpu. Any other resource counts in total as much as cpu and memory together. So pods with GPUs
// come before pods without, and these go to nodes with free GPUs last. (Weighed by requests, the
// nodes were ordered by rare volumes, and consolidation of 800 drawn clusters saved 3% less.)
func weights(sums []float64) scale {
	const common = 3 // cpu, memory and pods
	out := make(scale, len(sums))
	out[0], out[1] = 1.0/1000, 1.0/(4<<30)
	both := float64(out[0]*sums[0]) + float64(out[1]*sums[1])
	for d := common; d < len(sums); d++ {
		out[d] = (1 + both) / max(1, sums[d])
	}
	return out
}

// size returns how large amounts of resources are together; amounts below zero count as none.
func (s scale) size(amounts []int64) (sum float64) {
	for d, q := range amounts {
		sum += float64(float64(max(0, q)) * s[d])
	}
	return sum
}
