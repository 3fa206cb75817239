package eligibility_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

func now() time.Time { return time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC) }

func after(d time.Duration) *time.Duration { return &d }

func node(change ...func(*eligibility.Node)) *eligibility.Node {
	n := &eligibility.Node{
		Node:         &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", CreationTimestamp: metav1.NewTime(now().Add(-time.Hour))}},
		Pool:         &nodepool.NodePool{Name: "default", APIVersion: nodepool.V1, Disruption: nodepool.Disruption{Policy: nodepool.WhenEmptyOrUnderutilized, ConsolidateAfter: after(0)}},
		InstanceType: "m.large", Zone: "z1", CapacityType: "on-demand", PricePerHour: eligibility.Dollars(0.1), Priced: true,
	}
	for _, c := range change {
		c(n)
	}
	return n
}

func pod(change ...func(*corev1.Pod)) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-0", Labels: map[string]string{"app": "web"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: &yes}},
	}}
	for _, c := range change {
		c(p)
	}
	return p
}

func with(p *corev1.Pod) func(*eligibility.Node) {
	return func(n *eligibility.Node) { n.Pods = append(n.Pods, p) }
}

func protected(p *corev1.Pod) { p.Annotations = map[string]string{eviction.DoNotDisrupt: "true"} }

func alone(p *corev1.Pod) { p.OwnerReferences = nil }

func noted(key string) func(*eligibility.Node) {
	return func(n *eligibility.Node) { n.Node.Annotations = map[string]string{key: "true"} }
}

func old(n *eligibility.Node) { n.Pool.APIVersion = nodepool.V1Alpha5 }

func tainted(key string) func(*eligibility.Node) {
	return func(n *eligibility.Node) {
		n.Node.Spec.Taints = []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoSchedule}}
	}
}

