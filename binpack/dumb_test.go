package binpack_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/requirements"
)

// The dumb judge applies the rules as documented, shares no code with the package, and tries every value of every label. It is
// for small problems.

// nodesOf returns all label maps that a bin with these labels may end up with.
func nodesOf(provides requirements.Set) []map[string]string {
	out := []map[string]string{{}}
	if provides.IsImpossible() {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(vocabulary())) {
		r := requirements.DoesNotExist(key) // a key that is not mentioned is absent
		if provides.Has(key) {
			r = provides.Get(key)
		}
		values := slices.Clone(vocabulary()[key])
		if v, ok := r.Single(); ok && !slices.Contains(values, v) {
			values = append(values, v)
		}
		var next []map[string]string
		for _, labels := range out {
			if r.AllowsAbsent() {
				next = append(next, labels)
			}
			for _, v := range values {
				if r.Contains(v) {
					with := maps.Clone(labels)
					with[key] = v
					next = append(next, with)
				}
			}
		}
		out = next
	}
	return out
}

// total is a sum of products that may be larger than an integer.
type total struct{ high, low uint64 }

func (t total) plus(n int, size int64) total {
	high, low := bits.Mul64(uint64(n), uint64(size))
	low, carry := bits.Add64(t.low, low, 0)
	return total{t.high + high + carry, low}
}

func (t total) above(n int64) bool { return t.high > 0 || t.low > uint64(n) }

// dumbHolds reports whether a bin with these properties may hold the shares.
func dumbHolds(p *binpack.Problem, room []int64, provides requirements.Set, tags []string, limits []binpack.Limit, shares []binpack.Share) error {
	used := make([]total, len(room))
	count := map[string]int{}
	for _, t := range tags {
		count[t]++
	}
	var brought []binpack.Limit
	touched := map[string]bool{}
	for _, s := range shares {
		it := p.Items[s.Item]
		for r := range used {
			used[r] = used[r].plus(s.Count, it.Size[r])
		}
		for _, t := range it.Tags {
			count[t] += s.Count
			touched[t] = true
		}
		brought = append(brought, it.Limits...)
	}
	for r := range used {
		if used[r].above(max(0, room[r])) {
			return fmt.Errorf("resource %d", r)
		}
	}
	for _, l := range brought {
		if count[l.Tag] > l.Max {
			return fmt.Errorf("limit of tag %s", l.Tag)
		}
	}
	for _, l := range limits {
		if touched[l.Tag] && count[l.Tag] > l.Max { // items are not at fault for what is broken without them
			return fmt.Errorf("limit of tag %s", l.Tag)
		}
	}
	for _, labels := range nodesOf(provides) {
		if !slices.ContainsFunc(shares, func(s binpack.Share) bool { return !p.Items[s.Item].Requires.Matches(labels) }) {
			return nil
		}
	}
	return fmt.Errorf("labels")
}

// dumbChoice reports whether the offering may hold the shares.
func dumbChoice(p *binpack.Problem, t, j int, shares []binpack.Share) error {
	typ := p.Types[t]
	provides, _ := typ.Provides.Intersect(typ.Offerings[j].Provides)
	return dumbHolds(p, typ.Capacity, provides, typ.Tags, typ.Limits, shares)
}

