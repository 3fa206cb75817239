package whatif

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/internal/bind"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
	"github.com/joinery-sdk/joinery/scheduling/internal/taints"
)

// Buyer decides which nodes to buy for pods that do not fit on existing ones. It is a packer.
type Buyer interface {
	// Buy returns the nodes to buy and their pods. It may leave pods out. The order carries only
	// two kinds of constraints between pods, as [Lot.Pin] and [Lot.PerNode]. All constraints are
	// checked when the pods are placed.
	Buy(o Order) []Purchase
}

// Order is a set of pods to buy nodes for. Lots are the pods, and CapacityTypes are those of the
// question.
type Order struct {
	Problem *scheduling.Problem
	Lots    []Lot
	// MaxNodes is that of the question. MaxPrice is an exclusive upper bound on the total price:
	// that of the question, or a lower one if a cheaper answer is known. 0 means no bound.
	MaxNodes      int
	MaxPrice      Price
	CapacityTypes []string
	// Open are existing nodes that may get pods of lots with Anywhere, too. They cost nothing.
	Open []Open

	suits func(lot, shape, offering int) bool
}

// Suits reports whether the labels and taints of a node of the shape and offering suit the pods of
// a lot. With shape -1 it is about the node Open[offering]. It is safe for concurrent use. It
// panics if there is no such lot or open node.
func (o *Order) Suits(lot, shape, offering int) bool { return o.suits(lot, shape, offering) }

// Lot is a number of pods of one class with the same pin.
type Lot struct {
	// Class is an index into Problem.Classes.
	Class, Count int
	// Pin is a further requirement on the nodes of the pods, such as a zone.
	Pin requirements.Set
	// PerNode limits how many of them share a node; 0 means no limit.
	PerNode int
	// Anywhere says that its pods may go to nodes of Order.Open.
	Anywhere bool
}

// Open is an existing node that takes pods. If an earlier answer bought it, Shape and Offering are as
// in [Purchase]; otherwise Shape is -1.
type Open struct {
	Name            string
	Shape, Offering int
	Labels          map[string]string
	// Free is its free capacity, in the order and units of Problem.Resources.
	Free []int64
}

// Purchase is a node to buy, and how many pods of which lots it gets. Shape is an index into
// Problem.Shapes, and Offering an index into the offerings of that shape. If Node is set, it is the
// name of a node of Order.Open that gets the pods, and nothing is bought.
type Purchase struct {
	Node            string
	Shape, Offering int
	Pods            []LotShare
}

// LotShare is a number of pods of one lot. Lot is an index into Order.Lots.
type LotShare struct{ Lot, Count int }

// check says why an answer to the order is invalid: a purchase names an unknown node or lot, or too
// many pods of a lot.
func (o *Order) check(purchases []Purchase) string {
	taken, open := make([]int, len(o.Lots)), map[string]bool{}
	for i := range o.Open {
		open[o.Open[i].Name] = true
	}
	for i, p := range purchases {
		if p.Node != "" && !open[p.Node] {
			return fmt.Sprintf("the buyer's purchase %d names node %q, which is not open", i, p.Node)
		}
		for _, s := range p.Pods {
			switch {
			case s.Lot < 0 || s.Lot >= len(o.Lots):
				return fmt.Sprintf("the buyer's purchase %d names lot %d of %d", i, s.Lot, len(o.Lots))
			case s.Count < 0 || s.Count > o.Lots[s.Lot].Count-taken[s.Lot]:
				return fmt.Sprintf("the buyer's purchase %d takes %d of the pods of lot %d, which has %d left", i, s.Count, s.Lot, o.Lots[s.Lot].Count-taken[s.Lot])
			}
			taken[s.Lot] += s.Count
		}
	}
	return ""
}

// ask asks the buyer. It releases the lock meanwhile, so that the buyer can ask questions of its
// own. If another question is asked meanwhile, the changes of this one are undone first and made
// again afterwards.
func (b *buying) ask(order Order) []Purchase {
	e := b.e
	done, ctx := e.journal, e.ctx
	e.suspended = b
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		e.ctx = ctx
		if e.suspended == b {
			e.suspended = nil
			return
		}
		b.from.checkout()
		e.journal = e.journal[:0]
		for _, o := range done {
			e.do(o)
		}
	}()
	return b.q.Buyer.Buy(order)
}

