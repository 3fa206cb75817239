package main

import (
	"context"
	"errors"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/judges/karpenter"
	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/examples/judges/replay"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
)

const seed = 42

// row is one family at one size.
type row struct {
	family     string
	pods, runs int
	ours       []side // by effort
	theirs     side
}

// side is one planner's answer. Of several runs the time is the median and the rest is of the last.
type side struct {
	effort        binpack.Effort
	placed, nodes int
	price         float64 // dollars an hour
	// accepted is how many of the placed pods kube-scheduler accepts; -1 where it was not asked.
	accepted int
	time     time.Duration // compile and solve
	gaveUp   bool          // it took longer than the patience there is
}

// input is what both planners read.
type input struct {
	pods     []*corev1.Pod
	snapshot scheduling.Snapshot
	theirs   karpenter.Input
}

func newInput(ctx context.Context, f family, n int) (*input, error) {
	types, err := f.catalogue()
	if err != nil {
		return nil, err
	}
	in := &input{pods: f.pods(n, seed)}
	in.snapshot, in.theirs, err = replay.Both(ctx, types, in.pods)
	return in, err
}

// compare plans with both, in turns, and has the last plans judged.
func compare(ctx context.Context, f family, n, runs int, efforts []binpack.Effort, judged int, patience time.Duration) (row, error) {
	out := row{family: f.name, pods: n, runs: runs}
	in, err := newInput(ctx, f, n)
	if err != nil {
		return out, err
	}
	mine, theirs := make([][]time.Duration, len(efforts)), []time.Duration(nil)
	packed := make([]*plan.Plan, len(efforts))
	var result karpenter.Result
	for range runs {
		for i, e := range efforts {
			p, d, err := in.ours(e)
			if err != nil {
				return out, err
			}
			packed[i], mine[i] = p, append(mine[i], d)
		}
		if out.theirs.gaveUp {
			continue
		}
		runtime.GC()
		limited, cancel := context.WithTimeout(ctx, patience)
		r, err := karpenter.Solve(limited, in.theirs)
		cancel()
		switch {
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			out.theirs = side{gaveUp: true, accepted: -1, time: patience}
		case err != nil:
			return out, err
		default:
			result, theirs = r, append(theirs, r.Compile+r.Solve)
		}
	}
	for i, e := range efforts {
		s, err := in.judgeOurs(ctx, packed[i], judged)
		if err != nil {
			return out, err
		}
		s.effort, s.time = e, median(mine[i])
		out.ours = append(out.ours, s)
	}
	if !out.theirs.gaveUp {
		if out.theirs, err = in.judgeTheirs(ctx, result, judged); err != nil {
			return out, err
		}
		out.theirs.time = median(theirs)
	}
	return out, nil
}

func (in *input) judgeOurs(ctx context.Context, packed *plan.Plan, judged int) (side, error) {
	nodes, order := replay.Plan(packed)
	out := side{placed: len(order), nodes: len(nodes), price: packed.Cost().Dollars(), accepted: -1}
	if len(in.pods) <= judged {
		verdict, err := kubejudge.Judge(ctx, kubejudge.Scenario{Nodes: nodes, Pods: in.pods}, order)
		if err != nil {
			return side{}, err
		}
		out.accepted = len(verdict.Accepted)
	}
	return out, nil
}

func (in *input) judgeTheirs(ctx context.Context, result karpenter.Result, judged int) (side, error) {
	nodes, plan := replay.KarpenterPlan(result)
	out := side{placed: result.Placed(), nodes: len(nodes), price: result.PricePerHour(), accepted: -1}
	if len(in.pods) <= judged {
		verdict, err := kubejudge.JudgeAnyOrder(ctx, kubejudge.Scenario{Nodes: nodes, Pods: in.theirs.Pods}, plan)
		if err != nil {
			return side{}, err
		}
		out.accepted = len(verdict.Accepted)
	}
	return out, nil
}

// ours plans with Joinery and says how long compile and solve took together.
func (in *input) ours(effort binpack.Effort) (*plan.Plan, time.Duration, error) {
	runtime.GC()
	start := time.Now()
	packed, err := plan.Make(context.Background(), in.snapshot, &plan.Options{Packing: &binpack.Options{Effort: effort}})
	return packed, time.Since(start), err
}

// point is how long Joinery took for a number of pods.
type point struct {
	effort       binpack.Effort
	pods, placed int
	time         time.Duration
}

func measure(ctx context.Context, f family, n, runs int, effort binpack.Effort) (point, error) {
	in, err := newInput(ctx, f, n)
	if err != nil {
		return point{}, err
	}
	var times []time.Duration
	var packed *plan.Plan
	for range runs {
		p, d, err := in.ours(effort)
		if err != nil {
			return point{}, err
		}
		packed, times = p, append(times, d)
	}
	return point{effort, n, len(packed.Bindings()), median(times)}, nil
}
