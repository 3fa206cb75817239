package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
)

// restarted is the operator of a new process: it knows nothing but what is in the cluster.
func restarted(o *Operator) *Operator {
	return &Operator{options: o.options, client: o.client, api: o.api, events: o.events, wake: make(chan struct{}, 1), busy: map[string]bool{}, planned: map[types.UID]planned{}}
}

// leavingClaims returns the names of the claims that are being deleted, and how many there are in all.
func leavingClaims(t *testing.T, o *Operator) (names []string, all int) {
	list := claims(t, o)
	for _, c := range list {
		if c.DeletionTimestamp != nil {
			names = append(names, c.Name)
		}
	}
	return names, len(list)
}

// full is a pool at its limit of CPUs, with its nodes, which a pod fills each. change makes nodes broken or drifted.
func full(change func(*karpv1.NodeClaim, *corev1.Node), names ...string) []client.Object {
	objects := []client.Object{pool("default", func(p *karpv1.NodePool) {
		p.Spec.Limits = karpv1.Limits{corev1.ResourceCPU: *resource.NewQuantity(int64(4*len(names)), resource.DecimalSI)}
		p.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "100%"}}
	})}
	for _, name := range names {
		c, n := ready(name, "id-"+name)
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		change(c, n)
		objects = append(objects, c, n, pod("pod-"+name, name, func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodRunning
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("3")
		}))
	}
	return objects
}

// Where nothing can be bought before a broken node goes, it goes first. When its machine is gone, provisioning buys the successor. A restart
// at any time in between changes nothing, and nothing goes twice.
func TestABrokenNodeGoesFirst(t *testing.T) {
	o, _ := operate(t, interceptor.Funcs{}, full(func(_ *karpv1.NodeClaim, n *corev1.Node) { broken(n) }, "n")...)
	o.options.Disruption.TerminateFirst = []eligibility.Method{}
	var seen giveback.Sightings
	_, err := o.disrupt(t.Context(), &seen)
	require.NoError(t, err)
	time.Sleep(100 * time.Millisecond)
	require.False(t, hasTaint(get(t, o, node("n", "")), karpv1.DisruptedTaintKey), "off")

	o.options.Disruption.TerminateFirst = nil
	_, err = o.disrupt(t.Context(), &seen)
	require.NoError(t, err)
	require.True(t, hasTaint(get(t, o, node("n", "")), karpv1.DisruptedTaintKey))
	require.Eventually(t, func() bool { names, _ := leavingClaims(t, o); return len(names) == 1 }, time.Minute, 10*time.Millisecond)
	for range 3 {
		o = restarted(o)
		_, err = o.provision(t.Context())
		require.NoError(t, err)
		_, err = o.disrupt(t.Context(), &giveback.Sightings{})
		require.NoError(t, err)
	}
	names, all := leavingClaims(t, o)
	require.Equal(t, []string{"n"}, names)
	require.Equal(t, 1, all, "its place is not free yet")

	for range 10 { // the drain, the machine, the node, the claim
		list := claims(t, o)
		if len(list) == 0 {
			break
		}
		_, err = restarted(o).reconcileClaim(t.Context(), &list[0])
		require.NoError(t, err)
	}
	require.Empty(t, claims(t, o))
	require.NoError(t, o.client.Create(t.Context(), pod("again", "", func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("3")
	})))
	for range 3 {
		o = restarted(o)
		_, err = o.provision(t.Context())
		require.NoError(t, err)
		_, err = o.disrupt(t.Context(), &giveback.Sightings{})
		require.NoError(t, err)
	}
	names, all = leavingClaims(t, o)
	require.Empty(t, names)
	require.Equal(t, 1, all, "the successor, once")
}

// Of drifted nodes that need the same place one goes at a time, even if the operator is restarted while it leaves, and while its pods wait.
func TestDriftedNodesGoOneAtATime(t *testing.T) {
	o, _ := operate(t, interceptor.Funcs{}, full(func(c *karpv1.NodeClaim, _ *corev1.Node) {
		c.StatusConditions().SetTrueWithReason("Drifted", "Old", "old")
	}, "a", "b", "c")...)
	o.options.Disruption.TerminateFirst = []eligibility.Method{eligibility.Drift}
	_, err := o.disrupt(t.Context(), &giveback.Sightings{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { names, _ := leavingClaims(t, o); return len(names) == 1 }, time.Minute, 10*time.Millisecond)
	again := func() {
		o = restarted(o)
		_, err := o.disrupt(t.Context(), &giveback.Sightings{})
		require.NoError(t, err)
		time.Sleep(100 * time.Millisecond)
	}
	again()
	names, all := leavingClaims(t, o)
	require.Len(t, names, 1)
	require.Equal(t, 3, all)
	gone := names[0]
	for range 10 {
		c := &karpv1.NodeClaim{}
		if o.client.Get(t.Context(), client.ObjectKey{Name: gone}, c) != nil {
			break
		}
		_, err = restarted(o).reconcileClaim(t.Context(), c)
		require.NoError(t, err)
	}
	names, all = leavingClaims(t, o)
	require.Empty(t, names)
	require.Equal(t, 2, all)
}
