// Package plan combines scheduling and binpack: it turns pods, pools and nodes into a plan. Its
// adaptor between the two shows how they fit together; import it, or copy what you need.
//
//	Snapshot ─► scheduling.Compile ─► Problem.Solve ◄─► binpack.Pack
//	                                       └─► Bindings, NewNodes, Unplaced with reasons and fixes, Cost with a bound
//
// The package knows no cloud and no catalogue: the snapshot's pools say what can be bought.
package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/gang"
)

// Plan is a finished plan: where every pod goes, what is bought, and a proof of the least possible
// cost. It is not safe for concurrent use, because its fixes share a budget.
type Plan struct {
	// Result says where every pod goes: Bindings, Unplaced, GivenUp.
	*scheduling.Result
	// Problem is the problem that was solved.
	Problem *scheduling.Problem
	// Bound is a lower bound of the cost for the same pods. It is the zero value if
	// [binpack.Options.Draft] asks for no bound.
	Bound Bound
	// Instance and Packing are the final round in terms of binpack. Packing's bound is
	// Bound.Choice, with its certificate.
	Instance *binpack.Instance
	Packing  *binpack.Plan

	options Options
	alone   []binpack.Price      // lower bound of the cost of each group; nil if no bound was requested
	partly  bool                 // some sets of groups, or some of their domains, were not tried
	spent   int                  // the part of the budget for fixes that is used up
	after   *scheduling.Snapshot // the snapshot with the plan carried out; nil until it is requested
}

// Options are the choices that the snapshot does not make. nil and the zero value mean defaults.
type Options struct {
	Scheduling *scheduling.Options
	Packing    *binpack.Options
	// Objective is what a plan should optimize in addition to the price list.
	Objective *Objective
	// Groups are pods that run only together, see [gang.Solve]. [Solve] ignores them, because its
	// problem is compiled already.
	Groups []gang.Group
}

// Make plans a snapshot: where each pod goes, what has to be bought, and a lower bound of its cost.
// When ctx ends, Make returns the best plan found so far, and [Plan.IsStopped] reports that. The
// error names an invalid Objective, or is that of [instancetypes.Validate] for an invalid
// catalogue, of [scheduling.Compile] for an invalid snapshot, or of the packer. Pods without a
// place are not an error.
func Make(ctx context.Context, s scheduling.Snapshot, opts *Options) (*Plan, error) {
	if opts != nil {
		if err := opts.Objective.check(); err != nil {
			return nil, err
		}
		s = opts.Objective.Narrow(s)
	}
	if err := validate(s.Pools); err != nil {
		return nil, err
	}
	out, k, err := planned(ctx, s, opts)
	if err != nil {
		return nil, err
	}
	if out, err = out.proved(ctx, k); err != nil {
		return nil, err
	}
	if out, err = out.inDomains(ctx, k, opts); err != nil {
		return nil, err
	}
	return out, out.boundGangs(ctx, k)
}

// validate rejects invalid catalogues. It checks each catalogue once.
func validate(pools []scheduling.Pool) error {
	var errs []error
	seen := map[*instancetypes.InstanceType]int{}
	for i := range pools {
		types := pools[i].Types
		if len(types) == 0 || seen[&types[0]] == len(types) {
			continue
		}
		seen[&types[0]] = len(types)
		if err := instancetypes.Validate(types); err != nil {
			errs = append(errs, fmt.Errorf("plan: pool %s: %w", pools[i].Name, err))
		}
	}
	return errors.Join(errs...)
}

// Options returns the options that the plan was made with; Scheduling is never nil. Use them to
// plan the snapshot of Problem or of [Plan.CarriedOut] in the same way. These snapshots already
// have the objective's prices, so the returned options have none.
func (p *Plan) Options() Options {
	out := p.options
	if out.Objective != nil {
		priced := *out.Objective
		priced.Prices = nil
		out.Objective = &priced
	}
	return out
}

// Notes returns the notes of the result, plus one if the search for groups was not complete, one
// for each factor of the objective that names a label that nothing for sale has, and one for each
// limit of [Spread] that is not kept.
func (p *Plan) Notes() []string {
	out := slices.Concat(p.Result.Notes(), p.options.Objective.idle(p.Problem), p.options.Objective.exceeded(p))
	if p.partly {
		out = append(slices.Clip(out), "some sets of groups, or choices of their domains, were not tried: a better one may exist")
	}
	return out
}

