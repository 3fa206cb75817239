package binpack

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/binpack/internal/tags"
	"github.com/joinery-sdk/joinery/requirements"
)

// Check returns every rule that a layout breaks, joined, or nil. The rules are capacity, labels,
// tag limits, the count of each item, limits of pools, Problem.Budgets, counted offerings,
// diversity and MinValues. It reads the problem, not the data that strategies share, so it also
// finds mistakes in that data. It costs O(shares x requirements).
func (in *Instance) Check(l Layout) error { return in.check(in.split.layout(l, in.split.in)) }

// check is Check for a layout of compiled types.
func (in *Instance) check(l Layout) error {
	c := &checker{
		in: in, placed: make([]int, len(in.problem.Items)), labels: map[Choice]requirements.Set{},
	}
	if len(l.Nodes) > len(in.problem.Nodes) {
		c.bad("layout has %s, the problem %d", plural(len(l.Nodes), "node", "nodes"), len(in.problem.Nodes))
		return errors.Join(c.errs...)
	}
	for n, shares := range l.Nodes {
		if len(shares) == 0 {
			continue
		}
		node := &in.problem.Nodes[n]
		c.contents(fmt.Sprintf("node %q", node.Name), shares, node.Free, node.Provides, requirements.Set{}, node.Tags, node.Limits)
	}
	bins := c.bins(l.Bins)
	if c.budgets(bins); len(c.errs) == 0 {
		c.needs(bins)
	}
	c.diversity(l.Nodes, bins)
	for i, it := range in.problem.Items {
		if c.placed[i] > it.Count {
			c.bad("item %q is placed %d times, there are %d", it.Name, c.placed[i], it.Count)
		}
	}
	return errors.Join(c.errs...)
}

type checker struct {
	in     *Instance
	placed []int
	errs   []error
	labels map[Choice]requirements.Set // of offerings
}

func (c *checker) bad(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("binpack: "+format, args...))
}

func (c *checker) contents(what string, shares []Share, capacity []int64, labels, claimed requirements.Set, tags []string, limits []Limit) {
	c.holds(what, shares, labels, claimed)
	used := make([]int64, len(capacity))
	over := make([]bool, len(capacity)) // the sum overflows
	type tally struct {
		tag   string
		count int
		added bool // by items
		// limit is the lowest limit, and asked the lowest by items. Limits of the node or type bind
		// only tags that items add; those of items always bind.
		limit, asked int
	}
	var tallies []tally
	at := map[string]int{}
	of := func(tag string) *tally {
		i, ok := at[tag]
		if !ok {
			i = len(tallies)
			at[tag], tallies = i, append(tallies, tally{tag: tag, limit: math.MaxInt, asked: math.MaxInt})
		}
		return &tallies[i]
	}
	for _, tag := range tags {
		of(tag).count++
	}
	for _, l := range limits {
		t := of(l.Tag)
		t.limit = min(t.limit, l.Max)
	}
	for _, s := range shares {
		if s.Item < 0 || s.Item >= len(c.placed) || s.Count <= 0 {
			c.bad("%s: share of item %d, %d times", what, s.Item, s.Count)
			continue
		}
		it := &c.in.problem.Items[s.Item]
		c.placed[s.Item] += s.Count
		for r, size := range it.Size {
			if size > 0 && int64(s.Count) > (Unlimited-used[r])/size {
				over[r] = true
			} else {
				used[r] += size * int64(s.Count)
			}
		}
		for _, tag := range it.Tags {
			t := of(tag)
			t.count, t.added = t.count+s.Count, true
		}
		for _, l := range it.Limits {
			t := of(l.Tag)
			t.limit, t.asked = min(t.limit, l.Max), min(t.asked, l.Max)
		}
	}
	for r := range used {
		if over[r] {
			c.bad("%s: more of %s is used than can be counted", what, c.in.problem.Resources[r])
		} else if used[r] > max(capacity[r], 0) {
			c.bad("%s: %d of %s are used, there are %d", what, used[r], c.in.problem.Resources[r], capacity[r])
		}
	}
	for _, t := range tallies {
		if !t.added {
			t.limit = t.asked
		}
		if t.count > t.limit {
			c.bad("%s: tag %q occurs %d times, but at most %d are allowed", what, t.tag, t.count, t.limit)
		}
	}
}

