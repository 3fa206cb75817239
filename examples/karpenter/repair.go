package karpenter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karp "sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/joinery-sdk/joinery/cloudprovider"
)

const (
	// anyReason matches every reason. Karpenter takes an empty pattern for its one fallback.
	anyReason = "^"
	// never is a toleration that no node outlives.
	never = time.Duration(math.MaxInt64)
)

// state is what a repair policy is for.
type state struct {
	condition corev1.NodeConditionType
	status    corev1.ConditionStatus
}

// repairPolicies are the provider's policies, if it has any, so that Karpenter repairs the same
// nodes after the same time.
//
// The two differ in what an empty reason means. Here it stands for the reasons of its own condition
// and status that no other policy matches. Karpenter wants exactly one, which replaces, and applies
// it to every condition of the set. So a policy for any reason becomes a pattern that matches
// everything, and the fallback is one that never applies. If a condition has both a policy for any
// reason and others, no pattern says "any other reason": then this policy is the fallback, as long
// as it replaces and no other condition falls back on it. Otherwise the error names it.
func repairPolicies(provider cloudprovider.Provider) ([]karp.RepairPolicy, error) {
	adviser, ok := provider.(cloudprovider.RepairAdviser)
	if !ok {
		return nil, nil
	}
	ours := adviser.RepairPolicies()
	if len(ours) == 0 {
		return nil, nil
	}
	_, reboots := provider.(cloudprovider.Rebooter)
	general, particular := map[state]bool{}, map[state]bool{}
	for _, p := range ours {
		at := state{p.Condition, p.Status}
		general[at], particular[at] = general[at] || p.Reason == "", particular[at] || p.Reason != ""
	}
	out := make([]karp.RepairPolicy, 0, len(ours)+1)
	fallback := -1
	for i, p := range ours {
		policy := karp.RepairPolicy{
			ConditionType: p.Condition, ConditionStatus: p.Status, ReasonRegex: p.Reason, TolerationDuration: p.Toleration,
			TerminationGracePeriod: p.Grace, Priority: p.Priority, Action: karp.ReplaceNode,
		}
		if p.Reboot && reboots {
			policy.Action = karp.RebootNode
		}
		at := state{p.Condition, p.Status}
		switch {
		case p.Reason != "":
		case !particular[at]:
			policy.ReasonRegex = anyReason
		case fallback >= 0 || policy.Action != karp.ReplaceNode || slices.Contains(slices.Collect(maps.Values(general)), false):
			return nil, fmt.Errorf("repair policy %d: Karpenter has no pattern for the reasons of condition %s=%s that no other policy matches: "+
				"give it a reason, or leave it as the only policy of the condition", i, p.Condition, p.Status)
		default:
			fallback = i
		}
		out = append(out, policy)
	}
	if fallback < 0 {
		out = append(out, karp.RepairPolicy{
			ConditionType: ours[0].Condition, ConditionStatus: ours[0].Status, TolerationDuration: never, Action: karp.ReplaceNode,
		})
	}
	return out, nil
}

// RepairPolicies returns the provider's policies, if it has any. If none of them can be Karpenter's
// fallback, it adds a fallback that never applies.
func (c *CloudProvider) RepairPolicies() []karp.RepairPolicy { return slices.Clone(c.repairs) }

// Reboot reboots the machine of a claim, if the provider is a Rebooter. A call with the same
// operation is the same reboot.
func (c *CloudProvider) Reboot(ctx context.Context, claim *karpv1.NodeClaim, operation string) error {
	rebooter, ok := c.provider.(cloudprovider.Rebooter)
	if !ok {
		return karp.NewNodeRebootNotImplementedError()
	}
	err := rebooter.Reboot(ctx, claim.Status.ProviderID, operation)
	for _, final := range []error{cloudprovider.ErrUnauthorized, cloudprovider.ErrUnsupported, cloudprovider.ErrInvalidSpec} {
		if errors.Is(err, final) {
			return karp.NewNodeRebootFailedError(err)
		}
	}
	return found(err)
}
