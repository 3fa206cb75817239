package controller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/lifecycle"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/operator/memory"
)

// Where many nodes break at once it is not the machines.
func TestRepairKeepsItsHead(t *testing.T) {
	for broken, repaired := range map[int]int{1: 1, 2: 0, 5: 0} {
		var objects []client.Object
		for i := range 5 {
			name := fmt.Sprintf("n%d", i)
			objects = append(objects, claim(name, name, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized), node(name, name, func(n *corev1.Node) {
				n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
				if i < broken {
					n.Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour))}
				}
			}))
		}
		o, _ := operate(t, interceptor.Funcs{}, append(objects, pool("default"))...)
		require.Len(t, repair(t, o), repaired)
	}
}

// repair plans one pass and returns the nodes that it replaces.
func repair(t *testing.T, o *Operator) (replaced []string) {
	t.Helper()
	v, err := o.read(t.Context())
	require.NoError(t, err)
	result, err := o.planDisruption(t.Context(), v)
	require.NoError(t, err)
	for _, c := range result.Commands {
		for _, n := range c.Nodes {
			if c.Method == eligibility.Unhealthy {
				replaced = append(replaced, n.Name)
			}
		}
	}
	slices.Sort(replaced)
	return replaced
}

// Repair goes by the budgets of the pool, in which nodes that are leaving count and nodes that are not ready do not, and by the annotation
// of a node. A node that was never ready is in no budget.
func TestRepairHasABudget(t *testing.T) {
	budgets := func(nodes string, reasons ...karpv1.DisruptionReason) func(*karpv1.NodePool) {
		return func(p *karpv1.NodePool) {
			p.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: nodes, Reasons: reasons}}
		}
	}
	for name, c := range map[string]struct {
		pool     func(*karpv1.NodePool)
		change   func(*karpv1.NodeClaim, *corev1.Node) // of n0
		replaced []string
	}{
		"two":                {budgets("2"), nil, []string{"n0", "n1"}},
		"one":                {budgets("1"), nil, []string{"n0"}},
		"none":               {budgets("0"), nil, nil},
		"none for Unhealthy": {budgets("0", "Unhealthy"), nil, nil},
		"none for others":    {budgets("0", karpv1.DisruptionReasonDrifted), nil, []string{"n0", "n1"}},
		"vetoed": {budgets("2"), func(_ *karpv1.NodeClaim, n *corev1.Node) {
			n.Annotations = map[string]string{"karpenter.sh/do-not-repair": "true"}
		}, []string{"n1"}},
		"vetoed by other words": {budgets("2"), func(_ *karpv1.NodeClaim, n *corev1.Node) {
			n.Annotations = map[string]string{"karpenter.sh/do-not-repair": "yes"}
		}, []string{"n0", "n1"}},
		"leaving": {budgets("1"), func(c *karpv1.NodeClaim, _ *corev1.Node) { c.DeletionTimestamp = new(metav1.Now()) }, nil},
		"never ready": {budgets("1"), func(c *karpv1.NodeClaim, n *corev1.Node) {
			c.StatusConditions().SetFalse(karpv1.ConditionTypeInitialized, "Starting", "starting")
			delete(n.Labels, karpv1.NodeInitializedLabelKey)
		}, []string{"n0", "n1"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{pool("default", c.pool)}
			for i := range 10 {
				name := fmt.Sprintf("n%d", i)
				one := claim(name, name, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized)
				own := node(name, name, func(n *corev1.Node) {
					n.Labels = map[string]string{karpv1.NodePoolLabelKey: "default", karpv1.NodeRegisteredLabelKey: "true", karpv1.NodeInitializedLabelKey: "true"}
					n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
					if i < 2 {
						n.Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour))}
					}
				})
				if i == 0 && c.change != nil {
					c.change(one, own)
				}
				objects = append(objects, one, own)
			}
			o, _ := operate(t, interceptor.Funcs{}, objects...)
			require.Equal(t, c.replaced, repair(t, o))
		})
	}
}

// broken makes a node one that has not been heard of for an hour.
func broken(n *corev1.Node) {
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour))}}
}

