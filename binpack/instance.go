package binpack

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
	"github.com/joinery-sdk/joinery/binpack/internal/tags"
	"github.com/joinery-sdk/joinery/binpack/internal/values"
	"github.com/joinery-sdk/joinery/requirements"
)

// Instance is a compiled [Problem]: labels are bit masks and tags are numbers. Strategies read it.
// It is immutable and safe for concurrent use.
type Instance struct {
	problem Problem // with types split
	given   Problem // as the caller sees it
	split   split
	dims    int
	bare    *Instance     // without items and diversity; WithItems shares it
	labels  *labelAnswers // of types and nodes; shared as well

	capacity []int64 // by type, dims each
	largest  []int64 // capacity of a type or node, by resource
	free     []int64 // by node, dims each
	byPrice  []int32 // types by their cheapest offering, then pool, name and index
	grain    Price   // every objective is a multiple of it
	unit     float64 // in which relaxations count prices: a grain divided by a power of two
	minPrice []Price // by type: the lowest objective; math.MaxInt64 without offerings

	profiles []profile // distinct requirements of items
	profile  []int32   // by item
	order    []int     // items by decreasing size
	rank     []int     // by item: its position in order
	open     openKeys

	tags       map[string]int32
	itemTags   [][]tags.State
	typeTags   [][]tags.State
	nodeTags   [][]tags.State
	budgets    budgets
	minimums   [][]values.Minimum // by pool
	shows      [][][]uint64       // by type and offering: the values it has, as bits of its pool's minimums
	covers     [][]Choice         // by pool with minimums and limits or budgets: what these allow at all
	diverse    diversity
	tiers      [][]int32 // types in the order of byPrice, by the weight of their pools, heaviest first
	tierOfPool []int32
}

// profile is a compiled, distinct Requires. The alternatives that do not narrow open keys are
// merged into one variant, which is tried first. Each other alternative is its own variant.
type profile []variant

type variant struct {
	masks []uint64         // by type: the offerings that satisfy the alternative
	nodes []uint64         // bitset over Problem.Nodes
	asks  requirements.Set // of open keys
	open  int32            // asks, as an index into openKeys.sets; 0 if open keys do not matter
}

// mask returns the offerings of the type that satisfy some variant.
func (p profile) mask(t int32) uint64 {
	mask := uint64(0)
	for i := range p {
		mask |= p[i].masks[t]
	}
	return mask
}

// goesTo reports whether the existing node satisfies some variant.
func (p profile) goesTo(node int32) bool {
	return slices.ContainsFunc(p, func(v variant) bool { return v.nodes[node/64]&(1<<(node%64)) != 0 })
}

// profileOf returns the profile of an item.
func (in *Instance) profileOf(item int) profile { return in.profiles[in.profile[item]] }

// maxOfferings is how many offerings a compiled type can have: one bit each.
const maxOfferings = 64

// Compile checks the problem and translates it. The error joins all faults: vectors of a wrong
// length, negative sizes, duplicate names, indexes out of range. It costs O(distinct requirements x
// offerings).
func Compile(p Problem) (*Instance, error) { return compile(p, nil) }

// pools checks pools.
func (f *faults) pools(list []Pool) {
	for i, pool := range list {
		what := fmt.Sprintf("pool %q (pools[%d])", pool.Name, i)
		if pool.MaxNodes != nil && *pool.MaxNodes < 0 || pool.MaxPrice != nil && *pool.MaxPrice < 0 {
			f.add("%s: MaxNodes or MaxPrice is negative; nil means no limit", what)
		}
		for _, m := range pool.MinValues {
			if m.Key == "" {
				f.add("%s: a minimum of values has no key", what)
			}
			if m.Count < 1 {
				f.add("%s: the minimum of %q is %d, want 1 or more", what, m.Key, m.Count)
			}
		}
	}
}

// errStopped says that the context ended while a problem was compiled.
var errStopped = errors.New("binpack: stopped")

