package whatif

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/bind"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
)

type buying struct {
	e      *engine
	from   *Cluster
	q      *Question
	wrong  string           // why the buyer's answer is invalid
	few    string           // which minValues new nodes did not meet
	unsold map[int32]string // why no node could be bought for a pod beside those for others
	moving []int32
	there  int32   // the number of nodes before anything was bought
	bought []int32 // nodes
}

// settle places the pods on existing nodes, buys nodes for the others and for those apart, and
// returns the unplaced ones. No pod of the question was placed before the mark.
func (b *buying) settle(mark int, pods, apart []int32) []int32 {
	e := b.e
	left := append(slices.Clone(apart), e.fill(pods)...)
	if len(left) == 0 || b.q.MaxNodes == 0 {
		return left
	}
	return b.finish(mark, b.buy(left))
}

// finish checks an attempt without unplaced pods, and returns the pods that are unplaced for another
// reason.
func (b *buying) finish(mark int, left []int32) []int32 {
	if len(left) == 0 && (b.e.spread(b.moving) || b.counted()) {
		left = b.again(mark)
	}
	if len(left) == 0 && !b.drop() {
		return b.moving
	}
	return left
}

// divide replaces an answer, which was made after the mark, by a cheaper one in which the buyer divides
// the pods between existing and new nodes, if there is one. Pods with preferences take the node that
// they prefer. Classes with constraints between pods that leave pods without a place take the first
// node that accepts them in the next attempt, and in the last one all such classes do.
func (b *buying) divide(mark int) {
	e, before, price, first := b.e, slices.Clone(b.e.journal[mark:]), Price(0), map[*class]bool{}
	for _, n := range b.bought {
		price += e.nodes[n].bought.price
	}
	if e.open() == len(b.bought) { // no other nodes
		return
	}
	anywhere := func(p int32) bool { c := e.classOf(p); return c.soft == nil && !first[c] }
	for attempt := range mostDivisions {
		b.undo(mark)
		left := e.placePods(slices.DeleteFunc(slices.Clone(b.moving), anywhere), 0, len(e.nodes))
		left = append(left, slices.DeleteFunc(slices.Clone(b.moving), func(p int32) bool { return !anywhere(p) })...)
		if left, _ = b.several(left, price, "", anywhere); len(left) == 0 && len(b.finish(mark, nil)) == 0 {
			return
		}
		if attempt == mostDivisions-2 {
			left = b.moving
		}
		before := len(first)
		for _, p := range left {
			if c := e.classOf(p); !c.plain() {
				first[c] = true
			}
		}
		if e.ctx.Err() != nil || len(first) == before {
			break
		}
	}
	b.redo(mark, before)
}

// mostDivisions limits the attempts of divide. With two, which are the first and the last, plans of
// five clusters with constraints between pods cost 2 to 8% more than packing anew, and now up to 3%.
const mostDivisions = 4

// buy buys nodes for the pods, places them, and returns the unplaced ones.
func (b *buying) buy(left []int32) []int32 {
	e := b.e
	mark := len(e.journal)
	one, ok := b.one(left)
	if b.q.Buyer == nil || b.q.MaxNodes < 2 && ok {
		if ok {
			return nil
		}
		return left
	}
	limit := b.q.MaxPrice
	single := slices.Clone(e.journal[mark:]) // none if one node does not hold them
	if ok {
		limit = one
	}
	b.undo(mark)
	var unplaced []int32
	for k, domain := range e.choices(left) {
		rest, price := b.several(left, limit, domain, nil)
		if len(rest) == 0 && (!ok || price < limit) {
			single, limit, ok = slices.Clone(e.journal[mark:]), price, true
		}
		if k == 0 {
			unplaced = rest
		}
		b.undo(mark)
	}
	for _, o := range single {
		e.do(o)
		if o.kind == opAdd {
			b.bought = append(b.bought, int32(len(e.nodes)-1))
		}
	}
	if ok {
		return nil
	}
	return unplaced
}

// undo undoes everything after the mark. Nothing was bought before it.
func (b *buying) undo(mark int) {
	b.e.rollback(mark)
	b.bought = nil
}

