package scheduling

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/podclass"
	"github.com/joinery-sdk/joinery/scheduling/internal/topology"
)

// Result is a plan: pods on existing nodes, nodes to buy, and unplaced pods. It is immutable and
// safe for concurrent use.
type Result struct {
	// Rounds is how many rounds were packed, not counting the final packing.
	Rounds int
	// Round is the number of the chosen round. Draft says that the plan uses the first packing of
	// that round, because the final packing placed less or made a worse plan.
	Round int
	Draft bool
	// Stopped says that the context ended before the search did.
	Stopped bool

	state    *state
	names    []string // of bins; empty for bins without pods
	newNodes func() []NewNode

	mu      sync.Mutex
	reasons map[int][]Reason // by class, for classes that were asked about
}

// Binding is a pod and the node that it goes to.
type Binding struct {
	Pod *corev1.Pod
	// Node is the name of the node: that of the [NewNode] if the node is to be bought, and
	// otherwise that of its [ExistingNode.Node], also if it has not joined.
	Node string
	// New says that the node is to be bought. InFlight says that an existing node is not ready for
	// pods yet: it is [ExistingNode.Starting]. This is wider than [ExistingNode.InFlight], which is
	// for nodes that have not joined. kube-scheduler binds the pod once the node is ready.
	New, InFlight bool
	// After names the leaving nodes that must be gone before kube-scheduler accepts the pod. It is
	// empty if the pod can be bound now, or as soon as the pod that it Replaces has ended.
	After []string
	// Replaces is the pod on a leaving node that this one replaces; nil for a pod that is pending
	// now.
	Replaces *corev1.Pod
}

func newResult(s *state, rounds int, stopped, draft bool) *Result {
	r := &Result{Rounds: rounds, Round: s.number, Draft: draft, Stopped: stopped, state: s, names: s.names(), reasons: map[int][]Reason{}}
	r.newNodes = sync.OnceValue(func() []NewNode { return s.newNodes(r.names) })
	return r
}

// Bindings returns the placed pods with their nodes. kube-scheduler accepts the pods in this order,
// after the daemons' pods, even while leaving nodes and their pods are there. Only what a pod's
// [Binding.After] and [Binding.Replaces] name must be gone by its turn.
func (r *Result) Bindings() []Binding {
	out := make([]Binding, len(r.state.bound))
	for i, b := range r.state.bound {
		out[i].Pod = b.pod
		if o, ok := r.state.p.origin[b.pod]; ok {
			out[i].Replaces = r.state.p.leaving[o.Node].pods[o.Pod]
		}
		for k := range b.gone {
			out[i].After = append(out[i].After, r.state.p.leaving[k].node.Name)
		}
		if b.at.bin >= 0 {
			out[i].Node, out[i].New = r.names[b.at.bin], true
		} else {
			n := &r.state.p.Existing[b.at.node]
			out[i].Node, out[i].InFlight = n.Node.Name, n.Starting
		}
	}
	return out
}

// NewNodes returns the nodes to buy. They are sorted by the pool's weight, heaviest first, then by
// the pool's name, then by their order in the outcome.
func (r *Result) NewNodes() []NewNode { return slices.Clone(r.newNodes()) }

// IsAsPacked reports whether all pods that the packer placed are where it placed them: none would be
// refused there, and no cheaper place was found; see [Outcome.AsPacked].
func (r *Result) IsAsPacked() bool {
	kept := slices.DeleteFunc(slices.Clone(r.state.bound), func(b binding) bool { return b.added })
	return len(kept) == r.state.packed(r.state.last)
}

// seat is the place of one unit of an item: an existing node (bin < 0) or a bin.
type seat struct{ node, bin int }

// nowhere is the seat of a unit that is not packed.
var nowhere = seat{-1, -1}

// seats returns the seats of all units, by item.
func (s *state) seats() [][]seat {
	seats, count := make([][]seat, len(s.items)), 0
	for i := range s.items {
		count += s.items[i].Count
	}
	flat := make([]seat, count)
	for i := range s.items {
		seats[i], flat = flat[:0:s.items[i].Count], flat[s.items[i].Count:]
	}
	sit := func(shares []Share, at seat) {
		for _, sh := range shares {
			for range sh.Count {
				seats[sh.Item] = append(seats[sh.Item], at)
			}
		}
	}
	for r, shares := range s.last.Existing {
		sit(shares, seat{r, -1})
	}
	for b := range s.last.Bins {
		sit(s.last.Bins[b].Shares, seat{-1, b})
	}
	for i := range s.items {
		for len(seats[i]) < s.items[i].Count {
			seats[i] = append(seats[i], nowhere)
		}
	}
	return seats
}

