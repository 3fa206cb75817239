package scheduling

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/hostport"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
	"github.com/joinery-sdk/joinery/scheduling/internal/podclass"
	"github.com/joinery-sdk/joinery/scheduling/internal/taints"
	"github.com/joinery-sdk/joinery/scheduling/internal/volume"
)

// verifier binds the pods of a finished plan once more, one by one, on its concrete nodes, as kube-scheduler's filters
// would. It shares none of the planner's reasoning about domains, filters, tags and bundles: it reads the manifests again
// and looks at labels, taints, free capacity, ports and counts. What it refuses is not placed, whatever the planner thought.
//
// It is compiled once for a problem and is safe for concurrent use.
type verifier struct {
	p       *Problem
	index   *interpod.Index
	values  *interpod.Values
	classes []interpod.Constraints // hard ones
	daemons []interpod.Constraints
	running *interpod.State // of the pods on existing nodes
	nodes   []verifiedNode  // existing ones
	sets    [][]int         // by class: the claims yet to be made that it shares with others
}

// verifiedNode is a node and what is on it.
type verifiedNode struct {
	name   string
	labels map[string]string
	taints []corev1.Taint
	kind   string // the same for nodes whose labels, but for the hostname, and taints are the same
	values []int32
	free   []int64
	ports  []hostport.Port
	shared []string // volumes that pods there may share
}

func (p *Problem) newVerifier(shared []volume.SharedClaim) (*verifier, error) {
	v := &verifier{
		p: p, index: interpod.NewIndex(p.aliases, interpod.Namespaces(p.snapshot.Pods, p.snapshot.Namespaces)), values: &interpod.Values{},
		classes: make([]interpod.Constraints, len(p.Classes)), daemons: make([]interpod.Constraints, len(p.daemons)),
	}
	hard := func(pod *corev1.Pod, asked requirements.Alternatives) (interpod.Constraints, error) {
		c, err := v.index.Read(interpod.Owner{Pod: pod, Asked: asked})
		c.Spreads = slices.DeleteFunc(c.Spreads, func(s interpod.Spread) bool { return !s.Hard })
		c.Terms = slices.DeleteFunc(c.Terms, func(t interpod.Term) bool { return !t.Hard })
		return c, err
	}
	var err error
	for i, c := range p.Classes {
		if v.classes[i], err = hard(c.Template, c.asked); err != nil {
			return nil, &InvalidError{What: "pod " + c.Name(), Err: err}
		}
	}
	for i, d := range p.daemons {
		if v.daemons[i], err = hard(d.pod, d.required); err != nil {
			return nil, fmt.Errorf("scheduling: DaemonSet %s/%s: %w", d.namespace, d.name, err)
		}
	}
	keeps := make([][]interpod.Constraints, len(p.Existing))
	for i := range p.Existing {
		for _, pod := range p.admitted(p.Existing[i].running) {
			keeps[i] = append(keeps[i], v.index.Keeps(pod))
		}
	}
	for i, c := range p.Classes {
		v.index.Join(&v.classes[i], c.Template.Namespace, c.Template.Labels)
	}
	for i, d := range p.daemons {
		v.index.Join(&v.daemons[i], d.pod.Namespace, d.pod.Labels)
	}
	v.count(keeps)
	v.sets = make([][]int, len(p.Classes))
	for k, s := range shared {
		for _, i := range s.Consumers {
			v.sets[i] = append(v.sets[i], k)
		}
	}
	return v, nil
}

// count reads the existing nodes and counts the pods that run there.
func (v *verifier) count(keeps [][]interpod.Constraints) {
	for i := range v.p.Existing {
		r := &v.p.Existing[i]
		n := verifiedNode{
			name: r.Node.Name, labels: concreteLabels(r.Labels), taints: r.taints, free: r.Free, shared: r.attached, ports: slices.Clone(r.ports),
			kind: r.Node.Name,
		}
		n.values = v.values.At(v.index, n.labels)
		v.nodes = append(v.nodes, n)
	}
	v.running = interpod.NewState(v.index, v.values)
	for i := range v.nodes {
		n := &v.nodes[i]
		passes := v.passes(n)
		for k, pod := range v.p.Existing[i].running {
			c := keeps[i][k]
			c.MemberOf = v.index.MemberOf(pod.Namespace, pod.Labels)
			v.running.Add(&c, n.values, passes, pod.DeletionTimestamp != nil, 1)
		}
		v.running.AddNode(n.values, passes, 1)
	}
	for i := range v.nodes {
		free := slices.Clone(v.nodes[i].free) // before the daemons
		for _, d := range v.p.Existing[i].missing {
			for r, q := range v.p.daemons[d].vector {
				free[r] += q
			}
		}
		v.addDaemons(v.running, &v.nodes[i], v.p.Existing[i].missing, free)
	}
}