func TestBlockers(t *testing.T) {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	budgets := eviction.NewBudgets([]*policyv1.PodDisruptionBudget{b})
	three := int64(3)
	type kinds = []eligibility.Kind
	all := []eligibility.Method{eligibility.Interruption, eligibility.Expiration, eligibility.Drift, eligibility.Emptiness, eligibility.Consolidation}
	for name, c := range map[string]struct {
		node    *eligibility.Node
		budgets eviction.Budgets
		rules   eligibility.Rules
		want    [5]kinds // by method
	}{
		"free": {node: node()},
		"not ours": {node: node(func(n *eligibility.Node) { n.Pool = nil }), want: [5]kinds{
			{eligibility.NotOurs}, {eligibility.NotOurs}, {eligibility.NotOurs}, {eligibility.NotOurs}, {eligibility.NotOurs},
		}},
		"leaving": {node: node(tainted("karpenter.sh/disrupted")), want: [5]kinds{
			{eligibility.Leaving}, {eligibility.Leaving}, {eligibility.Leaving}, {eligibility.Leaving}, {eligibility.Leaving},
		}},
		"starting": {node: node(func(n *eligibility.Node) { n.Node.Labels = map[string]string{"karpenter.sh/registered": "true"} }), want: [5]kinds{
			2: {eligibility.Uninitialized}, 3: {eligibility.Uninitialized}, 4: {eligibility.Uninitialized},
		}},
		"rebooting": {node: node(tainted("karpenter.sh/rebooting")), want: [5]kinds{
			2: {eligibility.Rebooting}, 3: {eligibility.Rebooting}, 4: {eligibility.Rebooting},
		}},
		"rebooting, its taint gone": {node: node(func(n *eligibility.Node) {
			n.Node.Labels, n.Claim.Rebooting = map[string]string{"karpenter.sh/registered": "true"}, true
		}), want: [5]kinds{2: {eligibility.Rebooting}, 3: {eligibility.Rebooting}, 4: {eligibility.Rebooting}}},
		"rebooting, of an old API": {node: node(tainted("karpenter.sh/rebooting"), old), want: [5]kinds{
			1: {eligibility.Rebooting}, 2: {eligibility.Rebooting}, 3: {eligibility.Rebooting}, 4: {eligibility.Rebooting},
		}},
		"do-not-repair": {node: node(noted("karpenter.sh/do-not-repair"))},
		"nominated": {node: node(func(n *eligibility.Node) { n.Nominated = true }), want: [5]kinds{
			2: {eligibility.Nominated}, 3: {eligibility.Nominated}, 4: {eligibility.Nominated},
		}},
		"kept": {node: node(), rules: eligibility.Rules{Keep: func(*eligibility.Node) string { return "a rule" }}, want: [5]kinds{
			2: {eligibility.Kept}, 3: {eligibility.Kept}, 4: {eligibility.Kept},
		}},
		"kept of an old API": {node: node(old), rules: eligibility.Rules{Keep: func(*eligibility.Node) string { return "a rule" }}, want: [5]kinds{
			1: {eligibility.Kept}, 2: {eligibility.Kept}, 3: {eligibility.Kept}, 4: {eligibility.Kept},
		}},
		"young": {node: node(), rules: eligibility.Rules{MinimumAge: 2 * time.Hour}, want: [5]kinds{
			2: {eligibility.MinimumAge}, 3: {eligibility.MinimumAge}, 4: {eligibility.MinimumAge},
		}},
		"do-not-disrupt": {node: node(noted(eviction.DoNotDisrupt)), want: [5]kinds{
			2: {eligibility.DoNotDisrupt}, 3: {eligibility.DoNotDisrupt}, 4: {eligibility.DoNotDisrupt},
		}},
		"do-not-consolidate": {node: node(noted("karpenter.sh/do-not-consolidate")), want: [5]kinds{
			3: {eligibility.DoNotDisrupt}, 4: {eligibility.DoNotDisrupt},
		}},
		"do-not-consolidate of the pool": {node: node(func(n *eligibility.Node) {
			n.Pool.Annotations = map[string]string{"karpenter.sh/do-not-consolidate": "true"}
		}), want: [5]kinds{3: {eligibility.DoNotDisrupt}, 4: {eligibility.DoNotDisrupt}}},
		"switched off": {node: node(func(n *eligibility.Node) { n.Pool.Disruption = nodepool.Disruption{} }, old), want: [5]kinds{
			3: {eligibility.SwitchedOff}, 4: {eligibility.SwitchedOff},
		}},
		"never": {node: node(func(n *eligibility.Node) { n.Pool.Disruption.ConsolidateAfter = nil }), want: [5]kinds{
			3: {eligibility.SwitchedOff}, 4: {eligibility.SwitchedOff},
		}},
		"when empty": {node: node(func(n *eligibility.Node) { n.Pool.Disruption.Policy = nodepool.WhenEmpty }), want: [5]kinds{
			4: {eligibility.SwitchedOff},
		}},
		"too early": {node: node(func(n *eligibility.Node) {
			n.Pool.Disruption.ConsolidateAfter, n.Claim.LastPodEvent = after(time.Minute), now().Add(-30*time.Second)
		}), want: [5]kinds{3: {eligibility.TooEarly}, 4: {eligibility.TooEarly}}},
		"static": {node: node(func(n *eligibility.Node) { n.Pool.Replicas = &three }), want: [5]kinds{
			3: {eligibility.StaticPool}, 4: {eligibility.StaticPool},
		}},
		"unknown price": {node: node(func(n *eligibility.Node) { n.Priced = false }), want: [5]kinds{4: {eligibility.UnknownPrice}}},
		"protected pod": {node: node(with(pod(protected))), want: [5]kinds{
			2: {eligibility.PodProtected}, 3: {eligibility.PodProtected}, 4: {eligibility.PodProtected},
		}},
		"protected pod, but the node's time is bounded": {node: node(with(pod(protected)), func(n *eligibility.Node) { n.Pool.TerminationGracePeriod = after(time.Hour) }), want: [5]kinds{
			3: {eligibility.PodProtected}, 4: {eligibility.PodProtected},
		}},
		"protected pod, and its claim has no bound, whatever the pool has by now": {node: node(with(pod(protected)), func(n *eligibility.Node) {
			n.Pool.TerminationGracePeriod, n.Claim.Decides = after(time.Hour), true
		}), want: [5]kinds{2: {eligibility.PodProtected}, 3: {eligibility.PodProtected}, 4: {eligibility.PodProtected}}},
		"protected pod, old API": {node: node(with(pod(protected)), old), want: [5]kinds{
			1: {eligibility.PodProtected}, 2: {eligibility.PodProtected}, 3: {eligibility.PodProtected}, 4: {eligibility.PodProtected},
		}},
		"unowned pod": {node: node(with(pod(alone)))},
		"unowned pod, old API": {node: node(with(pod(alone)), old), want: [5]kinds{
			1: {eligibility.PodUnowned}, 2: {eligibility.PodUnowned}, 3: {eligibility.PodUnowned}, 4: {eligibility.PodUnowned},
		}},
		"unowned pod, protected": {node: node(with(pod(alone))), rules: eligibility.Rules{KeepUnowned: true}, want: [5]kinds{
			2: {eligibility.PodUnowned}, 3: {eligibility.PodUnowned}, 4: {eligibility.PodUnowned},
		}},
		"another scheduler's pod": {node: node(with(pod())), rules: eligibility.Rules{Placeable: func(*corev1.Pod) string { return "not ours" }}, want: [5]kinds{
			2: {eligibility.PodUnplaceable}, 3: {eligibility.PodUnplaceable}, 4: {eligibility.PodUnplaceable},
		}},
		"budget": {node: node(with(pod())), budgets: budgets, want: [5]kinds{
			2: {eligibility.PodBudget}, 3: {eligibility.PodBudget}, 4: {eligibility.PodBudget},
		}},
		"several": {node: node(with(pod()), with(pod(protected)), noted(eviction.DoNotDisrupt)), budgets: budgets, want: [5]kinds{
			2: {eligibility.DoNotDisrupt, eligibility.PodBudget, eligibility.PodProtected}, 3: {eligibility.DoNotDisrupt, eligibility.PodBudget, eligibility.PodProtected},
			4: {eligibility.DoNotDisrupt, eligibility.PodBudget, eligibility.PodProtected},
		}},
	} {
		for i, m := range all {
			var got kinds
			for _, x := range eligibility.Blockers(c.node, m, c.budgets, now(), c.rules) {
				got = append(got, x.Kind)
				assert.NotEmpty(t, x.Text)
			}
			assert.Equal(t, c.want[i], got, "%s, %s", name, m)
		}
	}
}

