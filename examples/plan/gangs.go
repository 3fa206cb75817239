package plan

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/gang"
)

const (
	// domainBounds limits how many lower bounds the search for domains computes. domainPods limits
	// the total pods of these bounds: a bound takes about 20 microseconds a pod, so the search
	// takes half a second.
	domainBounds = 64
	domainPods   = 30_000
	// domainPlans limits how many choices of domains are planned, those with the lowest bounds
	// first.
	domainPlans = 8
)

// domains is the search for the domains of groups with a key, by branch and bound (A. Land, A.
// Doig, 1960). A branch gives some of the groups a domain each. Its bound is a lower bound of the
// cost of the placed pods with these domains.
type domains struct {
	opts   *Options
	best   *Plan
	packer *packer
	groups []gang.Group
	values [][][]string // by group, the choices of values
	root   *binpack.Instance
	items  []binpack.Item
	of     []int                    // by item, the index of its group; -1 for none
	bounds int                      // how many may still be computed
	known  map[string]binpack.Price // lower bounds of groups alone, by what they need
}

// branch is a choice of domains for the first groups.
type branch struct {
	values [][]string
	claim  *domainClaim
}

// domainClaim is a lower bound for one choice of domains, with the problem that it belongs to.
type domainClaim struct {
	relaxed *binpack.Instance
	plan    *binpack.Plan
	none    bool // some pod fits nowhere in the domains
}

func (c *domainClaim) price() binpack.Price {
	if c.none {
		return math.MaxInt64
	}
	return c.plan.Bound.Price
}

// inDomains returns the plan with the cheapest domains that it finds for groups that share a value
// of a label. Its bound takes this constraint into account. If the bound of the pods already proves
// the plan, nothing is searched.
func (p *Plan) inDomains(ctx context.Context, k *packer, opts *Options) (*Plan, error) {
	if opts == nil || p.Bound.relaxed == nil || p.Bound.GapPercent <= closeEnough {
		return p, nil
	}
	d := &domains{opts: opts, best: p, packer: k}
	if !d.read() {
		return p, nil
	}
	open, closed, err := d.search(ctx)
	if err != nil {
		return nil, err
	}
	d.best.Bound.add(append(open, closed...), d.best.ObjectiveValue())
	return d.best, nil
}

// read finds the groups to choose domains for: groups with a key that have placed pods and no
// running pod. It reports whether there is a choice.
func (d *domains) read() bool {
	p := d.best
	bindings, runs := p.Bindings(), gang.Running(p.Problem)
	for _, g := range d.opts.Groups {
		if g.Key == "" || !slices.ContainsFunc(bindings, func(b scheduling.Binding) bool { return g.Member(b.Pod) }) ||
			slices.ContainsFunc(p.Problem.Snapshot().Pods, func(pod *corev1.Pod) bool { return runs(pod) && g.Member(pod) }) {
			continue
		}
		if values := choicesOf(p.Problem, &g); len(values) > 1 {
			d.groups, d.values = append(d.groups, g), append(d.values, values)
		}
	}
	if len(d.groups) == 0 {
		return false
	}
	relaxation := p.relaxation(d.packer.types)
	items, _ := p.Relaxed()
	pods := 0
	for i := range items {
		pod := p.Problem.Classes[items[i].Pods[0].Class].Pods[0]
		d.of = append(d.of, slices.IndexFunc(d.groups, func(g gang.Group) bool { return g.Member(pod) }))
		pods += items[i].Count
	}
	d.items, d.bounds = relaxation.Items, min(domainBounds, domainPods/max(1, pods))
	root, err := binpack.Compile(relaxation)
	d.root = root
	return err == nil
}

// choicesOf returns the ways to give a group its domains: sets of as many values of its key as it
// may have. It returns nil if some values are unknown or there are too many ways.
func choicesOf(p *scheduling.Problem, g *gang.Group) [][]string {
	if g.Key == "" {
		return nil
	}
	values := p.Values(g.Key)
	most := min(max(1, g.Values), len(values))
	var out [][]string
	var extend func(chosen []string, from int)
	extend = func(chosen []string, from int) {
		if len(chosen) == most && most > 0 {
			out = append(out, chosen)
			return
		}
		for i := from; i < len(values) && len(out) <= domainBounds; i++ {
			extend(append(slices.Clip(chosen), values[i]), i+1)
		}
	}
	if extend(nil, 0); len(out) > domainBounds {
		return nil
	}
	return out
}

