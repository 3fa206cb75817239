package binpack

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
	"github.com/joinery-sdk/joinery/binpack/internal/tags"
)

// relaxation is an instance as package relax sees it. Items of equal size and requirements form a
// class. Offerings of a type with equal price and eligibility form a bin type. It leaves out open
// keys, budgets of pools, MinValues, and tags that keep few items apart. Leaving out rules never
// raises the optimum.
type relaxation struct {
	model   *relax.Model
	extra   []extra   // resources of the model after those of the problem
	proves  bool      // the relaxation is for a bound: an offer never excludes one of another capacity pool
	members [][]int   // by class: its items
	worth   []float64 // by class: its dual, once the relaxation is solved
	used    []bool    // by profile: whether some class has it
	types   []binType
	sparse  bool // some bin types or items are left out, so it proves nothing about the whole
}

// binType is a type with some of its offerings that are alike, or existing nodes that are alike.
type binType struct {
	typ   int32
	mask  uint64
	nodes []int32 // existing nodes, in order; nil for bins to buy
}

// relaxed returns the relaxation for the counts of items, over the types of one tier (negative:
// all) that cost less than the ceiling, and of which left, what remains of the budgets, allows a
// bin. It is for a bound if proves is set, and otherwise for a plan. With nodes, existing nodes are
// bin types of price 0. ok is false if there are too many different nodes, if a price is too large
// for proofs, or if the watch ended.
func (in *Instance) relaxed(counts []int, tier int, nodes bool, ceiling Price, left []int64, proves bool, w *relax.Watch) (r *relaxation, ok bool) {
	r = &relaxation{model: &relax.Model{Grain: int64(in.grain), Unit: in.unit}, extra: append(in.apartTags(counts), in.spreadMost(counts)...), used: make([]bool, len(in.profiles))}
	r.model.Dims = in.dims + len(r.extra)
	r.proves, r.sparse = proves, !proves && len(in.diverse.left) > 0
	if !r.compileClasses(in, counts, w) {
		return r, false
	}
	var list []offer
	for _, t := range in.byPrice { // nearly in the order that undominated sorts by
		typ := &in.problem.Types[t]
		if w.Ended(1 + len(typ.Offerings)*len(in.profiles)/8) {
			return r, false
		}
		if len(typ.Offerings) > 0 && in.minPrice[t] < ceiling && (tier < 0 || int(in.tierOfPool[typ.Pool]) == tier) {
			list = r.appendOffers(in, list, t, ceiling, left)
		}
	}
	r.model.Supply = slices.Clone(left[:in.budgets.reservations])
	r.cut(in, list, w)
	list = r.undominated(in, list, w)
	if nodes {
		var nodeOffers []offer
		for _, digits := range []int{63, 4, 3, 2, 1} { // from exact to coarse
			if nodeOffers, ok = r.existingNodes(in, digits, w); ok || w.Over {
				r.sparse = r.sparse || digits < 63 // capacities that are rounded down prove nothing
				break
			}
		}
		if !ok {
			return r, false
		}
		r.cut(in, nodeOffers, w)
		list = append(list, nodeOffers...)
	}
	if w.Over {
		return r, false
	}
	r.compileBinTypes(in, list)
	return r, !slices.ContainsFunc(list, func(o offer) bool { return o.price > relax.Largest })
}

// cut lowers each capacity to what items can fill.
func (r *relaxation) cut(in *Instance, list []offer, w *relax.Watch) {
	capacities, open := make([][]int64, len(list)), make([][]uint64, len(list))
	for i := range list {
		capacities[i], open[i] = list[i].capacity, list[i].suits
	}
	profile := make([]int, len(r.members))
	for c, members := range r.members {
		profile[c] = int(in.profile[members[0]])
	}
	for i, capacity := range r.model.Tightened(capacities, profile, open, w) {
		list[i].capacity = capacity
	}
}

// classKey identifies what the items of a class share: where they may go, what they take, and what
// they count for each diversity.
type classKey struct {
	profile int32
	size    []int64
	shares  []Share
}

// appendTo appends a text that only equal keys share, because each part states its length.
func (k classKey) appendTo(text []byte) []byte {
	text = binary.AppendUvarint(binary.AppendUvarint(text, uint64(k.profile)), uint64(len(k.size)))
	for _, s := range k.size {
		text = binary.AppendUvarint(text, uint64(s))
	}
	for _, s := range k.shares {
		text = binary.AppendUvarint(binary.AppendUvarint(text, uint64(s.Item)), uint64(s.Count))
	}
	return text
}

