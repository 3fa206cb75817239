// Package plan is scheduling and binpack together: pods, pools and nodes in, a plan out. The adaptor between the two is the
// documentation of their seam; copy what you need of it, or import it.
//
//	Snapshot ─► scheduling.Compile ─► Problem.Solve ◄─► binpack.Pack
//	                                       └─► Bindings, NewNodes, Unplaced with reasons and fixes, Cost with a bound
//
// It knows no cloud and no catalogue: what can be bought is in the snapshot's pools.
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

// Plan is a finished plan: where every pod goes, what is bought, and the proof of what it must cost. It is not safe for concurrent
// use, because fixes share a budget.
type Plan struct {
	// Result says where every pod goes: Bindings, Unplaced, GivenUp.
	*scheduling.Result
	// Problem is what was solved.
	Problem *scheduling.Problem
	// Bound is what the same pods must cost at least. It is the zero value where [binpack.Options.Draft] asks for no bound.
	Bound Bound
	// Instance and Packing are the round that stands as binpack sees it. The bound in it is Bound.Choice, with its certificate.
	Instance *binpack.Instance
	Packing  *binpack.Plan

	options Options
	alone   []binpack.Price      // what each of the groups costs at least; nil where no bound was asked for
	partly  bool                 // some sets of groups, or domains for them, were not tried
	spent   int                  // of the budget for fixes
	after   *scheduling.Snapshot // with the plan carried out; nil until it is asked for
}

// Options are the choices of a plan that its snapshot does not make. nil and the zero value mean defaults.
type Options struct {
	Scheduling *scheduling.Options
	Packing    *binpack.Options
	// Objective is what a plan should be good at beyond the price list.
	Objective *Objective
	// Groups are pods that run only together; see [gang.Solve]. [Solve], whose problem is compiled already, does not look at them.
	Groups []gang.Group
}

// Make plans a snapshot: which pod goes where, what is to be bought for them, and what that must cost at least. When ctx ends, Make
// returns the best plan found so far, which [Plan.IsStopped] reports. The error is that of [instancetypes.Validate] for a catalogue, or of
// [scheduling.Compile] for a snapshot, that means nothing. Pods that find no place are no error.
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

// validate refuses catalogues that nothing can be planned with, each once.
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

// Options are those that the plan was made with; those of package scheduling are never nil. They make another plan of the same kind from
// the snapshot of Problem, or from [Plan.CarriedOut]. These have the objective's prices already, so the options have none.
func (p *Plan) Options() Options {
	out := p.options
	if out.Objective != nil {
		priced := *out.Objective
		priced.Prices = nil
		out.Objective = &priced
	}
	return out
}

// Notes are those of the result, and one where the search for groups was not complete.
func (p *Plan) Notes() []string {
	out := p.Result.Notes()
	if p.partly {
		out = append(slices.Clip(out), "not every set of groups, or not every choice of domains for one, was tried: another one may be better")
	}
	return out
}

// unproved is [Make] without a bound of the pods, for plans that are only compared. The snapshot is that of a plan, which the objective has
// narrowed already.
func unproved(ctx context.Context, s scheduling.Snapshot, opts *Options) (*Plan, error) {
	out, _, err := planned(ctx, s, opts)
	return out, err
}

// planned compiles a snapshot and solves it, more than once where groups are not whole at first.
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
	out.plan.partly = !solution.Complete
	if len(o.Groups) > 0 { // what groups wait for is found out anew where a fix is tried
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
}

type made struct {
	plan   *Plan
	packer *packer
}

// Draft packs only once, by first fit where the options have a strategy of binpack.
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

