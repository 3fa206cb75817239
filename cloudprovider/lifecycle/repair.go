package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
)

// Broken reports whether one of the node's conditions has outlived the toleration of a policy, which policy that is, and
// since when it applies. The first policy in the order of the list decides. Without such a condition it reports when the
// next toleration ends, or the zero time.
func Broken(conditions []corev1.NodeCondition, policies []cloudprovider.RepairPolicy, now time.Time) (policy cloudprovider.RepairPolicy, at time.Time, broken bool) {
	var next time.Time
	for _, p := range policies {
		for _, c := range conditions {
			if c.Type != p.Condition || c.Status != p.Status {
				continue
			}
			end := c.LastTransitionTime.Add(p.Toleration)
			if !end.After(now) {
				return p, end, true
			}
			if next.IsZero() || end.Before(next) {
				next = end
			}
		}
	}
	return cloudprovider.RepairPolicy{}, next, false
}

// Node is a node that was initialized once, with the claim that it came from and the pool of that.
type Node struct {
	Claim, Pool string
	Conditions  []corev1.NodeCondition
}

// Repairs says which claims to give back because their nodes are [Broken], by claim. Where more than a fifth of a pool's nodes, rounded
// up, are, none of the pool is: that is the fault of a network or of a control plane, and new nodes would share it.
func Repairs(nodes []Node, policies []cloudprovider.RepairPolicy, now time.Time) []Decision {
	all, broken := map[string]int{}, map[string][]Decision{}
	for _, n := range nodes {
		all[n.Pool]++
		if p, since, ok := Broken(n.Conditions, policies, now); ok {
			broken[n.Pool] = append(broken[n.Pool], Decision{
				Verdict: Irreparable, Claim: n.Claim, Since: since, Detail: fmt.Sprintf("condition %s is %s for more than %s", p.Condition, p.Status, p.Toleration),
			})
		}
	}
	var out []Decision
	for pool, list := range broken {
		if len(list) <= (all[pool]+4)/5 {
			out = append(out, list...)
		}
	}
	slices.SortFunc(out, func(a, b Decision) int { return strings.Compare(a.Claim, b.Claim) })
	return out
}