// search branches where the bound is lowest. It ends when that bound is not below the cost of the
// best plan, or when nothing is left to try. It returns the branches that are still undecided and
// those that were planned. The cheapest choice is in one of them.
func (d *domains) search(ctx context.Context) (open, closed []branch, err error) {
	open = []branch{{nil, &domainClaim{relaxed: d.best.Bound.relaxed, plan: d.best.Bound.claim}}}
	plans := domainPlans
	for ctx.Err() == nil {
		at := 0
		for i := range open {
			if open[i].claim.price() < open[at].claim.price() {
				at = i
			}
		}
		next := open[at]
		if next.claim.none || float64(next.claim.price())*(1+closeEnough/100.0) >= float64(d.best.ObjectiveValue()) {
			break
		}
		if len(next.values) == len(d.groups) {
			if plans--; plans < 0 {
				break
			}
			if err := d.plan(ctx, next.values); err != nil {
				return nil, nil, err
			}
			open, closed = slices.Delete(open, at, at+1), append(closed, next)
			if len(open) == 0 {
				break
			}
			continue
		}
		values := d.values[len(next.values)]
		if d.bounds -= len(values); d.bounds < 0 {
			break
		}
		open = slices.Delete(open, at, at+1)
		for _, v := range values {
			b := branch{values: append(slices.Clone(next.values), v)}
			if b.claim, err = d.bound(ctx, b.values); err != nil {
				return nil, nil, err
			}
			open = append(open, b)
		}
	}
	return open, closed, nil
}

// bound returns a lower bound of the cost of the placed pods with the domains of the first groups.
func (d *domains) bound(ctx context.Context, values [][]string) (*domainClaim, error) {
	items := slices.Clone(d.items)
	for i, g := range d.of {
		if g >= 0 && g < len(values) {
			items[i].Requires = items[i].Requires.Intersect(requirements.AnyOf(requirements.MustOf(requirements.In(d.groups[g].Key, values[g]...))))
		}
	}
	if slices.ContainsFunc(items, func(it binpack.Item) bool { return it.Requires.IsImpossible() }) {
		return &domainClaim{none: true}, nil
	}
	in, err := d.root.WithItems(items, nil)
	if err != nil {
		return nil, err
	}
	plan, err := in.Pack(ctx, &binpack.Options{Strategy: binpack.FirstFitDecreasing{}, Effort: binpack.EffortFast, Alternatives: 1})
	if err != nil {
		return nil, err
	}
	for i, n := range plan.Unplaced {
		if n > 0 && in.Misfit(i) != "" {
			return &domainClaim{none: true}, nil
		}
	}
	return &domainClaim{relaxed: in, plan: plan}, nil
}

// plan plans with a domain for each group. It keeps the plan if it is cheaper and places the same
// pods.
func (d *domains) plan(ctx context.Context, values [][]string) error {
	o, before := d.best.Problem.Options(), d.best.Problem.Options().Within
	o.Within = func(pod *corev1.Pod) requirements.Set {
		if g := slices.IndexFunc(d.groups, func(g gang.Group) bool { return g.Member(pod) }); g >= 0 {
			return requirements.MustOf(requirements.In(d.groups[g].Key, values[g]...))
		}
		if before == nil {
			return requirements.Set{}
		}
		return before(pod)
	}
	problem, err := scheduling.Compile(d.best.Problem.Snapshot(), o)
	if err != nil {
		return err
	}
	made, k, err := solve(ctx, problem, d.opts)
	if err != nil {
		return err
	}
	if !slices.Equal(made.placed(), d.best.placed()) || made.ObjectiveValue() >= d.best.ObjectiveValue() || slices.ContainsFunc(d.opts.Groups, made.isSpread) {
		return nil
	}
	made.options, made.partly = d.best.options, d.best.partly
	if made, err = made.proved(ctx, k); err == nil && made.Bound.relaxed != nil {
		d.best = made
	}
	return err
}

