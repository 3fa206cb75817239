package binpack

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
	"github.com/joinery-sdk/joinery/binpack/internal/values"
	"github.com/joinery-sdk/joinery/requirements"
)

// compileMinimums compiles the MinValues of pools. Each value of a key is one bit.
func (in *Instance) compileMinimums() {
	p := &in.problem
	in.minimums, in.shows, in.covers = make([][]values.Minimum, len(p.Pools)), make([][][]uint64, len(p.Types)), make([][]Choice, len(p.Pools))
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
			in.minimums[k] = append(in.minimums[k], values.Minimum{Count: w.Count, From: from, To: to})
			from = to
		}
		if len(pool.MinValues) > 0 && in.budgets.bounded[k] {
			in.covers[k] = in.compileCover(k)
		}
	}
}

// shown returns what choices of the pool have shown; nothing so far.
func (in *Instance) shown(pool int) values.Seen { return values.Of(in.minimums[pool]) }

// showsOf returns the values that a choice has; nil if its pool has no minimums.
func (in *Instance) showsOf(c Choice) []uint64 {
	if in.shows[c.Type] == nil {
		return nil
	}
	return in.shows[c.Type][c.Offering]
}

// flexible returns how many more copies of the item, at most k, the bin may take and still show the
// values that its pool's MinValues require, within the budgets. The bin's own part of them is taken
// already.
func (f *filler) flexible(b *bin, item, k int, v *variant, mask uint64, open int32) int {
	size := f.in.problem.Items[item].Size
	trial := *b
	trial.open = open
	if mask&(1<<b.charged) == 0 {
		trial.charged = int32(f.in.cheapest(b.typ, mask))
	}
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
		if !f.in.covered(b.typ) {
			return f.showsMinimums(&trial)
		}
		f.take(b.extra, -1)
		f.charge(b.typ, int(b.charged), -1)
		ok := f.affords(&trial)
		f.charge(b.typ, int(b.charged), 1)
		f.take(b.extra, 1)
		return ok
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
	seen := in.shown(pool)
	for _, t := range in.tiers[in.tierOfPool[pool]] {
		if in.problem.Types[t].Pool != pool {
			continue
		}
		f.shownTypes++
		f.Work++
		mask := f.suits(t, b)
		for rest := mask; rest != 0; rest &= rest - 1 {
			seen.Add(in.showsOf(Choice{int(t), bits.TrailingZeros64(rest)}))
		}
		if mask != 0 && seen.Met() {
			return true
		}
	}
	return seen.Met()
}

// covered reports whether limits of the type's pool, or budgets, bound what MinValues may need.
func (in *Instance) covered(t int32) bool { return in.covers[in.problem.Types[t].Pool] != nil }

// coversAny reports whether some pool is covered.
func (in *Instance) coversAny() bool {
	return slices.ContainsFunc(in.covers, func(c []Choice) bool { return c != nil })
}

// affords reports whether the budgets allow the bin with all choices that MinValues need. The bin
// itself is not taken from them.
func (f *filler) affords(b *bin) bool {
	extra, ok := f.extraOf(b)
	if !ok {
		return false
	}
	f.take(extra, 1)
	ok = f.in.budgets.allow(b.typ, int(b.charged), f.left)
	f.take(extra, -1)
	return ok
}

// stillAffords is affords for a bin that is taken from the budgets, and whose shares have become
// fewer. Then other choices are needed, and they may take more of a budget.
func (f *filler) stillAffords(b *bin) bool {
	if !f.in.covered(b.typ) {
		return true
	}
	taken := *b
	f.pay(&taken, -1)
	ok := f.affords(b)
	f.take(taken.extra, 1)
	f.charge(b.typ, int(b.charged), 1)
	return ok
}

// extraOf returns how much more of each budget the choices take that MinValues need than the bin
// itself. It depends only on the bin's choice and contents; ok is false if there are no such
// choices.
func (f *filler) extraOf(b *bin) (extra []use, ok bool) {
	if !f.in.covered(b.typ) || len(b.shares) == 0 {
		return nil, true
	}
	needed, ok := f.needed(b)
	for i, u := range f.in.limited(Choice{int(b.typ), int(b.charged)}) {
		most := u.amount
		for _, c := range needed {
			most = max(most, f.in.limited(c)[i].amount)
		}
		if most > u.amount {
			extra = append(extra, use{u.budget, most - u.amount})
		}
	}
	return extra, ok
}

// asked has masks by type, which hold where the type's stamp is the current one.
type asked struct {
	masks  []uint64
	stamps []int
	stamp  int
}