// appendTags appends a text of everything that the tags of an item say. Items share a limit in one
// bin only if it is equal.
func appendTags(text []byte, states []tags.State) []byte {
	for _, own := range states {
		text = binary.AppendUvarint(binary.AppendUvarint(binary.AppendUvarint(text, uint64(own.Tag)), uint64(own.Count)), uint64(own.Limit))
	}
	return text
}

// compileClasses groups the items into classes, in an order that does not depend on their order in
// the problem. It reports whether it finished.
func (r *relaxation) compileClasses(in *Instance, counts []int, w *relax.Watch) bool {
	known := make(map[string]int32, len(counts))
	limited := map[string]bool{} // classes with tags whose limit is counted
	var key []byte
	for _, i := range in.order {
		if w.Ended(1) {
			return false
		}
		n := counts[i]
		if n <= 0 {
			continue
		}
		r.used[in.profile[i]] = true
		size := in.problem.Items[i].Size
		for k := range r.extra {
			size = append(slices.Clip(size), r.extra[k].takes(in, i))
		}
		key = classKey{in.profile[i], size, in.diverse.counts[i]}.appendTo(key[:0])
		k, ok := known[string(key)]
		if !ok {
			k = int32(len(r.model.Classes))
			known[string(key)] = k
			r.model.Classes = append(r.model.Classes, relax.Class{Size: size})
			r.members = append(r.members, nil)
		}
		c := &r.model.Classes[k]
		c.Count += int64(n)
		r.members[k] = append(r.members[k], i)
		if most := tags.Admitted(nil, in.itemTags[i], math.MaxInt32); most == math.MaxInt32 {
			c.Most = math.MaxInt64
		} else if key = appendTags(key, in.itemTags[i]); !limited[string(key)] { // items with equal tags share what one bin holds of them
			limited[string(key)] = true
			c.Most = sum(c.Most, int64(most))
		}
	}
	return true
}

// suiting returns the used profiles that suit, as a bitset; any reports whether there are any.
func (r *relaxation) suiting(in *Instance, suits func(p profile) bool) (set []uint64, any bool) {
	set = make([]uint64, (len(in.profiles)+63)/64)
	for k, p := range in.profiles {
		if r.used[k] && suits(p) {
			set[k/64] |= 1 << (k % 64)
			any = true
		}
	}
	return set, any
}

// capacity returns the capacity of a bin with these tags and capacity pool, by resource and extra
// resource.
func (r *relaxation) capacity(in *Instance, own []int64, states []tags.State, pool int32) []int64 {
	for i := range r.extra {
		own = append(slices.Clip(own), r.extra[i].capacity(in, states, pool))
	}
	return own
}

// offer is a bin type before it has a number.
type offer struct {
	binType
	capacity []int64
	price    Price
	supply   int32
	takes    int64    // how much of the supply one bin takes
	pool     int32    // 1 + capacity pool if there is diversity; 0 for none
	suits    []uint64 // bitset over the profiles
}

func (r *relaxation) appendOffers(in *Instance, list []offer, t int32, ceiling Price, left []int64) []offer {
	first := len(list)
	typ := &in.problem.Types[t]
	for j := range typ.Offerings {
		if in.objective(t, j) >= ceiling || !in.budgets.allow(t, j, left) {
			continue
		}
		suits, any := r.suiting(in, func(p profile) bool { return p.mask(t)&(1<<j) != 0 })
		if !any {
			continue
		}
		pool := in.diverse.pool(int(t), j)
		o := offer{
			binType: binType{t, 1 << j, nil}, capacity: r.capacity(in, in.capacityOf(t), in.typeTags[t], pool),
			price: in.objective(t, j), supply: -1, takes: 1, pool: pool + 1, suits: suits,
		}
		if typ.Offerings[j].Counted {
			u := in.budgets.of(t, j)[0]
			o.supply, o.takes = u.budget, u.amount
		}
		alike := slices.IndexFunc(list[first:], func(x offer) bool {
			return x.price == o.price && x.supply == o.supply && x.takes == o.takes && x.pool == o.pool && slices.Equal(x.suits, suits) && slices.Equal(x.capacity, o.capacity)
		})
		if alike >= 0 {
			list[first+alike].mask |= o.mask
		} else {
			list = append(list, o)
		}
	}
	return list
}