// binding is a pod and its seat.
type binding struct {
	pod   *corev1.Pod
	at    seat
	class int
	level int  // preferences given up
	added bool // the packer had not placed it
	gone  int  // how many leaving nodes, in their order, must be gone first
}

// bindings returns the packed pods in the order of assignment. A pick that joined a bundle has the
// seat of that bundle. Any other pick is the first pod of a bundle, or is not in a bundle.
func (s *state) bindings() []binding {
	first, places := make([]int, len(s.assigned.Classes)), 0 // a place is a pair of relaxed class and domain
	for i, rc := range s.assigned.Classes {
		first[i], places = places, places+len(rc.Domains)
	}
	type join struct{ place, bundle int }
	joined := map[join]int{}
	for _, pk := range s.assigned.Picks {
		if pk.Bundle >= 0 {
			joined[join{first[pk.Relaxed] + pk.Domain, pk.Bundle}] += pk.Count
		}
	}
	bundles, alone := map[int]seat{}, make([][]seat, places)
	seats := s.seats()
	for i := range s.assigned.Lots {
		lot := &s.assigned.Lots[i]
		if len(lot.Bundles) == 0 {
			to := first[lot.Slots[0].Relaxed] + lot.Slots[0].Domain
			if alone[to] == nil {
				alone[to] = seats[i]
			} else {
				alone[to] = append(alone[to], seats[i]...)
			}
			continue
		}
		for k, at := range seats[i] {
			bundles[lot.Bundles[k]] = at
			for _, sl := range lot.Slots {
				to := first[sl.Relaxed] + sl.Domain
				for range sl.Count - joined[join{to, lot.Bundles[k]}] { // the pods that were alone before others joined
					alone[to] = append(alone[to], at)
				}
			}
		}
	}
	next := make([]int, len(s.p.Classes))
	out := make([]binding, 0, s.p.pending())
	for _, pk := range s.assigned.Picks {
		rc := s.assigned.Classes[pk.Relaxed]
		for range pk.Count {
			at := nowhere
			if from := first[pk.Relaxed] + pk.Domain; pk.Bundle >= 0 {
				at = bundles[pk.Bundle]
			} else if len(alone[from]) > 0 {
				at, alone[from] = alone[from][0], alone[from][1:]
			}
			if at != nowhere {
				out = append(out, binding{pod: s.p.Classes[rc.Class].order()[next[rc.Class]], at: at, class: rc.Class, level: rc.Level})
				next[rc.Class]++
			}
		}
	}
	return out
}

// Relaxed returns the items of [Problem.Relaxed] for the placed pods alone.
//
// It is a relaxation in the sense of integer programming: a lower bound on the price of packing
// these items is also one on the price of placing the pods. This holds because the items ask for
// less than the pods: every plan that places these pods is also a packing of these items, onto the
// existing nodes and the [Problem.Shapes] without their tags and limits.
func (r *Result) Relaxed() ([]Item, []ExistingNode) {
	return r.state.p.relaxed(func(class int) int { return r.state.placed[class] })
}

// Relaxed returns the pending pods as items, and the existing nodes. The items ask only for what
// can be checked node by node: requests, node selector, node affinity, the reach of bound volumes,
// tolerations, host ports, and required anti-affinity by hostname. Spreads, affinity between pods,
// anti-affinity over other keys, preferences and [Options.Within] are left out. There is one item
// for each class that is not refused, in the order of the classes. Free, Tags and Limits of the
// nodes take account of running pods, but not of daemons that are still to start, since
// kube-scheduler may bind pods before them.
func (p *Problem) Relaxed() ([]Item, []ExistingNode) {
	return p.relaxed(func(class int) int {
		if p.Classes[class].Refusal != nil {
			return 0
		}
		return len(p.Classes[class].Pods)
	})
}

