// Package rulecost says what each rule costs: how much less, in dollars an hour, the same pods
// would cost without it. A rule is one requirement of a pool, selector, spread, anti-affinity,
// limit or preference. The package also finds pairs of rules that save only together.
//
// All rules are ranked by an estimate of what they can save. The most promising ones are lifted in
// quick plans, and the best of these are planned again with full effort. So a verified saving
// belongs to a plan that can be carried out, and an interval says what other plans could save.
package rulecost

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
)

// State says how well a cost is known.
type State string

// The states of a cost, best first.
const (
	Verified State = "verified" // planned again with the options of the plan
	Quick    State = "quick"    // planned again with little effort
	Ranked   State = "ranked"   // not tried: its cost is 0 because none is known, and only HighPerHour says something
)

// Cost is what a rule, or two rules together, cost, in dollars an hour. If the plan has an
// objective, it is the cost in the objective and not the price.
type Cost struct {
	Rules []Rule `json:"rules"`
	State State  `json:"state"`
	// PerHour is how much less the plan without the rules costs. It is 0 if that plan is not
	// cheaper or leaves out a pod.
	PerHour float64 `json:"perHour"`
	// LowPerHour and HighPerHour enclose the difference between the best plans with and without the
	// rules, by the bounds of both.
	LowPerHour  float64 `json:"lowPerHour"`
	HighPerHour float64 `json:"highPerHour"`
}

// Report is the cost of the rules of a plan, dearest first. Rules of equal cost are in descending
// order of their estimated saving.
type Report struct {
	// PerHour is the cost of the plan. The costs of the rules do not add up to it, because several
	// rules may forbid the same thing.
	PerHour float64 `json:"perHour"`
	Rules   []Cost  `json:"rules"`
	// Pairs are rules that save more together than the sum of what each saves alone, by more than
	// half a percent of PerHour.
	Pairs []Cost `json:"pairs"`
	// Stopped says that the context ended before the work was done.
	Stopped bool `json:"stopped,omitempty"`
}

// Options limit the work. nil and the zero value mean defaults that shrink with the size of the
// cluster.
type Options struct {
	// Quick is how many rules are lifted in quick plans. Verify is how many of these are planned
	// again with full effort. Pairs is how many pairs of rules are tried in quick plans.
	Quick, Verify, Pairs int
	// Only, if set, selects the rules to try. Beyond the first Verify, each of them is then planned
	// again with full effort, too, unless a bound shows that it costs at most Enough dollars an hour.
	// Other rules stay untried.
	Only   func(Rule) bool
	Enough float64
}

// pairShare is the fraction of the cost that a pair must save in addition to its rules to be
// listed. A smaller saving may be a random difference between two searches.
const pairShare = 0.005

