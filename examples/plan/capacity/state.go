// Package capacity says whether pods fit into a cluster, what would have to be bought for them, or
// why they cannot have a place.
//
//	Snapshot ─► New ─► State ◄─► Ask(pods) ─► fits: where | buy: nodes, dollars, bound | impossible: reasons and fixes that were tried
//	                     ▲                       │
//	                     └────────── Commit ◄────┘
//
// The answer is that of a plan of the same pods on the same snapshot, but most questions need no
// plan. Pods like those that a state has learned ([Options.Like], [State.Learn]) are placed by
// package whatif in microseconds. Such pods may have requests, tolerations, host ports, node
// selectors, required node affinity and required anti-affinity. They have no affinity to pods,
// spread, preference, runtime class, claim or annotation joinery-sdk.dev/*, and the options have no
// rules that package whatif does not know, such as groups. If they fit on no node and nothing ties
// them to other pods, the plan has only these pods and what is for sale. Everything else needs a
// plan of the whole state.
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

// Options are the choices that the snapshot does not make. nil and the zero value mean defaults.
type Options struct {
	// Plan says how answers are planned. Its groups apply to a question as they do to a plan. A
	// question is all or nothing: an answer can be committed only if all of its pods have a place.
	Plan *plan.Options
	// Like are examples of the pods that will be asked about. Questions about pods that equal one
	// of them except for the name are answered without a plan if possible.
	Like []*corev1.Pod
}

// State is a cluster at one moment. It is immutable and safe for concurrent use: a question changes
// nothing, and [Answer.Commit] returns another state. States share what they have in common.
type State struct {
	how      *settings
	like     []*corev1.Pod
	parent   *State        // has everything that this state has except added; nil if this state has its own snapshot
	added    []*corev1.Pod // pods that run here but not in the parent
	snapshot func() scheduling.Snapshot
	quick    func() *quick
}

// settings are shared by all states of a cluster.
type settings struct {
	// plan has the objective without the parts that narrow a snapshot, because the snapshots of
	// states are already narrowed.
	plan plan.Options
	// planned says that every question needs a plan, because the options have rules that package
	// whatif does not know.
	planned bool
}

// New returns the state of a snapshot after its waiting pods have been placed. It plans them, buys
// what the plan buys, and leaves out pods without a place. So an answer never promises capacity
// that a waiting pod is about to use. The errors are those of [plan.Make].
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

// state returns a state with a snapshot of its own.
func (how *settings) state(s scheduling.Snapshot, like []*corev1.Pod) *State {
	out := &State{how: how, like: like, snapshot: func() scheduling.Snapshot { return s }}
	out.quick = sync.OnceValue(out.compile)
	return out
}

// Learn returns the same state, but it answers questions about such pods without a plan if
// possible. The next question then compiles the cluster again.
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

// Snapshot returns the cluster as plain data, with all its pods running. It must only be read. It
// is made once, at the cost of a list of all pods.
func (s *State) Snapshot() scheduling.Snapshot { return s.snapshot() }

// with returns the state with more pods, which run on existing nodes.
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