// relaxed returns count pods of each class. A class that is refused can still have placed pods, on
// nodes that were added.
func (p *Problem) relaxed(count func(class int) int) ([]Item, []ExistingNode) {
	items := make([]Item, 0, len(p.Classes))
	for i, c := range p.Classes {
		pods := count(i)
		if pods == 0 {
			continue
		}
		requests := c.requests
		if len(c.shared) > 0 { // a shared volume counts once a node: the next pod may pay nothing
			requests = slices.Clone(requests)
			for _, a := range c.shared {
				if k := slices.Index(p.Resources, a.Limit); k >= 0 && requests[k] > 0 {
					requests[k]--
				}
			}
		}
		it := Item{Name: c.Name(), Count: pods, Pods: []ItemPods{{i, 1}}, Requests: requests}
		it.Requires, it.Tags, it.Limits = p.topology.Alone(i, c.unchosen)
		items = append(items, it)
	}
	nodes := slices.Clone(p.Existing)
	for i := range nodes {
		nodes[i].Free = nodes[i].bare
		tags, limits := p.topology.Certain(i)
		nodes[i].Tags, nodes[i].Limits = topology.PortTags(nodes[i].ports)
		nodes[i].Tags, nodes[i].Limits = append(nodes[i].Tags, tags...), append(nodes[i].Limits, limits...)
	}
	return items, nodes
}

// NodeLabels returns all that is known of the labels of a node of the shape and offering: those of
// pool, type and offering. The error says that these contradict each other. It panics if there is no
// such shape or offering.
func (p *Problem) NodeLabels(shape, offering int) (requirements.Set, error) {
	typ := p.InstanceType(shape)
	s := &p.Shapes[shape]
	set, err := p.Pools[s.Pool].Set.Intersect(typ.Requirements)
	if err == nil {
		set, err = set.Intersect(s.part.Restrict(p.Pools[s.Pool].Set.Keys()))
	}
	if err == nil {
		set, err = set.Intersect(typ.Offerings[s.Offerings[index("offering", offering, len(s.Offerings))].Index].Requirements)
	}
	if err != nil {
		return set, fmt.Errorf("scheduling: type %s of pool %s: %w", typ.Name, p.Pools[s.Pool].Name, err)
	}
	return set, nil
}

// Daemons returns the DaemonSets that run on nodes of the shape, as namespace/name, and the sum of
// their requests. It panics if there is no such shape.
func (p *Problem) Daemons(shape int) (names []string, total corev1.ResourceList) {
	total = corev1.ResourceList{}
	for _, i := range p.Shapes[index("shape", shape, len(p.Shapes))].daemons {
		names = append(names, podclass.Name(p.daemons[i].pod))
		total = resources.Add(total, p.daemons[i].requests)
	}
	return names, total
}