// Of returns what the rules of a plan cost. p is a plan of s that was made with the options in by.
// Pods that p does not place are left out, so that savings refer to the same pods. When ctx ends,
// the report has what is known until then. Plans are made concurrently, so the functions and
// strategies in these options must be safe for concurrent use; Progress is not called.
func Of(ctx context.Context, p *plan.Plan, s scheduling.Snapshot, by *plan.Options, opts *Options) (*Report, error) {
	r := &replanner{base: p, snapshot: placedOnly(p, s)}
	if by != nil {
		r.full = *by
	}
	var packing binpack.Options
	if r.full.Packing != nil {
		packing = *r.full.Packing
	}
	packing.Progress = nil
	if settings := r.full.Scheduling; settings != nil {
		silent := *settings
		silent.Progress = nil
		r.full.Scheduling = &silent
	}
	full := packing
	r.full.Packing = &full
	r.quick = r.full
	packing.Effort = binpack.EffortFast
	if _, ok := packing.Strategy.(binpack.CostAware); ok {
		packing.Strategy = nil
	}
	r.quick.Packing = &packing
	draft := packing
	draft.Draft = true
	r.draft = r.quick
	r.draft.Packing = &draft
	limits := r.limits(opts)

	rules := r.ranked(ctx)
	out := &Report{PerHour: p.ObjectiveValue().Dollars(), Pairs: []Cost{}, Rules: make([]Cost, len(rules))}
	for i, rule := range rules {
		out.Rules[i] = Cost{Rules: []Rule{rule}, State: Ranked, HighPerHour: out.PerHour}
		if c := &out.Rules[i]; r.keepsBound(c, &r.full) {
			c.HighPerHour = max(0, p.ObjectiveValue()-p.Bound.Price).Dollars()
		}
	}
	meant, verify := len(rules), limits.Verify
	if limits.Only != nil {
		others := func(c Cost) bool { return !limits.Only(c.Rules[0]) }
		out.Rules = slices.Concat(slices.DeleteFunc(slices.Clone(out.Rules), others), slices.DeleteFunc(slices.Clone(out.Rules), func(c Cost) bool { return !others(c) }))
		meant = slices.IndexFunc(out.Rules, others)
		if meant < 0 {
			meant = len(rules)
		}
		verify = meant
	}
	if err := r.tryAll(ctx, out.Rules[:min(limits.Quick, meant)]); err != nil {
		return nil, err
	}
	err := inParallel(min(verify, meant), func(i int) error {
		c := &out.Rules[i]
		if ctx.Err() != nil || c.PerHour == 0 && c.HighPerHour == 0 { // it is proved that nothing can be saved
			return nil
		}
		if i >= limits.Verify && c.HighPerHour <= limits.Enough {
			return nil
		}
		_, err := r.price(ctx, c, Verified, &r.full)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := r.pairs(ctx, out, limits); err != nil {
		return nil, err
	}
	dearest(out.Rules)
	dearest(out.Pairs)
	out.Stopped = ctx.Err() != nil
	return out, nil
}

// keepsBound reports whether the bound of the plan is one without the rules, too. Computing a bound
// takes up to half of the time of a plan.
func (r *replanner) keepsBound(c *Cost, by *plan.Options) bool {
	return len(by.Groups) == 0 && by.Objective == nil && r.base.Bound.Price > 0 && !slices.ContainsFunc(c.Rules, Rule.bearsOnBound)
}

func (r *replanner) limits(opts *Options) Options {
	var out Options
	if opts != nil {
		out = *opts
	}
	work := len(r.snapshot.Pods) + 1
	for i := range r.snapshot.Pools {
		work += len(r.snapshot.Pools[i].Types)
	}
	out.Quick = cmp.Or(out.Quick, min(max(70_000/work, 12), 400))
	out.Verify = cmp.Or(out.Verify, min(max(15_000/work, 2), 40))
	out.Pairs = cmp.Or(out.Pairs, min(max(25_000/work, 4), 45))
	return out
}

// dearest sorts by saving, then by state, best known first. Otherwise it keeps the order.
func dearest(costs []Cost) {
	slices.SortStableFunc(costs, func(a, b Cost) int {
		return cmp.Or(cmp.Compare(b.PerHour, a.PerHour), cmp.Compare(rank(a.State), rank(b.State)))
	})
}

func rank(s State) int { return slices.Index([]State{Verified, Quick, Ranked}, s) }

// placedOnly returns the snapshot without the pods that the plan does not place.
func placedOnly(p *plan.Plan, s scheduling.Snapshot) scheduling.Snapshot {
	refused := map[types.NamespacedName]bool{}
	for _, u := range p.Unplaced() {
		for _, pod := range u.Pods {
			refused[nameOf(pod)] = true
		}
	}
	s.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(pod *corev1.Pod) bool { return refused[nameOf(pod)] })
	return s
}

func nameOf(p *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(p.Namespace, corev1.NamespaceDefault), Name: p.Name}
}

type replanner struct {
	base        *plan.Plan
	snapshot    scheduling.Snapshot
	full, quick plan.Options
	draft       plan.Options // quick, and without a bound
	quickBase   *plan.Plan   // with all rules, with little effort
}

