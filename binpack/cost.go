package binpack

import (
	"math"
	"slices"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
)

// Effort says how much work a price-aware plan is worth. Work is counted in steps, so the answer does not depend on how
// fast or busy the machine is. The empty Effort is EffortDefault.
type Effort string

// The efforts, in rising order: each allows some ten times the steps of the one before.
const (
	EffortFast    Effort = "fast"
	EffortDefault Effort = "default"
	EffortBest    Effort = "best"
)

// steps is what the effort allows for so many things to pack.
func (e Effort) steps(things int) int {
	n := min(max(things, 50), 3000) * 8_000
	switch e {
	case EffortFast:
		return n / 8
	case EffortBest:
		return n * 10
	}
	return n
}

// CostAware looks for the layout of the least objective. It solves the linear programme over fillings of bins for what a
// class of items is worth and which fillings pay, buys whole bins of them, packs the most wasteful bins anew as long as
// its steps last, and puts the outcome into practice under all rules. What the rules forbid is planned again; what is
// left then is placed by first fit. The result is compared with that of [FirstFitDecreasing]: it never places less, and
// never costs more where it places the same.
type CostAware struct {
	Effort Effort
}

// Name is "cost".
func (CostAware) Name() string { return "cost" }

// Pack implements [Strategy].
func (c CostAware) Pack(in *Instance) Layout {
	l, _ := c.guided(in)
	return l
}

// guided is Pack, and what it has learnt about values.
func (c CostAware) guided(in *Instance) (Layout, []hint) {
	best := FirstFitDecreasing{}.Pack(in)
	bestCost := in.objectiveOf(best)
	steps := c.Effort.steps(in.things())
	var hints []hint
	for _, valued := range []bool{false, true} {
		if valued && len(in.problem.Nodes) == 0 {
			break
		}
		p := &planner{in: in, f: newFiller(in), budget: &relax.Budget{Left: steps}, ceiling: bestCost}
		l := p.pack(valued)
		if cost := in.objectiveOf(l); in.compare(l, cost, best, bestCost) < 0 {
			best, bestCost = l, cost
		}
		hints = p.hints
	}
	return best, hints
}

// things is how many there are to pack.
func (in *Instance) things() int {
	n := 0
	for _, it := range in.problem.Items {
		n += it.Count
	}
	return n
}

func (in *Instance) objectiveOf(l Layout) Price {
	var cost Price
	for _, b := range l.Bins {
		cost = sum(cost, in.objective(int32(b.Type), b.Offering))
	}
	return cost
}

// compare is negative if a is the better layout: it places more, or the same for less.
func (in *Instance) compare(a Layout, costA Price, b Layout, costB Price) int {
	placedA, placedB := in.placed(a), in.placed(b)
	more := 0
	for i := range placedA {
		more += placedA[i] - placedB[i]
	}
	switch {
	case more != 0:
		return -more
	case costA < costB:
		return -1
	case costA > costB:
		return 1
	}
	return 0
}

// hint is what values of items a solution of the linear programme has come to.
type hint struct {
	values []float64 // by item
	proved float64   // what they prove for sure, if positive
	value  float64   // what they would prove if no filling has been missed
}

// planner makes one layout.
type planner struct {
	in      *Instance
	f       *filler
	budget  *relax.Budget
	ceiling Price // what is known to suffice
	hints   []hint
	values  []float64 // of items, where the plan is made for averages
}

func (p *planner) pack(valued bool) Layout {
	in, f := p.in, p.f
	if valued {
		p.fillNodesByValue()
	}
	for _, item := range in.order {
		f.firstFit(f.nodes, item)
	}
	for k := range in.tiers {
		p.tier(k)
	}
	p.placeRest()
	best := f.finish()
	bestCost := in.objectiveOf(best)
	if l := p.polish(best); in.compare(l, in.objectiveOf(l), best, bestCost) < 0 {
		best = l
	}
	return best
}

// placeRest places what is left by first fit.
func (p *planner) placeRest() {
	in, f := p.in, p.f
	d := newDemand(in)
	for _, item := range in.order {
		for k := range in.tiers {
			if f.want[item] == 0 {
				break
			}
			f.firstFitTier(item, int32(k))
			for f.want[item] > 0 && f.open(item, &in.tiers[k], d) {
			}
		}
		d.drop(in, item)
	}
}

