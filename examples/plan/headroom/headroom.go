// Package headroom plans the spare room that CapacityBuffers ask for, beside what a plan does for the pods of a cluster. The pods that fill a
// buffer are placed when all others have their places, so they cost these nothing; kube-scheduler never sees them.
package headroom

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/capacity"
	"github.com/joinery-sdk/joinery/scheduling/buffer"
)

// Request is a buffer with the pods that fill it.
type Request struct {
	// Name identifies it, as namespace/name.
	Name string
	// Pods are those of [buffer.Buffer.Pods].
	Pods []*corev1.Pod
	// Why says why the buffer has no pods, such as a template that is missing; empty for none.
	Why string
}

// Room is what becomes of a buffer.
type Room struct {
	Name string
	buffer.Standing
	// Nodes are to be bought for it beside those of the plan and of the buffers before, for PricePerHour dollars an hour together.
	Nodes        []plan.NewNode
	PricePerHour float64
	// LowerBoundPerHour is a price below which nobody can place its pods, beside those that have places.
	LowerBoundPerHour float64
}

// Plan places the pods of the buffers on the cluster in which the plan is carried out, one buffer after the other in the order given, by the
// rules of the plan. A pod counts as existing only on a node that is there before the plan. It costs two plans of the pods of each
// buffer, and more where fixes are tried for pods without a place. The errors are those of [plan.Make].
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

// fill asks for the pods, and then for those that have a place, and gives the state with these.
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
		if answer.Kind == capacity.Impossible { // they had places beside the others, which are not there
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
	r.Nodes, r.PricePerHour, r.LowerBoundPerHour = answer.Nodes, answer.PricePerHour, answer.LowerBoundPerHour
	return answer.Commit()
}

// explain says why pods wait, by the first reason of the first of them, and the cheapest change that was tried and helps.
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
