package capacity

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Kind is what an answer says.
type Kind string

// The kinds of answers.
const (
	// Fits says that all pods have places on nodes that are there.
	Fits Kind = "fits"
	// Buy says that all pods have places if nodes are bought.
	Buy Kind = "buy"
	// Impossible says that some pods have no place, whatever is bought.
	Impossible Kind = "impossible"
)

// Place is a pod and its node.
type Place struct {
	Pod *corev1.Pod
	// Node is the name of a node that is there, or of one among [Answer.Nodes].
	Node string
}

// Answer is what a state says of pods. It is immutable.
type Answer struct {
	Kind Kind
	// Places are where the pods go, in an order in which kube-scheduler accepts them. If the answer is [Impossible], they are the places of
	// the pods that have one.
	Places []Place
	// Nodes are those to buy, for PricePerHour dollars an hour together. Nobody can place the same pods for less than LowerBoundPerHour.
	Nodes                           []plan.NewNode
	PricePerHour, LowerBoundPerHour float64

	of     *State
	plan   *plan.Plan    // nil where none was needed
	stands bool          // the plan is of the whole state
	after  func() *State // nil if the answer is impossible
}

// Ask says whether the pods fit, what would have to be bought for them, or that some of them cannot have a place. It does not change the
// state. The pods have no node, and names that no pod of the state has. The same state and pods have the same answer. The errors are those of
// [plan.Make]; a pod without a place is none.
//
// An answer without a plan costs O(pods + nodes looked at). A plan costs O(cluster), or O(what is for sale) for pods that no node
// takes.
func (s *State) Ask(ctx context.Context, pods []*corev1.Pod) (*Answer, error) {
	for _, p := range pods {
		if p == nil || p.Spec.NodeName != "" {
			return nil, errors.New("capacity: want pods without a node")
		}
	}
	if q := s.quick(); q != nil {
		if a := q.ask(ctx, s, pods); a != nil {
			return a, nil
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("capacity: %w", err)
	}
	return s.planned(ctx, pods)
}

// planned answers by a plan of the whole state.
func (s *State) planned(ctx context.Context, pods []*corev1.Pod) (*Answer, error) {
	in := s.Snapshot()
	in.Pods = append(slices.Clip(in.Pods), pods...)
	how := s.how.plan
	p, err := plan.Make(ctx, in, &how)
	if err != nil {
		return nil, fmt.Errorf("capacity: %w", err)
	}
	out := answerOf(s, p)
	out.stands = true
	if out.Kind != Impossible {
		out.after = sync.OnceValue(func() *State { return s.how.state(p.CarriedOut(), s.like) })
	}
	return out, nil
}

// answerOf is a plan as an answer.
func answerOf(s *State, p *plan.Plan) *Answer {
	out := &Answer{Kind: Fits, of: s, plan: p, Nodes: p.NewNodes()}
	for _, b := range p.Bindings() {
		out.Places = append(out.Places, Place{b.Pod, b.Node})
	}
	figures := p.Totals()
	out.PricePerHour, out.LowerBoundPerHour = figures.PricePerHour, figures.LowerBoundPerHour
	switch {
	case figures.Unplaced > 0 || len(p.Ignored()) > 0:
		out.Kind = Impossible
	case len(out.Nodes) > 0:
		out.Kind = Buy
	}
	return out
}

// Refusals are the pods without a place, class by class: why, and which changes would help. Each change was tried. They are looked for when
// they are asked for, until ctx ends.
func (a *Answer) Refusals(ctx context.Context) iter.Seq[plan.Refusal] {
	if a.plan == nil {
		return func(func(plan.Refusal) bool) {}
	}
	return a.plan.Refusals(ctx)
}

// Ignored are the pods that have no place because they are not ours to place, and why, such as those of another scheduler.
func (a *Answer) Ignored() []scheduling.Ignored {
	if a.plan == nil {
		return nil
	}
	return a.plan.Ignored()
}

// Commit is the state in which the answer is carried out: its nodes are there, and its pods run. The state that was asked is as it was, so
// several answers of it may be committed side by side. Pods on nodes that are there cost no more than their number; a purchase costs a
// compilation of the cluster with the next question. The error says that some pods have no place.
func (a *Answer) Commit() (*State, error) {
	if a.after == nil {
		return nil, errors.New("capacity: some pods have no place, so nothing can be committed")
	}
	return a.after(), nil
}