// Unproved is [Make] without lower bounds: Plan.Bound is the zero value, and the only alternative
// for a new node is the chosen one. It is for plans that are only compared with others. The
// snapshot must be that of a plan: it is known to be valid, and the objective has already narrowed
// it. Groups that share a value of a label go to any domains that hold them, which are not always
// the cheapest.
func Unproved(ctx context.Context, s scheduling.Snapshot, opts *Options) (*Plan, error) {
	out, _, err := planned(ctx, s, opts)
	return out, err
}

// planned compiles a snapshot and solves it, more than once if groups are not whole at first.
func planned(ctx context.Context, s scheduling.Snapshot, opts *Options) (*Plan, *packer, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	settings, k := o.Objective.Scheduling(o.Scheduling), &planner{opts: opts}
	solution, err := gang.Solve(ctx, s, settings, o.Groups, k)
	if err != nil {
		return nil, nil, err
	}
	out := k.last
	out.plan.partly = !solution.Complete || k.cut && len(out.plan.Unplaced()) > 0
	if len(o.Groups) > 0 { // every trial of a fix works out again what the groups wait for
		silent := scheduling.Options{}
		if settings != nil {
			silent = *settings
		}
		silent.Progress = nil
		out.plan.options.Scheduling = &silent
	}
	return out.plan, out.packer, nil
}

// planner plans for package gang.
type planner struct {
	opts *Options
	last made
	cut  bool // some search ended before it had tried all places
}

type made struct {
	plan   *Plan
	packer *packer
}

// Draft packs only once, by first fit if the options have a strategy of binpack.
func (k *planner) Draft(ctx context.Context, p *scheduling.Problem) (*scheduling.Result, error) {
	var o Options
	if k.opts != nil {
		o = *k.opts
	}
	_, draft := packings(o.Packing)
	o.Packing = &draft
	plan, _, err := solve(ctx, p, &o)
	if err != nil {
		return nil, err
	}
	return plan.Result, nil
}

// Search packs every round by trying all places, and keeps the plan. A strategy that is not
// binpack's own packs every round itself.
func (k *planner) Search(ctx context.Context, p *scheduling.Problem) (*scheduling.Result, error) {
	var o Options
	if k.opts != nil {
		o = *k.opts
	}
	packing, _ := packings(o.Packing)
	budget := &searchBudget{steps: searchSteps}
	if _, ok := packing.Strategy.(binpack.CostAware); ok {
		packing.Strategy = exhaustive{binpack.CostAware{Effort: binpack.EffortFast}, budget}
	}
	o.Packing = &packing
	plan, packer, err := solve(ctx, p, &o)
	if err != nil {
		return nil, err
	}
	if plan.options.Packing = nil; k.opts != nil && k.opts.Packing != nil {
		silent := *k.opts.Packing
		silent.Progress = nil
		plan.options.Packing = &silent
	}
	k.cut = k.cut || budget.cut
	k.last = made{plan, packer}
	return plan.Result, nil
}

// Plan calls solve and keeps the plan.
func (k *planner) Plan(ctx context.Context, p *scheduling.Problem) (*scheduling.Result, error) {
	plan, packer, err := solve(ctx, p, k.opts)
	if err != nil {
		return nil, err
	}
	k.last = made{plan, packer}
	return plan.Result, nil
}

// Solve is [Make] for a problem that is already compiled. It ignores Scheduling of the options, and
// the objective only affects costs: [Objective.Narrow] and [Objective.Scheduling] have to be
// applied before.
func Solve(ctx context.Context, p *scheduling.Problem, opts *Options) (*Plan, error) {
	out, k, err := solve(ctx, p, opts)
	if err != nil {
		return nil, err
	}
	return out.proved(ctx, k)
}

// proved returns the plan with its bounds and alternatives.
func (p *Plan) proved(ctx context.Context, k *packer) (*Plan, error) {
	if k.final.Draft {
		return p, nil
	}
	var err error
	if p.Packing, err = p.Instance.Prove(ctx, p.Packing, &k.final); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	effort := k.final.Effort
	if s, ok := k.final.Strategy.(binpack.CostAware); ok {
		effort = s.Effort
	}
	if err = p.prove(ctx, k.types, effort); err != nil {
		return nil, fmt.Errorf("plan: the bound: %w", err)
	}
	return p, nil
}