// dumbCheck returns the first rule that the layout breaks.
func dumbCheck(p *binpack.Problem, l binpack.Layout) error {
	placed := make([]int, len(p.Items))
	for n, shares := range l.Nodes {
		node := p.Nodes[n]
		if len(shares) > 0 {
			if err := dumbHolds(p, node.Free, node.Provides, node.Tags, node.Limits, shares); err != nil {
				return fmt.Errorf("node %d: %w", n, err)
			}
		}
		for _, s := range shares {
			placed[s.Item] += s.Count
		}
	}
	nodes, price, usage := make([]int, len(p.Pools)), make([]binpack.Price, len(p.Pools)), make([]int64, len(p.Pools))
	taken, left := map[string]int{}, map[string]int{}
	together := make([]int64, len(p.Budgets))
	for i, b := range l.Bins {
		if err := dumbChoice(p, b.Type, b.Offering, b.Shares); err != nil {
			return fmt.Errorf("bin %d: %w", i, err)
		}
		for _, s := range b.Shares {
			placed[s.Item] += s.Count
		}
		typ := p.Types[b.Type]
		o := typ.Offerings[b.Offering]
		nodes[typ.Pool]++
		price[typ.Pool] += o.Price
		if len(typ.Usage) > 0 {
			usage[typ.Pool] += typ.Usage[0]
		}
		for k, u := range o.Usage {
			if together[k] += u; together[k] > p.Budgets[k] {
				return fmt.Errorf("budget %d", k)
			}
		}
		if o.Counted {
			name := fmt.Sprint(b.Type, "/", b.Offering)
			if o.Reservation != "" {
				name = o.Reservation
			}
			taken[name] += max(o.Takes, 1)
			left[name] = dumbStock(p, o)
		}
		for _, m := range p.Pools[typ.Pool].MinValues {
			if seen := dumbValues(p, typ.Pool, m.Key, b.Shares); len(seen) < m.Count {
				return fmt.Errorf("bin %d: %d values of %s", i, len(seen), m.Key)
			}
		}
	}
	for k, pool := range p.Pools {
		switch {
		case pool.MaxNodes != nil && nodes[k] > *pool.MaxNodes:
			return fmt.Errorf("pool %d: nodes", k)
		case pool.MaxPrice != nil && price[k] > *pool.MaxPrice:
			return fmt.Errorf("pool %d: price", k)
		case len(pool.Limits) > 0 && nodes[k] > 0 && usage[k] > pool.Limits[0]:
			return fmt.Errorf("pool %d: limit", k)
		}
	}
	for i, d := range p.Diversity {
		in := map[string]int{}
		count := func(pool string, shares []binpack.Share) {
			for _, s := range shares {
				for _, x := range d.Items {
					if x.Item == s.Item && pool != "" {
						in[pool] += x.Count * s.Count
					}
				}
			}
		}
		for n := range l.Nodes {
			count(p.Nodes[n].CapacityPool, l.Nodes[n])
		}
		for _, b := range l.Bins {
			count(p.Types[b.Type].Offerings[b.Offering].CapacityPool, b.Shares)
		}
		for pool, n := range in {
			if n > 0 && n+d.Placed[pool] > d.Max {
				return fmt.Errorf("diversity %d: pool %s", i, pool)
			}
		}
	}
	for name, n := range taken {
		if n > left[name] {
			return fmt.Errorf("reservation %s", name)
		}
	}
	if !dumbTogether(p, l) {
		return errDumbTogether
	}
	for i, n := range placed {
		if n > p.Items[i].Count {
			return fmt.Errorf("item %d placed too often", i)
		}
	}
	return nil
}

// dumbStock returns how much is left of a counted offering.
func dumbStock(p *binpack.Problem, o binpack.Offering) int {
	least := o.Count
	for _, t := range p.Types {
		for _, other := range t.Offerings {
			if o.Reservation != "" && other.Counted && other.Reservation == o.Reservation {
				least = min(least, other.Count)
			}
		}
	}
	return least
}

// dumbSoldOut reports whether not even one bin of the offering is left.
func dumbSoldOut(p *binpack.Problem, o binpack.Offering) bool {
	return o.Counted && dumbStock(p, o) < max(o.Takes, 1)
}

// dumbValues returns the values of the key over all choices of the pool that hold the shares and are
// not sold out.
func dumbValues(p *binpack.Problem, pool int, key string, shares []binpack.Share) map[string]bool {
	seen := map[string]bool{}
	for t, typ := range p.Types {
		for j, o := range typ.Offerings {
			if typ.Pool != pool || dumbSoldOut(p, o) || dumbChoice(p, t, j, shares) != nil {
				continue
			}
			if all, _ := typ.Provides.Intersect(o.Provides); all.Has(key) {
				values, _ := all.Get(key).Values()
				for _, v := range values {
					seen[v] = true
				}
			}
		}
	}
	return seen
}