// compile is Compile. If stop is set before it is done, the error is errStopped; a faulty problem
// is still reported.
func compile(p Problem, stop *atomic.Bool) (*Instance, error) {
	p.Items, p.Pools = withRequirements(p.Items), slices.Clone(p.Pools)
	if len(p.Pools) == 0 {
		p.Pools = []Pool{{}}
	}
	for k := range p.Pools {
		if n := p.Pools[k].MaxNodes; n != nil {
			p.Pools[k].MaxNodes = new(*n)
		}
		if price := p.Pools[k].MaxPrice; price != nil {
			p.Pools[k].MaxPrice = new(*price)
		}
	}
	if err := errors.Join(p.validateItems(), p.validateBins()); err != nil {
		return nil, err
	}
	bare := &Instance{problem: p, dims: len(p.Resources)}
	bare.problem.Items, bare.problem.Diversity = nil, nil
	bare.given = bare.problem
	bare.problem.Types, bare.split = splitTypes(&p)
	for _, step := range []func(){
		bare.compileCapacity, bare.compileTiers, bare.compileTags, bare.compileBudgets, bare.compileMinimums,
		func() { bare.labels = newLabelAnswers(&bare.problem) },
	} {
		if stop != nil && stop.Load() && len(p.Types) > compileEvery {
			return nil, errStopped
		}
		step()
	}
	bare.bare = bare
	return bare.withItems(p.Items, p.Diversity, stop)
}

// WithItems returns the same problem with other items and their diversity. It shares what depends
// only on types, pools and nodes, and the results for requirements that were seen before. So it
// costs O(items), plus what [Compile] costs for new requirements. The error is that of [Compile].
func (in *Instance) WithItems(items []Item, diversity []Diversity) (*Instance, error) {
	p := in.bare.problem
	p.Items, p.Diversity = withRequirements(items), diversity
	if err := p.validateItems(); err != nil {
		return nil, err
	}
	return in.bare.withItems(p.Items, diversity, nil)
}

// withItems adds items to an instance without items.
func (in *Instance) withItems(items []Item, diversity []Diversity, stop *atomic.Bool) (*Instance, error) {
	out := *in
	out.problem.Items, out.problem.Diversity = items, diversity
	out.given.Items, out.given.Diversity = items, diversity
	out.compileItemTags()
	if !out.compileProfiles(stop) {
		return nil, errStopped
	}
	out.compileDiversity()
	out.order = out.decreasing(out.largest)
	out.rank = make([]int, len(out.order))
	for k, i := range out.order {
		out.rank[i] = k
	}
	return &out, nil
}

// Problem returns the compiled problem: the argument of [Compile] with defaults filled in. It must
// not be modified.
func (in *Instance) Problem() *Problem { return &in.given }

// withRequirements returns the items with defaults in place of zero requirements.
func withRequirements(items []Item) []Item {
	if anywhere := requirements.AnyOf(requirements.Set{}); slices.ContainsFunc(items, func(it Item) bool { return it.Requires.IsZero() }) {
		items = slices.Clone(items)
		for i := range items {
			if items[i].Requires.IsZero() {
				items[i].Requires = anywhere
			}
		}
	}
	return items
}

func (in *Instance) compileCapacity() {
	p := &in.problem
	in.capacity, in.largest = make([]int64, len(p.Types)*in.dims), make([]int64, in.dims)
	in.minPrice = make([]Price, len(p.Types))
	in.byPrice = make([]int32, len(p.Types))
	dearest := Price(0)
	for t, typ := range p.Types {
		copy(in.capacity[t*in.dims:], typ.Capacity)
		for r, c := range typ.Capacity {
			in.largest[r] = max(in.largest[r], c)
		}
		in.byPrice[t] = int32(t)
		in.minPrice[t] = math.MaxInt64
		for _, o := range typ.Offerings {
			in.minPrice[t] = min(in.minPrice[t], o.cost())
			in.grain, dearest = relax.Divisor(in.grain, o.cost()), max(dearest, o.cost())
		}
	}
	grain := max(in.grain, 1)
	in.unit = math.Ldexp(float64(grain), -max(priceBits-bits.Len64(uint64(dearest/grain)), 0))
	slices.SortFunc(in.byPrice, func(a, b int32) int {
		x, y := &p.Types[a], &p.Types[b]
		return cmp.Or(cmp.Compare(in.minPrice[a], in.minPrice[b]), cmp.Compare(x.Pool, y.Pool),
			cmp.Compare(x.Name, y.Name), cmp.Compare(a, b))
	})
	in.free = make([]int64, len(p.Nodes)*in.dims)
	for n, node := range p.Nodes {
		for r, f := range node.Free {
			in.free[n*in.dims+r] = max(f, 0)
			in.largest[r] = max(in.largest[r], f)
		}
	}
}

// cost returns the objective of the offering.
func (o *Offering) cost() Price {
	if o.Objective != 0 {
		return o.Objective
	}
	return o.Price
}

// roundUp returns the lowest sum of objectives that is at least the price.
func (in *Instance) roundUp(p Price) Price { return relax.RoundUp(p, in.grain) }