// tier plans bins of the pools of one weight, again for what the rules did not allow.
func (p *planner) tier(k int) {
	const rounds = 4
	for round := range rounds {
		ceiling := Price(math.MaxInt64)
		if len(p.in.tiers) == 1 && round == 0 {
			ceiling = sum(p.ceiling, 1)
		}
		r, ok := p.in.relaxed(p.f.want, k, false, ceiling)
		if !ok || len(r.model.Kinds) == 0 || r.dearest() > relax.Largest {
			return
		}
		reach := r.reachable()
		if reach == 0 {
			return
		}
		first := round == 0 && len(p.in.tiers) == 1 && len(p.f.nodes) == 0
		if p.plan(r, first) == 0 {
			return
		}
	}
}

// reachable is how many things some kind can hold.
func (r *relaxation) reachable() int64 {
	var n int64
	for i := range r.model.Classes {
		if r.model.Fits(i) {
			n += r.model.Classes[i].Count
		}
	}
	return n
}

// plan solves the relaxation and puts it into practice. It gives the number of bins that were opened.
func (p *planner) plan(r *relaxation, first bool) int {
	model, groups := r.model, [][]int32(nil)
	if len(model.Classes) > maxClasses {
		model, groups = r.model.Cluster(maxClasses / 2)
	}
	m := relax.NewMaster(model)
	half := &relax.Budget{Left: p.budget.Left / 2}
	p.budget.Left -= half.Left
	m.Price(model.Coverage(), half)
	for m.Generate(400, half); half.Left > 0 && m.Deepen(2000, half); {
		m.Generate(400, half)
	}
	value, whole := m.Values(), m.Value()
	half.Left = max(half.Left, 200_000) // a dive needs some, and comes to an end
	columns := flat(m.Dive(half))
	p.budget.Left += max(half.Left, 0)
	if groups != nil {
		if p.values == nil {
			p.values = r.spread(value, groups)
		}
		return p.realise(r, columns, groups)
	}
	if first {
		p.hints = append(p.hints, hint{r.byItem(m.Best), m.BestPrice, m.BestPrice}, hint{r.byItem(value), 0, whole})
	}
	columns = model.Improve(columns, value, m.BestPrice, p.budget)
	return p.realise(r, columns, nil)
}

// spread is values of groups of classes by item, by what its room is worth in the average of its group.
func (r *relaxation) spread(value []float64, groups [][]int32) []float64 {
	room := r.model.Coverage()
	of := make([]float64, len(room))
	for g, classes := range groups {
		sum, n := 0.0, 0.0
		for _, c := range classes {
			sum += room[c] * float64(r.model.Classes[c].Count)
			n += float64(r.model.Classes[c].Count)
		}
		for _, c := range classes {
			if sum > 0 {
				of[c] = value[g] * room[c] * n / sum
			}
		}
	}
	return r.byItem(of)
}

// polish packs the most wasteful bins of the layout anew, where the plan was made for averages only.
func (p *planner) polish(l Layout) Layout {
	in, f := p.in, p.f
	if p.values == nil || len(in.tiers) > 1 || p.budget.Left <= 0 {
		return l
	}
	for i := range f.bins {
		f.charge(int32(l.Bins[i].Type), l.Bins[i].Offering, -1)
		for _, s := range f.bins[i].shares {
			f.want[s.Item] += s.Count
		}
	}
	f.bins = nil
	r, ok := in.relaxed(f.want, -1, false, math.MaxInt64)
	if !ok {
		return l
	}
	value := make([]float64, len(r.model.Classes))
	for c, members := range r.members {
		value[c] = p.values[members[0]]
	}
	var columns []relax.Column
	for _, b := range l.Bins {
		if c, ok := r.column(in, b); ok {
			columns = append(columns, c)
		}
	}
	p.realise(r, r.model.Improve(columns, value, 0, p.budget), nil)
	p.placeRest()
	return f.finish()
}

// column is the bin as the relaxation sees it, of the cheapest kind that holds it.
func (r *relaxation) column(in *Instance, b Bin) (relax.Column, bool) {
	counts := map[int32]int32{}
	var c relax.Column
	for _, s := range b.Shares {
		class := r.class[s.Item]
		if counts[class] == 0 {
			c.Class = append(c.Class, class)
		}
		counts[class] += int32(s.Count)
	}
	slices.Sort(c.Class)
	for _, class := range c.Class {
		c.Count = append(c.Count, counts[class])
	}
	var ok bool
	c.Kind, ok = r.model.Cheapest(c.Pattern)
	return c, ok
}

func flat(batches []relax.Batch) []relax.Column {
	var out []relax.Column
	for _, b := range batches {
		for range b.Copies {
			out = append(out, b.Column)
		}
	}
	return out
}

// byItem is values of classes by item, nil if there are none.
func (r *relaxation) byItem(value []float64) []float64 {
	if value == nil {
		return nil
	}
	out := make([]float64, len(r.class))
	for c, members := range r.members {
		for _, i := range members {
			out[i] = value[c]
		}
	}
	return out
}