// undominated returns the offers that no other offer dominates, by price.
func (r *relaxation) undominated(in *Instance, list []offer, w *relax.Watch) []offer {
	order := make([]int32, len(list)) // sort indexes, because offers are large
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(x, y int32) int {
		a, b := &list[x], &list[y]
		if c := cmp.Compare(a.price, b.price); c != 0 {
			return c
		}
		return cmp.Or(slices.Compare(b.capacity, a.capacity), cmp.Compare(in.problem.Types[a.typ].Pool, in.problem.Types[b.typ].Pool),
			cmp.Compare(in.problem.Types[a.typ].Name, in.problem.Types[b.typ].Name), cmp.Compare(a.typ, b.typ), cmp.Compare(a.mask, b.mask), cmp.Compare(x, y))
	})
	var kept []offer
	var first [][2]int64 // two capacities of each kept offer: few need a closer look
	dominated := func(o *offer, capacity [2]int64) bool {
		for k, most := range first {
			if most[0] >= capacity[0] && most[1] >= capacity[1] && (!r.proves || kept[k].pool == 0 || kept[k].pool == o.pool) && in.dominates(&kept[k], o) {
				return true
			}
		}
		return false
	}
	for _, i := range order {
		if w.Ended(1 + len(kept)/8) { // the caller checks again
			return kept
		}
		var capacity [2]int64
		copy(capacity[:], list[i].capacity)
		if !dominated(&list[i], capacity) {
			kept, first = append(kept, list[i]), append(first, capacity)
		}
	}
	return kept
}

func (in *Instance) dominates(a, b *offer) bool {
	if a.price > b.price || a.supply >= 0 && (a.supply != b.supply || a.takes > b.takes) {
		return false
	}
	for r, c := range b.capacity {
		if a.capacity[r] < c {
			return false
		}
	}
	for w, s := range b.suits {
		if s&^a.suits[w] != 0 {
			return false
		}
	}
	// Rules beyond price and capacity may forbid a where they allow b.
	ta, tb := &in.problem.Types[a.typ], &in.problem.Types[b.typ]
	if ta.Pool != tb.Pool {
		if in.budgets.bounded[ta.Pool] || len(in.problem.Pools[ta.Pool].MinValues) > 0 {
			return false
		}
	} else {
		for i, l := range in.problem.Pools[ta.Pool].Limits {
			if l != Unlimited && ta.Usage[i] > tb.Usage[i] {
				return false
			}
		}
	}
	if !in.usesNoMore(a, b) {
		return false
	}
	return len(in.typeTags[a.typ]) == 0 || slices.Equal(in.typeTags[a.typ], in.typeTags[b.typ])
}

// usesNoMore reports whether a uses no more than b of any budget over all pools, whichever
// offerings are bought.
func (in *Instance) usesNoMore(a, b *offer) bool {
	for i := range in.problem.Budgets {
		most, least := int64(0), int64(math.MaxInt64)
		for j, o := range in.problem.Types[a.typ].Offerings {
			if a.mask&(1<<j) != 0 {
				most = max(most, o.uses(i))
			}
		}
		for j, o := range in.problem.Types[b.typ].Offerings {
			if b.mask&(1<<j) != 0 {
				least = min(least, o.uses(i))
			}
		}
		if most > least {
			return false
		}
	}
	return true
}

// existingNodes returns the existing nodes as offers of price 0. Nodes whose free capacities agree
// in the given number of binary digits share an offer, rounded up for a bound and down for a plan.
// It reports whether the number of offers is within the limit.
func (r *relaxation) existingNodes(in *Instance, digits int, w *relax.Watch) ([]offer, bool) {
	var out []offer
	most := min(max(nodeShapeWork/(len(r.model.Classes)+1), minNodeShapes), maxNodeShapes)
	for n := range in.problem.Nodes {
		if w.Ended(1 + len(in.profiles)/8 + len(out)/8) {
			return nil, false
		}
		suits, any := r.suiting(in, func(p profile) bool { return p.goesTo(int32(n)) })
		if !any {
			continue
		}
		free := slices.Clone(r.capacity(in, in.free[n*in.dims:(n+1)*in.dims], in.nodeTags[n], in.diverse.ofNode(n)))
		for k := range in.dims {
			free[k] = rounded(free[k], digits, r.proves)
		}
		alike := slices.IndexFunc(out, func(x offer) bool { return slices.Equal(x.capacity, free) && slices.Equal(x.suits, suits) })
		if alike >= 0 {
			out[alike].supply++
			out[alike].nodes = append(out[alike].nodes, int32(n))
			continue
		}
		if len(out) == most {
			return nil, false
		}
		out = append(out, offer{binType: binType{-1, 0, []int32{int32(n)}}, capacity: free, supply: 1, takes: 1, suits: suits})
	}
	slices.SortFunc(out, func(a, b offer) int { // proofs do not depend on the order of nodes
		return cmp.Or(slices.Compare(a.capacity, b.capacity), slices.Compare(a.suits, b.suits))
	})
	for i := range out {
		count := out[i].supply
		out[i].supply = int32(len(r.model.Supply))
		r.model.Supply = append(r.model.Supply, int64(count))
	}
	return out, true
}