// order puts pods into lots. Pods of a class with a spread or affinity by a domain are each pinned
// to one domain: to the given one if affinity leaves the choice. PerNode is set for classes with
// anti-affinity or spreads by hostname.
func (b *buying) order(left []int32, limit Price, domain string) (Order, [][]int32) {
	e := b.e
	o := Order{Problem: e.problem, MaxNodes: b.q.MaxNodes, MaxPrice: limit, CapacityTypes: b.q.CapacityTypes}
	var members [][]int32
	add := func(c *class, pods []int32, pin requirements.Set) {
		if len(pods) > 0 {
			o.Lots = append(o.Lots, Lot{Class: c.problem, Count: len(pods), Pin: pin, PerNode: e.perNode(c)})
			members = append(members, pods)
		}
	}
	dealt := e.dealing(left)
	defer dealt.undo()
	for start := 0; start < len(left); {
		c, end := e.classOf(left[start]), start
		for end < len(left) && e.classOf(left[end]) == c {
			end++
		}
		pods := left[start:end]
		start = end
		var values []string
		var parts [][]int32
		group, ok := e.domainGroup(c)
		if !ok {
			group, ok = dealt.apart(c)
		}
		if ok {
			values, parts = dealt.deal(c, group, pods, domain)
		}
		if len(values) == 0 { // no constraint by a domain, or no offer has the label
			add(c, pods, requirements.Set{})
		}
		for i, value := range values {
			add(c, parts[i], requirements.MustOf(requirements.In(e.keyOf(group), value)))
		}
	}
	lots := o.Lots
	o.suits = func(lot, shape, offering int) bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		offer := e.offerOf(shape, offering)
		return offer != nil && e.buys(e.classOf(members[lot][0]), offer) && lots[lot].Pin.Overlaps(offer.all())
	}
	return o, members
}