// addDaemons counts daemons where they will run. Those that have no room, or that other pods keep away, stay out; the room
// that the planner left for them stays free.
func (v *verifier) addDaemons(state *interpod.State, n *verifiedNode, daemons []int, free []int64) {
	for _, d := range daemons {
		c := &v.daemons[d]
		fits := true
		for r, q := range v.p.daemons[d].vector {
			fits = fits && (q <= 0 || q <= free[r])
		}
		for _, port := range v.p.daemons[d].ports {
			fits = fits && !slices.ContainsFunc(n.ports, port.Conflicts)
		}
		if !fits || !state.Check(c, n.values, nil).OK() {
			continue
		}
		subtract(free, v.p.daemons[d].vector)
		n.ports = append(n.ports, v.p.daemons[d].ports...)
		state.Add(c, n.values, v.passes(n), false, 1)
	}
}

// passes says which node filters of spreads a node passes.
func (v *verifier) passes(n *verifiedNode) func(filter int32) bool {
	return func(filter int32) bool {
		f := &v.index.Filters()[filter]
		for _, k := range f.Keys {
			if n.values[k] < 0 {
				return false
			}
		}
		return f.Asked.Matches(n.labels) && (!f.HonorTaints || tolerates(f.Tolerations, n.taints))
	}
}

func tolerates(tolerations []corev1.Toleration, list []corev1.Taint) bool {
	_, found := taints.Untolerated(list, tolerations, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)
	return !found
}

// concreteLabels are those that a node will carry, and its name if it has one.
func concreteLabels(set requirements.Set) map[string]string {
	out := chosenLabels(set)
	if name, ok := set.Get(requirements.NodeNameKey).Single(); ok && set.Has(requirements.NodeNameKey) {
		out[requirements.NodeNameKey] = name
	}
	return out
}

// verification is one run of the verifier.
type verification struct {
	*verifier
	state *interpod.State
	nodes []verifiedNode // existing ones, then bins
	suits map[suitKey]bool
	zones map[int]string // of claims, once a pod that uses them has a node
	why   map[int]string // by class, what the first of its pods that is refused fails on
}

type suitKey struct {
	class int
	kind  string
}

// verify binds pods in their order where each is meant to be, again and again those that wait for others, and returns those
// that hold, in the order in which they do, followed by pods that took what was left of existing nodes, and what keeps out the
// others by class. Bins that no pod holds are not bought, so
// nothing is verified on them either. It costs O(pods x constraints of one).
func (v *verifier) verify(bins []OutcomeBin, order []binding) ([]binding, map[int]string) {
	used := make([]bool, len(bins))
	for {
		for _, b := range order {
			if b.at.bin >= 0 {
				used[b.at.bin] = true
			}
		}
		run := v.start(bins, used)
		held := run.bind(order)
		clear(used)
		empty := 0
		for _, b := range held {
			if b.at.bin >= 0 {
				used[b.at.bin] = true
			}
		}
		for _, b := range order {
			if b.at.bin >= 0 && !used[b.at.bin] {
				empty++
			}
		}
		if len(held) == len(order) || empty == 0 {
			return run.complete(held), run.why
		}
		order = slices.DeleteFunc(slices.Clone(order), func(b binding) bool { return b.at.bin >= 0 && !used[b.at.bin] })
	}
}

// start is the cluster with the bins that are used, their daemons there.
func (v *verifier) start(bins []OutcomeBin, used []bool) *verification {
	run := &verification{
		verifier: v, state: v.running.Clone(), nodes: make([]verifiedNode, len(v.nodes)+len(bins)), suits: map[suitKey]bool{}, zones: map[int]string{}, why: map[int]string{},
	}
	for i := range v.nodes {
		n := v.nodes[i]
		n.free, n.ports, n.shared = slices.Clone(n.free), slices.Clip(n.ports), slices.Clip(n.shared)
		run.nodes[i] = n
	}
	var key []byte
	for b := range bins {
		if !used[b] {
			continue
		}
		shape := &v.p.Shapes[bins[b].Shape]
		n := &run.nodes[len(v.nodes)+b]
		set, err := shape.Labels.Intersect(shape.Offerings[bins[b].Offering].Labels)
		if err == nil {
			set, err = set.Intersect(bins[b].Labels)
		}
		if err != nil {
			set = requirements.Impossible() // no pod holds there
		}
		key = set.AppendKey(key[:0])
		*n = verifiedNode{
			name: fmt.Sprintf("new node %d", b), labels: concreteLabels(set), taints: v.p.Pools[shape.Pool].Taints,
			kind: fmt.Sprintf("%d %s", shape.Pool, key), free: slices.Clone(shape.Free),
		}
		n.labels[corev1.LabelHostname] = n.name
		n.values = v.values.At(v.index, n.labels)
		run.state.AddNode(n.values, v.passes(n), 1)
	}
	for b := range bins {
		if used[b] {
			shape := &v.p.Shapes[bins[b].Shape]
			free := slices.Clone(shape.Free)
			for _, d := range shape.daemons {
				for r, q := range v.p.daemons[d].vector {
					free[r] += q
				}
			}
			v.addDaemons(run.state, &run.nodes[len(v.nodes)+b], shape.daemons, free)
		}
	}
	return run
}