// one buys the cheapest node that holds all the pods. Offers that are equal for all constraints are
// tried once.
func (b *buying) one(left []int32) (Price, bool) {
	e := b.e
	classes, total := e.needs(left)
	mark := len(e.journal)
	refused := map[string]bool{}
	var poor []*offer // their nodes hold the pods, but have too few alternatives
	for i := range e.offers {
		o := &e.offers[i]
		if e.ctx.Err() != nil {
			break
		}
		if o.static || !bind.Fits(total, o.free) || !b.allowedOffer(o, b.q.MaxPrice) {
			continue
		}
		if slices.ContainsFunc(classes, func(id int32) bool { return !e.buys(&e.classes[id], o) }) {
			continue
		}
		alike := e.alike(o)
		if refused[alike] || slices.ContainsFunc(poor, func(p *offer) bool { return e.noFreer(p, o) }) {
			continue
		}
		switch {
		case !b.open(o, classes, "") || len(e.placePods(left, len(e.nodes)-1, len(e.nodes))) > 0:
			refused[alike] = true
		case b.valued(b.bought[0], o.price):
			return o.price, true
		default:
			poor = append(poor, o)
		}
		b.undo(mark)
	}
	return 0, false
}

// alike returns the same text for offers whose nodes are equal in labels, daemons and constraints
// between pods.
func (e *engine) alike(o *offer) string {
	text := []byte(fmt.Sprint(o.sig, o.daemons))
	for _, key := range e.index.Keys() {
		text = append(append(text, '|'), o.all().Get(key).String()...)
	}
	return string(text)
}

// needs returns the classes of the pods, each run of one class once, and the total need.
func (e *engine) needs(pods []int32) (classes []int32, total []int64) {
	total = make([]int64, e.dims)
	for _, p := range pods {
		id := e.pods[p].class
		if len(classes) == 0 || classes[len(classes)-1] != id {
			classes = append(classes, id)
		}
		for d, q := range e.classes[id].Need {
			total[d] = bind.Sum(total[d], q)
		}
	}
	return classes, total
}

// several buys what the buyer says, in the given domain if one must be chosen. An order does not carry
// all constraints between pods. So while some pods are placed and others refused, it asks again for
// the others. If anywhere is not nil, it says which pods may go to existing nodes as well. It returns
// the unplaced pods and the total price.
func (b *buying) several(left []int32, limit Price, domain string, anywhere func(int32) bool) ([]int32, Price) {
	e, first, price := b.e, len(b.e.nodes), Price(0)
	for waiting := left; ; {
		most := limit
		if limit > 0 {
			most = limit - price
		}
		refused, cost, ok := b.once(waiting, most, domain, anywhere, first)
		if price += cost; !ok || len(e.nodes)-first > b.q.MaxNodes || len(refused) == len(waiting) {
			b.explain(waiting[0])
			return waiting, 0
		}
		switch {
		case len(refused) == 0:
			if limit > 0 && price >= limit || !b.flexible() {
				return left, 0
			}
			return nil, price
		case limit > 0 && price >= limit:
			return left, 0
		case anywhere != nil:
			return refused, 0
		}
		waiting = refused
	}
}

// once asks the buyer once, and places the pods on what it buys. It returns the pods that all nodes
// refuse, and what the new nodes cost. Nodes from first on are new ones. It returns false if the
// buyer's answer cannot be carried out.
func (b *buying) once(left []int32, limit Price, domain string, anywhere func(int32) bool, first int) ([]int32, Price, bool) {
	e := b.e
	order, members := b.order(left, limit, domain)
	if anywhere != nil {
		b.opens(&order, members, anywhere)
	}
	price, taken := Price(0), make([]int, len(order.Lots))
	purchases := b.ask(order)
	if b.wrong = order.check(purchases); b.wrong != "" {
		return nil, 0, false
	}
	var pods, meant []int32
	for _, p := range purchases { // all nodes first, because a zone is a domain as soon as it has a node
		at := int32(len(e.nodes))
		if p.Node != "" {
			at = e.nodeAt[p.Node]
		}
		var classes []int32
		for _, s := range p.Pods {
			pods = append(pods, members[s.Lot][taken[s.Lot]:taken[s.Lot]+s.Count]...)
			for range s.Count {
				meant = append(meant, at)
			}
			taken[s.Lot] += s.Count
			classes = append(classes, e.pods[members[s.Lot][0]].class)
		}
		if p.Node != "" {
			continue
		}
		o := e.offerOf(p.Shape, p.Offering)
		if o == nil || o.static || !b.allowedOffer(o, limit) || !b.open(o, classes, "") {
			return nil, 0, false
		}
		price += o.price
	}
	e.placeAt(pods, meant)
	waiting := slices.DeleteFunc(slices.Clone(left), func(p int32) bool { return e.runsOn(p) != nil })
	if len(waiting) > 0 { // other new nodes may accept them, or old ones now
		waiting = e.placePods(waiting, first, len(e.nodes))
		waiting = e.placePods(waiting, 0, first)
	}
	return waiting, price, true
}