func (in *Instance) objective(t int32, offering int) Price {
	return in.problem.Types[t].Offerings[offering].cost()
}

func (in *Instance) capacityOf(t int32) []int64 {
	return in.capacity[int(t)*in.dims : (int(t)+1)*in.dims]
}

func (in *Instance) compileTiers() {
	p := &in.problem
	var weights []int
	for _, pool := range p.Pools {
		weights = append(weights, pool.Weight)
	}
	slices.SortFunc(weights, func(a, b int) int { return cmp.Compare(b, a) })
	weights = slices.Compact(weights)
	in.tiers = make([][]int32, len(weights))
	in.tierOfPool = make([]int32, len(p.Pools))
	for k, pool := range p.Pools {
		in.tierOfPool[k] = int32(slices.Index(weights, pool.Weight))
	}
	for _, t := range in.byPrice {
		if len(p.Types[t].Offerings) > 0 {
			k := in.tierOf(t)
			in.tiers[k] = append(in.tiers[k], t)
		}
	}
}

func (in *Instance) tierOf(t int32) int32 { return in.tierOfPool[in.problem.Types[t].Pool] }

// compileItemTags numbers the tags of items after those of types and nodes, which several instances
// share.
func (in *Instance) compileItemTags() {
	in.tags = maps.Clone(in.tags)
	in.itemTags = make([][]tags.State, len(in.problem.Items))
	for i := range in.problem.Items {
		it := &in.problem.Items[i]
		in.itemTags[i] = in.tagsOf(it.Tags, it.Limits)
	}
}

// budgets are the amounts that bins use up: first the counts of reservations, then the limits,
// nodes and prices of pools, then the budgets over all pools.
type budgets struct {
	amounts      []int64
	reservations int // how many amounts, from the first, are those of reservations
	// uses lists, by type and offering, what one bin takes, its reservation first. It is nil for a
	// type that takes nothing.
	uses    [][][]use
	counted []uint64 // by type: the offerings with a reservation
	bounded []bool   // by pool: whether it has a budget
	// byOffering says that offerings of one type take different amounts, because some pool limits
	// the price or there are budgets over all pools.
	byOffering bool
}

// use is what one bin takes of a budget.
type use struct {
	budget int32
	amount int64
}

func (in *Instance) compileBudgets() {
	p := &in.problem
	b := &in.budgets
	b.uses, b.counted, b.bounded = make([][][]use, len(p.Types)), make([]uint64, len(p.Types)), make([]bool, len(p.Pools))
	byPool := make([][]int, len(p.Pools)) // the types of each pool
	for t := range p.Types {
		byPool[p.Types[t].Pool] = append(byPool[p.Types[t].Pool], t)
	}
	takes := func(t, j int, budget int, amount int64) {
		if b.uses[t] == nil {
			b.uses[t] = make([][]use, len(p.Types[t].Offerings))
		}
		b.uses[t][j] = append(b.uses[t][j], use{int32(budget), amount})
	}
	reserved := map[string]int32{}
	for t, typ := range p.Types {
		for j, o := range typ.Offerings {
			name, ok := p.reservation(t, j)
			if !ok {
				continue
			}
			at := numbered(reserved, name)
			if int(at) == len(b.amounts) {
				b.amounts = append(b.amounts, math.MaxInt64)
			}
			b.amounts[at] = min(b.amounts[at], int64(o.Count))
			b.counted[t] |= 1 << j
			takes(t, j, int(at), int64(max(o.Takes, 1)))
		}
	}
	b.reservations = len(b.amounts)
	for k, pool := range p.Pools {
		add := func(amount int64, of func(t *Type, o *Offering) int64) {
			b.amounts, b.bounded[k] = append(b.amounts, amount), true
			for _, t := range byPool[k] {
				for j := range p.Types[t].Offerings {
					takes(t, j, len(b.amounts)-1, of(&p.Types[t], &p.Types[t].Offerings[j]))
				}
			}
		}
		for i, l := range pool.Limits {
			if l != Unlimited {
				add(l, func(t *Type, _ *Offering) int64 { return t.Usage[i] })
			}
		}
		if pool.MaxNodes != nil {
			add(int64(*pool.MaxNodes), func(*Type, *Offering) int64 { return 1 })
		}
		if pool.MaxPrice != nil {
			b.byOffering = true
			add(int64(*pool.MaxPrice), func(_ *Type, o *Offering) int64 { return int64(o.Price) })
		}
	}
	b.byOffering = b.byOffering || len(p.Budgets) > 0
	for i, most := range p.Budgets {
		b.amounts = append(b.amounts, most)
		for t := range p.Types {
			for j, o := range p.Types[t].Offerings {
				takes(t, j, len(b.amounts)-1, o.uses(i)) // even 0: then the budget limits no number of bins
				b.bounded[p.Types[t].Pool] = b.bounded[p.Types[t].Pool] || o.uses(i) > 0
			}
		}
	}
}