// again counts the shares of a bin that equals one that was already examined.
func (c *checker) again(shares []Share) {
	for _, s := range shares {
		if s.Item >= 0 && s.Item < len(c.placed) && s.Count > 0 {
			c.placed[s.Item] += s.Count
		}
	}
}

// holds reports each item whose requirements conflict with those before it. Claimed labels save a
// search if they are right.
func (c *checker) holds(what string, shares []Share, labels, claimed requirements.Set) {
	known := slices.DeleteFunc(slices.Clone(shares), func(s Share) bool { return s.Item < 0 || s.Item >= len(c.placed) })
	labels = c.in.closed(labels)
	decided := true
	fits := func(shares []Share) (ok bool) {
		_, ok, decided = c.in.chooseAlternatives(labels, shares)
		return ok && !labels.IsImpossible()
	}
	if _, ok := c.in.confirmed(labels, claimed, known); ok && !labels.IsImpossible() || fits(known) {
		return
	}
	if !decided {
		c.bad("%s: its undecided labels have too many alternatives to check; set Bin.Labels", what)
		return
	}
	var kept []Share
	for _, s := range known {
		if with := append(kept, s); fits(with) {
			kept = with
			continue
		}
		it := c.in.problem.Items[s.Item]
		have, _, _ := c.in.chooseAlternatives(labels, kept)
		c.bad("%s: item %q requires %s, the labels are %s", what, it.Name, it.Requires, have)
	}
}

