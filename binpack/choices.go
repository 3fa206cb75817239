package binpack

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
	"github.com/joinery-sdk/joinery/requirements"
)

// minimum is one of the MinValues of a pool, compiled. Each value of the key is one bit of the
// words between two positions.
type minimum struct{ count, from, to int }

// shown holds the values that offerings show of a pool's MinValues.
type shown struct {
	minimums []minimum
	words    []uint64
}

func (in *Instance) compileMinimums() {
	p := &in.problem
	in.minimums, in.shows = make([][]minimum, len(p.Pools)), make([][][]uint64, len(p.Types))
	for k, pool := range p.Pools {
		from := 0
		for _, w := range pool.MinValues {
			number := map[string]int32{}
			for t, typ := range p.Types {
				if typ.Pool != k {
					continue
				}
				if in.shows[t] == nil {
					in.shows[t] = make([][]uint64, len(typ.Offerings))
				}
				for j := range typ.Offerings {
					if in.soldOut(t, j) {
						continue // it shows nothing
					}
					for _, v := range typ.values(j, w.Key) {
						at := numbered(number, v)
						for len(in.shows[t][j]) <= from+int(at)/64 {
							in.shows[t][j] = append(in.shows[t][j], 0)
						}
						in.shows[t][j][from+int(at)/64] |= 1 << (at % 64)
					}
				}
			}
			to := from + (len(number)+63)/64
			in.minimums[k] = append(in.minimums[k], minimum{w.Count, from, to})
			from = to
		}
	}
}

// values returns the values that the offering has for the key. Its own labels override those of its
// type.
func (t *Type) values(offering int, key string) []string {
	set := t.Offerings[offering].Provides
	if !set.Has(key) {
		set = t.Provides
	}
	if !set.Has(key) {
		return nil
	}
	values, _ := set.Get(key).Values()
	return values
}

func (in *Instance) shownBy(pool int) shown {
	s := shown{minimums: in.minimums[pool]}
	if n := len(s.minimums); n > 0 {
		s.words = make([]uint64, s.minimums[n-1].to)
	}
	return s
}

// add counts the values of the offering, whose type must be in the pool.
func (s shown) add(in *Instance, t int32, offering int) {
	if len(s.words) > 0 {
		for i, w := range in.shows[t][offering] {
			s.words[i] |= w
		}
	}
}

// met reports whether there are enough values of each key.
func (s shown) met() bool {
	for _, m := range s.minimums {
		for _, w := range s.words[m.from:m.to] {
			m.count -= bits.OnesCount64(w)
		}
		if m.count > 0 {
			return false
		}
	}
	return true
}

// flexible returns how many more copies of the item, at most k, the bin may take and still show the
// values that its pool's MinValues require.
func (f *filler) flexible(b *bin, item, k int, v *variant, open int32) int {
	size := f.in.problem.Items[item].Size
	trial := *b
	trial.open = open
	if !slices.Contains(b.variants, v) {
		trial.variants = append(slices.Clip(b.variants), v)
	}
	trial.shares = append(slices.Clip(b.shares), Share{item, 1})
	trial.used = make([]int64, len(size))
	holds := func(n int) bool {
		trial.shares[len(trial.shares)-1].Count = n
		for r := range size {
			trial.used[r] = b.used[r] + int64(n)*size[r]
		}
		return f.showsMinimums(&trial)
	}
	if holds(k) {
		return k
	}
	lo, hi := 0, k // more copies never show more values
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; holds(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// showsMinimums reports whether the offerings of the bin's pool that hold it show enough values.
func (f *filler) showsMinimums(b *bin) bool {
	in := f.in
	pool := in.problem.Types[b.typ].Pool
	seen := in.shownBy(pool)
	for _, t := range in.tiers[in.tierOfPool[pool]] {
		if in.problem.Types[t].Pool != pool {
			continue
		}
		f.shownTypes++
		f.Work++
		mask := f.suits(t, b)
		for rest := mask; rest != 0; rest &= rest - 1 {
			seen.add(in, t, bits.TrailingZeros64(rest))
		}
		if mask != 0 && seen.met() {
			return true
		}
	}
	return seen.met()
}

// showsOtherwise is like showsMinimums, but each choice may serve the items by other alternatives
// than the bin does. It is slow, so it runs only if showsMinimums fails.
func (in *Instance) showsOtherwise(b Bin, used []int64) bool {
	pool := in.problem.Types[b.Type].Pool
	seen := in.shownBy(pool)
	for t, typ := range in.problem.Types {
		for j := range typ.Offerings {
			if typ.Pool == pool && in.holdsOtherwise(Choice{t, j}, b.Shares, used) {
				seen.add(in, int32(t), j)
			}
		}
	}
	return seen.met()
}

// holdsOtherwise reports whether the choice holds the shares under any alternatives.
func (in *Instance) holdsOtherwise(c Choice, shares []Share, used []int64) bool {
	if relax.Copies(in.capacityOf(int32(c.Type)), used, 1) == 0 || !in.tagsSuit(int32(c.Type), shares) {
		return false
	}
	typ := &in.problem.Types[c.Type]
	labels, err := typ.Provides.Intersect(typ.Offerings[c.Offering].Provides)
	if err != nil {
		return false
	}
	_, ok, _ := in.chooseAlternatives(in.closed(labels), shares)
	return ok
}

// alternatives lists, for each bin of the layout, choices that can be bought in its place, cheapest
// first. most limits their number. Equal bins are processed once. If the run is stopped, the
// remaining bins list only their own choice.
func (in *Instance) alternatives(l Layout, most int, run *run) [][]Choice {
	out := chosen(l)
	known := make(map[string][]Choice, len(l.Bins))
	r := ranking{
		in: in, f: newFiller(in, run.stop), most: most, byPool: make([][]Choice, len(in.problem.Pools)),
		masks: make([]uint64, len(in.problem.Types)), asked: make([]bool, len(in.problem.Types)),
	}
	for _, b := range l.Bins {
		r.f.buy(b, 1)
	}
	for n, shares := range l.Nodes {
		r.f.exposeAll(in.diverse.ofNode(n), shares, 1)
	}
	var key []byte
	for i, b := range l.Bins {
		if run.stopped() {
			break
		}
		key = binary.AppendUvarint(binary.AppendUvarint(key[:0], uint64(b.Type)), uint64(b.Offering))
		for _, s := range b.Shares {
			key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(s.Item)), uint64(s.Count))
		}
		list, ok := known[string(key)]
		if !ok {
			r.f.buy(b, -1)
			list = r.choicesFor(b)
			r.f.buy(b, 1)
			known[string(key)] = list
		}
		out[i] = list
	}
	return out
}