// reservation returns the name of the offering's count; ok is false if it is not counted.
func (p *Problem) reservation(typ, offering int) (name string, ok bool) {
	switch o := &p.Types[typ].Offerings[offering]; {
	case !o.Counted:
		return "", false
	case o.Reservation == "": // counted on its own
		return fmt.Sprintf("\x00%s/%d/%d", p.Types[typ].Name, typ, offering), true
	default:
		return o.Reservation, true
	}
}

// uses returns what one bin uses of a budget of the problem.
func (o *Offering) uses(budget int) int64 {
	if o.Usage == nil {
		return 0
	}
	return o.Usage[budget]
}

// numbered returns the number of the name. A new name gets the next number.
func numbered(numbers map[string]int32, name string) int32 {
	id, ok := numbers[name]
	if !ok {
		id = int32(len(numbers))
		numbers[name] = id
	}
	return id
}

// boundedTier reports whether some pool of the tier has a budget.
func (in *Instance) boundedTier(tier int32) bool {
	for k, bounded := range in.budgets.bounded {
		if bounded && in.tierOfPool[k] == tier {
			return true
		}
	}
	return false
}

// any reports whether some pool has a budget or some offering is counted.
func (b *budgets) any() bool {
	return slices.Contains(b.bounded, true) || slices.ContainsFunc(b.counted, func(offerings uint64) bool { return offerings != 0 })
}

// of returns what one bin of the offering takes.
func (b *budgets) of(t int32, offering int) []use {
	if b.uses[t] == nil {
		return nil
	}
	return b.uses[t][offering]
}

// allow reports whether left, what remains of each budget, allows one more bin of the offering.
func (b *budgets) allow(t int32, offering int, left []int64) bool {
	return !slices.ContainsFunc(b.of(t, offering), func(u use) bool { return u.amount > left[u.budget] })
}

// openKeys holds the keys whose value is decided by the items in a bin, and the distinct sets that
// profiles require of them.
type openKeys struct {
	keys requirements.Keys
	sets []requirements.Set // sets[0] allows anything
}

// fullBins returns how many bins of the largest capacity the items would fill.
func (in *Instance) fullBins(counts []int) float64 {
	need := 0.0
	for r, largest := range in.largest {
		sum := 0.0
		for i, n := range counts {
			sum += float64(float64(in.problem.Items[i].Size[r]) * float64(max(n, 0)))
		}
		if largest > 0 {
			need = max(need, sum/float64(largest))
		}
	}
	return need
}

// related reports whether the second bin's type can take an item of the first (P. Shaw, 1998).
func (in *Instance) related(first, second *bin) bool {
	return slices.ContainsFunc(first.shares, func(x Share) bool { return in.profileOf(x.Item).mask(second.typ) != 0 })
}

// holdable reports whether a node or a bin of some type could hold a copy of the item, regardless
// of budgets and other items.
func (in *Instance) holdable(item int) bool {
	if int(in.heaviest(item)) < len(in.tiers) {
		return true
	}
	for n := range in.problem.Nodes {
		if in.profileOf(item).goesTo(int32(n)) && in.copiesIn(in.free[n*in.dims:(n+1)*in.dims], in.nodeTags[n], item, 1) > 0 {
			return true
		}
	}
	return false
}

// heaviest returns the heaviest tier that has a type for the item, regardless of budgets.
func (in *Instance) heaviest(item int) int32 {
	for k, types := range in.tiers {
		if slices.ContainsFunc(types, func(t int32) bool {
			return in.profileOf(item).mask(t) != 0 && relax.Copies(in.capacityOf(t), in.problem.Items[item].Size, 1) > 0
		}) {
			return int32(k)
		}
	}
	return int32(len(in.tiers))
}

// maxBins is more bins than a plan of the built-in strategies buys. A layout names each bin, so its
// memory grows with them, and counts of items may be in the billions.
const maxBins = 1 << 20

// fewEnough returns an error if first fit has come to the limit.
func fewEnough(l Layout) error {
	if len(l.Bins) < maxBins {
		return nil
	}
	return fmt.Errorf("binpack: first fit buys %d bins, and a plan has fewer; pack fewer copies at once, or in larger bins", maxBins)
}
