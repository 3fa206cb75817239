// Package capacity answers whether pods fit a cluster, what would have to be bought for them, or why they cannot have a place.
//
//	Snapshot ─► New ─► State ◄─► Ask(pods) ─► fits: where | buy: nodes, dollars, bound | impossible: reasons and fixes that were tried
//	                     ▲                       │
//	                     └────────── Commit ◄────┘
//
// The answer is that of a plan of the same pods on the same snapshot. Most questions need no plan: pods like those that a state has learned
// ([Options.Like], [State.Learn]) and that only ask for resources, labels, taints, host ports or other pods are put on nodes by package
// whatif, in microseconds. If no node takes any of them and nothing ties them to other pods, only what is for sale is planned.
// Everything else is planned whole.
package capacity

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Options are the choices of a state that its snapshot does not make. nil and the zero value mean defaults.
type Options struct {
	// Plan says how answers are planned. Its groups are asked about as pods: all pods of a question have a place, or none.
	Plan *plan.Options
	// Like are pods of the kinds that will be asked for. Questions about pods that equal one of them in all but the name are answered
	// without a plan where that is possible.
	Like []*corev1.Pod
}

// State is a cluster at one moment. It is immutable and safe for concurrent use: a question changes nothing, and [Answer.Commit] returns
// another state. States share what they have in common.
type State struct {
	how      *settings
	like     []*corev1.Pod
	parent   *State        // it has all that this state has but the pods added; nil where this state has a snapshot of its own
	added    []*corev1.Pod // those that run here and not in the parent
	snapshot func() scheduling.Snapshot
	quick    func() *quick
}

// settings are what all states of a cluster share.
type settings struct {
	// plan has the objective without what narrows a snapshot, because the snapshots of states are narrowed already.
	plan plan.Options
	// planned says that every question needs a plan, because the options have rules that package whatif does not know.
	planned bool
}

// New is the state of a snapshot in which the pods that wait have found their places: New plans them, buys what the plan buys, and leaves
// out the pods that have no place. So an answer promises no room that a waiting pod is about to get. The errors are those of [plan.Make].
func New(ctx context.Context, s scheduling.Snapshot, opts *Options) (*State, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Plan == nil {
		o.Plan = &plan.Options{}
	}
	waiting, err := plan.Make(ctx, s, o.Plan)
	if err != nil {
		return nil, fmt.Errorf("capacity: %w", err)
	}
	how := &settings{plan: *o.Plan}
	if beyond := o.Plan.Objective; beyond != nil {
		narrowed := *beyond
		narrowed.Prices, narrowed.MostCPU, narrowed.MostNodes = nil, 0, 0
		how.plan.Objective = &narrowed
		how.planned = beyond.Spread != plan.Spread{}
	}
	if opts := o.Plan.Scheduling; opts != nil && (opts.Together != nil || opts.Apart != nil) {
		how.planned = true
	}
	how.planned = how.planned || len(o.Plan.Groups) > 0
	return how.state(waiting.CarriedOut(), slices.Clone(o.Like)), nil
}

// state is the state of a snapshot of its own.
func (how *settings) state(s scheduling.Snapshot, like []*corev1.Pod) *State {
	out := &State{how: how, like: like, snapshot: func() scheduling.Snapshot { return s }}
	out.quick = sync.OnceValue(out.compile)
	return out
}

// Learn is the same state, which answers questions about pods like these without a plan where that is possible. It costs a compilation of
// the cluster, with the first question.
func (s *State) Learn(like ...*corev1.Pod) *State {
	return s.how.state(s.Snapshot(), slices.Concat(s.like, like))
}

// Knows reports whether the pod is like one that the state has learned.
func (s *State) Knows(pod *corev1.Pod) bool {
	key, ok := keyOf(pod)
	if !ok {
		return false
	}
	return slices.ContainsFunc(s.like, func(p *corev1.Pod) bool {
		other, _ := keyOf(p)
		return other == key
	})
}

// Snapshot is the cluster as plain data: all of its pods run. It is only to be read. It is made once, at the cost of a list of all pods.
func (s *State) Snapshot() scheduling.Snapshot { return s.snapshot() }

// with is the state with more pods, which run on nodes that are there.
func (s *State) with(pods []*corev1.Pod) *State {
	out := &State{how: s.how, like: s.like, parent: s, added: pods}
	out.snapshot = sync.OnceValue(func() scheduling.Snapshot {
		var lists [][]*corev1.Pod
		at := out
		for ; at.parent != nil; at = at.parent {
			lists = append(lists, at.added)
		}
		whole := at.snapshot()
		slices.Reverse(lists)
		whole.Pods = slices.Concat(append([][]*corev1.Pod{whole.Pods}, lists...)...)
		return whole
	})
	return out
}