// isSpread reports whether a group with a placed pod is in more domains than it may be. Running
// pods count too. A node without a value of the key counts by its name, as new nodes do for
// hostnames.
func (p *Plan) isSpread(g gang.Group) bool {
	if g.Key == "" {
		return false
	}
	labels := map[string]map[string]string{}
	for i := range p.Problem.Existing {
		labels[p.Problem.Existing[i].Node.Name] = p.Problem.Existing[i].Labels.Labels()
	}
	for _, n := range p.Result.NewNodes() {
		labels[n.Name] = n.Labels
	}
	held, runs := map[string]bool{}, gang.Running(p.Problem)
	for _, pod := range p.Problem.Snapshot().Pods {
		if value := labels[pod.Spec.NodeName][g.Key]; value != "" && runs(pod) && g.Member(pod) {
			held[value] = true
		}
	}
	most := max(1, g.Values, len(held))
	for _, b := range p.Bindings() {
		if g.Member(b.Pod) {
			held[cmp.Or(labels[b.Node][g.Key], b.Node)] = true
		}
	}
	return len(held) > most
}

// placed returns the names of the placed pods.
func (p *Plan) placed() []string {
	var out []string
	for _, b := range p.Bindings() {
		out = append(out, b.Pod.Namespace+"/"+b.Pod.Name)
	}
	slices.Sort(out)
	return out
}

// add combines the bound with that of the branches. Every plan is in one of the branches.
func (b *Bound) add(branches []branch, objective binpack.Price) {
	least := slices.MinFunc(branches, func(x, y branch) int { return cmp.Compare(x.claim.price(), y.claim.price()) }).claim
	if least.none || least.price() <= b.Price {
		return
	}
	b.Price, b.Kind = least.price(), least.plan.Bound.Kind
	b.GapPercent = 100 * float64(objective-b.Price) / float64(b.Price)
	for _, x := range branches {
		if !x.claim.none {
			b.domains = append(b.domains, x.claim)
		}
	}
}

// Gang is the result of a plan for one group.
type Gang struct {
	// Name is the name of the group, and Key its label key. Values is how many values of Key its
	// nodes may have.
	Name, Key string
	Values    int
	// Running is how many of its pods already run and stay. Placed is how many the plan places,
	// including those of leaving nodes. Waiting is how many have no place.
	Running, Placed, Waiting int
	// Domain is the value of Key that the nodes of the placed pods share, or their values joined by
	// commas. It is empty if there is no key or no pod is placed.
	Domain string
	// Nodes are the names of these nodes, New is how many of them have to be bought, and
	// PricePerHour is the price of the new ones in dollars. Other pods may run there too.
	Nodes        []string
	New          int
	PricePerHour float64
	// LowerBoundPerHour is a lower bound in dollars of the cost of nodes that hold the placed pods
	// in no more domains than allowed. If the plan has an [Objective], it is the cost in the
	// objective, as in [Bound.Price].
	LowerBoundPerHour float64
	// Why is the reason why pods have no place. It is empty if all have one.
	Why string
}

// Gangs returns the groups of the options that have pods, in their order.
func (p *Plan) Gangs() []Gang {
	nodes := map[string]*scheduling.NewNode{}
	for _, n := range p.Result.NewNodes() {
		nodes[n.Name] = &n
	}
	bindings, unplaced, runs := p.Bindings(), p.Unplaced(), gang.Running(p.Problem)
	var out []Gang
	for i, g := range p.options.Groups {
		one := Gang{Name: g.Name, Key: g.Key}
		if g.Key != "" {
			one.Values = max(1, g.Values)
		}
		for _, b := range bindings {
			if !g.Member(b.Pod) {
				continue
			}
			if one.Placed++; slices.Contains(one.Nodes, b.Node) {
				continue
			}
			one.Nodes = append(one.Nodes, b.Node)
			if n := nodes[b.Node]; n != nil {
				one.New, one.PricePerHour = one.New+1, one.PricePerHour+n.PricePerHour
			}
		}
		for _, pod := range p.Problem.Snapshot().Pods {
			if g.Member(pod) && runs(pod) {
				one.Running++
			}
		}
		for _, u := range unplaced {
			for _, pod := range u.Pods {
				if !g.Member(pod) {
					continue
				}
				if one.Waiting++; one.Why == "" {
					one.Why = u.Reasons()[0].Detail
				}
			}
		}
		if one.Running+one.Placed+one.Waiting == 0 {
			continue
		}
		slices.Sort(one.Nodes)
		if one.Placed > 0 {
			one.Domain = p.domainsOf(one.Nodes, nodes, g.Key)
			if p.alone != nil {
				one.LowerBoundPerHour = p.alone[i].Dollars()
			}
		}
		out = append(out, one)
	}
	return out
}

