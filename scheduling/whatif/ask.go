package whatif

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/internal/bind"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
	"github.com/joinery-sdk/joinery/scheduling/internal/podclass"
)

// Price is an amount of money an hour, in billionths of a dollar.
type Price int64

// Dollars returns the price in dollars, for display.
func (p Price) Dollars() float64 { return float64(p) / 1e9 }

// String returns the price in dollars, with two decimals or as many as it needs: "$0.17",
// "$0.0058".
func (p Price) String() string {
	sign, n := "", uint64(p)
	if p < 0 {
		sign, n = "-", -n
	}
	const cent = 1e7
	return fmt.Sprintf("%s$%d.%02d%s", sign, n/cent/100, n/cent%100, strings.TrimRight(fmt.Sprintf("%07d", n%cent), "0"))
}

// Question asks where pods would go if some nodes were removed.
type Question struct {
	// Remove are the names of the nodes to remove. Pods on these nodes that are not listed in Pods
	// are deleted and get no new place. A name that is unknown, or of a node that is leaving or has
	// not joined, makes the question invalid: all pods are unplaced, and [Answer.Why] names the
	// node.
	Remove []string
	// Cordon are the names of nodes that stay and take no pods from now on. Unknown names are
	// ignored.
	Cordon []string
	// Pods are the pods that need a place: pods of removed nodes and pending ones, each once. A
	// terminating pod is placed as its successor.
	Pods []*corev1.Pod
	// MaxNodes limits how many nodes are bought; 0 means none.
	MaxNodes int
	// MaxPrice is an exclusive upper bound on the total price of the nodes bought; 0 means no
	// bound. Every Price of questions and answers is a cost in the objective if [Options.Cost] is
	// set.
	MaxPrice Price
	// CapacityTypes are the capacity types that may be bought; nil means all.
	CapacityTypes []string
	// Buyer decides which nodes to buy if MaxNodes is more than 1, or if one node does not hold all
	// pods. With nil, at most one node is bought, whatever MaxNodes says, except those of Buy.
	Buyer Buyer
	// Place, if not nil, maps each pod to its node, and Buy lists the nodes to buy: their Name,
	// Shape and Offering. Ask then only looks for an order of the placements that kube-scheduler
	// accepts. A node in Buy without a Name gets a fresh one; Place cannot refer to it.
	//
	// With Elsewhere, a pod that its node refuses may go to another node. Pods of a class may also
	// change places, so that the pods of one node go to few other nodes. Also, removed nodes stop
	// counting against limits before others are bought.
	Buy       []Bought
	Place     map[*corev1.Pod]string
	Elsewhere bool
	// Freed says that the machines of removed nodes are gone before anything is bought. So what
	// they count against limits, quotas, reservations and counted offerings can be bought again.
	// [Answer.Freed] lists which of these the bought nodes need.
	//
	// With Freed, pods are unplaced in two further cases. First: what the bought node needs is also
	// freed by another node, one that is leaving or that an earlier answer removes. Then it is
	// enough to wait. Second: a pod that is not listed in Pods has no place, and kube-scheduler
	// could put it on the node that is bought.
	Freed bool
	// LeaveDomains says that spreads count only domains with nodes, as kube-scheduler does.
	// Otherwise they also count zones, or other domains, in which a node for the pod is for sale,
	// as plans for pending pods do. If one of these domains has no node, its count is 0, so a
	// domain may have at most maxSkew pods of the spread. There is one exception: a domain that had
	// more when the cluster was compiled or rebased may have that many again.
	//
	// With LeaveDomains, the answer may also take reserved places from their pods, see
	// [Cluster.Reserve].
	LeaveDomains bool
	// Thorough tries two more things. If pods would have no place, nodes may be bought for other
	// pods, too, which existing nodes accept. If it costs less, the Buyer may divide the pods
	// between existing and new nodes, see [Order.Open]. A question then costs up to three times as
	// much.
	Thorough bool
	// Explain asks for [Answer.Why], which costs a look at every node.
	Explain bool
}