// realise opens a bin for each column and puts in what the rules allow. groups are the classes behind each class of the
// columns, nil where they are the same.
func (p *planner) realise(r *relaxation, columns []relax.Column, groups [][]int32) int {
	in, f := p.in, p.f
	queues := r.queues(in, groups)
	opened := 0
	for _, c := range columns {
		kind := r.kinds[c.Kind]
		mask := kind.mask & f.affordable(kind.typ)
		if mask == 0 {
			continue
		}
		b := f.newBin(kind.typ, mask)
		f.charge(kind.typ, int(b.charged), 1)
		for k, class := range c.Class {
			p.take(&b, &queues[class], int(c.Count[k]))
		}
		if groups != nil {
			p.topUp(&b, queues)
		}
		if len(b.shares) == 0 {
			f.charge(kind.typ, int(b.charged), -1)
			continue
		}
		slices.SortStableFunc(b.shares, func(x, y Share) int { return in.rank[x.Item] - in.rank[y.Item] })
		f.bins = append(f.bins, b)
		opened++
	}
	return opened
}

// queue is the items behind a class of columns, the largest first.
type queue struct {
	items []int
	turn  bool // take from the other end next, so that what is taken is of average size
	mixed bool
}

func (r *relaxation) queues(in *Instance, groups [][]int32) []queue {
	if groups == nil {
		out := make([]queue, len(r.members))
		for c, members := range r.members {
			out[c].items = slices.Clone(members)
		}
		return out
	}
	out := make([]queue, len(groups))
	for g, classes := range groups {
		for _, c := range classes {
			out[g].items = append(out[g].items, r.members[c]...)
		}
		out[g].mixed = true
		slices.SortFunc(out[g].items, func(a, b int) int { return in.rank[a] - in.rank[b] })
	}
	return out
}

// take puts n things of the queue into the bin, or as many as it admits.
func (p *planner) take(b *bin, q *queue, n int) int {
	taken, missed := 0, 0
	const patience = 64 // items that do not go in before it is given up
	for lo, hi := 0, len(q.items)-1; n > taken && lo <= hi && missed < patience; {
		at := lo
		if q.mixed && q.turn {
			at = hi
		}
		item := q.items[at]
		want := min(n-taken, p.f.want[item])
		if q.mixed {
			want = min(want, max(1, n/4))
		}
		if want > 0 {
			if k, v, mask, open := p.f.admit(b, item, want); k > 0 {
				p.f.place(b, item, k, v, mask, open)
				taken += k
				q.turn = !q.turn
				if p.f.want[item] > 0 && k == want {
					continue
				}
			} else {
				missed++
				q.turn = !q.turn
			}
		}
		if at == lo {
			lo++
		} else {
			hi--
		}
	}
	q.items = slices.DeleteFunc(q.items, func(item int) bool { return p.f.want[item] == 0 })
	return taken
}

// topUp fills what averages have left of the bin, with large things first.
func (p *planner) topUp(b *bin, queues []queue) {
	for g := range queues {
		q := &queues[g]
		for tries, at := 0, 0; at < len(q.items) && tries < 4; at++ {
			item := q.items[at]
			if fits(b.free, p.in.problem.Items[item].Size, 1) == 0 {
				if at == 0 { // the smallest may do
					at = max(at, len(q.items)-3)
				}
				continue
			}
			tries++
			if k, v, mask, open := p.f.admit(b, item, p.f.want[item]); k > 0 {
				p.f.place(b, item, k, v, mask, open)
			}
		}
		q.items = slices.DeleteFunc(q.items, func(item int) bool { return p.f.want[item] == 0 })
	}
}

// fillNodesByValue fills existing nodes with what is worth most by the prices of resources.
func (p *planner) fillNodesByValue() {
	in, f := p.in, p.f
	r, _ := in.relaxed(f.want, -1, false, math.MaxInt64)
	value := r.model.Coverage()
	var knap relax.Knapsack
	queues := r.queues(in, nil)
	for n := range f.nodes {
		eligible := func(c int) bool {
			for _, v := range in.profiles[in.profile[r.members[c][0]]].variants {
				if v.nodes[n/64]&(1<<(n%64)) != 0 {
					return true
				}
			}
			return false
		}
		if !knap.Load(in.free[n*in.dims:(n+1)*in.dims], r.model.Classes, eligible, value) {
			continue
		}
		knap.Bound()
		knap.Fill(0.5, 1)
		knap.Improve(3, 100)
		pattern := knap.Found()
		for i, class := range pattern.Class {
			taken := p.take(&f.nodes[n], &queues[class], int(pattern.Count[i]))
			r.model.Classes[class].Count -= int64(taken)
		}
	}
}
