package e2e_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/examples/operator/memory"
	"github.com/joinery-sdk/joinery/examples/operator/sandbox"
)

// adviser is the cloud with other repair policies.
type adviser struct {
	*memory.Cloud
	policies []cloudprovider.RepairPolicy
}

func (a adviser) RepairPolicies() []cloudprovider.RepairPolicy { return a.policies }

// broken is a condition that kwok leaves alone.
const broken = corev1.NodeConditionType("ExampleBroken")

// breaks gives nodes the condition.
func breaks(t *testing.T, list ...corev1.Node) {
	t.Helper()
	for _, n := range list {
		before := n.DeepCopy()
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: broken, Status: corev1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now()})
		require.NoError(t, world.Client.Status().Patch(t.Context(), &n, client.StrategicMergeFrom(before)))
	}
}

// Two broken nodes are replaced one after the other, as the budget allows, each when its successor is ready.
func TestRepairByReplacement(t *testing.T) {
	options := fast()
	options.Provider = adviser{world.Cloud, []cloudprovider.RepairPolicy{{Condition: broken, Status: corev1.ConditionTrue, Toleration: time.Second}}}
	begin(t, options, sandbox.Pool("default", quiet, func(p *karpv1.NodePool) {
		p.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "1", Reasons: []karpv1.DisruptionReason{"Unhealthy"}}}
	}), sandbox.Inflate("web", 6, "500m", "256Mi", apart))
	running(t, 6)
	all := nodes(t)
	require.Len(t, all, 6)
	least := watchReady(t)
	var most atomic.Int32 // broken nodes that leave at the same time
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
			var list corev1.NodeList
			if world.Client.List(t.Context(), &list) != nil {
				continue
			}
			leaving := int32(0)
			for _, n := range list.Items {
				for _, taint := range n.Spec.Taints {
					if taint.Key == karpv1.DisruptedTaintKey {
						leaving++
					}
				}
			}
			most.Store(max(most.Load(), leaving))
		}
	}()
	breaks(t, all[:2]...)
	reach(t, "both are replaced", func(s sandbox.State) bool {
		for _, m := range world.Cloud.Truth() {
			if m.Claim == all[0].Name || m.Claim == all[1].Name {
				return false
			}
		}
		return s.Running == 6 && s.Pods == 6 && s.Nodes == 6 && s.Machines == 6
	})
	close(stop)
	require.GreaterOrEqual(t, least(), 5)
	require.EqualValues(t, 1, most.Load())
}

// A broken node is rebooted: it is drained and closed, counts as room, comes back with another boot, and its pods return to it. No node is bought.
func TestRepairByReboot(t *testing.T) {
	options := fast()
	options.Provider = adviser{world.Cloud, []cloudprovider.RepairPolicy{{Condition: broken, Status: corev1.ConditionTrue, Toleration: time.Second, Reboot: true}}}
	begin(t, options, sandbox.Pool("default", quiet, func(p *karpv1.NodePool) {
		p.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "1"}}
	}), sandbox.Inflate("web", 2, "1500m", "256Mi", apart))
	running(t, 2)
	sick, before := nodes(t)[0], machines()
	breaks(t, sick)
	var claim karpv1.NodeClaim
	closed := false
	eventually(t, func() error {
		var node corev1.Node
		if err := world.Client.Get(t.Context(), client.ObjectKeyFromObject(&sick), &node); err != nil {
			return err
		}
		for _, taint := range node.Spec.Taints {
			closed = closed || taint.Key == karpv1.RebootingTaintKey
		}
		if err := world.Client.Get(t.Context(), client.ObjectKey{Name: sick.Name}, &claim); err != nil {
			return err
		}
		c := claim.StatusConditions().Get(karpv1.ConditionTypeRebooting)
		if c == nil || c.Reason != karpv1.RebootReasonSucceeded || node.Labels[karpv1.NodeInitializedLabelKey] != "true" {
			return fmt.Errorf("reboot: %v, labels %v", c, node.Labels)
		}
		return nil
	})
	require.True(t, closed)
	running(t, 2)
	require.Equal(t, before, machines(), "nothing was bought or given back")
	require.Equal(t, 1, world.Cloud.Reboots(sick.Spec.ProviderID))
	on := map[string]bool{}
	for _, p := range pods(t) {
		on[p.Spec.NodeName] = true
	}
	require.True(t, on[sick.Name], "its pod has returned")
}
