// Package headroom plans the spare capacity that CapacityBuffers request, in addition to what a
// plan does for the pods of a cluster. The pods that fill a buffer are placed after all others, so
// they do not affect them. kube-scheduler never sees these pods.
package headroom

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/capacity"
	"github.com/joinery-sdk/joinery/scheduling/buffer"
)

// Request is a buffer and the pods that fill it.
type Request struct {
	// Name is the namespace/name of the buffer.
	Name string
	// Pods are the pods that [buffer.Buffer.Pods] returns.
	Pods []*corev1.Pod
	// Why says why the buffer has no pods, for example because its template is missing. It is empty
	// otherwise.
	Why string
}

// Room is the result for one buffer.
type Room struct {
	Name string
	buffer.Standing
	// Places are where its pods go.
	Places []capacity.Place
	// Nodes have to be bought for it, in addition to those of the plan and of earlier buffers.
	// Together they cost PricePerHour dollars an hour.
	Nodes        []plan.NewNode
	PricePerHour float64
	// LowerBoundPerHour is a lower bound of the cost of placing its pods, in addition to those that
	// have places.
	LowerBoundPerHour float64
}

// Plan places the pods of the buffers in the cluster after the plan, one buffer after the other in
// the given order, by the rules of the plan. [buffer.Standing].Existing counts the pods on nodes
// that had joined before the plan, and New all others. If only some pods of a buffer fit, these are
// planned again without the others; if they no longer fit then, all pods of the buffer wait. Groups
// of the plan's options do not apply to buffers. It costs two plans of the pods of each buffer, and
// more if fixes are tried for pods without a place. The errors are those of [plan.Make].
func Plan(ctx context.Context, packed *plan.Plan, requests []Request) ([]Room, error) {
	by := packed.Options()
	by.Groups = nil
	state, err := capacity.New(ctx, packed.CarriedOut(), &capacity.Options{Plan: &by})
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for i := range packed.Problem.Existing {
		if n := &packed.Problem.Existing[i]; !n.InFlight {
			there[n.Node.Name] = true
		}
	}
	out := make([]Room, 0, len(requests))
	for _, q := range requests {
		room := Room{Name: q.Name, Standing: buffer.Standing{Why: q.Why}}
		if len(q.Pods) > 0 {
			if state, err = room.fill(ctx, state, q.Pods, there); err != nil {
				return nil, err
			}
		}
		out = append(out, room)
	}
	return out, nil
}

// fill asks about the pods, then about those that have a place, and returns the state with these.
func (r *Room) fill(ctx context.Context, state *capacity.State, pods []*corev1.Pod, there map[string]bool) (*capacity.State, error) {
	answer, err := state.Ask(ctx, pods)
	if err != nil {
		return nil, err
	}
	if answer.Kind == capacity.Impossible {
		r.explain(ctx, answer)
		placed := make([]*corev1.Pod, 0, len(answer.Places))
		for _, p := range answer.Places {
			placed = append(placed, p.Pod)
		}
		r.Waiting = len(pods) - len(placed)
		if len(placed) == 0 {
			return state, nil
		}
		if answer, err = state.Ask(ctx, placed); err != nil {
			return nil, err
		}
		if answer.Kind == capacity.Impossible { // they only had places together with pods that are left out now
			r.Waiting = len(pods)
			return state, nil
		}
	}
	for _, p := range answer.Places {
		if there[p.Node] {
			r.Existing++
		} else {
			r.New++
		}
	}
	r.Places, r.Nodes, r.PricePerHour, r.LowerBoundPerHour = answer.Places, answer.Nodes, answer.PricePerHour, answer.LowerBoundPerHour
	return answer.Commit()
}

// explain says why pods wait: the first reason of the first of them, and the cheapest tried change
// that helps.
func (r *Room) explain(ctx context.Context, answer *capacity.Answer) {
	for refusal := range answer.Refusals(ctx) {
		var why []string
		for _, reason := range refusal.Reasons {
			why = append(why, reason.String())
		}
		r.Why = strings.Join(why, "; ")
		if len(refusal.Fixes) > 0 {
			r.Fix = refusal.Fixes[0].Text
		}
		return
	}
	for _, i := range answer.Ignored() {
		r.Why = i.Why
		return
	}
}
