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

// Kind is the kind of an answer.
type Kind string

// The kinds of answers.
const (
	// Fits says that all pods have places on existing nodes.
	Fits Kind = "fits"
	// Buy says that all pods have places if nodes are bought.
	Buy Kind = "buy"
	// Impossible says that some pods have no place, whatever is bought.
	Impossible Kind = "impossible"
)

// Place is a pod and its node.
type Place struct {
	Pod *corev1.Pod
	// Node is the name of an existing node or of one of [Answer.Nodes].
	Node string
}

// Answer is the answer of a state to a question about pods. It is immutable.
type Answer struct {
	Kind Kind
	// Places are where the pods go, in an order in which kube-scheduler accepts them. If the answer
	// is [Impossible], they are the places of the pods that have one.
	Places []Place
	// Nodes are the nodes to buy; together they cost PricePerHour dollars an hour.
	// LowerBoundPerHour is a lower bound of the cost of placing the same pods.
	Nodes                           []plan.NewNode
	PricePerHour, LowerBoundPerHour float64

	of     *State
	plan   *plan.Plan    // nil if no plan was needed
	stands bool          // the plan covers the whole state
	after  func() *State // nil if the answer is impossible
}

// Ask says whether the pods fit, what would have to be bought for them, or that some of them cannot
// have a place. It does not change the state. The pods must not be bound to a node, and no pod of
// the state may have the same name. The same state and pods give the same answer. The errors are
// those of [plan.Make]; a pod without a place is not an error.
//
// An answer without a plan costs O(pods + inspected nodes). A plan costs O(cluster), or O(what is
// for sale) for pods that fit on no node.
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

// planned answers with a plan of the whole state.
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

// answerOf returns a plan as an answer.
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

// Refusals returns the pods without a place, class by class, with the reasons and the changes that
// would help. Each change was tried. The work is done when an element is requested, until ctx ends.
func (a *Answer) Refusals(ctx context.Context) iter.Seq[plan.Refusal] {
	if a.plan == nil {
		return func(func(plan.Refusal) bool) {}
	}
	return a.plan.Refusals(ctx)
}

// Ignored returns the pods that are not to be planned, such as those of another scheduler, and why.
func (a *Answer) Ignored() []scheduling.Ignored {
	if a.plan == nil {
		return nil
	}
	return a.plan.Ignored()
}

// Commit returns the state in which the answer has been carried out: its nodes exist and its pods
// run. The original state does not change, so several answers of one state may be committed
// independently. The cost is the number of pods, if they go to existing nodes. After a purchase,
// the next question compiles the cluster again. The error says that some pods have no place.
func (a *Answer) Commit() (*State, error) {
	if a.after == nil {
		return nil, errors.New("capacity: some pods have no place, so nothing can be committed")
	}
	return a.after(), nil
}