// Answer says where the pods would go.
type Answer struct {
	// Placements are the places of all pods; there are none if a pod is unplaced. kube-scheduler's
	// filters accept the pods one by one in this order, with the removed nodes gone and the bought
	// ones there.
	Placements []Placement
	// Bought are the nodes to buy.
	Bought []Bought
	// Price is the total price of Bought.
	Price Price
	// Freed lists the limits, quotas, reservations and stocks that the bought nodes use and that
	// are available only because the removed nodes are gone. Each is a text such as "reservation
	// cr-1 is full". The list is sorted. It is empty unless the question has Freed set.
	Freed []string
	// Forgone is the price of preferences that the moved pods lose, less those that they gain. The
	// price of a preference is [Options.PreferencePrice] times the price of the part of a new node
	// that the pod uses, see [scheduling.Problem.PodPrice]. Forgone is never negative. A change
	// that saves less than Forgone is not worth it: the preferences that it gives up have a higher
	// price than the saving.
	Forgone Price
	// Unplaced are the pods without a place. If the question asks to explain, Why says what keeps
	// the first of them from every node. Why is also set, whether or not the question asks, in
	// these cases: the question is invalid (even one without pods), the buyer's answer is invalid,
	// the context ended, or one of the two cases of [Question.Freed] applies. It is empty if the
	// answer is OK.
	Unplaced []*corev1.Pod
	Why      string
	// Unsold says what keeps the pools from buying a node for the first of Unplaced, such as a limit,
	// if the question asks to explain and may buy nodes. It is empty if they could buy one beside
	// those that other pods of the question need.
	Unsold string
	// Filled has the nodes that earlier answers bought and that get pods now, by name: the
	// alternatives that hold all their pods.
	Filled map[string][]Alternative
	// Inflexible says which minValues of a pool new nodes for the unplaced pods would not meet. It
	// is empty if none were found that hold the pods, and if the answer is OK.
	Inflexible string

	from *Cluster
	ops  []op
}

// Placement is a pod and its node.
type Placement struct {
	Pod  *corev1.Pod
	Node string
}

// Bought is a node to buy.
type Bought struct {
	// Name is the pool's name and a number. No node has it.
	Name string
	// Shape is an index into Problem.Shapes, and Offering an index into the offerings of that
	// shape.
	Shape, Offering    int
	Type               string
	Zone, CapacityType string
	Price              Price
	// Labels are the labels that the node will have.
	Labels map[string]string
	Pods   []*corev1.Pod
	// Daemons are the pods that DaemonSets will run there, named after the sets. They must not be
	// modified.
	Daemons []*corev1.Pod
	// Alternatives are other types that would hold the same pods in the same zone and capacity type
	// within MaxPrice, cheapest first.
	Alternatives []Alternative
}

// Alternative is another type for a node to buy. Shape and Offering are as in [Bought].
type Alternative struct {
	Shape, Offering int
	Type            string
	Price           Price
}

// OK reports whether the question is valid and every pod has a place.
func (a *Answer) OK() bool { return len(a.Unplaced) == 0 && a.Why == "" }

// After returns the version of the cluster with the answer carried out. It costs nothing until that
// version is asked.
func (a *Answer) After() *Cluster { return &Cluster{a.from.e, a.from, a.from.depth + 1, a.ops} }

// Problem returns what can be bought, and the classes of the pods, as package scheduling compiles
// them. Its existing nodes are without the pods that run there.
func (c *Cluster) Problem() *scheduling.Problem { return c.e.problem }

// Refuses says why no question may place the pod; empty if one may. It refuses a pod that is not in
// the snapshot.
func (c *Cluster) Refuses(p *corev1.Pod) string {
	i, ok := c.e.podAt[p]
	if !ok {
		return "it is not in the snapshot"
	}
	return c.e.classOf(i).refusal
}

// Needs returns the total need of the pods, in the order and units of Problem.Resources. Pods that
// are not in the snapshot are ignored.
func (c *Cluster) Needs(pods []*corev1.Pod) []int64 {
	total := make([]int64, c.e.dims)
	for _, p := range pods {
		if i, ok := c.e.podAt[p]; ok {
			for d, q := range c.e.classOf(i).Need {
				total[d] = bind.Sum(total[d], q)
			}
		}
	}
	return total
}