// rounded returns n rounded to the given number of binary digits, or n itself if rounding up would
// overflow.
func rounded(n int64, digits int, up bool) int64 {
	shift := max(bits.Len64(uint64(n))-digits, 0)
	switch down := n >> shift << shift; {
	case down == n || !up:
		return down
	case down > math.MaxInt64-1<<shift:
		return n
	default:
		return down + 1<<shift
	}
}

func (r *relaxation) compileBinTypes(in *Instance, list []offer) {
	suits := make([][]uint64, len(in.profiles))
	for k := range suits {
		suits[k] = make([]uint64, (len(list)+63)/64)
	}
	for i, o := range list {
		r.model.BinTypes = append(r.model.BinTypes, relax.BinType{Capacity: o.capacity, Price: float64(o.price) / r.model.Unit, Supply: o.supply, Takes: o.takes, Pool: o.pool})
		r.types = append(r.types, o.binType)
		for k := range suits {
			if o.suits[k/64]&(1<<(k%64)) != 0 {
				suits[k][i/64] |= 1 << (i % 64)
			}
		}
	}
	for c, members := range r.members {
		r.model.Classes[c].BinTypes = suits[in.profile[members[0]]]
	}
	if !r.proves {
		return
	}
	for d := range in.diverse.left {
		x := relax.Diversity{Counts: make([]int64, len(r.members)), Left: []int64{0}}
		for c, members := range r.members {
			x.Counts[c] = in.diverse.count(d, members[0])
		}
		for _, n := range in.diverse.left[d] {
			x.Left = append(x.Left, int64(n))
		}
		r.model.Diversity = append(r.model.Diversity, x)
	}
}

// extra is a rule that a relaxation treats as a resource.
//
// A tag may keep items in different bins, so their number is a lower bound on the number of bins.
// Each item with a limit on its own tag takes what it adds. A bin has the highest of these limits,
// less what it holds when empty. This is valid, because all such items in a bin together keep the
// limit of each. A diversity is an extra too, because a bin holds no more than its capacity pool
// may.
type extra struct {
	tag       int32 // -1 for a diversity
	max       int64
	diversity int
}

// apartTags returns the tags that require the most bins for these counts of items, the most
// demanding first. It skips a tag that only items of one size and profile have, because Class.Most
// covers that.
func (in *Instance) apartTags(counts []int) []extra {
	type claim struct {
		extra
		adds  int64
		item  int // one with the tag
		mixed bool
	}
	var claims []claim
	at := map[int32]int{}
	for _, i := range in.order {
		if counts[i] <= 0 {
			continue
		}
		for _, own := range in.itemTags[i] {
			if own.Count == 0 || own.Limit <= 0 || own.Limit == tags.NoLimit {
				continue
			}
			k, known := at[own.Tag]
			if !known {
				k = len(claims)
				at[own.Tag] = k
				claims = append(claims, claim{extra: extra{tag: own.Tag}, item: i})
			}
			c := &claims[k]
			c.max = max(c.max, int64(own.Limit))
			c.adds += int64(own.Count) * int64(counts[i])
			c.mixed = c.mixed || in.profile[c.item] != in.profile[i] || !slices.Equal(in.problem.Items[c.item].Size, in.problem.Items[i].Size)
		}
	}
	need := in.fullBins(counts)
	for _, c := range claims {
		need = max(need, float64(c.adds)/float64(c.max))
	}
	claims = slices.DeleteFunc(claims, func(c claim) bool {
		bins := float64(c.adds) / float64(c.max)
		return !c.mixed || bins < 2 || bins < apartShare*need
	})
	names := make(map[int32]string, len(claims))
	for name, tag := range in.tags {
		if _, ok := at[tag]; ok {
			names[tag] = name
		}
	}
	slices.SortFunc(claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(float64(b.adds)/float64(b.max), float64(a.adds)/float64(a.max)), cmp.Compare(names[a.tag], names[b.tag]))
	})
	var out []extra
	for _, c := range claims[:min(len(claims), maxApart)] {
		out = append(out, c.extra)
	}
	return out
}

// takes returns what one copy of the item takes.
func (e *extra) takes(in *Instance, item int) int64 {
	if e.tag < 0 {
		return in.diverse.count(e.diversity, item)
	}
	count, limit := tags.Lookup(in.itemTags[item], e.tag)
	if limit == tags.NoLimit {
		return 0
	}
	return int64(count)
}

// capacity returns how much an empty bin with these tags and capacity pool has.
func (e *extra) capacity(in *Instance, states []tags.State, pool int32) int64 {
	switch {
	case e.tag < 0 && pool < 0:
		return math.MaxInt64
	case e.tag < 0:
		return int64(in.diverse.left[e.diversity][pool])
	}
	count, limit := tags.Lookup(states, e.tag)
	return max(min(e.max, int64(limit))-int64(count), 0)
}