// boundGangs sets the lower bound of each group, as if no other pod had to be placed.
func (p *Plan) boundGangs(ctx context.Context, k *packer) error {
	if p.Bound.relaxed == nil || len(p.options.Groups) == 0 {
		return nil
	}
	root, err := binpack.Compile(p.relaxation(k.types))
	if err != nil {
		return err
	}
	d := &domains{best: p, packer: k, root: root, known: map[string]binpack.Price{}}
	classOf := map[*corev1.Pod]int{}
	for k, c := range p.Problem.Classes {
		for _, pod := range c.Pods {
			classOf[pod] = k
		}
	}
	placed := make([]map[int]int, len(p.options.Groups)) // by group and class
	for _, b := range p.Bindings() {
		g := slices.IndexFunc(p.options.Groups, func(g gang.Group) bool { return g.Member(b.Pod) })
		if class, ok := classOf[b.Pod]; ok && g >= 0 {
			if placed[g] == nil {
				placed[g] = map[int]int{}
			}
			placed[g][class]++
		}
	}
	items, _ := p.Relaxed()
	p.alone = make([]binpack.Price, len(p.options.Groups))
	for i, g := range p.options.Groups {
		if placed[i] != nil {
			if p.alone[i], err = d.alone(ctx, g, items, placed[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// domainsOf returns the values of a label of nodes that accept pods, joined by commas.
func (p *Plan) domainsOf(names []string, fresh map[string]*scheduling.NewNode, key string) string {
	var out []string
	for _, name := range names {
		if v := p.domainOf(name, fresh, key); v != "" && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// domainOf returns the value of a label of a node that accepts pods.
func (p *Plan) domainOf(name string, fresh map[string]*scheduling.NewNode, key string) string {
	if n := fresh[name]; n != nil {
		if key == corev1.LabelHostname {
			return name
		}
		return n.Labels[key]
	}
	for i := range p.Problem.Existing {
		if n := &p.Problem.Existing[i]; n.Node.Name == name {
			value, _ := n.Labels.Get(key).Single()
			return value
		}
	}
	return ""
}

// alone returns a lower bound of the cost of the pods of a group, given by class, as if no other
// pod had to be placed.
func (d *domains) alone(ctx context.Context, g gang.Group, items []scheduling.Item, placed map[int]int) (binpack.Price, error) {
	d.items, d.of = nil, nil
	for i, it := range d.root.Problem().Items {
		if it.Count = placed[items[i].Pods[0].Class]; it.Count > 0 {
			d.items, d.of = append(d.items, it), append(d.of, 0)
		}
	}
	choices := [][][]string{nil}
	if values := choicesOf(d.best.Problem, &g); len(values) > 0 {
		choices = nil
		for _, v := range values {
			choices = append(choices, [][]string{v})
		}
	}
	d.groups = []gang.Group{g}
	needs := []string{g.Key, strconv.Itoa(g.Values)}
	for _, it := range d.items {
		needs = append(needs, fmt.Sprint(it.Count, itemKey(it)))
	}
	key := strings.Join(needs, "\n")
	if known, ok := d.known[key]; ok {
		return known, nil
	}
	least := binpack.Price(math.MaxInt64)
	for _, values := range choices {
		c, err := d.bound(ctx, values)
		if err != nil {
			return 0, err
		}
		least = min(least, c.price())
	}
	if least == math.MaxInt64 {
		least = 0
	}
	d.known[key] = least
	return least, nil
}