func solve(ctx context.Context, p *scheduling.Problem, opts *Options) (*Plan, *packer, error) {
	if p == nil {
		return nil, nil, errors.New("plan: the problem is nil; scheduling.Compile makes one")
	}
	out := &Plan{Problem: p}
	if opts != nil {
		out.options = *opts
	}
	if err := out.options.Objective.check(); err != nil {
		return nil, nil, err
	}
	out.options.Scheduling = p.Options()
	out.options.Scheduling.Progress = nil // fixes are tried without progress reports
	if packing := out.options.Packing; packing != nil {
		silent := *packing
		silent.Progress = nil
		out.options.Packing = &silent
	}
	k := &packer{finals: map[int]round{}, types: typesFor(p, out.options.Objective), spread: out.options.Objective.spreadFor(p)}
	var packing *binpack.Options
	if opts != nil {
		packing = opts.Packing
	}
	k.final, k.draft = packings(packing)
	k.asPacked = !isOwn(k.final.Strategy)
	var err error
	if out.Result, err = p.Solve(ctx, k); err != nil {
		return nil, nil, fmt.Errorf("plan: %w", err)
	}
	last := k.finals[out.Round]
	out.Instance, out.Packing = last.in, last.plan
	if out.Draft {
		out.Packing = k.rounds[out.Round].plan
	}
	return out, k, nil
}

// packer packs with binpack. During the exchange between scheduling and packing it uses first fit,
// which is quick and also finds out what fits. The final round is packed again by the strategy of
// the options; proved adds bound and alternatives. A strategy that is not binpack's own packs every
// round.
type packer struct {
	types        []binpack.Type
	spread       *spreading
	final, draft binpack.Options
	rounds       []round
	finals       map[int]round // by number of the round
	asPacked     bool          // the strategy is the caller's own
}

type round struct {
	in   *binpack.Instance
	plan *binpack.Plan
}

// Pack translates a round of scheduling into a problem of binpack, and a plan of binpack into an
// outcome.
func (k *packer) Pack(ctx context.Context, p *scheduling.Problem, r scheduling.Round) (scheduling.Outcome, error) {
	if r.Final {
		last := k.rounds[r.Number]
		if !k.final.Draft {
			opts := k.final
			opts.First, opts.ProveLater = last.plan, true
			var err error
			if last.plan, err = last.in.Pack(ctx, &opts); err != nil {
				return scheduling.Outcome{}, err
			}
		}
		k.finals[r.Number] = last
		return k.outcome(last), nil
	}
	in, err := k.compile(p, r.Items)
	if err != nil {
		return scheduling.Outcome{}, err
	}
	plan, err := in.Pack(ctx, &k.draft)
	if err != nil {
		return scheduling.Outcome{}, err
	}
	k.rounds = append(k.rounds, round{in, plan})
	return k.outcome(round{in, plan}), nil
}

func (k *packer) outcome(r round) scheduling.Outcome {
	out := Outcome(r.in, r.plan)
	out.AsPacked = k.asPacked
	return out
}

// compile turns a round into an instance. After the first round only the items are new.
func (k *packer) compile(p *scheduling.Problem, items []scheduling.Item) (*binpack.Instance, error) {
	if len(k.rounds) > 0 {
		return k.rounds[0].in.WithItems(Items(items), k.spread.limits(items))
	}
	problem := Problem(p, k.types, items)
	problem.Diversity = k.spread.limits(items)
	for i := range problem.Nodes {
		problem.Nodes[i].CapacityPool = k.spread.poolOf(i)
	}
	return binpack.Compile(problem)
}

// packings returns the options for the final round and for the rounds before it.
func packings(opts *binpack.Options) (final, draft binpack.Options) {
	if opts != nil {
		final = *opts
	}
	if final.Strategy == nil {
		final.Strategy = binpack.CostAware{Effort: final.Effort}
	}
	draft = final
	if _, ok := final.Strategy.(binpack.CostAware); ok {
		draft.Strategy = binpack.FirstFitDecreasing{}
	}
	draft.Draft = true
	return final, draft
}

// Types returns the shapes of scheduling as types of binpack. Usage[k] of a type is what a node
// counts against Limits[k] of its pool.
func Types(p *scheduling.Problem) []binpack.Type { return typesFor(p, nil) }