func (e *engine) offerOf(shape, offering int) *offer {
	if i, ok := e.offerAt[[2]int{shape, offering}]; ok {
		return &e.offers[i]
	}
	return nil
}

// open adds a node of the offer for pods of the classes; an empty name means a fresh one. It
// returns false if no labels suit all of them.
func (b *buying) open(o *offer, classes []int32, name string) bool {
	e := b.e
	set := o.all()
	for _, id := range classes {
		var ok bool
		if set, ok = narrow(set, e.classes[id].Required); !ok {
			return false
		}
	}
	if set.IsImpossible() {
		return false
	}
	pool := &e.problem.Pools[o.pool]
	number := -1
	if name == "" {
		name = e.freshName(o.pool)
		number = e.names[o.pool]
	}
	n := &node{name: name, number: number, alive: true, target: true, pool: o.pool, bought: o}
	n.usage, n.charges = e.counts(o)
	n.Free = o.free
	var labels map[string]string
	n.labels, labels = e.labelsOf(o.pool, set, n.name)
	labels[requirements.NodeNameKey] = n.name
	for _, d := range e.daemonsOf(o.shape) {
		n.daemons = append(n.daemons, &d.Class)
	}
	e.cluster.Describe(&n.Node, labels, pool.Taints)
	n.bucket = e.bucketOf(n)
	e.do(op{kind: opAdd, added: n})
	b.bought = append(b.bought, int32(len(e.nodes)-1))
	return true
}

// labelsOf returns the labels of a node to buy, and those that it has once its agents have set
// theirs. They are computed once for nodes that differ in their names only.
func (e *engine) labelsOf(pool int32, set requirements.Set, name string) (chosen, registered map[string]string) {
	const someName = "\x00" // no label has this value
	key := fmt.Sprint(pool, " ", set)
	of, ok := e.labels[key]
	if !ok {
		of[0] = e.problem.ChosenLabels(set)
		of[0][corev1.LabelHostname] = someName
		of[1] = e.problem.Pools[pool].Registered(requirements.FromLabels(of[0])).Labels()
		e.labels[key] = of
	}
	for i := range of {
		of[i] = maps.Clone(of[i])
		for k, v := range of[i] {
			if v == someName {
				of[i][k] = name
			}
		}
	}
	return of[0], of[1]
}

// freshName returns the pool's name with the lowest free number.
func (e *engine) freshName(pool int32) string {
	for ; ; e.names[pool]++ {
		name := fmt.Sprintf("%s-%d", e.problem.Pools[pool].Name, e.names[pool])
		if !e.taken[name] {
			return name
		}
	}
}

// spread reports whether some of the pods have spreads, so that it matters which domains exist.
func (e *engine) spread(pods []int32) bool {
	return slices.ContainsFunc(pods, func(p int32) bool { return len(e.classOf(p).Spreads) > 0 })
}

// again repeats everything after the removals, with all new nodes there from the start, because a
// new node's zone is a domain of spreads before any pod is bound. Pods keep their places where
// possible, in any order.
func (b *buying) again(mark int) []int32 {
	e := b.e
	done := slices.Clone(e.journal[mark:])
	e.rollback(mark)
	var pods, nodes []int32
	for _, o := range done {
		if o.kind == opAdd {
			e.do(o)
		} else {
			pods, nodes = append(pods, o.pod), append(nodes, o.node)
		}
	}
	return e.placePods(e.placeAt(pods, nodes), 0, len(e.nodes))
}