// sum adds without overflow; budgets may be as large as integers.
func sum[T ~int64](a, b T) T {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// bins checks each bin, and returns the bins whose type and offering exist.
func (c *checker) bins(bins []Bin) (known []Bin) {
	p := &c.in.problem
	f := newFiller(c.in, nil)
	for i, b := range bins {
		what := fmt.Sprintf("bin %d", i)
		if b.Type < 0 || b.Type >= len(p.Types) || b.Offering < 0 || b.Offering >= len(p.Types[b.Type].Offerings) {
			c.bad("%s: there is no offering %d of type %d", what, b.Offering, b.Type)
			continue
		}
		if known = append(known, b); len(b.Shares) == 0 {
			c.bad("%s is empty", what)
			continue
		}
		typ := &p.Types[b.Type]
		labels, ok := c.labels[Choice{b.Type, b.Offering}]
		if !ok {
			var err error
			if labels, err = typ.Provides.Intersect(typ.Offerings[b.Offering].Provides); err != nil {
				c.bad("%s: type and offering contradict each other: %w", what, err)
				continue
			}
			c.labels[Choice{b.Type, b.Offering}] = labels
		}
		if k := i - 1; k >= 0 && bins[k].Type == b.Type && bins[k].Offering == b.Offering && slices.Equal(bins[k].Shares, b.Shares) {
			c.again(b.Shares) // bins often come in rows of equal ones
			continue
		}
		before := len(c.errs)
		c.contents(what, b.Shares, typ.Capacity, labels, b.Labels, typ.Tags, typ.Limits)
		if len(c.errs) == before && len(p.Pools[typ.Pool].MinValues) > 0 {
			if open := f.refill(b); !f.showsMinimums(&open) && !c.in.showsOtherwise(b, open.used) {
				c.bad("%s: its alternatives do not show the minimum of values that pool %q requires", what, p.Pools[typ.Pool].Name)
			}
		}
	}
	return known
}

func (c *checker) budgets(bins []Bin) {
	p := &c.in.problem
	left := map[string]int{} // by reservation: the lowest Count of its offerings, less what is taken
	for t := range p.Types {
		for j, o := range p.Types[t].Offerings {
			if name, ok := p.reservation(t, j); ok {
				if least, known := left[name]; !known || o.Count < least {
					left[name] = o.Count
				}
			}
		}
	}
	nodes := make([]int, len(p.Pools))
	price := make([]Price, len(p.Pools))
	together := make([]int64, len(p.Budgets))
	usage := make([][]int64, len(p.Pools))
	for k := range usage {
		usage[k] = make([]int64, len(p.Pools[k].Limits))
	}
	for _, b := range bins {
		typ := p.Types[b.Type]
		nodes[typ.Pool]++
		price[typ.Pool] = sum(price[typ.Pool], typ.Offerings[b.Offering].Price)
		for i := range usage[typ.Pool] {
			usage[typ.Pool][i] = sum(usage[typ.Pool][i], typ.Usage[i])
		}
		for i := range together {
			together[i] = sum(together[i], typ.Offerings[b.Offering].uses(i))
		}
		if name, ok := p.reservation(b.Type, b.Offering); ok {
			left[name] -= max(typ.Offerings[b.Offering].Takes, 1)
		}
	}
	for k, pool := range p.Pools {
		if pool.MaxNodes != nil && nodes[k] > *pool.MaxNodes {
			c.bad("pool %q: %d bins, at most %d are allowed", pool.Name, nodes[k], *pool.MaxNodes)
		}
		if pool.MaxPrice != nil && price[k] > *pool.MaxPrice {
			c.bad("pool %q: %v an hour, at most %v is allowed", pool.Name, price[k], *pool.MaxPrice)
		}
		for i, l := range pool.Limits {
			if nodes[k] > 0 && usage[k][i] > l { // a limit may be exceeded before anything is bought
				c.bad("pool %q: limit %d is %d, %d are used", pool.Name, i, l, usage[k][i])
			}
		}
	}
	for i, most := range p.Budgets {
		if together[i] > most {
			c.bad("budget %d is %d, %d are used", i, most, together[i])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		if left[name] < 0 {
			c.bad("reservation %q: %d more are taken than exist", strings.TrimPrefix(name, "\x00"), -left[name])
		}
	}
}

// needs checks that the limits and budgets still hold if each bin takes the most of what MinValues
// need.
func (c *checker) needs(bins []Bin) {
	if !c.in.coversAny() {
		return
	}
	f := newFiller(c.in, nil)
	for i, b := range bins {
		if _, ok := f.neededBy(b); !ok && len(b.Shares) > 0 {
			c.bad("bin %d: limits and budgets allow too few of the choices that MinValues need", i)
		}
		f.buy(b, 1)
	}
	for k, left := range f.left {
		if before := c.in.budgets.amounts[k]; k >= c.in.budgets.reservations && left < min(before, 0) {
			c.bad("limits and budgets do not allow what MinValues need at once: %d of budget %d are taken, there are %d", before-left, k, before)
		}
	}
}

func (c *checker) diversity(nodes [][]Share, bins []Bin) {
	p := &c.in.problem
	for i, d := range p.Diversity {
		counts := make([]int, len(p.Items))
		for _, s := range d.Items {
			counts[s.Item] += s.Count
		}
		in := map[string]int{}
		add := func(pool string, shares []Share) {
			for _, s := range shares {
				if pool != "" && s.Item >= 0 && s.Item < len(counts) && s.Count > 0 {
					in[pool] += counts[s.Item] * s.Count
				}
			}
		}
		for n, shares := range nodes {
			add(p.Nodes[n].CapacityPool, shares)
		}
		for _, b := range bins {
			add(p.Types[b.Type].Offerings[b.Offering].CapacityPool, b.Shares)
		}
		for _, pool := range slices.Sorted(maps.Keys(in)) {
			if placed := max(d.Placed[pool], 0); in[pool] > max(d.Max-placed, 0) {
				c.bad("diversity %d: %d are in capacity pool %q, at most %d are allowed", i, in[pool]+placed, pool, d.Max)
			}
		}
	}
}

// Misfit says why the item does not even fit alone into a new bin or node: because of its labels,
// size or tags, or because nothing is for sale or what would hold it is sold out. It is empty if
// the item fits; then other items, budgets or limits of pools keep it unplaced. It costs a pass
// over types and nodes.
func (in *Instance) Misfit(item int) string {
	p := &in.problem
	if item < 0 || item >= len(p.Items) {
		return fmt.Sprintf("the problem has no item %d", item)
	}
	it := &p.Items[item]
	if tag, ok := in.forbidding(nil, in.itemTags[item]); ok {
		return fmt.Sprintf("its own limit of tag %q allows no copy of it", tag)
	}
	short, least := "", int64(math.MaxInt64)
	full, sold := "", ""
	fits := func(name string, labels requirements.Set, free []int64, states []tags.State) bool {
		if !it.Requires.Compatible(labels, requirements.Keys{}) {
			return false
		}
		worst, lack := 0, int64(0)
		for r, s := range it.Size {
			if d := s - max(0, free[r]); d > lack {
				worst, lack = r, d
			}
		}
		if lack > 0 && lack < least {
			short, least = fmt.Sprintf("%s lacks %d of %s", name, lack, p.Resources[worst]), lack
		}
		tag, forbidden := in.forbidding(states, in.itemTags[item])
		if lack == 0 && forbidden && full == "" {
			full = fmt.Sprintf("%s has a limit of tag %q", name, tag)
		}
		return lack == 0 && !forbidden
	}
	for i, n := range p.Nodes {
		if fits("node "+n.Name, n.Provides, n.Free, in.nodeTags[i]) {
			return ""
		}
	}
	offered := len(p.Nodes) > 0
	for i := range p.Types {
		t := &p.Types[i]
		for j, o := range t.Offerings {
			offered = true
			have, err := t.Provides.Intersect(o.Provides)
			switch {
			case err != nil || !fits(t.Name, have, t.Capacity, in.typeTags[i]):
			case !in.soldOut(i, j):
				return ""
			case sold == "":
				sold = t.Name
			}
		}
	}
	switch {
	case !offered:
		return "nothing is for sale"
	case sold != "":
		return "sold out: " + sold
	case full != "":
		return "what is large enough excludes it by its tags: " + full
	case short == "":
		return fmt.Sprintf("nothing has the labels that it requires: %s", it.Requires)
	}
	return fmt.Sprintf("nothing that has the labels is large enough: %s", short)
}

// sells reports whether the compiled types have the choice.
func (in *Instance) sells(c Choice) bool {
	return c.Type >= 0 && c.Type < len(in.problem.Types) && c.Offering >= 0 && c.Offering < len(in.problem.Types[c.Type].Offerings)
}

// index returns i, or panics with a sentence if there are not that many.
func index(what string, i, n int) int {
	if i < 0 || i >= n {
		panic(fmt.Sprintf("binpack: there is no %s %d; there are %d", what, i, n))
	}
	return i
}

func (x *Filling) bin(i int) *bin  { return &x.f.bins[index("bin", i, len(x.f.bins))] }
func (x *Filling) node(i int) *bin { return &x.f.nodes[index("node", i, len(x.f.nodes))] }

var (
	errNoContext = errors.New("binpack: the context is nil; pass context.Background() for none")
	errNoPlan    = errors.New("binpack: the plan is nil")
)

// forbidding returns a tag whose limit keeps one copy of an item out of a bin with these tags.
func (in *Instance) forbidding(bin, item []tags.State) (tag string, ok bool) {
	for i := range item {
		if tags.Admitted(bin, item[i:i+1], 1) > 0 {
			continue
		}
		for name, number := range in.tags {
			if number == item[i].Tag {
				return name, true
			}
		}
	}
	return "", false
}

// soldOut reports whether a counted offering has less left than one bin takes.
func (in *Instance) soldOut(typ, offering int) bool {
	return in.problem.Types[typ].Offerings[offering].Counted && slices.ContainsFunc(in.budgets.of(int32(typ), offering)[:1], func(u use) bool {
		return u.amount > in.budgets.amounts[u.budget]
	})
}

// plural returns a number with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func (in *Instance) unplaced(l Layout) []int {
	left := in.placed(l)
	for i, it := range in.problem.Items {
		left[i] = it.Count - left[i]
	}
	return left
}

// placed counts the placed copies of each item.
func (in *Instance) placed(l Layout) []int {
	placed := make([]int, len(in.problem.Items))
	for _, shares := range l.Nodes {
		for _, s := range shares {
			placed[s.Item] += s.Count
		}
	}
	for _, b := range l.Bins {
		for _, s := range b.Shares {
			placed[s.Item] += s.Count
		}
	}
	return placed
}

// copies counts the copies of all items.
func (in *Instance) copies() int {
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

// better reports whether a is the better layout. At the highest priority at which the layouts place
// different numbers of copies, it places more. If the numbers are equal, it costs less.
func (in *Instance) better(a, b Layout) bool {
	placedA, placedB := in.placed(a), in.placed(b)
	more := in.compareCounts(in.order, func(i int) int { return placedA[i] - placedB[i] })
	return more > 0 || more == 0 && in.objectiveOf(a) < in.objectiveOf(b)
}

// compareCounts adds up numbers of copies by item. It returns the sum at the highest priority at
// which that is not 0, or 0 if there is none. The items are in order.
func (in *Instance) compareCounts(items []int, of func(item int) int) int {
	sum := 0
	for k, i := range items {
		if k > 0 && sum != 0 && in.problem.Items[items[k-1]].Priority != in.problem.Items[i].Priority {
			break
		}
		sum += of(i)
	}
	return sum
}