// Values returns, sorted, each value of a label that some existing node has or some node to buy can
// have. It is nil if not all of them are known, as for hostnames. It looks at each offering.
func (p *Problem) Values(key string) []string {
	if key == corev1.LabelHostname {
		return nil
	}
	all := map[string]bool{}
	for i := range p.Shapes {
		for j := range p.Shapes[i].Offerings {
			labels, err := p.NodeLabels(i, j)
			if err != nil || !labels.Has(key) {
				continue
			}
			values, known := labels.Get(key).Values()
			if !known {
				return nil
			}
			for _, v := range values {
				all[v] = true
			}
		}
	}
	for i := range p.Existing {
		if v, ok := p.Existing[i].labels[key]; ok {
			all[v] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Class returns the index of a pending pod's class, by namespace and name; false for other pods.
func (p *Problem) Class(namespace, name string) (int, bool) {
	for i, c := range p.Classes {
		for _, pod := range c.Pods {
			if pod.Name == name && podclass.Namespace(pod) == cmp.Or(namespace, corev1.NamespaceDefault) {
				return i, true
			}
		}
	}
	return 0, false
}

// GivenUp describes the preferences that a placed pod gave up, and those that it kept. Each list is
// in the order of giving up: ScheduleAnyway spreads, preferred pod affinity, preferred node
// affinity, PreferNoSchedule taints. Within each of these the lightest comes first.
func (r *Result) GivenUp(pod *corev1.Pod) (given, kept []string) {
	s := r.state
	at := slices.IndexFunc(s.bound, func(b binding) bool { return b.pod == pod })
	if at < 0 {
		return nil, nil
	}
	b := s.bound[at]
	for level, p := range s.p.topology.Preferences(b.class) {
		if text := string(p.Kind) + ": " + p.Text; level < b.level {
			given = append(given, text)
		} else {
			kept = append(kept, text)
		}
	}
	return given, kept
}

// Notes returns [Problem.Notes], and a note about the placed pods that wait until leaving nodes are
// gone.
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
	return append(out, fmt.Sprintf("pods that wait until %[3]s gone: %[1]d (the first is %[2]s); until then kube-scheduler refuses them because of the pods there, or because a node that is being removed counts for their spread",
		r.state.waiting(), podclass.Name(first), areGone(names)))
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

// cost returns what the nodes to buy cost in dollars an hour; see [Options.Cost].
func (s *state) cost() float64 {
	sum := 0.0
	for b, used := range usedBy(s.bound, len(s.last.Bins)) {
		if bin := &s.last.Bins[b]; used {
			sum += s.p.Shapes[bin.Shape].Offerings[bin.Offering].Cost
		}
	}
	return sum
}

// compare is negative if a is the better plan. These count in order: more pods of the highest
// priority in which the plans differ, larger requests, fewer pods that wait until leaving nodes are
// gone, lower sum of cost and the price of preferences given up, fewer preferences given up.
func (p *Problem) compare(a, b *state) int {
	return cmp.Or(p.comparePlaced(a, b), cmp.Compare(a.waiting(), b.waiting()), compareCosts(a.cost()+a.forgone(), b.cost()+b.forgone()), cmp.Compare(a.givenUp(), b.givenUp()))
}

// comparePlaced compares plans like compare, but only by what they place.
func (p *Problem) comparePlaced(a, b *state) int {
	more := map[int32]int{} // pods of b, by priority
	for i, c := range p.Classes {
		more[c.priority] += b.placed[i] - a.placed[i]
	}
	for _, priority := range slices.Backward(slices.Sorted(maps.Keys(more))) {
		if more[priority] != 0 {
			return more[priority]
		}
	}
	for r := range p.Resources {
		sum := 0.0
		for i, c := range p.Classes {
			sum += float64(b.placed[i]-a.placed[i]) * float64(c.requests[r])
		}
		if sum != 0 {
			return cmp.Compare(sum, 0)
		}
	}
	return 0
}

// content is the classes of the pods in a bin, what they use together, the bin's price, and what part
// of it is for unused room. The resource that is used most decides.
type content struct {
	classes       []int
	used          []int64
	price, unused float64
}

// contents returns the content of each bin.
func (s *state) contents() []content {
	out := make([]content, len(s.last.Bins))
	for _, b := range s.bound {
		if b.at.bin < 0 {
			continue
		}
		c := &out[b.at.bin]
		c.used = append(c.used, make([]int64, len(s.p.Resources)-len(c.used))...)
		for r, q := range s.p.Classes[b.class].requests {
			c.used[r] += q
		}
		if !slices.Contains(c.classes, b.class) {
			c.classes = append(c.classes, b.class)
		}
	}
	for at, bin := range s.last.Bins {
		shape, least := &s.p.Shapes[bin.Shape], 1.0
		for r, q := range out[at].used {
			least = min(least, 1-float64(q)/float64(max(1, shape.Free[r])))
		}
		out[at].price = shape.Offerings[bin.Offering].Cost
		out[at].unused = least * out[at].price
	}
	return out
}

func (p *Problem) preferencePrice() float64 { return p.options.PreferenceShare() }

// mayGiveUp reports whether preferences may be given up for a price or for more pods.
func (p *Problem) mayGiveUp() bool {
	return !p.options.IgnorePreferences && !math.IsInf(p.preferencePrice(), 1)
}

// forgone returns the price of the preferences that placed pods gave up, in dollars an hour.
func (s *state) forgone() float64 {
	price := s.p.preferencePrice()
	if math.IsInf(price, 1) { // then preferences are given up only where pods cannot be placed with them
		return 0
	}
	sum := 0.0
	for _, b := range s.bound {
		if b.level > 0 {
			sum += float64(b.level) * price * s.p.own[b.class]()
		}
	}
	return sum
}

// givenUp counts the preferences that placed pods gave up.
func (s *state) givenUp() int {
	n := 0
	for _, b := range s.bound {
		n += b.level
	}
	return n
}

// compareCosts compares in billionths of a dollar: the last digits of a sum depend on its order.
func compareCosts(a, b float64) int { return cmp.Compare(math.Round(a*1e9), math.Round(b*1e9)) }

func many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