// opens adds the open nodes to an order, for lots whose pods may go anywhere.
func (b *buying) opens(o *Order, members [][]int32, anywhere func(int32) bool) {
	e, bought := b.e, o.suits
	for l := range o.Lots {
		o.Lots[l].Anywhere = anywhere(members[l][0])
	}
	var labels []int32
	for i := range e.nodes {
		n := &e.nodes[i]
		if !n.open() || n.coming {
			continue
		}
		x := Open{Name: n.name, Shape: -1, Labels: n.labels, Free: slices.Clone(n.Free)}
		if n.object != nil {
			x.Labels = n.object.Labels
		}
		if n.bought != nil {
			x.Shape, x.Offering = n.bought.shape, n.bought.index
		}
		o.Open, labels = append(o.Open, x), append(labels, n.LabelClass)
	}
	lots, open := o.Lots, o.Open
	o.suits = func(lot, shape, offering int) bool {
		if shape >= 0 {
			return bought(lot, shape, offering)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.cluster.Suits(&e.classOf(members[lot][0]).Class, labels[offering]) && lots[lot].Pin.Overlaps(requirements.FromLabels(open[offering].Labels))
	}
}

// perNode returns how many pods of the class a new node accepts by its constraints on the hostname;
// 0 means any number.
func (e *engine) perNode(c *class) int {
	most := 0
	for _, t := range c.Terms {
		if t.Anti && t.Self && e.keyOf(t.Group) == corev1.LabelHostname {
			most = 1
		}
	}
	for _, s := range c.Spreads {
		if e.keyOf(s.Group) == corev1.LabelHostname && s.Self && (most == 0 || int(s.MaxSkew) < most) {
			most = int(s.MaxSkew)
		}
	}
	return most
}

// domainGroup returns a group that is not by hostname: that of the class's ratio, otherwise of its
// first spread, otherwise of its first affinity.
func (e *engine) domainGroup(c *class) (int32, bool) {
	if len(c.Ratios) > 0 {
		return c.Ratios[0], true
	}
	for _, s := range c.Spreads {
		if e.keyOf(s.Group) != corev1.LabelHostname {
			return s.Group, true
		}
	}
	for _, t := range c.Terms {
		if !t.Anti && e.keyOf(t.Group) != corev1.LabelHostname {
			return t.Group, true
		}
	}
	return 0, false
}

// dealing counts the pods of an order in the domains that they are dealt to, so that pods that keep
// each other away get different ones.
type dealing struct {
	e      *engine
	averse []int32 // groups, not by hostname, that anti-affinity of pods of the order looks at
	counts []dealt
}

// dealt is a pod of the class that is counted in a domain.
type dealt struct {
	class  *class
	values []int32
}

func (e *engine) dealing(left []int32) *dealing {
	d := &dealing{e: e}
	for i, p := range left {
		if i > 0 && e.pods[p].class == e.pods[left[i-1]].class {
			continue
		}
		for _, t := range e.classOf(p).Terms {
			if t.Anti && e.keyOf(t.Group) != corev1.LabelHostname {
				d.averse = append(d.averse, t.Group)
			}
		}
	}
	return d
}

// apart returns a group, not by hostname, whose anti-affinity keeps pods of the class away from
// other pods of the order, or from a domain where nodes are for sale.
func (d *dealing) apart(c *class) (int32, bool) {
	e := d.e
	for _, t := range c.Terms {
		if t.Anti && e.keyOf(t.Group) != corev1.LabelHostname {
			return t.Group, true
		}
	}
	for _, g := range c.MemberOf {
		key := e.keyOf(g)
		if key != corev1.LabelHostname && (slices.Contains(d.averse, g) ||
			e.cluster.State.Kept(g) && slices.ContainsFunc(e.valuesFor(c, key, false), func(v string) bool { return !d.allows(c, d.at(g, v)) })) {
			return g, true
		}
	}
	return 0, false
}

// at returns a place with a value of the group's key and no other values.
func (d *dealing) at(group int32, value string) []int32 {
	key := d.e.index.Groups()[group].Key
	out := slices.Repeat([]int32{interpod.Absent}, len(d.e.index.Keys()))
	out[key] = d.e.cluster.Values.Of(key, value)
	return out
}

// allows reports whether no anti-affinity keeps pods of the class from the place.
func (d *dealing) allows(c *class, values []int32) bool {
	away := interpod.Constraints{MemberOf: c.MemberOf}
	for _, t := range c.Terms {
		if t.Anti {
			away.Terms = append(away.Terms, t)
		}
	}
	return d.e.cluster.State.Check(&away, values, nil, nil).OK()
}

// undo takes the pods of the order out of the counts.
func (d *dealing) undo() {
	for _, x := range d.counts {
		d.e.cluster.State.Add(&x.class.Constraints, x.values, d.passes, false, -1)
	}
}

func (d *dealing) passes(int32) bool { return true }

// deal gives each pod a value of the key that allows it: for a ratio the one with the most free
// places, for a spread the one with the fewest members, and otherwise the one with the most. Of
// equal values the given one is taken. Pods that no value allows get none.
func (d *dealing) deal(c *class, group int32, pods []int32, domain string) (values []string, parts [][]int32) {
	e := d.e
	spreads, divides := e.index.Groups()[group].Spread, e.index.Groups()[group].Ratio != ""
	values = e.valuesFor(c, e.keyOf(group), false)
	if len(values) == 0 {
		return nil, nil
	}
	places, counts := make([][]int32, len(values)), make([]int32, len(values))
	for i, v := range values {
		places[i] = d.at(group, v)
		id := places[i][e.index.Groups()[group].Key]
		counts[i] = e.cluster.State.Members(group, id)
		if divides {
			counts[i] = -e.cluster.State.Room(group, id)
		}
	}
	parts = make([][]int32, len(values))
	preferred := max(0, slices.Index(values, domain))
	for _, p := range pods {
		best := -1
		if !spreads && !divides && d.allows(c, places[preferred]) {
			best = preferred
		}
		for i := range values {
			better := best < 0 || !spreads && !divides && counts[i] > counts[best] || (spreads || divides) && counts[i] < counts[best]
			if better && d.allows(c, places[i]) {
				best = i
			}
		}
		if best < 0 {
			continue
		}
		counts[best]++
		parts[best] = append(parts[best], p)
		e.cluster.State.Add(&c.Constraints, places[best], d.passes, false, 1)
		d.counts = append(d.counts, dealt{c, places[best]})
	}
	return values, parts
}

// choices returns the domains among which pods with affinity to each other may choose, if none of
// them has a place yet. They are the domains that offers have for the first such class, at most
// mostChoices. A single empty one means that there is nothing to choose.
func (e *engine) choices(left []int32) []string {
	var last *class
	for _, p := range left {
		c := e.classOf(p)
		if c == last {
			continue
		}
		last = c
		group, ok := e.domainGroup(c)
		if !ok || e.cluster.State.Total(group) > 0 {
			continue
		}
		if g := &e.index.Groups()[group]; g.Spread || g.Ratio != "" {
			continue
		}
		if values := e.valuesFor(c, e.keyOf(group), false); len(values) > 1 {
			return values[:min(len(values), mostChoices)]
		}
	}
	return []string{""}
}

// mostChoices limits the domains that are tried for one question. Regions have up to six zones.
const mostChoices = 8

// valuesFor returns the values of a label among the offers that the class may buy, sorted; only
// those with room for one of its pods if fits is set.
func (e *engine) valuesFor(c *class, key string, fits bool) []string {
	var values []string
	for i := range e.offers {
		o := &e.offers[i]
		if o.static || !e.buys(c, o) || fits && (o.full || !bind.Fits(c.Need, o.free)) {
			continue
		}
		if key == corev1.LabelTopologyZone && o.zone != "" {
			if !slices.Contains(values, o.zone) {
				values = append(values, o.zone)
			}
			continue
		}
		list, _ := o.all().Get(key).Values()
		for _, v := range list {
			if !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
	}
	slices.Sort(values)
	return values
}

// offer is one way to buy a node.
type offer struct {
	shape, index   int
	price          Price
	free           []int64
	sig            int32
	labels         requirements.Set        // those that some pod asks about
	all            func() requirements.Set // all that its nodes can have; computed once
	pool           int32
	static         bool // its pool is static: no pod buys it
	typ            string
	zone, capacity string
	reservation    string
	id             string // of its capacity reservation; empty for none
	count          int    // how much there is; 0 for any number of nodes
	takes          int    // how much of count one node takes: 1, or millionths of a dollar of a commitment in money
	money          bool   // count is an amount of money
	full           bool   // none can be bought unless a node that counts goes before
	daemons        string // names of those that run on its nodes
}

// compileOffers lists what can be bought, cheapest first.
func (e *engine) compileOffers() {
	sigs := map[string]int32{}
	for i := range e.problem.Shapes {
		s, t := &e.problem.Shapes[i], e.problem.InstanceType(i)
		names, _ := e.problem.Daemons(i)
		daemons := strings.Join(names, ",")
		for j, so := range s.Offerings {
			labels, err := s.Labels.Intersect(so.Labels)
			if err != nil {
				continue
			}
			text := fmt.Sprintf("%d %s", s.Pool, labels)
			sig, ok := sigs[text]
			if !ok {
				sig = int32(len(sigs))
				sigs[text] = sig
			}
			o := offer{
				shape: i, index: j, price: Price(math.Round(min(so.Cost, mostPrice) * 1e9)), free: s.Free, sig: sig, labels: labels,
				pool: int32(s.Pool), static: e.static[e.problem.Pools[s.Pool].Name], typ: t.Name, reservation: so.Reservation, count: cmp.Or(so.Committed, so.Count), takes: max(so.Takes, 1), money: so.Takes > 0, daemons: daemons,
			}
			o.all = sync.OnceValue(func() requirements.Set {
				set, _ := e.problem.NodeLabels(i, j) // with an error it is impossible
				return e.problem.Pools[s.Pool].Registered(set)
			})
			reqs := t.Offerings[so.Index].Requirements
			o.full = t.Offerings[so.Index].Full
			o.id, _ = reqs.Get(instancetypes.LabelReservationID).Single()
			o.zone, _ = reqs.Get(corev1.LabelTopologyZone).Single()
			o.capacity, _ = reqs.Get(instancetypes.LabelCapacityType).Single()
			e.offers = append(e.offers, o)
		}
	}
	slices.SortStableFunc(e.offers, func(a, b offer) int {
		return cmp.Or(cmp.Compare(e.problem.Pools[b.pool].Weight, e.problem.Pools[a.pool].Weight), cmp.Compare(a.price, b.price),
			strings.Compare(a.typ, b.typ), strings.Compare(a.zone, b.zone), cmp.Compare(a.shape, b.shape), cmp.Compare(a.index, b.index))
	})
	for i := range e.offers {
		e.offerAt[[2]int{e.offers[i].shape, e.offers[i].index}] = i
	}
	e.names = make([]int, len(e.problem.Pools))
}

// buys reports whether a node bought by the offer suits the class, by labels and taints.
func (e *engine) buys(c *class, o *offer) bool {
	return c.buys.Of(int(o.sig), func() bool {
		return c.Required.Compatible(o.labels, requirements.Keys{}) && taints.Tolerates(c.Tolerations, e.problem.Pools[o.pool].Taints)
	})
}
