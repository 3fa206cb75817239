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

// Broken reports whether one of the node's conditions has outlived the toleration of a policy, which policy that is, and since when it applies. Of several
// the one decides that replaces rather than reboots, then the one of the highest priority, the earliest, the one whose condition comes first in the
// alphabet. Its Grace is then the shortest of all of them. Without such a condition it reports when the next toleration ends, or the zero time.
//
// A policy with a Reason is for conditions whose reason it matches. A policy without one is for those that no policy with one matches, whether that
// one still waits or not. A Reason that is no regular expression matches nothing.
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

// applying are the policies for a condition.
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

// before says whether a policy that applies since a time decides rather than another one.
func before(p cloudprovider.RepairPolicy, since time.Time, q cloudprovider.RepairPolicy, at time.Time) bool {
	replaces := func(p cloudprovider.RepairPolicy) int {
		if p.Reboot {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(replaces(p), replaces(q)), cmp.Compare(q.Priority, p.Priority), since.Compare(at), cmp.Compare(p.Condition, q.Condition), cmp.Compare(p.Reason, q.Reason)) < 0
}

// shorter is the shorter of two bounds; nil is none.
func shorter(a, b *time.Duration) *time.Duration {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

// DoNotRepair is the annotation of a node that keeps it from repair, with the value "true" and without end (Karpenter v1.15).
const DoNotRepair = "karpenter.sh/do-not-repair"

// Node is a node that was initialized once, with the claim that it came from and the pool of that.
type Node struct {
	Claim, Pool string
	Conditions  []corev1.NodeCondition
	// Since is when the node was created, or when its last reboot ended: no condition counts as older. The zero time sets no limit.
	Since time.Time
	// Annotations are those of the node. Only [DoNotRepair] is read.
	Annotations map[string]string
}

// Repairs says which claims to give back, or to reboot, because their nodes are [Broken]: the most urgent first, then by claim. A policy of the next
// higher priority is as urgent as half an hour of waiting, and the most urgent policy of a node counts. A node with [DoNotRepair] is left alone.
//
// Where more than a fifth of a pool's nodes, rounded up, have a condition of some policy, none of the pool is repaired, whether the condition is still
// tolerated or the node may be repaired: that is the fault of a network or of a control plane, and new nodes would share it.
func Repairs(nodes []Node, policies []cloudprovider.RepairPolicy, now time.Time) []Decision {
	all, ill, urgencies := map[string]int{}, map[string]int{}, map[string]time.Duration{}
	broken := map[string][]Decision{}
	for _, n := range nodes {
		all[n.Pool]++
		if slices.ContainsFunc(n.Conditions, func(c corev1.NodeCondition) bool {
			return slices.ContainsFunc(policies, func(p cloudprovider.RepairPolicy) bool { return p.Condition == c.Type && p.Status == c.Status })
		}) {
			ill[n.Pool]++
		}
		conditions := slices.Clone(n.Conditions)
		for i, c := range conditions {
			if c.LastTransitionTime.Time.Before(n.Since) { // a condition may come without a time
				conditions[i].LastTransitionTime.Time = n.Since
			}
		}
		if p, since, ok := Broken(conditions, policies, now); ok && n.Annotations[DoNotRepair] != "true" {
			urgencies[n.Claim] = urgency(conditions, policies, now)
			broken[n.Pool] = append(broken[n.Pool], Decision{
				Verdict: Irreparable, Claim: n.Claim, Since: since, Reboot: p.Reboot, Grace: p.Grace, Detail: fmt.Sprintf("condition %s is %s for more than %s", p.Condition, p.Status, p.Toleration),
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
		return cmp.Or(cmp.Compare(urgencies[b.Claim], urgencies[a.Claim]), strings.Compare(a.Claim, b.Claim))
	})
	return out
}

// ageing is the wait that is worth one step of priority, as in Karpenter.
const ageing = 30 * time.Minute

// urgency is how long the most urgent of the policies that apply has applied, and an [ageing] for each lower priority among all policies.
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
