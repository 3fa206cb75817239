package lifecycle

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
)

// Broken reports whether one of the node's conditions has lasted longer than the toleration of a
// policy. It returns that policy and the time since when it applies. If no condition has lasted so
// long, it returns the time when the next toleration ends, or the zero time if none is running.
//
// If several policies apply, a policy that replaces precedes one that reboots. Then the highest
// priority decides, then the earliest time, then the alphabetical order of the conditions. The
// returned Grace is the shortest of all policies that apply.
//
// A policy with a Reason is for conditions whose reason it matches. A policy without a Reason is
// for conditions that no policy with a Reason matches. A policy with a matching Reason excludes
// those without one even before its own toleration has ended. A Reason that is not a valid regular
// expression matches nothing.
func Broken(conditions []corev1.NodeCondition, policies []cloudprovider.RepairPolicy, now time.Time) (policy cloudprovider.RepairPolicy, at time.Time, broken bool) {
	var next time.Time
	for _, c := range conditions {
		for _, p := range applying(c, policies) {
			end := c.LastTransitionTime.Add(p.Toleration)
			switch {
			case end.After(now):
				if next.IsZero() || end.Before(next) {
					next = end
				}
			case !broken:
				policy, at, broken = p, end, true
			default:
				grace := shorter(policy.Grace, p.Grace)
				if before(p, end, policy, at) {
					policy, at = p, end
				}
				policy.Grace = grace
			}
		}
	}
	if broken {
		return policy, at, true
	}
	return cloudprovider.RepairPolicy{}, next, false
}

// applying returns the policies for a condition.
func applying(c corev1.NodeCondition, policies []cloudprovider.RepairPolicy) []cloudprovider.RepairPolicy {
	var special, general []cloudprovider.RepairPolicy
	for _, p := range policies {
		if p.Condition != c.Type || p.Status != c.Status {
			continue
		}
		if p.Reason == "" {
			general = append(general, p)
		} else if reason, err := regexp.Compile(p.Reason); err == nil && reason.MatchString(c.Reason) {
			special = append(special, p)
		}
	}
	if len(special) > 0 {
		return special
	}
	return general
}

// before reports whether policy p, which applies since one time, precedes policy q, which applies
// since another.
func before(p cloudprovider.RepairPolicy, since time.Time, q cloudprovider.RepairPolicy, at time.Time) bool {
	replaces := func(p cloudprovider.RepairPolicy) int {
		if p.Reboot {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(replaces(p), replaces(q)), cmp.Compare(q.Priority, p.Priority), since.Compare(at), cmp.Compare(p.Condition, q.Condition), cmp.Compare(p.Reason, q.Reason)) < 0
}

// shorter returns the shorter of two limits; nil means no limit.
func shorter(a, b *time.Duration) *time.Duration {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

// DoNotRepair is the annotation that keeps a node from repair for as long as its value is "true"
// (Karpenter v1.15).
const DoNotRepair = "karpenter.sh/do-not-repair"

// Node is a node that was initialized once, with its claim and the claim's pool.
type Node struct {
	Claim, Pool string
	Conditions  []corev1.NodeCondition
	// Since is when the node was created or when its last reboot ended. No condition counts as
	// older. The zero time sets no limit.
	Since time.Time
	// Annotations are the annotations of the node. Only [DoNotRepair] is read.
	Annotations map[string]string
}

// conditions returns the conditions of the node, none older than Since.
func (n Node) conditions() []corev1.NodeCondition {
	out := slices.Clone(n.Conditions)
	for i, c := range out {
		if c.LastTransitionTime.Time.Before(n.Since) { // a condition may lack a time
			out[i].LastTransitionTime.Time = n.Since
		}
	}
	return out
}

// Broken reports whether the node is broken in the sense of [Broken], with no condition older than
// Since. It does not matter whether the node may be repaired.
func (n Node) Broken(policies []cloudprovider.RepairPolicy, now time.Time) bool {
	_, _, broken := Broken(n.conditions(), policies, now)
	return broken
}

// Repairs says which claims to give back or to reboot because their nodes are [Broken]: the most
// urgent first, then by claim. The urgency is how long the node has been due, plus half an hour for
// each lower Priority that some policy has: with the priorities 0, 50 and 100, it is one hour more
// for a policy of priority 100. If several policies apply to a node, the urgency is that of the
// most urgent one; what is done is decided by [Broken]. A node with [DoNotRepair] is left alone.
//
// If more than a fifth of a pool's nodes, rounded up, have a condition of some policy, no node of
// the pool is repaired. For this count it does not matter whether the condition is still tolerated
// or whether the node may be repaired. Such a fault lies in the network or the control plane, and
// new nodes would have it too.
func Repairs(nodes []Node, policies []cloudprovider.RepairPolicy, now time.Time) []Decision {
	all, ill := map[string]int{}, map[string]int{}
	broken := map[string][]Decision{}
	for _, n := range nodes {
		all[n.Pool]++
		if slices.ContainsFunc(n.Conditions, func(c corev1.NodeCondition) bool {
			return slices.ContainsFunc(policies, func(p cloudprovider.RepairPolicy) bool { return p.Condition == c.Type && p.Status == c.Status })
		}) {
			ill[n.Pool]++
		}
		conditions := n.conditions()
		if p, since, ok := Broken(conditions, policies, now); ok && n.Annotations[DoNotRepair] != "true" {
			broken[n.Pool] = append(broken[n.Pool], Decision{
				Verdict: Irreparable, Claim: n.Claim, Since: since, Reboot: p.Reboot, Grace: p.Grace, Urgency: urgency(conditions, policies, now), Detail: fmt.Sprintf("condition %s is %s for more than %s", p.Condition, p.Status, p.Toleration),
			})
		}
	}
	var out []Decision
	for pool, list := range broken {
		if ill[pool] <= (all[pool]+4)/5 {
			out = append(out, list...)
		}
	}
	slices.SortFunc(out, func(a, b Decision) int {
		return cmp.Or(cmp.Compare(b.Urgency, a.Urgency), strings.Compare(a.Claim, b.Claim))
	})
	return out
}

// ageing is the waiting time that one rank among the priorities is worth, as in Karpenter.
const ageing = 30 * time.Minute

// urgency returns how long the most urgent applicable policy has applied, plus an [ageing] for each
// lower priority among all policies.
func urgency(conditions []corev1.NodeCondition, policies []cloudprovider.RepairPolicy, now time.Time) time.Duration {
	var priorities []int
	for _, p := range policies {
		priorities = append(priorities, p.Priority)
	}
	slices.Sort(priorities)
	priorities = slices.Compact(priorities)
	var most time.Duration
	for _, c := range conditions {
		for _, p := range applying(c, policies) {
			if waited := now.Sub(c.LastTransitionTime.Add(p.Toleration)); waited >= 0 {
				most = max(most, waited+time.Duration(slices.Index(priorities, p.Priority))*ageing)
			}
		}
	}
	return most
}