var errDumbTogether = errors.New("limits and budgets do not allow what MinValues need")

// dumbTogether reports whether some choice of other ways to buy each bin, enough for its pool's MinValues, stays within all limits and budgets even if
// each bin takes the most of its own.
func dumbTogether(p *binpack.Problem, l binpack.Layout) bool {
	var left []int64 // a limit and a price for each pool, then the budgets
	for _, pool := range p.Pools {
		limit, price := int64(math.MaxInt64), int64(math.MaxInt64)
		if len(pool.Limits) > 0 {
			limit = pool.Limits[0]
		}
		if pool.MaxPrice != nil {
			price = int64(*pool.MaxPrice)
		}
		left = append(left, limit, price)
	}
	left = append(left, p.Budgets...)
	takes := func(t, j int) []int64 {
		out, typ := make([]int64, len(left)), p.Types[t]
		if len(typ.Usage) > 0 && len(p.Pools[typ.Pool].Limits) > 0 {
			out[2*typ.Pool] = typ.Usage[0]
		}
		out[2*typ.Pool+1] = int64(typ.Offerings[j].Price)
		copy(out[2*len(p.Pools):], typ.Offerings[j].Usage)
		return out
	}
	var options [][][]int64 // by bin: what each way takes beside the bin itself
	for _, b := range l.Bins {
		pool := p.Types[b.Type].Pool
		for d, n := range takes(b.Type, b.Offering) {
			left[d] -= n
		}
		if len(p.Pools[pool].MinValues) > 0 {
			options = append(options, dumbWays(p, b, takes))
		}
	}
	var fits func(i int) bool
	fits = func(i int) bool {
		if i == len(options) {
			return true
		}
		for _, more := range options[i] {
			ok := true
			for d := range more {
				left[d] -= more[d]
				ok = ok && (more[d] == 0 || left[d] >= 0)
			}
			ok = ok && fits(i+1)
			for d := range more {
				left[d] += more[d]
			}
			if ok {
				return true
			}
		}
		return false
	}
	return fits(0)
}

// dumbWays lists what the ways to show the MinValues of the bin's pool take at most beside the bin itself.
func dumbWays(p *binpack.Problem, b binpack.Bin, takes func(t, j int) []int64) (out [][]int64) {
	own, pool := takes(b.Type, b.Offering), p.Types[b.Type].Pool
	type choice struct {
		more   []int64
		labels requirements.Set
	}
	var list []choice
	levels := make([][]int64, len(own))
	for d := range levels {
		levels[d] = []int64{0}
	}
	for t, typ := range p.Types {
		for j, o := range typ.Offerings {
			if typ.Pool != pool || dumbSoldOut(p, o) || dumbChoice(p, t, j, b.Shares) != nil {
				continue
			}
			c := choice{more: takes(t, j)}
			for d := range c.more {
				c.more[d] = max(0, c.more[d]-own[d])
				if !slices.Contains(levels[d], c.more[d]) {
					levels[d] = append(levels[d], c.more[d])
				}
			}
			c.labels, _ = typ.Provides.Intersect(o.Provides)
			list = append(list, c)
		}
	}
	var try func(most []int64)
	try = func(most []int64) {
		if d := len(most); d < len(own) {
			for _, n := range levels[d] {
				try(append(slices.Clip(most), n))
			}
			return
		}
		for _, m := range p.Pools[pool].MinValues {
			seen := map[string]bool{}
			for _, c := range list {
				within := true
				for d := range most {
					within = within && c.more[d] <= most[d]
				}
				if values, _ := c.labels.Get(m.Key).Values(); within && c.labels.Has(m.Key) {
					for _, v := range values {
						seen[v] = true
					}
				}
			}
			if len(seen) < m.Count {
				return
			}
		}
		out = append(out, slices.Clone(most))
	}
	try(nil)
	return out
}
