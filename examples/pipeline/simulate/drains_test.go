package simulate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// A node that drains counts for a hard spread over hosts until it is gone. Where a budget then lets no pod
// go before one that waits for the node, the command says that it may not end.
func TestDrainsThatMayNotEnd(t *testing.T) {
	honor := corev1.NodeInclusionPolicyHonor
	spread := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "api"}}}
	with := func(change func(c *corev1.TopologySpreadConstraint)) corev1.TopologySpreadConstraint {
		c := spread
		change(&c)
		return c
	}
	for name, c := range map[string]struct {
		spread  corev1.TopologySpreadConstraint
		allowed int32
		told    bool
	}{
		"two at once":      {spread, 2, true},
		"all at once":      {spread, 12, false},
		"no budget":        {spread, -1, false},
		"the taint counts": {with(func(c *corev1.TopologySpreadConstraint) { c.NodeTaintsPolicy = &honor }), 2, false},
		"a large skew":     {with(func(c *corev1.TopologySpreadConstraint) { c.MaxSkew = 12 }), 2, false},
		"a preference":     {with(func(c *corev1.TopologySpreadConstraint) { c.WhenUnsatisfiable = corev1.ScheduleAnyway }), 2, false},
		"others are counted": {with(func(c *corev1.TopologySpreadConstraint) {
			c.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		}), 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := &tight{}
			typ := instancetypes.New("m", nil, corev1.ResourceList{"cpu": resource.MustParse("16"), "memory": resource.MustParse("64Gi")}, instancetypes.Offer("z", "on-demand", 0.7))
			w.Pools = []scheduling.Pool{{NodePool: nodepool.New("default"), Types: []instancetypes.InstanceType{typ}}}
			w.Pools[0].Disruption.Budgets = []nodepool.Budget{{Nodes: 100, Percent: true}}
			w.Pools[0].Disruption.ConsolidateAfter = new(time.Duration)
			for i := range 12 {
				if i < 4 {
					w.Nodes = append(w.Nodes, typ.Node(fmt.Sprintf("n%d", i), typ.Offerings[0], w.Pools[0].PoolLabels()))
				}
				p := w.pod(fmt.Sprintf("n%d", i%4))
				p.Labels = map[string]string{"app": "api"}
				p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("900m")}}
				p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{c.spread}
				w.Pods = append(w.Pods, p)
			}
			if c.allowed >= 0 {
				b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "calm"}}
				b.Spec.Selector, b.Spec.MaxUnavailable = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "api"}}, new(intstr.FromInt32(c.allowed))
				b.Status = policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: c.allowed, ExpectedPods: 12, CurrentHealthy: 12, DesiredHealthy: 12 - c.allowed}
				w.PodDisruptionBudgets = []*policyv1.PodDisruptionBudget{b}
			}
			r := w.plan(t, giveback.Options{})
			require.NotEmpty(t, r.Commands)
			if c.told {
				assert.Contains(t, r.Commands[0].Why, "the drain may not end")
				assert.Contains(t, r.Commands[0].Why, "PodDisruptionBudget ml/calm")
				return
			}
			for _, command := range r.Commands {
				assert.NotContains(t, command.Why, "may not end")
			}
		})
	}
}