// tryAll lifts each rule in a quick plan and sorts the rules by what that promises.
func (r *replanner) tryAll(ctx context.Context, costs []Cost) error {
	with, err := plan.Make(ctx, r.snapshot, &r.draft)
	if err != nil {
		return err
	}
	r.quickBase = with
	type tried struct {
		Cost
		promise float64
	}
	list := make([]tried, len(costs))
	err = inParallel(len(costs), func(i int) (err error) {
		if list[i].Cost = costs[i]; ctx.Err() == nil {
			list[i].promise, err = r.try(ctx, &list[i].Cost)
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(list, func(a, b tried) int {
		return cmp.Or(cmp.Compare(max(b.PerHour, b.promise), max(a.PerHour, a.promise)), cmp.Compare(rank(a.State), rank(b.State)))
	})
	for i := range list {
		costs[i] = list[i].Cost
	}
	return nil
}

// inParallel calls f for each of n numbers, on all cores. It returns the error of the lowest
// number.
func inParallel(n int, f func(i int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				errs[i] = f(i)
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// try plans without the rules in a quick plan. The promise is the saving against a quick plan with
// the rules. Against the plan itself, which was made with full effort, a saving may not show.
func (r *replanner) try(ctx context.Context, c *Cost) (promise float64, err error) {
	after, err := r.price(ctx, c, Quick, &r.quick)
	if err != nil || after == nil || len(after.Unplaced()) > len(r.quickBase.Unplaced()) {
		return 0, err
	}
	return max(0, r.quickBase.ObjectiveValue()-after.ObjectiveValue()).Dollars(), nil
}

// price plans without the rules of the cost. The plan is nil if the context ended.
func (r *replanner) price(ctx context.Context, c *Cost, state State, by *plan.Options) (*plan.Plan, error) {
	s := r.snapshot
	for _, rule := range c.Rules {
		s = rule.Lift(s)
	}
	planned, same := plan.Make, r.keepsBound(c, by)
	if same {
		planned = plan.Unproved
	}
	after, err := planned(ctx, s, by)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // the plan may be incomplete
		return nil, nil
	}
	before, bound := r.base.ObjectiveValue(), after.Bound.Price
	if same {
		bound = r.base.Bound.Price
	}
	c.State, c.PerHour, c.LowPerHour = state, 0, 0
	if len(after.Unplaced()) > 0 { // its bound covers fewer pods
		c.HighPerHour = before.Dollars()
		return after, nil
	}
	c.PerHour = max(0, before-after.ObjectiveValue()).Dollars()
	c.LowPerHour = max(0, r.base.Bound.Price-after.ObjectiveValue()).Dollars()
	c.HighPerHour = max(0, before-bound).Dollars()
	return after, nil
}

// pairs tries two rules together: rules of one workload, rules of one key in two pools, and the
// dearest rules with each other.
func (r *replanner) pairs(ctx context.Context, out *Report, limits Options) error {
	known := slices.DeleteFunc(slices.Clone(out.Rules), func(c Cost) bool { return c.State == Ranked })
	type pair struct{ a, b, class int }
	var candidates []pair
	for a := range known {
		for b := range a {
			x, y := known[b].Rules[0], known[a].Rules[0]
			switch {
			case x.Kind == Requirement && y.Kind == Requirement && x.Key == y.Key: // both pools may forbid the same
				candidates = append(candidates, pair{b, a, 0})
			case x.Owner == y.Owner:
				candidates = append(candidates, pair{b, a, 1})
			default:
				candidates = append(candidates, pair{b, a, 2})
			}
		}
	}
	slices.SortStableFunc(candidates, func(x, y pair) int { return cmp.Or(cmp.Compare(x.class, y.class), cmp.Compare(x.a+x.b, y.a+y.b)) })
	for _, x := range candidates[:min(limits.Pairs, len(candidates))] {
		if ctx.Err() != nil {
			return nil
		}
		c := Cost{Rules: []Rule{known[x.a].Rules[0], known[x.b].Rules[0]}}
		alone := known[x.a].PerHour + known[x.b].PerHour
		if _, err := r.price(ctx, &c, Quick, &r.draft); err != nil {
			return err
		}
		if c.PerHour <= alone+pairShare*out.PerHour {
			continue
		}
		if _, err := r.price(ctx, &c, Verified, &r.full); err != nil {
			return err
		}
		if c.PerHour > alone+pairShare*out.PerHour {
			out.Pairs = append(out.Pairs, c)
		}
	}
	return nil
}
