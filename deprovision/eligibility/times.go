package eligibility

import (
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision/eviction"
)

// EmptinessTimestamp is the annotation of karpenter.sh/v1alpha5 that says since when a node has
// been empty.
const EmptinessTimestamp = "karpenter.sh/emptiness-timestamp"

// Created returns the creation time of the claim, or of the node if there is no claim.
func (n *Node) Created() time.Time {
	if !n.Claim.Created.IsZero() {
		return n.Claim.Created
	}
	return n.Node.CreationTimestamp.Time
}

// LastPodEvent returns the last time at which the pod was created, bound, ended or deleted. A
// deletion time in the future counts as now, so the result is never after now.
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

// QuietSince returns the last time at which a pod is known to have arrived or left. It uses the
// first of these that is known: the annotation of an empty node, the claim's last pod event, the
// claim's initialization, the creation.
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

// ExpiresAt returns when the node reaches its maximum age. It returns false if the node never
// reaches it or its age is unknown. The claim's setting precedes the pool's.
func (n *Node) ExpiresAt() (time.Time, bool) {
	after := n.expireAfter()
	if after == nil || n.Created().IsZero() {
		return time.Time{}, false
	}
	return n.Created().Add(*after), true
}

func (n *Node) expireAfter() *time.Duration {
	if n.Claim.ExpireAfter != nil || n.Claim.Decides {
		return n.Claim.ExpireAfter
	}
	if n.Pool == nil {
		return nil
	}
	return n.Pool.Disruption.ExpireAfter
}

// Lifetime returns the remaining share of the node's life, from 0 to 1. It is 1 if the node never
// expires or its age is unknown.
func (n *Node) Lifetime(now time.Time) float64 {
	after := n.expireAfter()
	if after == nil || *after <= 0 || n.Created().IsZero() {
		return 1
	}
	left := float64(*after-now.Sub(n.Created())) / float64(*after)
	return math.Max(0, math.Min(1, left))
}

// RemainingLife returns the time until the node expires, at least 0. It returns false if the node
// never expires or its age is unknown.
func (n *Node) RemainingLife(now time.Time) (time.Duration, bool) {
	at, ok := n.ExpiresAt()
	if !ok {
		return 0, false
	}
	return max(0, at.Sub(now)), true
}

// consolidatable returns why consolidateAfter protects the node from consolidation, or an empty
// string.
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