// Ask answers the question. When ctx ends, all pods that have no place by then are unplaced. It
// costs O(pods that move x nodes looked at + offerings). Blocks of nodes that are too full are
// skipped, and pods that stay cost nothing.
func (c *Cluster) Ask(ctx context.Context, q Question) Answer {
	e := c.lock()
	defer e.mu.Unlock()
	e.ctx, e.cluster.State.CountSold = ctx, !q.LeaveDomains
	defer func() { e.cluster.State.CountSold = false }()
	e.journal = e.journal[:0]
	if k := slices.Index(q.Pods, nil); k >= 0 {
		return Answer{from: c, Unplaced: slices.DeleteFunc(slices.Clone(q.Pods), func(p *corev1.Pod) bool { return p == nil }), Why: fmt.Sprintf("pods[%d] is nil; leave it out", k)}
	}
	given := e.given(q.Pods)
	defer e.rollback(0) // even if a buyer panics
	a := Answer{from: c}
	var gone []int32
	for _, name := range q.Remove {
		i, ok := e.nodeAt[name]
		if !ok || !e.nodes[i].alive || e.nodes[i].leaving || e.nodes[i].inFlight {
			return Answer{from: c, Unplaced: q.Pods, Why: fmt.Sprintf("there is no node %q that could be removed", name)}
		}
		gone = append(gone, i)
		e.do(op{kind: opRemove, node: i})
	}
	for _, name := range q.Cordon {
		if i, ok := e.nodeAt[name]; ok && e.nodes[i].open() {
			e.do(op{kind: opCordon, node: i})
		}
	}
	moving, why := e.moving(q.Pods)
	if why != "" {
		return Answer{from: c, Unplaced: q.Pods, Why: why}
	}
	b := buying{e: e, from: c, q: &q, moving: moving, there: int32(len(e.nodes))}
	var left []int32
	removed, waits := gone, ""
	if q.Freed {
		for _, i := range gone {
			e.do(op{kind: opFree, node: i})
		}
	}
	if q.Freed || q.Place != nil && q.Elsewhere {
		e.credit(gone)
		gone = nil
	}
	mark := len(e.journal)
	if q.Place != nil {
		left = b.place(moving)
	} else if left = b.settle(mark, moving, nil); len(left) > 0 {
		if left = b.colocate(mark, left); len(left) > 0 && q.Thorough {
			left = b.instead(mark, left)
		}
	}
	if q.Thorough && q.Place == nil && q.Buyer != nil && len(left) == 0 && len(b.bought) > 0 {
		b.divide(mark)
	}
	if len(left) == 0 && !b.flexible() {
		left = moving
	}
	if len(left) == 0 && len(moving) > 0 && !q.LeaveDomains {
		if p := e.evicts(); p >= 0 {
			left, waits = moving, fmt.Sprintf("pod %s waits for its place on node %s, and would not be accepted there", podclass.Name(e.pods[p].object), e.nodes[e.pods[p].node].name)
		}
	}
	if len(left) == 0 && q.Freed {
		if a.Freed, waits = b.takes(removed); waits != "" {
			left = moving
		}
	}
	if len(left) > 0 || waits != "" {
		switch {
		case waits != "":
			a.Freed, a.Why = nil, waits
		case ctx.Err() != nil:
			a.Why = context.Cause(ctx).Error()
		case b.wrong != "":
			a.Why = b.wrong
		case q.Explain:
			a.Why = e.why(left[0], e.nodes[:b.there])
			b.explain(left[0])
			a.Unsold = b.unsold[left[0]]
		}
		a.Inflexible = b.few
		for _, p := range left {
			a.Unplaced = append(a.Unplaced, e.pods[p].object)
		}
		return a
	}
	b.report(&a)
	a.Forgone = e.forgone(moving, given)
	e.credit(gone)
	a.ops = slices.Clone(e.journal)
	return a
}

// runsOn returns the node that a pod runs on; nil if it is pending or its node is gone.
func (e *engine) runsOn(p int32) *node {
	if at := e.pods[p].node; at >= 0 && e.nodes[at].alive {
		return &e.nodes[at]
	}
	return nil
}

