package controller

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	autoscaling "sigs.k8s.io/karpenter/pkg/apis/autoscaling/v1beta1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/scheduling/buffer"
)

// spareRoom is a buffer of pods of one CPU.
func spareRoom(replicas int32, changes ...func(*autoscaling.CapacityBuffer)) *autoscaling.CapacityBuffer {
	b := &autoscaling.CapacityBuffer{TypeMeta: metav1.TypeMeta{APIVersion: "autoscaling.x-k8s.io/v1beta1", Kind: "CapacityBuffer"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "spare", Generation: 3}}
	b.Spec = autoscaling.CapacityBufferSpec{PodTemplateRef: &autoscaling.LocalObjectRef{Name: "web"}, Replicas: &replicas}
	for _, change := range changes {
		change(b)
	}
	return b
}

func webTemplate() *corev1.PodTemplate {
	p := pod("", "")
	return &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Generation: 7}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}, Spec: p.Spec}}
}

// greedy is a pool that gives back whatever it can, and sells one type.
func greedy(p *karpv1.NodePool) {
	p.Spec.Disruption.ConsolidationPolicy, p.Spec.Disruption.ConsolidateAfter = karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized, karpv1.MustParseNillableDuration("0s")
	p.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "100%"}}
	p.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
		{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"m6a.xlarge"}}, {Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"on-demand"}},
	}
}

// conditionOf is the condition of a buffer.
func conditionOf(t *testing.T, o *Operator, kind string) metav1.Condition {
	t.Helper()
	c := meta.FindStatusCondition(get(t, o, spareRoom(0)).Status.Conditions, kind)
	require.NotNil(t, c, kind)
	return *c
}

// given are the nodes that a plan of disruption gives back.
func given(t *testing.T, o *Operator) (names []string, commands []giveback.Command) {
	t.Helper()
	v, err := o.read(t.Context())
	require.NoError(t, err)
	result, err := o.planDisruption(t.Context(), v)
	require.NoError(t, err)
	for _, c := range result.Commands {
		for _, n := range c.Nodes {
			names = append(names, n.Name)
		}
	}
	return names, result.Commands
}

func woken(o *Operator) bool {
	select {
	case <-o.wake:
		return true
	default:
		return false
	}
}

// The room of a buffer is bought, and its status says so. No pod of it is created.
func TestABufferIsBought(t *testing.T) {
	o, _ := operate(t, interceptor.Funcs{}, pool("default", greedy), spareRoom(3), webTemplate())
	given(t, o)
	require.True(t, woken(o), "its status is empty")
	_, err := o.provision(t.Context())
	require.NoError(t, err)
	require.Len(t, claims(t, o), 1)
	require.Equal(t, buffer.RequiresNew, conditionOf(t, o, autoscaling.ProvisioningCondition).Reason)
	b := get(t, o, spareRoom(0))
	require.EqualValues(t, 3, *b.Status.Replicas)
	require.Equal(t, "web", b.Status.PodTemplateRef.Name)
	require.EqualValues(t, 7, *b.Status.PodTemplateGeneration)
	require.Equal(t, metav1.ConditionTrue, conditionOf(t, o, autoscaling.ReadyForProvisioningCondition).Status)
	require.EqualValues(t, 3, conditionOf(t, o, autoscaling.ProvisioningCondition).ObservedGeneration)
	var pods corev1.PodList
	require.NoError(t, o.client.List(t.Context(), &pods))
	require.Empty(t, pods.Items)
	_, err = o.provision(t.Context())
	require.NoError(t, err)
	require.Len(t, claims(t, o), 1, "what is on its way is not bought again")
	woken(o)
	given(t, o)
	require.False(t, woken(o), "there is nothing to do")
}

// A node with the room of a buffer is not empty, and stays until the room is elsewhere. Pods that exist take it, and it is filled again.
func TestABufferIsKeptTakenAndFilledAgain(t *testing.T) {
	for name, c := range map[string]struct {
		asks  int32
		nodes int
		pods  int
		gives int
		buys  int
		says  string
	}{
		"kept":               {3, 1, 0, 0, 0, buffer.FitsExisting},
		"one is enough":      {3, 2, 0, 1, 0, buffer.FitsExisting},
		"both are needed":    {5, 2, 0, 0, 0, buffer.FitsExisting},
		"beside pods":        {2, 1, 1, 0, 0, buffer.FitsExisting},
		"taken":              {3, 1, 3, 0, 1, buffer.RequiresNew},
		"nothing is asked":   {0, 1, 0, 1, 0, buffer.Empty},
		"with pods, no room": {0, 1, 1, 0, 0, buffer.Empty},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{pool("default", greedy), spareRoom(c.asks), webTemplate()}
			for i := range c.nodes {
				name := string(rune('a' + i))
				claim, node := ready(name, name)
				objects = append(objects, claim, node)
			}
			for i := range c.pods {
				objects = append(objects, pod(string(rune('p'+i)), "a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }))
			}
			o, _ := operate(t, interceptor.Funcs{}, objects...)
			names, commands := given(t, o)
			require.Len(t, names, c.gives)
			require.True(t, woken(o), "its status is empty")
			for _, x := range commands {
				require.Empty(t, x.NewNodes)
			}
			_, err := o.provision(t.Context())
			require.NoError(t, err)
			require.Len(t, claims(t, o), c.nodes+c.buys)
			require.Equal(t, c.says, conditionOf(t, o, autoscaling.ProvisioningCondition).Reason)
			given(t, o)
			require.False(t, woken(o), "all is said and done")
		})
	}
}