func typesFor(p *scheduling.Problem, beyond *Objective) []binpack.Type {
	out := make([]binpack.Type, len(p.Shapes))
	for i := range p.Shapes {
		s := &p.Shapes[i]
		t := binpack.Type{
			Name: p.InstanceType(i).Name, Pool: s.Pool, Capacity: s.Free, Usage: s.Usage, Provides: s.Labels,
			Tags: s.Tags, Limits: limits(s.Limits), Offerings: make([]binpack.Offering, len(s.Offerings)),
		}
		for j, o := range s.Offerings {
			t.Offerings[j] = binpack.Offering{Provides: o.Labels, Price: Price(o.Price), Counted: o.Count > 0, Count: o.Count, Reservation: o.Reservation, Usage: o.Usage}
			if cost := Price(o.Cost); cost != Price(o.Price) {
				t.Offerings[j].Objective = max(1, cost) // 0 would mean the price
			}
			if o.Takes > 0 { // counted in money
				t.Offerings[j].Counted, t.Offerings[j].Count, t.Offerings[j].Takes = true, o.Committed, o.Takes
			}
			if !(o.Price >= 0 && o.Price < math.MaxInt64/float64(binpack.PerDollar)) { // NaN, or a price out of range
				t.Offerings[j] = binpack.Offering{Provides: o.Labels, Counted: true}
			}
		}
		if beyond != nil && beyond.Spread != (Spread{}) {
			for j := range t.Offerings {
				if labels, err := p.NodeLabels(i, j); err == nil {
					t.Offerings[j].CapacityPool = spotPool(labels)
				}
			}
		}
		out[i] = t
	}
	return out
}

// Problem returns a round of scheduling as a problem of binpack.
func Problem(p *scheduling.Problem, types []binpack.Type, items []scheduling.Item) binpack.Problem {
	out := binpack.Problem{Types: types, Items: Items(items)}
	for _, name := range p.Resources {
		out.Resources = append(out.Resources, string(name))
	}
	for i := range p.Pools {
		out.Pools = append(out.Pools, pool(&p.Pools[i]))
	}
	out.Budgets = Budgets(p)
	for i := range p.Existing {
		r := &p.Existing[i]
		out.Nodes = append(out.Nodes, binpack.Node{Name: r.Node.Name, Free: r.Free, Provides: r.Labels, Tags: r.Tags, Limits: limits(r.Limits)})
	}
	return out
}

// Budgets returns what CapacityQuotas still allow, as budgets of binpack.
func Budgets(p *scheduling.Problem) []int64 {
	var out []int64
	for _, b := range p.Budgets {
		out = append(out, b.Left)
	}
	return out
}

// Items returns the items of a round as items of binpack.
func Items(items []scheduling.Item) []binpack.Item {
	out := make([]binpack.Item, len(items))
	for i, it := range items {
		if it.Requires.IsZero() { // binpack then has no requirement
			it.Requires = requirements.AnyOf()
		}
		out[i] = binpack.Item{
			Name: it.Name, Count: it.Count, Size: it.Requests, Requires: it.Requires, Tags: it.Tags, Limits: limits(it.Limits), Priority: it.Priority,
		}
	}
	return out
}

func pool(r *scheduling.PoolState) binpack.Pool {
	out := binpack.Pool{Name: r.Name, Weight: int(r.Weight), Limits: r.Left}
	if r.NodesLeft >= 0 {
		out.MaxNodes = &r.NodesLeft
	}
	for _, key := range slices.Sorted(maps.Keys(r.MinValues)) {
		if n := r.MinValues[key]; n != 0 { // as instancetypes.MinValues reads it, 0 asks for nothing
			if !slices.ContainsFunc(r.Types, func(t instancetypes.InstanceType) bool {
				return t.Requirements.Has(key) || slices.ContainsFunc(t.Offerings, func(o instancetypes.Offering) bool { return o.Requirements.Has(key) })
			}) {
				n = math.MaxInt32 // only values of types count, and no type has any
			}
			out.MinValues = append(out.MinValues, binpack.MinValues{Key: key, Count: n})
		}
	}
	return out
}

func limits(in []scheduling.Limit) []binpack.Limit {
	out := make([]binpack.Limit, len(in))
	for i, l := range in {
		out[i] = binpack.Limit{Tag: l.Tag, Max: l.Max}
	}
	return out
}

// Outcome returns the result of binpack for a round, in terms of scheduling.
func Outcome(in *binpack.Instance, plan *binpack.Plan) scheduling.Outcome {
	out := scheduling.Outcome{Existing: make([][]scheduling.Share, len(plan.Nodes))}
	for n, shares := range plan.Nodes {
		out.Existing[n] = shared(shares)
	}
	for _, b := range plan.Bins {
		out.Bins = append(out.Bins, scheduling.OutcomeBin{Shape: b.Type, Offering: b.Offering, Labels: in.Labels(b), Shares: shared(b.Shares)})
	}
	for i, needed := range in.Needed(plan.Layout) {
		for _, c := range needed {
			out.Bins[i].Needed = append(out.Bins[i].Needed, [2]int{c.Type, c.Offering})
		}
	}
	return out
}

func shared(in []binpack.Share) []scheduling.Share {
	out := make([]scheduling.Share, len(in))
	for i, s := range in {
		out[i] = scheduling.Share{Item: s.Item, Count: s.Count}
	}
	return out
}
