package pipeline

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Packed is a finished plan: where every pod goes, what is bought, and the proof of what it must cost.
type Packed struct {
	Problem  *scheduling.Problem
	Result   *scheduling.Result
	Instance *binpack.Instance
	Plan     *binpack.Plan
	// Rounds is how many times scheduling and packing met.
	Rounds int

	state   *scheduling.State
	options *scheduling.Options
	packing *binpack.Options
	beyond  *Objective
	spent   int                  // of the budget for fixes
	after   *scheduling.Snapshot // with the plan carried out; nil until it is asked for
}

// Pack is the dialogue between scheduling and binpack: scheduling says what to pack, binpack packs, scheduling learns
// from what found no place, until nothing more can be learnt. While they talk, first fit packs, for it is quick and finds
// out as well what fits; the round that stands is packed once more by the strategy of the options, with bound and
// alternatives. Other strategies than those of binpack pack every round.
func Pack(p *scheduling.Problem, opts *binpack.Options) (*Packed, error) {
	return PackFor(context.Background(), p, opts, nil)
}

// PackFor is Pack with an objective beyond the price, as long as ctx lasts; then the best plan so far stands, and says so. It
// counts costs by the objective; [Objective.Narrow] is for before.
func PackFor(ctx context.Context, p *scheduling.Problem, opts *binpack.Options, beyond *Objective) (*Packed, error) {
	type round struct {
		in   *binpack.Instance
		plan *binpack.Plan
	}
	var rounds []round
	final, draft := packings(opts)
	state := p.Start()
	types := typesFor(p, beyond)
	for {
		in, err := binpack.Compile(Problem(p, types, state.Round()))
		if err != nil {
			return nil, err
		}
		plan, err := in.Pack(ctx, &draft)
		if err != nil {
			return nil, err
		}
		rounds = append(rounds, round{in, plan})
		if state = state.Advance(Outcome(in, plan)); state.Done() {
			break
		}
	}
	best := rounds[state.Number()]
	out := &Packed{
		Problem: p, Instance: best.in, Plan: best.plan, Rounds: len(rounds),
		state: state, options: p.Options(), packing: opts, beyond: beyond,
	}
	if final.Draft {
		out.Result = state.Result()
		return out, nil
	}
	return out, out.finish(ctx, final)
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

// finish packs the round that stands by the final strategy, and keeps what comes of it if every pod that has a place has
// one then, too. Otherwise the draft stands, with its bound.
func (p *Packed) finish(ctx context.Context, opts binpack.Options) error {
	var dealing sync.WaitGroup // beside the packing, for usually the draft's bins stand
	dealing.Go(func() { p.Result = p.state.Result() })
	opts.First = p.Plan
	plan, err := p.Instance.Pack(ctx, &opts)
	dealing.Wait()
	if err != nil {
		return err
	}
	if plan.Strategy != p.Plan.Strategy && !sameLayout(plan, p.Plan) {
		state := p.state.With(Outcome(p.Instance, plan))
		result := state.Result()
		if coversAll(plan.Left, p.Plan.Left) && len(result.Order) >= len(p.Result.Order) {
			p.Plan, p.Result, p.state = plan, result, state
			return nil
		}
		opts.Strategy = binpack.FirstFitDecreasing{}
		if plan, err = p.Instance.Pack(ctx, &opts); err != nil {
			return err
		}
	}
	p.Plan = plan
	return nil
}

// sameLayout reports whether the plans put the same things into the same bins, in the same order.
func sameLayout(a, b *binpack.Plan) bool {
	sameBin := func(x, y binpack.Bin) bool {
		return x.Type == y.Type && x.Offering == y.Offering && slices.Equal(x.Shares, y.Shares)
	}
	return slices.EqualFunc(a.Bins, b.Bins, sameBin) && slices.EqualFunc(a.Nodes, b.Nodes, slices.Equal)
}

// coversAll reports whether a leaves nothing over that b places.
func coversAll(a, b []int) bool {
	for i := range a {
		if a[i] > b[i] {
			return false
		}
	}
	return true
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
			if !(o.Price >= 0 && o.Price < math.MaxInt64/float64(binpack.PerDollar)) { // no number, or none that can be paid
				t.Offerings[j] = binpack.Offering{Provides: o.Labels, Counted: true}
			}
		}
		out[i] = t
	}
	return out
}

// Problem is a round of scheduling as a problem of binpack.
func Problem(p *scheduling.Problem, types []binpack.Type, items []scheduling.Item) binpack.Problem {
	out := binpack.Problem{Types: types}
	for _, name := range p.Resources {
		out.Resources = append(out.Resources, string(name))
	}
	out.Items = make([]binpack.Item, 0, len(items))
	for i := range items {
		it := &items[i]
		out.Items = append(out.Items, binpack.Item{
			Name: it.Name, Count: it.Count, Size: it.Requests, Requires: it.Requires, Tags: it.Tags, Limits: limits(it.Limits), Priority: it.Priority,
		})
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

func pool(r *scheduling.PoolState) binpack.Pool {
	out := binpack.Pool{Name: r.Name, Weight: int(r.Weight), Limits: r.Left, MaxNodes: r.NodesLeft, MaxPrice: -1}
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

// Outcome tells scheduling what binpack made of a round. Types that binpack had to split, for they have more offerings
// than it handles at once, are joined again.
func Outcome(in *binpack.Instance, plan *binpack.Plan) scheduling.Outcome {
	origin := in.Origins()
	out := scheduling.Outcome{Existing: make([][]scheduling.Share, len(plan.Nodes))}
	for n, shares := range plan.Nodes {
		out.Existing[n] = shared(shares)
	}
	for _, b := range plan.Bins {
		o := origin[b.Type]
		out.Bins = append(out.Bins, scheduling.OutcomeBin{Shape: o.Type, Offering: o.Offering + b.Offering, Labels: in.Labels(b), Shares: shared(b.Shares)})
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

// Run compiles a snapshot and packs it.
func Run(s scheduling.Snapshot, opts *scheduling.Options, pack *binpack.Options) (*Packed, error) {
	return runFor(s, opts, pack, nil)
}

func runFor(s scheduling.Snapshot, opts *scheduling.Options, pack *binpack.Options, beyond *Objective) (*Packed, error) {
	p, err := scheduling.Compile(s, opts)
	if err != nil {
		return nil, err
	}
	packed, err := PackFor(context.Background(), p, pack, beyond)
	if err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	return packed, nil
}
