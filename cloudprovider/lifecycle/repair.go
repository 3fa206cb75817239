package lifecycle

import (
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