// What stands in the way does not depend on the order in which the pods of a node were read.
func TestBlockersOfPodsInAnyOrder(t *testing.T) {
	second := func(p *corev1.Pod) { p.Name = "web-1" }
	list := func(pods ...*corev1.Pod) []eligibility.Blocker {
		return eligibility.Blockers(node(func(n *eligibility.Node) { n.Pods = pods }), eligibility.Consolidation, eviction.Budgets{}, now(), eligibility.Rules{})
	}
	want := list(pod(protected), pod(protected, second))
	assert.Len(t, want, 2)
	assert.Equal(t, want, list(pod(protected, second), pod(protected)))
}

func TestTimes(t *testing.T) {
	hour := func(h float64) time.Time { return now().Add(time.Duration(h * float64(time.Hour))) }
	n := node()
	_, ok := n.ExpiresAt()
	assert.False(t, ok, "Never")
	assert.InDelta(t, 1, n.Lifetime(now()), 1e-12)
	n.Pool.Disruption.ExpireAfter = after(4 * time.Hour)
	at, _ := n.ExpiresAt()
	assert.Equal(t, hour(3), at)
	assert.InDelta(t, 0.75, n.Lifetime(now()), 1e-12)
	n.Claim.ExpireAfter, n.Claim.Created = after(2*time.Hour), hour(-1.5)
	at, _ = n.ExpiresAt()
	assert.Equal(t, hour(0.5), at, "the claim's own setting goes first")
	left, _ := n.RemainingLife(hour(9))
	assert.Zero(t, left)
	assert.Equal(t, hour(-1.5), n.QuietSince())
	n.Claim.Initialized = hour(-1.4)
	assert.Equal(t, hour(-1.4), n.QuietSince())
	n.Claim.LastPodEvent = hour(-0.5)
	assert.Equal(t, hour(-0.5), n.QuietSince())
	n.Node.Annotations = map[string]string{eligibility.EmptinessTimestamp: hour(-0.25).Format(time.RFC3339)}
	assert.Equal(t, hour(-0.25), n.QuietSince())
	n.Pods = []*corev1.Pod{pod()}
	assert.Equal(t, hour(-0.5), n.QuietSince(), "the annotation speaks of empty nodes")
	n.Claim = eligibility.Claim{Created: hour(-1.5), Decides: true}
	_, ok = n.ExpiresAt()
	assert.False(t, ok, "the claim says never, whatever the pool says by now")
	n.Node.CreationTimestamp, n.Claim = metav1.Time{}, eligibility.Claim{}
	_, ok = n.ExpiresAt()
	assert.False(t, ok, "its age is unknown")
}

func TestLastPodEvent(t *testing.T) {
	minute := func(m int) metav1.Time { return metav1.NewTime(now().Add(time.Duration(m) * time.Minute)) }
	changed := func(kind corev1.PodConditionType, m int) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, LastTransitionTime: minute(m)})
		}
	}
	for name, c := range map[string]struct {
		changes []func(*corev1.Pod)
		want    int
	}{
		"made":             {nil, -60},
		"bound":            {[]func(*corev1.Pod){changed(corev1.PodScheduled, -50)}, -50},
		"ready is nothing": {[]func(*corev1.Pod){changed(corev1.PodScheduled, -50), changed(corev1.PodReady, -10)}, -50},
		"ended": {[]func(*corev1.Pod){changed(corev1.PodScheduled, -50), changed(corev1.PodReady, -10), func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodSucceeded
		}}, -10},
		"deleted, its end is to come": {[]func(*corev1.Pod){func(p *corev1.Pod) { at := minute(5); p.DeletionTimestamp = &at }}, 0},
		"deleted":                     {[]func(*corev1.Pod){func(p *corev1.Pod) { at := minute(-5); p.DeletionTimestamp = &at }}, -5},
	} {
		p := pod(append([]func(*corev1.Pod){func(p *corev1.Pod) { p.CreationTimestamp = minute(-60) }}, c.changes...)...)
		assert.Equal(t, minute(c.want).Time, eligibility.LastPodEvent(p, now()), name)
	}
}

func ExampleBlockers() {
	n := node(with(pod(protected)))
	for _, b := range eligibility.Blockers(n, eligibility.Consolidation, eviction.Budgets{}, now(), eligibility.Rules{}) {
		fmt.Println(b.Kind, "-", b)
	}
	// Output: pod-protected - shop/web-0: annotation karpenter.sh/do-not-disrupt=true
}