// Search packs every round by trying all places, and keeps the plan. Strategies that are not binpack's pack every round as they are.
func (k *planner) Search(ctx context.Context, p *scheduling.Problem) (*scheduling.Result, error) {
	var o Options
	if k.opts != nil {
		o = *k.opts
	}
	packing, _ := packings(o.Packing)
	if _, ok := packing.Strategy.(binpack.CostAware); ok {
		steps := searchSteps
		packing.Strategy = exhaustive{binpack.CostAware{Effort: binpack.EffortFast}, &steps}
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
	k.last = made{plan, packer}
	return plan.Result, nil
}

// Plan is solve, and keeps the plan.
func (k *planner) Plan(ctx context.Context, p *scheduling.Problem) (*scheduling.Result, error) {
	plan, packer, err := solve(ctx, p, k.opts)
	if err != nil {
		return nil, err
	}
	k.last = made{plan, packer}
	return plan.Result, nil
}

// Solve is [Make] for a problem that is compiled already. Of its options Scheduling is not looked at, and the objective counts
// costs only; [Objective.Narrow] and [Objective.Scheduling] are for before.
func Solve(ctx context.Context, p *scheduling.Problem, opts *Options) (*Plan, error) {
	out, k, err := solve(ctx, p, opts)
	if err != nil {
		return nil, err
	}
	return out.proved(ctx, k)
}

// proved is the plan with its bound.
func (p *Plan) proved(ctx context.Context, k *packer) (*Plan, error) {
	if k.final.Draft {
		return p, nil
	}
	effort := k.final.Effort
	if s, ok := k.final.Strategy.(binpack.CostAware); ok {
		effort = s.Effort
	}
	if err := p.prove(ctx, k.types, effort); err != nil {
		return nil, fmt.Errorf("plan: the bound: %w", err)
	}
	return p, nil
}

func solve(ctx context.Context, p *scheduling.Problem, opts *Options) (*Plan, *packer, error) {
	out := &Plan{Problem: p}
	if opts != nil {
		out.options = *opts
	}
	if err := out.options.Objective.check(); err != nil {
		return nil, nil, err
	}
	out.options.Scheduling = p.Options()
	out.options.Scheduling.Progress = nil // fixes are tried in silence
	if packing := out.options.Packing; packing != nil {
		silent := *packing
		silent.Progress = nil
		out.options.Packing = &silent
	}
	k := &packer{types: typesFor(p, out.options.Objective), spread: out.options.Objective.spreadFor(p)}
	var packing *binpack.Options
	if opts != nil {
		packing = opts.Packing
	}
	k.final, k.draft = packings(packing)
	var err error
	if out.Result, err = p.Solve(ctx, k); err != nil {
		return nil, nil, fmt.Errorf("plan: %w", err)
	}
	out.Instance, out.Packing = k.last.in, k.last.plan
	if out.Draft { // which has no bound and no alternatives yet
		opts := k.final
		opts.Strategy, opts.First = binpack.FirstFitDecreasing{}, k.rounds[out.Round].plan
		if out.Packing, err = out.Instance.Pack(ctx, &opts); err != nil {
			return nil, nil, fmt.Errorf("plan: %w", err)
		}
	}
	return out, k, nil
}

// packer packs by binpack. While scheduling and packing talk, first fit packs, for it is quick and finds out as well what fits; the
// round that stands is packed once more by the strategy of the options, with bound and alternatives. Other strategies than those
// of binpack pack every round.
type packer struct {
	types        []binpack.Type
	spread       *spreading
	final, draft binpack.Options
	rounds       []round
	last         round
}

type round struct {
	in   *binpack.Instance
	plan *binpack.Plan
}

// Pack is the seam: a round of scheduling is a problem of binpack, and a plan of binpack an outcome.
func (k *packer) Pack(ctx context.Context, p *scheduling.Problem, r scheduling.Round) (scheduling.Outcome, error) {
	opts := k.draft
	if r.Final {
		k.last, opts = k.rounds[r.Number], k.final
		if opts.Draft {
			return Outcome(k.last.in, k.last.plan), nil
		}
		opts.First = k.last.plan
	} else {
		in, err := k.compile(p, r.Items)
		if err != nil {
			return scheduling.Outcome{}, err
		}
		k.last = round{in: in}
	}
	plan, err := k.last.in.Pack(ctx, &opts)
	if err != nil {
		return scheduling.Outcome{}, err
	}
	if k.last.plan = plan; !r.Final {
		k.rounds = append(k.rounds, k.last)
	}
	return Outcome(k.last.in, plan), nil
}

// compile is a round as an instance. Of those after the first only the items are new.
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

// packings are the options by which the round that stands is packed, and those before.
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

// Types are the shapes of scheduling as the types of binpack. What a node counts against its pool's limits crosses by
// position.
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
			t.Offerings[j] = binpack.Offering{Provides: o.Labels, Price: Price(o.Price), Objective: beyond.counts(p, i, j), Counted: o.Count > 0, Count: o.Count, Reservation: o.Reservation}
			if c := &p.InstanceType(i).Offerings[o.Index]; c.CommittedPerHour > 0 { // counted in millionths of a dollar
				t.Offerings[j].Count = int(c.CommittedPerHour * 1e6)
				t.Offerings[j].Takes = max(int(math.Ceil(c.CommitmentRate*1e6)), 1)
			}
			if !(o.Price >= 0 && o.Price < math.MaxInt64/float64(binpack.PerDollar)) { // no number, or none that can be paid
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

// Problem is a round of scheduling as a problem of binpack.
func Problem(p *scheduling.Problem, types []binpack.Type, items []scheduling.Item) binpack.Problem {
	out := binpack.Problem{Types: types, Items: Items(items)}
	for _, name := range p.Resources {
		out.Resources = append(out.Resources, string(name))
	}
	for i := range p.Pools {
		out.Pools = append(out.Pools, pool(&p.Pools[i]))
	}
	for i := range p.Existing {
		r := &p.Existing[i]
		out.Nodes = append(out.Nodes, binpack.Node{Name: r.Node.Name, Free: r.Free, Provides: r.Labels, Tags: r.Tags, Limits: limits(r.Limits)})
	}
	return out
}

// Items are what a round asks to pack as the items of binpack.
func Items(items []scheduling.Item) []binpack.Item {
	out := make([]binpack.Item, len(items))
	for i, it := range items {
		if it.Requires.IsZero() { // which asks for nothing in binpack
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
		out.MinValues = append(out.MinValues, binpack.MinValues{Key: key, Count: r.MinValues[key]})
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

// Price is dollars as binpack counts them, rounded to the nearest billionth; what is no number is 0, and what cannot be
// counted the largest price.
func Price(dollars float64) binpack.Price {
	switch price := math.Round(dollars * float64(binpack.PerDollar)); {
	case math.IsNaN(price):
		return 0
	case price >= math.MaxInt64:
		return math.MaxInt64
	default:
		return binpack.Price(price)
	}
}

// Outcome tells scheduling what binpack made of a round.
func Outcome(in *binpack.Instance, plan *binpack.Plan) scheduling.Outcome {
	out := scheduling.Outcome{Existing: make([][]scheduling.Share, len(plan.Nodes))}
	for n, shares := range plan.Nodes {
		out.Existing[n] = shared(shares)
	}
	for _, b := range plan.Bins {
		out.Bins = append(out.Bins, scheduling.OutcomeBin{Shape: b.Type, Offering: b.Offering, Labels: in.Labels(b), Shares: shared(b.Shares)})
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
