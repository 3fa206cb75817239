package provisioning

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/plan/capacity"
)

// The types and reasons of conditions, as the public API names them.
const (
	accepted    = "Accepted"
	provisioned = "Provisioned"
	failed      = "Failed"
	found       = "CapacityIsFound"
	notFound    = "CapacityIsNotFound"
	needed      = "CapacityIsNeeded"
)

// CheckState is the state of an admission check of Kueue.
type CheckState string

// The states of an admission check.
const (
	// Ready admits the workload.
	Ready CheckState = "Ready"
	// Pending keeps its quota until there is room.
	Pending CheckState = "Pending"
	// Retry gives its quota back, and asks again later.
	Retry CheckState = "Retry"
)

// Decision is the answer to a request.
type Decision struct {
	// Answer is that of the state about all pods of the request. Committing it books their places.
	Answer *capacity.Answer
	// Conditions are those of the request's status.
	Conditions []metav1.Condition
	// Message says the answer in words: what is to be bought for which price, or what is in the way and what would help.
	Message string

	check CheckState
}

// Check is the state of Kueue's admission check. Quota is the first phase of admission, and room the second: a workload that fits is admitted,
// one that waits for nodes keeps its quota, and one that cannot have room gives it back.
func (d *Decision) Check() CheckState { return d.check }

// Decide answers a request. It is a function of the state, and books nothing. Now is the time of conditions. The errors are those of
// [Request.Pods] and of [capacity.State.Ask]; a request that is infeasible is none.
//
// All pods are asked about together, and no other pods wait in a state, so they have places for all or none without further rules.
func Decide(ctx context.Context, s *capacity.State, r *Request, templates []*corev1.PodTemplate, now time.Time) (*Decision, error) {
	pods, err := r.Pods(templates)
	if err != nil {
		return nil, err
	}
	a, err := s.Ask(ctx, pods)
	if err != nil {
		return nil, fmt.Errorf("provisioning: request %s/%s: %w", r.Namespace, r.Name, err)
	}
	d := &Decision{Answer: a, check: Ready}
	add := func(kind string, status metav1.ConditionStatus, reason string) {
		d.Conditions = append(d.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: d.Message, ObservedGeneration: r.Generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
	atomic := r.Spec.ProvisioningClassName == AtomicScaleUp
	once, _ := strconv.ParseBool(r.Spec.Parameters[noRetry])
	switch a.Kind {
	case capacity.Fits:
		d.Message = fmt.Sprintf("%d pods fit nodes that are there", len(pods))
	case capacity.Buy:
		d.Message = fmt.Sprintf("%d pods need %d more nodes for $%.4f an hour; nobody can place them for less than $%.4f", len(pods), len(a.Nodes), a.PricePerHour, a.LowerBoundPerHour)
	case capacity.Impossible:
		d.Message = infeasible(ctx, a, len(pods))
	}
	if atomic {
		add(accepted, metav1.ConditionTrue, accepted)
	}
	switch {
	case a.Kind == capacity.Fits:
		add(provisioned, metav1.ConditionTrue, found)
	case a.Kind == capacity.Buy && atomic:
		d.check = Pending
		add(provisioned, metav1.ConditionFalse, needed)
	case once:
		d.check = Retry
		add(failed, metav1.ConditionTrue, notFound)
	default: // room may come back
		if d.check = Pending; a.Kind == capacity.Impossible {
			d.check = Retry
		}
		add(provisioned, metav1.ConditionFalse, notFound)
	}
	return d, nil
}

// infeasible says what is in the way of the first kind of pods without a place, and the cheapest change that helps it.
func infeasible(ctx context.Context, a *capacity.Answer, all int) string {
	for _, i := range a.Ignored() {
		return fmt.Sprintf("pod %s/%s is not ours to place: %s", i.Pod.Namespace, i.Pod.Name, i.Why)
	}
	for refusal := range a.Refusals(ctx) {
		text := fmt.Sprintf("%d of %d pods can't have a place", all-len(a.Places), all)
		if len(refusal.Reasons) > 0 {
			text += ": " + refusal.Reasons[0].String()
		}
		if len(refusal.Fixes) > 0 {
			text += "; " + refusal.Fixes[0].Text
		}
		return text
	}
	return fmt.Sprintf("%d of %d pods can't have a place", all-len(a.Places), all)
}