// buy takes what the bin needs from budgets and capacity pools; sign -1 gives it back.
func (f *filler) buy(b Bin, sign int) {
	f.charge(int32(b.Type), b.Offering, int64(sign))
	f.exposeAll(f.in.diverse.pool(b.Type, b.Offering), b.Shares, sign)
}

// rightSize replaces each bin by the cheapest of its tier that holds its contents, and reports
// whether it changed any.
func (f *filler) rightSize() (changed bool) {
	for i := range f.bins {
		b := &f.bins[i]
		f.charge(b.typ, int(b.charged), -1)
		f.exposeAll(f.capacityPool(b), b.shares, -1)
		if t, j, ok := f.cheapestChoice(b, f.in.tierOf(b.typ), f.in.objective(b.typ, int(b.charged))); ok {
			f.become(b, t, j)
			changed = true
		}
		f.charge(b.typ, int(b.charged), 1)
		f.exposeAll(f.capacityPool(b), b.shares, 1)
	}
	return changed
}

// ranking finds choices for bins, cheapest first. It sorts the choices of a pool once, so the first
// few of a bin are found quickly.
type ranking struct {
	in     *Instance
	f      *filler
	most   int
	byPool [][]Choice
	masks  []uint64 // by type: the offerings that suit the bin
	asked  []bool   // by type: whether the mask is known
	found  []Choice // reused
}

// choicesFor returns the choices that hold the bin and can be bought, including the bin's own. If
// they do not show what MinValues require, it adds choices that serve the items by other
// alternatives, and then choices that budgets do not allow once the other bins are bought. What was
// sold out before that is never among them.
func (r *ranking) choicesFor(b Bin) []Choice {
	own, open := Choice{b.Type, b.Offering}, r.f.refill(b)
	pool := r.in.problem.Types[b.Type].Pool
	clear(r.asked)
	holds := func(c Choice) bool {
		if t := int32(c.Type); !r.asked[t] {
			r.asked[t], r.masks[t] = true, r.f.exposable(t, r.f.suits(t, &open), b.Shares)
		}
		return r.masks[c.Type]&(1<<c.Offering) != 0 || c == own
	}
	otherwise := func(c Choice) bool {
		return holds(c) || r.in.holdsOtherwise(c, b.Shares, open.used) && r.f.exposable(int32(c.Type), 1<<c.Offering, b.Shares) != 0
	}
	affordable := func(c Choice) bool { return r.f.affordable(int32(c.Type))&(1<<c.Offering) != 0 }
	list, met := r.first(pool, func(c Choice) bool { return affordable(c) && holds(c) })
	if !met {
		list, met = r.first(pool, func(c Choice) bool { return affordable(c) && otherwise(c) })
	}
	if !met {
		list, _ = r.first(pool, func(c Choice) bool { return !r.in.soldOut(c.Type, c.Offering) && otherwise(c) })
	}
	if !slices.Contains(list, own) { // it is dearer than all of them
		if len(list) == r.most && len(r.in.minimums[pool]) == 0 {
			list = list[:r.most-1]
		}
		list = append(list, own)
	}
	return list
}