// moving returns the pods in the order of placement: by descending size, with the pods of a class
// together in the given order. The text says which pod may not be asked about.
func (e *engine) moving(pods []*corev1.Pod) ([]int32, string) {
	out := make([]int32, 0, len(pods))
	defer func() {
		for _, i := range out {
			e.pods[i].asked = false
		}
	}()
	keys := make([]int64, 0, len(pods)) // ranks and positions
	for k, p := range pods {
		i, ok := e.podAt[p]
		if !ok {
			return nil, fmt.Sprintf("pod %s is not in the snapshot", podclass.Name(p))
		}
		if c := e.classOf(i); !c.movable {
			return nil, fmt.Sprintf("%s: %s", podclass.Name(p), c.refusal)
		}
		if n := e.runsOn(i); n != nil {
			return nil, fmt.Sprintf("pod %s runs on node %q, which stays; remove the node, too", podclass.Name(p), n.name)
		}
		if e.pods[i].asked {
			return nil, fmt.Sprintf("pod %s is asked about more than once", podclass.Name(p))
		}
		e.pods[i].asked = true
		out = append(out, i)
		keys = append(keys, int64(e.classOf(i).rank)<<32|int64(k))
	}
	slices.Sort(keys)
	ordered := make([]int32, len(out))
	for i, k := range keys {
		ordered[i] = out[k&(1<<32-1)]
	}
	return ordered, ""
}

// placePods puts each pod on the first node from lo to hi that accepts it. It repeats that for pods
// that others may let in, and returns the unplaced ones.
func (e *engine) placePods(pods []int32, lo, hi int) []int32 {
	for {
		left := e.lap(pods, lo, hi)
		if len(left) == len(pods) || !slices.ContainsFunc(left, func(p int32) bool { return e.classOf(p).waits() }) {
			return left
		}
		pods = left
	}
}

// waits reports whether pods that are placed later may let in a pod of the class.
func (c *class) waits() bool {
	return len(c.Spreads) > 0 || slices.ContainsFunc(c.Terms, func(t interpod.Term) bool { return !t.Anti })
}

func (e *engine) lap(pods []int32, lo, hi int) []int32 {
	var left []int32
	var last *class
	from := lo
	for k, p := range pods {
		if e.ctx.Err() != nil {
			return append(left, pods[k:]...)
		}
		c := e.classOf(p)
		if c != last {
			last, from = c, lo
		}
		at := e.find(c, from, hi)
		if !c.waits() && c.soft == nil {
			from = at // the nodes before it accept no more of them
		}
		if at == hi {
			left = append(left, p)
			continue
		}
		e.do(op{kind: opPlace, pod: p, node: int32(at), old: e.pods[p].node})
	}
	return left
}

// why says what keeps a pod from every one of the nodes.
func (e *engine) why(p int32, nodes []node) string {
	c := e.classOf(p)
	unsuited, full, apart, all := 0, 0, 0, 0
	best, short := -1.0, ""
	for i := range nodes {
		n := &nodes[i]
		if !n.open() {
			continue
		}
		all++
		switch {
		case !e.cluster.Suits(&c.Class, n.LabelClass):
			unsuited++
		case !bind.Fits(c.Need, n.Free):
			full++
			share, text := e.short(c, n)
			if best < 0 || share < best {
				best, short = share, text
			}
		default:
			apart++
		}
	}
	var parts []string
	if full > 0 {
		parts = append(parts, numbered(full, "is", "are")+fmt.Sprintf(" too full (the nearest, %s)", short))
	}
	if unsuited > 0 {
		parts = append(parts, numbered(unsuited, "excludes", "exclude")+" it by labels or taints")
	}
	if apart > 0 {
		parts = append(parts, numbered(apart, "is", "are")+" excluded by host ports or by constraints between pods")
	}
	if len(parts) == 0 {
		return podclass.Name(e.pods[p].object) + ": there are no other nodes"
	}
	return fmt.Sprintf("%s: of %s, %s", podclass.Name(e.pods[p].object), numbered(all, "other node", "other nodes"), strings.Join(parts, "; "))
}

func numbered(n int, one, other string) string {
	if n == 1 {
		other = one
	}
	return fmt.Sprintf("%d %s", n, other)
}

// short says what a node lacks most for a pod of the class, and which share of the need that is.
func (e *engine) short(c *class, n *node) (float64, string) {
	worst, at := 0.0, 0
	for d, q := range c.Need {
		if q > n.Free[d] && q > 0 {
			if share := float64(q-n.Free[d]) / float64(q); share > worst {
				worst, at = share, d
			}
		}
	}
	name := e.problem.Resources[at]
	return worst, fmt.Sprintf("%s, lacks %s %s", n.name, name, resources.Humane(name, c.Need[at]-max(0, n.Free[at])))
}
