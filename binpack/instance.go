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
	"github.com/joinery-sdk/joinery/requirements"
)

// Instance is a compiled [Problem]: labels are bit masks and tags are numbers. Strategies read it. It is immutable and safe for
// concurrent use.
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
	minimums   [][]minimum  // by pool
	shows      [][][]uint64 // by type and offering: the values it has, as bits of its pool's minimums
	diverse    diversity
	tiers      [][]int32 // types in the order of byPrice, by the weight of their pools, heaviest first
	tierOfPool []int32
}

// profile is a compiled, distinct Requires. The alternatives that do not narrow open keys are merged into one variant, which is
// tried first. Each other alternative is a variant of its own.
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

// Compile checks the problem and translates it. The error joins all faults: vectors of a wrong length, negative sizes,
// duplicate names, indexes out of range. It costs O(distinct requirements x offerings).
func Compile(p Problem) (*Instance, error) { return compile(p, nil) }

// errStopped says that the context ended while a problem was compiled.
var errStopped = errors.New("binpack: stopped")

// compile is Compile. If stop is set before it is done, the error is errStopped; a faulty problem is reported anyway.
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

// WithItems returns the same problem with other items and their diversity. It shares what depends on types, pools and nodes
// only, and the results for requirements that were seen before. So it costs O(items), and for new requirements what [Compile]
// costs. The error is that of [Compile].
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

// Problem returns the compiled problem: the argument of [Compile] with defaults. It must not be modified.
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

// faults collects the errors of a problem.
type faults struct {
	resources int
	errs      []error
}

func (f *faults) add(format string, args ...any) {
	f.errs = append(f.errs, fmt.Errorf("binpack: "+format, args...))
}

func (f *faults) vector(what func() string, v []int64) {
	if len(v) != f.resources {
		f.add("%s has %d resources, want %d", what(), len(v), f.resources)
	}
}

func (f *faults) limits(what func() string, ls []Limit) {
	for _, l := range ls {
		if l.Max < 0 {
			f.add("%s: limit of tag %q is negative", what(), l.Tag)
		}
	}
}

// validateItems checks items and diversity.
func (p Problem) validateItems() error {
	f := faults{resources: len(p.Resources)}
	seen := make(map[string]bool, len(p.Items))
	for i := range p.Items {
		it := &p.Items[i]
		what := func() string { return fmt.Sprintf("item %q", it.Name) }
		if seen[it.Name] {
			f.add("%s stands there twice", what())
		}
		seen[it.Name] = true
		if it.Count < 0 || it.Count > math.MaxInt32 {
			f.add("%s: count %d is out of range", what(), it.Count)
		}
		f.vector(what, it.Size)
		for r, s := range it.Size {
			if s < 0 && r < len(p.Resources) {
				f.add("%s (items[%d]): size of %s is negative", what(), i, p.Resources[r])
			}
		}
		f.limits(what, it.Limits)
	}
	for i, d := range p.Diversity {
		if d.Max < 0 {
			f.add("diversity[%d]: max %d is negative", i, d.Max)
		}
		for _, s := range d.Items {
			if s.Item < 0 || s.Item >= len(p.Items) || s.Count < 0 || s.Count > math.MaxInt32 {
				f.add("diversity[%d]: there is no item %d that counts %d", i, s.Item, s.Count)
			}
		}
	}
	return errors.Join(f.errs...)
}

// validateBins checks types, pools and nodes.
func (p Problem) validateBins() error {
	f := faults{resources: len(p.Resources)}
	for r, name := range p.Resources {
		if slices.Index(p.Resources, name) < r {
			f.add("resource %q stands there twice", name)
		}
	}
	for i, pool := range p.Pools {
		if pool.MaxNodes != nil && *pool.MaxNodes < 0 || pool.MaxPrice != nil && *pool.MaxPrice < 0 {
			f.add("pool %q (pools[%d]): MaxNodes or MaxPrice is negative; nil means no limit", pool.Name, i)
		}
		for _, m := range pool.MinValues {
			if m.Count < 0 {
				f.add("pool %q (pools[%d]): the minimum of %q is negative", pool.Name, i, m.Key)
			}
		}
	}
	for i := range p.Types {
		t := &p.Types[i]
		what := func() string { return fmt.Sprintf("type %q (types[%d])", t.Name, i) }
		f.vector(what, t.Capacity)
		if t.Pool < 0 || t.Pool >= len(p.Pools) {
			f.add("%s: pool %d does not exist", what(), t.Pool)
		} else if n := len(p.Pools[t.Pool].Limits); n > 0 && t.Usage != nil && len(t.Usage) != n {
			f.add("%s: usage has %d entries, its pool %q limits %d", what(), len(t.Usage), p.Pools[t.Pool].Name, n)
		}
		for _, u := range t.Usage {
			if u < 0 {
				f.add("%s: usage is negative", what())
			}
		}
		for j, o := range t.Offerings {
			if o.Price < 0 || o.Objective < 0 {
				f.add("%s: offerings[%d]: price is negative or no number", what(), j)
			}
			if o.Counted && (o.Count < 0 || o.Takes < 0) {
				f.add("%s: offerings[%d]: count is negative", what(), j)
			}
		}
		f.limits(what, t.Limits)
	}
	nodes := make(map[string]bool, len(p.Nodes))
	for i := range p.Nodes {
		n := &p.Nodes[i]
		what := func() string { return fmt.Sprintf("node %q", n.Name) }
		f.vector(what, n.Free)
		if nodes[n.Name] {
			f.add("node %q stands there twice", n.Name)
		}
		nodes[n.Name] = true
		f.limits(what, n.Limits)
	}
	return errors.Join(f.errs...)
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

// compileItemTags numbers the tags of items after those of types and nodes, which several instances share.
func (in *Instance) compileItemTags() {
	in.tags = maps.Clone(in.tags)
	in.itemTags = make([][]tags.State, len(in.problem.Items))
	for i := range in.problem.Items {
		it := &in.problem.Items[i]
		in.itemTags[i] = in.tagsOf(it.Tags, it.Limits)
	}
}

// budgets are the amounts that bins use up: the counts of reservations, then the limits, nodes and prices of pools.
type budgets struct {
	amounts      []int64
	reservations int // the first so many amounts are those of reservations
	// uses lists, by type and offering, what one bin takes; its reservation comes first. nil where a type takes nothing.
	uses    [][][]use
	counted []uint64 // by type: the offerings with a reservation
	bounded []bool   // by pool: whether it has a budget
	priced  bool     // some pool bounds the price
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
	byPool := make([][]int, len(p.Pools)) // the types of each
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
			b.priced = true
			add(int64(*pool.MaxPrice), func(_ *Type, o *Offering) int64 { return int64(o.Price) })
		}
	}
}

// numbered returns the number of the name, which is the next one if it is new.
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

// of returns what one bin of the offering takes.
func (b *budgets) of(t int32, offering int) []use {
	if b.uses[t] == nil {
		return nil
	}
	return b.uses[t][offering]
}

// openKeys holds the keys whose value the items in a bin decide, and the distinct sets that profiles require of them.
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
