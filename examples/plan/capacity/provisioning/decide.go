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

// The types and reasons of conditions, as named by the public API.
const (
	accepted    = "Accepted"
	provisioned = "Provisioned"
	failed      = "Failed"
	found       = "CapacityIsFound"
	notFound    = "CapacityIsNotFound"
	needed      = "CapacityIsNeeded"
)

// CheckState is the state of a Kueue admission check.
type CheckState string

// The states of an admission check.
const (
	// Ready admits the workload.
	Ready CheckState = "Ready"
	// Pending keeps the workload's quota until there is capacity.
	Pending CheckState = "Pending"
	// Retry releases the workload's quota and asks again later.
	Retry CheckState = "Retry"
)

// Decision is the answer to a request.
type Decision struct {
	// Answer is the state's answer about all pods of the request. Committing it reserves their
	// places.
	Answer *capacity.Answer
	// Conditions are the conditions for the request's status.
	Conditions []metav1.Condition
	// Message is the answer in words: what has to be bought and its price, or what prevents it and
	// what would help.
	Message string

	check CheckState
}

// Check returns the state of Kueue's admission check. Quota is the first phase of admission, and
// capacity the second. A workload that fits is admitted. A workload that waits for nodes keeps its
// quota. A workload that cannot get capacity releases it.
func (d *Decision) Check() CheckState { return d.check }

// Decide answers a request. It depends only on the state and reserves nothing. now is the time of
// the conditions. The errors are those of [Request.Pods] and of [capacity.State.Ask]; an infeasible
// request is not an error.
//
// Decide asks about all pods together. A state has no other waiting pods, so the answer is about
// all pods of the request or none.
func Decide(ctx context.Context, s *capacity.State, r *Request, templates []*corev1.PodTemplate, now time.Time) (*Decision, error) {
	pods, err := r.Pods(templates)
	if err != nil {
		return nil, err
	}
	a, err := s.Ask(ctx, pods)
	if err != nil {
		return nil, fmt.Errorf("provisioning: %s: %w", r.title(), err)
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
		d.Message = fmt.Sprintf("pods that fit on existing nodes: %d", len(pods))
	case capacity.Buy:
		d.Message = fmt.Sprintf("pods: %d, nodes to buy: %d, for $%.4f an hour; no plan for these pods costs less than $%.4f", len(pods), len(a.Nodes), a.PricePerHour, a.LowerBoundPerHour)
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
	default: // capacity may return
		if d.check = Pending; a.Kind == capacity.Impossible {
			d.check = Retry
		}
		add(provisioned, metav1.ConditionFalse, notFound)
	}
	return d, nil
}

// infeasible says what is in the way of the first kind of pods without a place, and the cheapest
// change that helps.
func infeasible(ctx context.Context, a *capacity.Answer, all int) string {
	for _, i := range a.Ignored() {
		return fmt.Sprintf("pod %s/%s is not ours to place: %s", i.Pod.Namespace, i.Pod.Name, i.Why)
	}
	for refusal := range a.Refusals(ctx) {
		text := fmt.Sprintf("%d of %d pods have no place", all-len(a.Places), all)
		if len(refusal.Reasons) > 0 {
			text += ": " + refusal.Reasons[0].String()
		}
		if len(refusal.Fixes) > 0 {
			text += "; " + refusal.Fixes[0].Text
		}
		return text
	}
	return fmt.Sprintf("%d of %d pods have no place", all-len(a.Places), all)
}
