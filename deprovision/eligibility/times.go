package eligibility

import (
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision/eviction"
)

// EmptinessTimestamp is the annotation of karpenter.sh/v1alpha5 that says since when a node has been empty.
const EmptinessTimestamp = "karpenter.sh/emptiness-timestamp"

// Created is when the node was asked for: the creation of its claim, else its own.
func (n *Node) Created() time.Time {
	if !n.Claim.Created.IsZero() {
		return n.Claim.Created
	}
	return n.Node.CreationTimestamp.Time
}

// LastPodEvent is when a pod was bound, ended or was deleted, the latest of them, as Claim.LastPodEvent counts for a whole node: never
// later than now, for a deletion bears the time of its end.
func LastPodEvent(p *corev1.Pod, now time.Time) time.Time {
	at := p.CreationTimestamp.Time
	for _, c := range p.Status.Conditions {
		if (c.Type == corev1.PodScheduled || eviction.Ended(p)) && c.LastTransitionTime.After(at) {
			at = c.LastTransitionTime.Time
		}
	}
	if p.DeletionTimestamp != nil && p.DeletionTimestamp.After(at) {
		at = p.DeletionTimestamp.Time
	}
	if at.After(now) {
		at = now
	}
	return at
}

// QuietSince is since when no pod has come or gone, as far as anybody noted: the annotation for empty nodes, the claim's
// last pod event, its initialization, and else its creation.
func (n *Node) QuietSince() time.Time {
	if text, ok := n.Node.Annotations[EmptinessTimestamp]; ok && n.Empty() {
		if t, err := time.Parse(time.RFC3339, text); err == nil {
			return t
		}
	}
	for _, t := range []time.Time{n.Claim.LastPodEvent, n.Claim.Initialized} {
		if !t.IsZero() {
			return t
		}
	}
	return n.Created()
}

// ExpiresAt is when the node has reached its age; false where it never does. The claim's own setting goes before the
// pool's, and a node of which nobody knows how old it is never does.
func (n *Node) ExpiresAt() (time.Time, bool) {
	after := n.expireAfter()
	if after == nil || n.Created().IsZero() {
		return time.Time{}, false
	}
	return n.Created().Add(*after), true
}

func (n *Node) expireAfter() *time.Duration {
	if n.Claim.ExpireAfter != nil {
		return n.Claim.ExpireAfter
	}
	if n.Pool == nil {
		return nil
	}
	return n.Pool.Disruption.ExpireAfter
}

// Lifetime is the share of the node's life that is left, from 0 to 1; 1 where it never expires.
func (n *Node) Lifetime(now time.Time) float64 {
	after := n.expireAfter()
	if after == nil || *after <= 0 || n.Created().IsZero() {
		return 1
	}
	left := float64(*after-now.Sub(n.Created())) / float64(*after)
	return math.Max(0, math.Min(1, left))
}

// RemainingLife is how long the node would stay if nobody gave it back; false where that is without end.
func (n *Node) RemainingLife(now time.Time) (time.Duration, bool) {
	at, ok := n.ExpiresAt()
	if !ok {
		return 0, false
	}
	return max(0, at.Sub(now)), true
}

// consolidatable says what is missing until consolidation may look at the node: its pool's consolidateAfter.
func (n *Node) consolidatable(now time.Time) string {
	after := n.Pool.Disruption.ConsolidateAfter
	if after == nil {
		return "consolidateAfter is Never"
	}
	if n.Claim.Consolidatable != nil && *n.Claim.Consolidatable {
		return ""
	}
	if left := n.QuietSince().Add(*after).Sub(now); left > 0 && *after > 0 {
		return fmt.Sprintf("pods came or went %s ago, and consolidateAfter is %s", now.Sub(n.QuietSince()).Round(time.Second), *after)
	}
	return ""
}