// needed returns choices with which the bin shows what MinValues require, beside its own. It takes
// those first that take no more of any budget than the bin does, and then those that take the
// smallest part of one. In the end it leaves out what the others make needless.
func (f *filler) needed(b *bin) (out []Choice, ok bool) {
	in, own := f.in, Choice{int(b.typ), int(b.charged)}
	pool := in.problem.Types[b.typ].Pool
	if f.stamp++; f.stamps == nil {
		f.masks, f.stamps = make([]uint64, len(in.problem.Types)), make([]int, len(in.problem.Types))
	}
	wide := false
	for _, s := range b.shares {
		wide = wide || len(in.profileOf(s.Item)) > 1
	}
	holds := func(c Choice) bool {
		if wide {
			return in.holdsOtherwise(c, b.shares, b.used)
		}
		if f.stamps[c.Type] != f.stamp {
			f.shownTypes++
			f.Work++
			f.masks[c.Type], f.stamps[c.Type] = f.suits(int32(c.Type), b), f.stamp
		}
		return f.masks[c.Type]&(1<<c.Offering) != 0
	}
	beyond := func(c Choice) bool {
		for i, u := range in.limited(c) {
			if u.amount > in.limited(own)[i].amount {
				return true
			}
		}
		return false
	}
	list := in.covers[pool]
	part := in.partOf(own)
	cheaps, _ := slices.BinarySearchFunc(list, part, func(c Choice, part float64) int { return cmp.Or(cmp.Compare(in.partOf(c), part), -1) })
	picked, ok := values.Choose(in.minimums[pool], in.showsOf(own), cheaps, len(list), func(i int) []uint64 { return in.showsOf(list[i]) },
		func(i int) bool { return !beyond(list[i]) }, func(i int) bool { return holds(list[i]) })
	for _, i := range picked {
		out = append(out, list[i])
	}
	return out, ok
}

// Needed returns, for each bin, choices that it needs beside its own to show what MinValues require,
// where limits or budgets bound them. These hold even if each bin takes the most of its choices.
func (in *Instance) Needed(l Layout) [][]Choice {
	out := make([][]Choice, len(l.Bins))
	if !in.coversAny() {
		return out
	}
	f := newFiller(in, nil)
	for i, b := range in.split.layout(l, in.split.in).Bins {
		needed, _ := f.neededBy(b)
		for _, c := range needed {
			out[i] = append(out[i], in.split.out(c))
		}
	}
	return out
}

func (f *filler) neededBy(b Bin) ([]Choice, bool) {
	if !f.in.covered(int32(b.Type)) {
		return nil, true
	}
	open := f.refill(b)
	return f.needed(&open)
}

// showsOtherwise is like showsMinimums, but each choice may serve the items by other alternatives
// than the bin does. It is slow, so it runs only if showsMinimums fails.
func (in *Instance) showsOtherwise(b Bin, used []int64) bool {
	pool := in.problem.Types[b.Type].Pool
	seen := in.shown(pool)
	for t, typ := range in.problem.Types {
		for j := range typ.Offerings {
			if typ.Pool == pool && in.holdsOtherwise(Choice{t, j}, b.Shares, used) {
				seen.Add(in.showsOf(Choice{t, j}))
			}
		}
	}
	return seen.Met()
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
	open := bin{typ: int32(b.Type), charged: int32(b.Offering)}
	if f.in.covered(open.typ) {
		open = f.refill(b)
	}
	open.extra, _ = f.extraOf(&open)
	f.charge(open.typ, b.Offering, int64(sign))
	f.take(open.extra, int64(sign))
	f.exposeAll(f.in.diverse.pool(b.Type, b.Offering), b.Shares, sign)
}

// rightSize replaces each bin by the cheapest of its tier that holds its contents, and reports
// whether it changed any.
func (f *filler) rightSize() (changed bool) {
	for i := range f.bins {
		b := &f.bins[i]
		f.pay(b, -1)
		f.exposeAll(f.capacityPool(b), b.shares, -1)
		if t, j, ok := f.cheapestChoice(b, f.in.tierOf(b.typ), f.in.objective(b.typ, int(b.charged))); ok {
			f.become(b, t, j)
			changed = true
		}
		f.pay(b, 1)
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
	if needed, _ := r.f.neededBy(b); len(needed) > 0 {
		r.found = r.found[:0]
		for _, c := range r.ofPool(pool) {
			if slices.Contains(needed, c) || len(r.found) < r.most && affordable(c) && otherwise(c) {
				r.found = append(r.found, c)
			}
		}
		return r.withOwn(slices.Clone(r.found), own)
	}
	list, met := r.first(pool, func(c Choice) bool { return affordable(c) && holds(c) })
	if !met {
		list, met = r.first(pool, func(c Choice) bool { return affordable(c) && otherwise(c) })
	}
	if !met {
		list, _ = r.first(pool, func(c Choice) bool { return !r.in.soldOut(c.Type, c.Offering) && otherwise(c) })
	}
	return r.withOwn(list, own)
}

// withOwn adds the bin's own choice, if it is dearer than all of the list.
func (r *ranking) withOwn(list []Choice, own Choice) []Choice {
	if slices.Contains(list, own) {
		return list
	}
	if len(list) == r.most && len(r.in.minimums[r.in.problem.Types[own.Type].Pool]) == 0 {
		list = list[:r.most-1]
	}
	return append(list, own)
}

// first returns the first choices of the pool that suit. It returns more than most only until the
// minimums are met, and reports whether they are.
func (r *ranking) first(pool int, suits func(c Choice) bool) ([]Choice, bool) {
	seen := r.in.shown(pool)
	r.found = r.found[:0]
	for _, c := range r.ofPool(pool) {
		if len(r.found) >= r.most && seen.Met() {
			break
		}
		if suits(c) {
			r.found = append(r.found, c)
			seen.Add(r.in.showsOf(c))
		}
	}
	return slices.Clone(r.found), seen.Met()
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