func (r *verification) bind(order []binding) []binding {
	held := make([]binding, 0, len(order))
	for waiting := order; len(waiting) > 0; {
		var again []binding
		clear(r.why)
		for _, b := range waiting {
			if why := r.place(b); why == "" {
				held = append(held, b)
			} else {
				if _, known := r.why[b.class]; !known {
					r.why[b.class] = why
				}
				again = append(again, b)
			}
		}
		if len(again) == len(waiting) {
			break
		}
		waiting = again
	}
	return held
}

// complete adds pods that have no place yet on existing nodes, where kube-scheduler would put them: of the highest priority
// first, then the largest. The planner holds constraints within a node to stricter limits than the order of binding does, and
// lets every user of a volume attach it.
func (r *verification) complete(held []binding) []binding {
	bound := make(map[*corev1.Pod]bool, len(held))
	for _, b := range held {
		bound[b.pod] = true
	}
	var classes []int
	for i, c := range r.p.Classes {
		_, divided := c.Template.Annotations[podclass.RatioAnnotation] // of which binding knows nothing
		if c.Refusal == nil && !divided && slices.ContainsFunc(c.Pods, func(pod *corev1.Pod) bool { return !bound[pod] }) {
			classes = append(classes, i)
		}
	}
	slices.SortStableFunc(classes, func(a, b int) int {
		x, y := r.p.Classes[a], r.p.Classes[b]
		return cmp.Or(cmp.Compare(y.priority, x.priority), slices.Compare(y.requests, x.requests))
	})
	for progress := true; progress; {
		progress = false
		for _, i := range classes {
			node, level := 0, len(r.p.topology.Preferences(i))
			for _, pod := range r.p.Classes[i].Pods {
				if bound[pod] {
					continue
				}
				for ; node < len(r.verifier.nodes); node++ {
					if b := (binding{pod, seat{node, -1}, i, level}); r.place(b) == "" {
						held, bound[pod], progress = append(held, b), true, true
						break
					}
				}
			}
		}
	}
	return held
}

// place binds one pod, or says what keeps it out.
func (r *verification) place(b binding) string {
	at := b.at.node
	if b.at.bin >= 0 {
		at = len(r.verifier.nodes) + b.at.bin
	}
	n := &r.nodes[at]
	c := r.p.Classes[b.class]
	key := suitKey{b.class, n.kind}
	suits, known := r.suits[key]
	if !known {
		suits = c.Required.Matches(n.labels) && tolerates(c.Template.Spec.Tolerations, n.taints)
		r.suits[key] = suits
	}
	if !suits {
		return "its node does not suit it by labels or taints"
	}
	for i, q := range c.requests {
		if q > 0 && q-r.sharedOn(c, n, i) > n.free[i] {
			return fmt.Sprintf("its node has not enough %s", r.p.Resources[i])
		}
	}
	for _, port := range c.ports {
		if slices.ContainsFunc(n.ports, port.Conflicts) {
			return fmt.Sprintf("host port %d/%s is taken on its node", port.Number, port.Protocol)
		}
	}
	zone := n.labels[corev1.LabelTopologyZone]
	for _, set := range r.sets[b.class] {
		if at, made := r.zones[set]; made && at != zone {
			return "the volume that it shares is made in another zone"
		}
	}
	if violation := r.state.Check(&r.classes[b.class], n.values, nil); !violation.OK() {
		return r.words(violation)
	}
	for _, set := range r.sets[b.class] {
		r.zones[set] = zone
	}
	for i, q := range c.requests {
		n.free[i] -= q - r.sharedOn(c, n, i)
	}
	for _, a := range c.shared {
		if !slices.Contains(n.shared, a.Volume) {
			n.shared = append(n.shared, a.Volume)
		}
	}
	n.ports = append(n.ports, c.ports...)
	if cs := &r.classes[b.class]; len(cs.MemberOf)+len(cs.Terms) > 0 {
		r.state.Add(cs, n.values, r.passes(n), false, 1)
	}
	return ""
}

// sharedOn is how much of a resource the pod need not take, for its volumes are attached already.
func (r *verification) sharedOn(c *Class, n *verifiedNode, resource int) int64 {
	out := int64(0)
	for _, a := range c.shared {
		if a.Limit == r.p.Resources[resource] && slices.Contains(n.shared, a.Volume) {
			out++
		}
	}
	return out
}

// words names the constraint that was violated.
func (r *verification) words(v interpod.Violation) string {
	g := &r.index.Groups()[v.Group]
	key := r.index.Keys()[g.Key]
	switch v.Rule {
	case interpod.SpreadRule:
		return fmt.Sprintf("spread of %s over %s", g.What, key)
	case interpod.AffinityRule:
		return fmt.Sprintf("affinity to %s by %s", g.What, key)
	case interpod.AntiAffinityRule:
		return fmt.Sprintf("anti-affinity to %s by %s", g.What, key)
	case interpod.KeptRule:
		return fmt.Sprintf("other pods that keep away from %s by %s", g.What, key)
	case interpod.None:
	}
	return ""
}
