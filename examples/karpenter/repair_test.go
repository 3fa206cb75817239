package karpenter_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karp "sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/node/health"
	"sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/lifecycle"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/examples/karpenter"
)

// advised is a market with repair policies; it reboots machines.
type advised struct {
	market
	policies []cloudprovider.RepairPolicy
	reboot   error
	asked    []string
}

func (a *advised) RepairPolicies() []cloudprovider.RepairPolicy { return a.policies }
func (a *advised) Reboot(_ context.Context, id, operation string) error {
	a.asked = append(a.asked, id+" "+operation)
	return a.reboot
}

// matcher is Karpenter's own reader of repair policies, with node repair switched on.
func matcher(t *testing.T, c *karpenter.CloudProvider) *health.RepairPolicyMatcher {
	t.Helper()
	ctx := options.ToContext(t.Context(), &options.Options{FeatureGates: options.FeatureGates{NodeRepair: true}})
	m, err := health.NewRepairPolicyMatcher(ctx, c)
	require.NoError(t, err)
	return m
}

// Karpenter, told the policies of a provider, repairs the nodes that package lifecycle does, in the same way and order, since the same
// time.
func TestKarpenterRepairsTheSameNodes(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 47))
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	conditions := []corev1.NodeConditionType{corev1.NodeReady, "DiskHealthy", "GPUReady"}
	statuses := []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionUnknown}
	reasons := []string{"", "", "IO", "^Lost$", "Err|Full"}
	pick := func(n int) time.Duration { return time.Duration(rng.IntN(n)) * 15 * time.Minute }
	refused, repaired, rebooted := 0, 0, 0
	for range 3000 {
		var policies []cloudprovider.RepairPolicy
		known := map[string]bool{}
		for range 1 + rng.IntN(5) {
			p := cloudprovider.RepairPolicy{
				Condition: conditions[rng.IntN(3)], Status: statuses[rng.IntN(2)], Reason: reasons[rng.IntN(len(reasons))], Toleration: pick(5),
				Priority: rng.IntN(4), Reboot: rng.IntN(3) == 0,
			}
			if grace := pick(4); rng.IntN(2) == 0 {
				p.Grace = &grace
			}
			if key := fmt.Sprint(p.Condition, p.Status, p.Reason); !known[key] {
				known[key] = true
				policies = append(policies, p)
			}
		}
		c, err := karpenter.AsKarpenter(t.Context(), &advised{policies: policies}, karpenter.Options{})
		if err != nil {
			require.ErrorContains(t, err, "no other policy matches")
			refused++
			continue
		}
		m := matcher(t, c)

		type theirs struct {
			claim string
			score float64
			health.RepairResult
		}
		var ours []lifecycle.Node
		var want []theirs
		for i := range 6 {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-pick(12)))}}
			for _, condition := range conditions {
				c := corev1.NodeCondition{Type: condition, Status: append(statuses, corev1.ConditionTrue, corev1.ConditionTrue)[rng.IntN(4)], Reason: []string{"", "IO", "Lost", "DiskErr", "NotLost"}[rng.IntN(5)]}
				if rng.IntN(4) > 0 {
					c.LastTransitionTime = metav1.NewTime(now.Add(-pick(10)))
				}
				node.Status.Conditions = append(node.Status.Conditions, c)
			}
			name := fmt.Sprintf("n%d", i)
			ours = append(ours, lifecycle.Node{Claim: name, Pool: name, Conditions: node.Status.Conditions, Since: node.CreationTimestamp.Time})
			if r := health.Resolve(m.Match(node), now, time.Time{}); r.Action != "" {
				want = append(want, theirs{name, r.ScoreAt(now), r})
			}
		}
		slices.SortStableFunc(want, func(a, b theirs) int { return cmp.Compare(b.score, a.score) })
		got := lifecycle.Repairs(ours, policies, now)
		require.Len(t, got, len(want), "%v", policies)
		for i, w := range want {
			require.Equal(t, w.claim, got[i].Claim, "%v", policies)
			require.Equal(t, w.Action == karp.RebootNode, got[i].Reboot, "%v", policies)
			require.Equal(t, w.TerminationGracePeriod, got[i].Grace, "%v", policies)
			require.True(t, w.SelectedEligibleAt.Equal(got[i].Since), "%v", policies)
			repaired++
			if got[i].Reboot {
				rebooted++
			}
		}
	}
	fmt.Printf("3000 sets of policies, %d of them not in Karpenter's terms: %d nodes repaired, %d by a reboot\n", refused, repaired, rebooted)
	require.Positive(t, rebooted)
	require.Less(t, refused, 1500)
}

// Karpenter accepts the policies of the providers of this library.
func TestRepairPoliciesAreValid(t *testing.T) {
	cloud := cloud(t, memcloud.Config{})
	c := adaptor(t, cloud, karpenter.Options{})
	matcher(t, c)
	require.Len(t, c.RepairPolicies(), 1+len(cloud.RepairPolicies()))
	assert.Empty(t, adaptor(t, struct{ cloudprovider.Provider }{cloud}, karpenter.Options{}).RepairPolicies())

	// A machine that cannot be rebooted is replaced.
	policies := []cloudprovider.RepairPolicy{{Condition: "GPUReady", Status: corev1.ConditionFalse, Reboot: true}}
	assert.Equal(t, karp.RebootNode, adaptor(t, &advised{policies: policies}, karpenter.Options{}).RepairPolicies()[0].Action)
	replacing := struct {
		cloudprovider.Provider
		cloudprovider.RepairAdviser
	}{market{}, &advised{policies: policies}}
	assert.Equal(t, karp.ReplaceNode, adaptor(t, replacing, karpenter.Options{}).RepairPolicies()[0].Action)
}

func TestReboot(t *testing.T) {
	claim := &karpv1.NodeClaim{Status: karpv1.NodeClaimStatus{ProviderID: "id-1"}}
	require.True(t, karp.IsNodeRebootNotImplementedError(adaptor(t, market{}, karpenter.Options{}).Reboot(t.Context(), claim, "op")))

	provider := &advised{}
	c := adaptor(t, provider, karpenter.Options{})
	require.NoError(t, c.Reboot(t.Context(), claim, "op"))
	assert.Equal(t, []string{"id-1 op"}, provider.asked)
	for code, is := range map[error]func(error) bool{
		cloudprovider.ErrNotFound:     karp.IsNodeClaimNotFoundError,
		cloudprovider.ErrUnauthorized: karp.IsNodeRebootFailedError,
		cloudprovider.ErrUnsupported:  karp.IsNodeRebootFailedError,
		cloudprovider.ErrThrottled:    func(err error) bool { return !karp.IsNodeRebootFailedError(err) && !karp.IsNodeClaimNotFoundError(err) },
	} {
		provider.reboot = &cloudprovider.Error{Code: code, Op: "reboot", Subject: "id-1"}
		err := c.Reboot(t.Context(), claim, "op")
		assert.True(t, is(err), "%v", err)
		require.ErrorIs(t, err, code)
	}
}
