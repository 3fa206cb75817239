package binpack

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// apart is a tag that keeps items in different bins, so their number is a lower bound on the number of bins. A relaxation
// treats it as a resource. Each item with a limit on its own tag takes what it adds, and a bin has the highest of these limits,
// less what it holds when empty. This is valid, because all such items in a bin together keep the limit of each.
type apart struct {
	tag int32
	max int64
}

// apartTags returns the tags that require the most bins for these counts of items, the most demanding first. It skips a tag
// that only items of one size and profile have, because Class.Most covers that.
func (in *Instance) apartTags(counts []int) []apart {
	type claim struct {
		apart
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
		for _, add := range in.itemTags[i].adds {
			most, ok := capOf(&in.itemTags[i], add.tag)
			if !ok || most <= 0 {
				continue
			}
			k, known := at[add.tag]
			if !known {
				k = len(claims)
				at[add.tag] = k
				claims = append(claims, claim{apart: apart{tag: add.tag}, item: i})
			}
			c := &claims[k]
			c.max = max(c.max, int64(most))
			c.adds += int64(add.n) * int64(counts[i])
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
	var out []apart
	for _, c := range claims[:min(len(claims), maxApart)] {
		out = append(out, c.apart)
	}
	return out
}

// takes returns what one copy takes of the tag.
func (a apart) takes(t *tagProfile) int64 {
	if _, ok := capOf(t, a.tag); !ok {
		return 0
	}
	for _, add := range t.adds {
		if add.tag == a.tag {
			return int64(add.n)
		}
	}
	return 0
}

// capacity returns how much of the tag an empty bin with these tags has.
func (a apart) capacity(t *tagProfile) int64 {
	capacity := a.max
	if most, ok := capOf(t, a.tag); ok {
		capacity = min(capacity, int64(most))
	}
	for _, add := range t.adds {
		if add.tag == a.tag {
			capacity -= int64(add.n)
		}
	}
	return max(capacity, 0)
}

// withTags returns the capacity of a bin, by resource and then by tag.
func withTags(capacity []int64, tags []apart, t *tagProfile) []int64 {
	if len(tags) == 0 {
		return capacity
	}
	out := make([]int64, 0, len(capacity)+len(tags))
	out = append(out, capacity...)
	for _, a := range tags {
		out = append(out, a.capacity(t))
	}
	return out
}

// diversity is the compiled [Problem.Diversity], without those that no plan can break.
type diversity struct {
	left     [][]int   // by diversity and capacity pool: what it may still hold
	counts   [][]Share // by item: the diversities that it counts for, and how much one copy counts
	pools    map[string]int32
	offering [][]int32 // by type and offering: the capacity pool, -1 for none
	node     []int32   // by node: the same
}

func (in *Instance) compileDiversity() {
	p := &in.problem
	d := &in.diverse
	var kept []Diversity
	for _, x := range p.Diversity {
		all := int64(0)
		for _, s := range x.Items {
			all = sum(all, int64(s.Count)*int64(p.Items[s.Item].Count))
		}
		for _, n := range x.Placed {
			all = sum(all, int64(max(n, 0)))
		}
		if all > int64(x.Max) {
			kept = append(kept, x)
		}
	}
	if len(kept) == 0 {
		return
	}
	d.pools = map[string]int32{}
	number := func(name string) int32 {
		if name == "" {
			return -1
		}
		id, ok := d.pools[name]
		if !ok {
			id = int32(len(d.pools))
			d.pools[name] = id
		}
		return id
	}
	d.offering, d.node = make([][]int32, len(p.Types)), make([]int32, len(p.Nodes))
	for t := range p.Types {
		for j := range p.Types[t].Offerings {
			d.offering[t] = append(d.offering[t], number(p.Types[t].Offerings[j].CapacityPool))
		}
	}
	for n := range p.Nodes {
		d.node[n] = number(p.Nodes[n].CapacityPool)
	}
	if len(d.pools) == 0 { // no capacity pools
		in.diverse = diversity{}
		return
	}
	d.counts = make([][]Share, len(p.Items))
	for i, x := range kept {
		left := slices.Repeat([]int{x.Max}, len(d.pools))
		for name, n := range x.Placed {
			if at, ok := d.pools[name]; ok {
				left[at] = max(x.Max-max(n, 0), 0)
			}
		}
		d.left = append(d.left, left)
		for _, s := range x.Items {
			if list := d.counts[s.Item]; s.Count > 0 && len(list) > 0 && list[len(list)-1].Item == i {
				list[len(list)-1].Count += s.Count
			} else if s.Count > 0 {
				d.counts[s.Item] = append(list, Share{i, s.Count})
			}
		}
	}
}

// alike reports whether two items count for the same diversities.
func (d *diversity) alike(a, b int) bool {
	return len(d.left) == 0 || slices.Equal(d.counts[a], d.counts[b])
}

// count returns how much one copy of the item counts for the diversity.
func (d *diversity) count(number, item int) int64 {
	for _, s := range d.counts[item] {
		if s.Item == number {
			return int64(s.Count)
		}
	}
	return 0
}

// pool returns the number of the offering's capacity pool, -1 for none.
func (d *diversity) pool(typ, offering int) int32 {
	if len(d.left) == 0 {
		return -1
	}
	return d.offering[typ][offering]
}

// capacityPool returns the number of the bin's capacity pool, -1 for none.
func (f *filler) capacityPool(b *bin) int32 {
	if d := &f.in.diverse; b.node >= 0 && len(d.left) > 0 {
		return d.node[b.node]
	}
	return f.in.diverse.pool(int(b.typ), int(b.charged))
}

// spread returns how many copies of the item, at most want, the capacity pool may take.
func (f *filler) spread(pool int32, item, want int) int {
	if pool < 0 {
		return want
	}
	for _, s := range f.in.diverse.counts[item] {
		want = min(want, max(f.diverse[s.Item][pool], 0)/s.Count)
	}
	return want
}

// expose counts k copies of the item against the capacity pool; a negative k gives them back.
func (f *filler) expose(pool int32, item, k int) {
	if pool < 0 {
		return
	}
	for _, s := range f.in.diverse.counts[item] {
		f.diverse[s.Item][pool] -= k * s.Count
	}
}

// exposeAll counts the shares so many times against the capacity pool.
func (f *filler) exposeAll(pool int32, shares []Share, times int) {
	for _, s := range shares {
		f.expose(pool, s.Item, times*s.Count)
	}
}

// exposable returns the offerings of the mask whose capacity pools may take the shares.
func (f *filler) exposable(t int32, mask uint64, shares []Share) uint64 {
	if len(f.diverse) == 0 {
		return mask
	}
	for rest := mask; rest != 0; rest &= rest - 1 {
		j := bits.TrailingZeros64(rest)
		pool, n := f.in.diverse.offering[t][j], 0
		for n < len(shares) && f.spread(pool, shares[n].Item, shares[n].Count) == shares[n].Count {
			f.expose(pool, shares[n].Item, shares[n].Count)
			n++
		}
		f.exposeAll(pool, shares[:n], -1)
		if n < len(shares) {
			mask &^= 1 << j
		}
	}
	return mask
}

func copied(rows [][]int) [][]int {
	out := make([][]int, len(rows))
	for i := range rows {
		out[i] = slices.Clone(rows[i])
	}
	return out
}

// withSpread returns the capacity of a bin, followed by what its capacity pool may hold.
func (r *relaxation) withSpread(in *Instance, capacity []int64, pool int32) []int64 {
	out := slices.Clone(capacity)
	for _, d := range r.spread {
		left := int64(math.MaxInt32)
		if pool >= 0 {
			left = int64(in.diverse.left[d][pool])
		}
		out = append(out, left)
	}
	return out
}

// countPools makes what each capacity pool may hold a supply, for a plan. A bin takes as much of the supply as it holds items
// of average size, and at most all of it. The exact count is taken when the plan is built.
func (r *relaxation) countPools(list []offer, pools, at int) {
	mean, copies := make([]float64, r.model.Dims), 0.0
	for _, c := range r.model.Classes {
		copies += float64(c.Count)
		for d, s := range c.Size {
			mean[d] += float64(float64(s) * float64(c.Count))
		}
	}
	row := slices.Repeat([]int32{-1}, pools+1)
	for i := range list {
		o := &list[i]
		if o.pool == 0 || o.supply >= 0 {
			continue
		}
		left := o.capacity[at]
		if row[o.pool] < 0 {
			row[o.pool] = int32(len(r.model.Supply))
			r.model.Supply = append(r.model.Supply, left)
		}
		part := math.Inf(1)
		for d, sum := range mean {
			if d != at && sum > 0 {
				part = min(part, float64(o.capacity[d])/sum)
			}
		}
		o.supply, o.takes = row[o.pool], int(max(1, min(float64(left), math.Round(part*mean[at]))))
	}
}

// severalPools returns how many capacity pools are needed at least to hold everything, or 1 if there are too many to count.
func (in *Instance) severalPools(counts, spread []int) int {
	several := 1
	if len(in.diverse.pools) > mostPools {
		return several
	}
	for _, d := range spread {
		asked, most := 0, slices.Max(in.diverse.left[d])
		for i, n := range counts {
			asked += max(n, 0) * int(in.diverse.count(d, i))
		}
		several = max(several, (asked-1)/max(most, 1)+1)
	}
	return several
}

// mostInPool returns how many copies of the item a capacity pool may hold by the diversities that are not resources, at most
// most.
func (r *relaxation) mostInPool(in *Instance, item, most int) int {
	if len(in.diverse.left) > 0 {
		for _, s := range in.diverse.counts[item] {
			if slices.Contains(r.spread, s.Item) {
				continue
			}
			most = min(most, max(slices.Max(in.diverse.left[s.Item])/s.Count, 1))
		}
	}
	return most
}

// spreadMost returns the diversities with the highest demand, as many as may become resources.
func (in *Instance) spreadMost(counts []int) []int {
	asked := make([]int64, len(in.diverse.left))
	var out []int
	for i, n := range counts {
		if len(asked) > 0 && n > 0 {
			for _, s := range in.diverse.counts[i] {
				asked[s.Item] += int64(s.Count) * int64(n)
			}
		}
	}
	for d := range asked {
		if asked[d] > int64(slices.Min(in.diverse.left[d])) {
			out = append(out, d)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(asked[b], asked[a]) })
	return out[:min(len(out), maxApart)]
}