// A drifted node that holds the room of a buffer is replaced, whatever PodDisruptionBudgets say of the pods that the room is for.
func TestABufferMoves(t *testing.T) {
	c, n := ready("a", "a")
	c.StatusConditions().SetTrueWithReason(karpv1.ConditionTypeDrifted, "x", "x")
	none := intstr.FromInt32(0)
	o, _ := operate(t, interceptor.Funcs{}, pool("default", greedy), spareRoom(3), webTemplate(), c, n, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	})
	names, commands := given(t, o)
	require.Equal(t, []string{"a"}, names)
	require.Len(t, commands[0].NewNodes, 1)
	require.InDelta(t, 1, commands[0].Disruption, 1e-9, "the node itself; the room costs nothing")
}

// Buffers that cannot be filled say why.
func TestBuffersThatCannotBeFilled(t *testing.T) {
	for name, c := range map[string]struct {
		buffer     *autoscaling.CapacityBuffer
		pool       func(*karpv1.NodePool)
		ready, why string
		reason     string
		replicas   int
	}{
		"no place":    {spareRoom(2), func(p *karpv1.NodePool) { p.Spec.Limits = karpv1.Limits{corev1.ResourceCPU: resource.MustParse("0")} }, "Resolved", "limit", buffer.Infeasible, 2},
		"no template": {spareRoom(2, func(b *autoscaling.CapacityBuffer) { b.Spec.PodTemplateRef.Name = "gone" }), greedy, "PodTemplateNotFound", "gone", buffer.NotReady, 0},
		"no workload": {spareRoom(2, func(b *autoscaling.CapacityBuffer) {
			b.Spec.PodTemplateRef, b.Spec.ScalableRef = nil, &autoscaling.ScalableRef{Kind: "Deployment", APIGroup: "apps", Name: "gone"}
		}), greedy, "ScalableRefNotFound", "gone", buffer.NotReady, 0},
		"another kind": {spareRoom(2, func(b *autoscaling.CapacityBuffer) {
			b.Spec.PodTemplateRef, b.Spec.ScalableRef = nil, &autoscaling.ScalableRef{Kind: "Rollout", APIGroup: "argoproj.io", Name: "web"}
		}), greedy, "ResolutionFailed", "want a Deployment", buffer.NotReady, 0},
		"another strategy": {spareRoom(2, func(b *autoscaling.CapacityBuffer) { b.Spec.ProvisioningStrategy = new("example.com/other") }), greedy, "ResolutionFailed", "example.com/other", buffer.NotReady, 0},
		"too many":         {spareRoom(mostSpare + 1), greedy, "ResolutionFailed", "10001", buffer.NotReady, 0},
		"a share of a workload": {spareRoom(0, func(b *autoscaling.CapacityBuffer) {
			b.Spec.PodTemplateRef, b.Spec.Replicas, b.Spec.Percentage = nil, nil, new(int32(30))
			b.Spec.ScalableRef = &autoscaling.ScalableRef{Kind: "Deployment", APIGroup: "apps", Name: "web"}
		}), greedy, "Resolved", "", buffer.RequiresNew, 3},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(8)), Template: webTemplate().Template}}
			o, _ := operate(t, interceptor.Funcs{}, pool("default", c.pool), c.buffer, webTemplate(), d)
			_, err := o.provision(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.ready, conditionOf(t, o, autoscaling.ReadyForProvisioningCondition).Reason)
			now := conditionOf(t, o, autoscaling.ProvisioningCondition)
			require.Equal(t, c.reason, now.Reason)
			require.True(t, strings.Contains(now.Message, c.why), now.Message)
			if b := get(t, o, spareRoom(0)); c.replicas == 0 {
				require.Nil(t, b.Status.Replicas)
			} else {
				require.EqualValues(t, c.replicas, *b.Status.Replicas)
			}
		})
	}
}