// drop removes new nodes without pods. It returns false if one of them may matter to a pod, by its
// daemons or as a domain of a spread with minDomains.
func (b *buying) drop() bool {
	e := b.e
	empty := func(n int32) bool { return len(e.nodes[n].pods) == 0 }
	needed := func(n int32) bool { return empty(n) && len(e.nodes[n].daemons) > 0 } // other pods may have their places because of its daemons
	if !slices.ContainsFunc(b.bought, empty) {
		return true
	}
	if slices.ContainsFunc(b.bought, needed) {
		return false
	}
	for _, p := range b.moving {
		if slices.ContainsFunc(e.classOf(p).Spreads, func(s interpod.Spread) bool { return s.MinDomains > 1 }) {
			return false
		}
	}
	for _, n := range b.bought {
		if empty(n) {
			e.do(op{kind: opRemove, node: n})
			e.do(op{kind: opCredit, node: n})
		}
	}
	b.bought = slices.DeleteFunc(b.bought, empty)
	return true
}

// report fills in the answer from the journal.
func (b *buying) report(a *Answer) {
	e := b.e
	at := map[int32]int{}
	for i, n := range b.bought {
		at[n], a.Price = i, a.Price+e.nodes[n].bought.price
	}
	for _, n := range b.bought {
		x := &e.nodes[n]
		own := Bought{
			Name: x.name, Shape: x.bought.shape, Offering: x.bought.index, Type: x.bought.typ, Zone: x.bought.zone,
			CapacityType: x.bought.capacity, Price: x.bought.price, Labels: maps.Clone(x.labels), Alternatives: listed(b.alternatives(x, a.Price)),
		}
		for _, d := range e.daemonsOf(x.bought.shape) {
			own.Daemons = append(own.Daemons, d.pod)
		}
		a.Bought = append(a.Bought, own)
	}
	a.Filled = map[string][]Alternative{}
	for _, n := range b.filled() {
		a.Filled[e.nodes[n].name] = listed(b.alternatives(&e.nodes[n], earlier))
	}
	a.Placements = make([]Placement, 0, len(b.moving))
	for _, o := range e.journal {
		if o.kind == opAdd {
			o.added.most, o.added.spare = b.most(o.added, a.Price), e.spare(o.added)
		}
		if o.kind != opPlace {
			continue
		}
		p := e.pods[o.pod].object
		a.Placements = append(a.Placements, Placement{p, e.nodes[o.node].name})
		if i, ok := at[o.node]; ok {
			a.Bought[i].Pods = append(a.Bought[i].Pods, p)
		}
	}
}

func listed(offers []*offer) (out []Alternative) {
	for _, o := range offers {
		out = append(out, Alternative{o.shape, o.index, o.typ, o.price})
	}
	return out
}

// filled returns the nodes that earlier answers bought and that have got pods, sorted.
func (b *buying) filled() (out []int32) {
	seen := map[int32]bool{}
	for _, o := range b.e.journal {
		if o.kind == opPlace && o.node < b.there && b.e.nodes[o.node].bought != nil && !seen[o.node] {
			seen[o.node], out = true, append(out, o.node)
		}
	}
	slices.Sort(out)
	return out
}

// earlier stands for the price of all nodes of an earlier question.
const earlier = Price(-1)

// most returns the exclusive bound of the price of a new node in the place of n; 0 means none. total is
// the price of all nodes that this question buys, or earlier if another one has bought n.
func (b *buying) most(n *node, total Price) Price {
	switch {
	case total == earlier:
		return n.most
	case b.q.MaxPrice == 0:
		return 0
	}
	return b.q.MaxPrice - (total - n.bought.price)
}

// mostAlternatives is how many types one request to a cloud takes.
const mostAlternatives = 60

// alternatives returns other offers that would hold the same pods in the same zone and capacity type,
// cheapest first; see most for total. What an alternative counts more against limits is at most an equal
// part of what they leave.
func (b *buying) alternatives(n *node, total Price) (out []*offer) {
	e := b.e
	classes, used := e.needs(n.pods)
	limit, spare := b.most(n, total), e.spare(n)
	for i := range e.offers {
		o := &e.offers[i]
		if o == n.bought || o.pool != n.pool || o.zone != n.bought.zone || o.capacity != n.bought.capacity || o.count > 0 ||
			!bind.Fits(used, o.free) || limit > 0 && o.price >= limit || !e.spares(n, o, spare) {
			continue
		}
		if slices.ContainsFunc(classes, func(c int32) bool { return !e.buys(&e.classes[c], o) }) {
			continue
		}
		if out = append(out, o); len(out) == mostAlternatives {
			break
		}
	}
	return out
}