// first returns the first choices of the pool that suit. It returns more than most only until the
// minimums are met, and reports whether they are.
func (r *ranking) first(pool int, suits func(c Choice) bool) ([]Choice, bool) {
	seen := r.in.shownBy(pool)
	r.found = r.found[:0]
	for _, c := range r.ofPool(pool) {
		if len(r.found) >= r.most && seen.met() {
			break
		}
		if suits(c) {
			r.found = append(r.found, c)
			seen.add(r.in, int32(c.Type), c.Offering)
		}
	}
	return slices.Clone(r.found), seen.met()
}

// ofPool returns every choice of the pool, by price, then by type name.
func (r *ranking) ofPool(pool int) []Choice {
	if r.byPool[pool] == nil {
		type priced struct {
			Choice
			price Price
		}
		var list []priced
		for _, t := range r.in.tiers[r.in.tierOfPool[pool]] { // nearly in order
			if typ := &r.in.problem.Types[t]; typ.Pool == pool {
				for j := range typ.Offerings {
					list = append(list, priced{Choice{int(t), j}, typ.Offerings[j].cost()})
				}
			}
		}
		slices.SortFunc(list, func(a, b priced) int {
			if c := cmp.Compare(a.price, b.price); c != 0 { // most differ
				return c
			}
			return cmp.Or(cmp.Compare(r.in.problem.Types[a.Type].Name, r.in.problem.Types[b.Type].Name),
				cmp.Compare(a.Type, b.Type), cmp.Compare(a.Offering, b.Offering))
		})
		r.byPool[pool] = make([]Choice, len(list))
		for i := range list {
			r.byPool[pool][i] = list[i].Choice
		}
	}
	return r.byPool[pool]
}

// refill returns the packing state of a bin of a layout, with its open keys narrowed by its items.
func (f *filler) refill(b Bin) bin {
	in := f.in
	out := f.newBin(int32(b.Type), 1<<b.Offering)
	var labels requirements.Set
	if in.open.keys.Len() > 0 { // otherwise no variant narrows a key
		labels, _ = in.problem.Types[b.Type].Provides.Intersect(in.problem.Types[b.Type].Offerings[b.Offering].Provides)
		labels = in.narrowed(in.closed(labels), b)
	}
	for _, s := range b.Shares {
		p := in.profileOf(s.Item)
		for i := range p {
			v := &p[i]
			if v.masks[b.Type]&(1<<b.Offering) == 0 || v.open != 0 && !labels.Subset(in.open.sets[v.open]) {
				continue
			}
			for r, size := range in.problem.Items[s.Item].Size {
				out.used[r] += size * int64(s.Count)
			}
			if v.open != 0 {
				out.open = max(f.states.narrow(in, out.open, v.open), 0) // the labels agree
			}
			if !slices.Contains(out.variants, v) {
				out.variants = append(out.variants, v)
			}
			out.shares = append(out.shares, s)
			break
		}
	}
	return out
}

// diversity is the compiled [Problem.Diversity], without those that no plan can break.
type diversity struct {
	left     [][]int   // by diversity and capacity pool: what it may still hold
	counts   [][]Share // by item: the diversities that it counts for, and how much one copy counts
	pools    map[string]int32
	offering [][]int32 // by type and offering: the capacity pool, -1 for none
	node     []int32   // by node: its capacity pool, -1 for none
}

func (in *Instance) compileDiversity() {
	p := &in.problem
	d := &in.diverse
	d.counts = make([][]Share, len(p.Items))
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
		return numbered(d.pools, name)
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
		in.diverse = diversity{counts: d.counts}
		return
	}
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

// most returns how many copies of the item the capacity pool may hold; infinite if there is no
// limit.
func (d *diversity) most(item int, pool int32) float64 {
	most := math.Inf(1)
	if pool >= 0 {
		for _, s := range d.counts[item] {
			most = min(most, float64(max(d.left[s.Item][pool], 0)/s.Count))
		}
	}
	return most
}

// ofNode returns the number of the node's capacity pool, -1 for none.
func (d *diversity) ofNode(node int) int32 {
	if len(d.left) == 0 {
		return -1
	}
	return d.node[node]
}

// spreadMost returns the diversities with the highest demand, as many as may become resources.
func (in *Instance) spreadMost(counts []int) []extra {
	asked := make([]int64, len(in.diverse.left))
	var out []extra
	for i, n := range counts {
		for _, s := range in.diverse.counts[i] {
			asked[s.Item] += int64(s.Count) * int64(max(n, 0))
		}
	}
	for d := range asked {
		if asked[d] > int64(slices.Min(in.diverse.left[d])) {
			out = append(out, extra{tag: -1, diversity: d})
		}
	}
	slices.SortStableFunc(out, func(a, b extra) int { return cmp.Compare(asked[b.diversity], asked[a.diversity]) })
	return out[:min(len(out), maxApart)]
}