// A broken node is replaced first: its pods are planned onto a node that is bought, and it drains once that is ready, for as long as the
// policy or the claim allows, whichever is less.
func TestRepairReplacesFirst(t *testing.T) {
	old, sick := ready("n", "id")
	old.Spec.TerminationGracePeriod = &metav1.Duration{Duration: time.Hour}
	broken(sick)
	o, cloud := operate(t, interceptor.Funcs{}, pool("default"), old, sick, pod("p", "n", func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }))
	o.options.Provider = adviser{cloud, []cloudprovider.RepairPolicy{{Condition: corev1.NodeReady, Status: corev1.ConditionUnknown, Grace: new(time.Minute)}}}
	var seen giveback.Sightings
	_, err := o.disrupt(t.Context(), &seen)
	require.NoError(t, err)
	var bought *karpv1.NodeClaim
	for _, c := range claims(t, o) {
		if c.Name != "n" {
			bought = &c
		}
	}
	require.NotNil(t, bought)
	require.True(t, hasTaint(get(t, o, sick), karpv1.DisruptedTaintKey))
	time.Sleep(100 * time.Millisecond)
	require.Nil(t, get(t, o, old).DeletionTimestamp, "its successor is not ready")
	require.NoError(t, o.writeStatus(t.Context(), bought, func() { bought.StatusConditions().SetTrue(karpv1.ConditionTypeInitialized) }))
	require.Eventually(t, func() bool { return get(t, o, old).DeletionTimestamp != nil }, time.Minute, 10*time.Millisecond)
	require.WithinDuration(t, time.Now().Add(time.Minute), drainEnd(get(t, o, old)), 10*time.Second)
}

// adviser is a cloud with other repair policies.
type adviser struct {
	*memory.Cloud
	policies []cloudprovider.RepairPolicy
}

func (a adviser) RepairPolicies() []cloudprovider.RepairPolicy { return a.policies }

// The end of a drain is the earlier of what the claim allows and what is written down.
func TestDrainEnd(t *testing.T) {
	begun := time.Now().Truncate(time.Second)
	for _, c := range []struct {
		own  time.Duration
		text string
		want time.Duration // after begun; 0 for none
	}{
		{0, "", 0},
		{time.Hour, "", time.Hour},
		{0, "nonsense", 0},
		{0, begun.Add(time.Minute).Format(time.RFC3339), time.Minute},
		{time.Hour, begun.Add(time.Minute).Format(time.RFC3339), time.Minute},
		{time.Second, begun.Add(time.Minute).Format(time.RFC3339), time.Second},
	} {
		x := claim("n", "id")
		x.DeletionTimestamp = &metav1.Time{Time: begun}
		if c.own > 0 {
			x.Spec.TerminationGracePeriod = &metav1.Duration{Duration: c.own}
		}
		x.Annotations = map[string]string{karpv1.NodeClaimTerminationTimestampAnnotationKey: c.text}
		end := drainEnd(x)
		require.Equal(t, c.want == 0, end.IsZero(), c)
		require.True(t, c.want == 0 || end.Equal(begun.Add(c.want)), "%v: %v", c, end)
	}
}

// Nothing is planned onto a broken node, even where it must not be repaired: neither pods that wait nor those of other nodes.
func TestABrokenNodeIsNoRoom(t *testing.T) {
	for _, sick := range []bool{false, true} {
		a, onA := ready("a", "id-1")
		b, onB := ready("b", "id-2")
		atOnce := func(p *karpv1.NodePool) {
			p.Spec.Disruption.ConsolidationPolicy, p.Spec.Disruption.ConsolidateAfter = karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized, karpv1.MustParseNillableDuration("0s")
			p.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "100%"}}
			p.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"m6a.xlarge"}}, {Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"on-demand"}}}
		}
		if sick {
			broken(onB)
			onB.Annotations = map[string]string{lifecycle.DoNotRepair: "true", karpv1.DoNotDisruptAnnotationKey: "true"}
		}
		o, _ := operate(t, interceptor.Funcs{}, pool("default", atOnce), a, b, onA, onB, pod("p", "a"), pod("q", "b"))
		v, err := o.read(t.Context())
		require.NoError(t, err)
		result, err := o.planDisruption(t.Context(), v)
		require.NoError(t, err)
		require.Equal(t, sick, len(result.Commands) == 0, "a pod moves to a broken node")
		require.False(t, get(t, o, node("b", "")).Spec.Unschedulable, "only what is planned with is closed")
	}
}
