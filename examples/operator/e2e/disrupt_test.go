package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
	"github.com/joinery-sdk/joinery/examples/operator/sandbox"
)

// quiet is a pool that gives nothing back by itself.
func quiet(p *karpv1.NodePool) {
	p.Spec.Disruption.ConsolidateAfter = karpv1.MustParseNillableDuration("Never")
}

// apart puts every pod on a node of its own.
func apart(p *corev1.PodTemplateSpec) {
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
	}}}}
}

// replaced waits until none of the machines of before is left and so many pods run.
func replaced(t *testing.T, before map[string]bool, n int) {
	t.Helper()
	reach(t, "every machine is replaced", func(s sandbox.State) bool {
		for _, m := range world.Cloud.Truth() {
			if before[m.ID] {
				return false
			}
		}
		return s.Running == n && s.Pods == n && s.Nodes == s.Machines
	})
}

func machines() map[string]bool {
	out := map[string]bool{}
	for _, m := range world.Cloud.Truth() {
		out[m.ID] = true
	}
	return out
}

// watchReady notes the least number of pods that were ready at any time until it is stopped.
func watchReady(t *testing.T) (least func() int) {
	t.Helper()
	stop, done := make(chan struct{}), make(chan int)
	go func() {
		few := 1 << 20
		for {
			select {
			case <-stop:
				done <- few
				return
			case <-time.After(50 * time.Millisecond):
			}
			if s, err := world.State(t.Context()); err == nil {
				few = min(few, s.Running)
			}
		}
	}()
	return func() int { close(stop); return <-done }
}

// A drain waits for a PodDisruptionBudget: with one disruption allowed, never fewer than all but one run.
func TestPodDisruptionBudget(t *testing.T) {
	app := sandbox.Inflate("web", 4, "500m", "256Mi", apart)
	one := intstr.FromInt32(1)
	begin(t, fast(), sandbox.Pool("default", quiet), app, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: app.Spec.Selector},
	})
	running(t, 4)
	before := machines()
	least := watchReady(t)
	for _, c := range claims(t) {
		require.NoError(t, world.Client.Delete(t.Context(), &c))
	}
	replaced(t, before, 4)
	require.GreaterOrEqual(t, least(), 3)
}

// A pod that must not be disturbed keeps its node from consolidation, and a node that must go waits for it until its time is up.
func TestDoNotDisruptAndGracePeriod(t *testing.T) {
	app := sandbox.Inflate("job", 1, "200m", "256Mi", func(p *corev1.PodTemplateSpec) {
		p.Annotations = map[string]string{karpv1.DoNotDisruptAnnotationKey: "true"}
	})
	big := sandbox.Inflate("big", 1, "6", "1Gi", func(p *corev1.PodTemplateSpec) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: app.Spec.Selector,
		}}}}
	})
	begin(t, fast(), sandbox.Pool("default", func(p *karpv1.NodePool) {
		p.Spec.Template.Spec.TerminationGracePeriod = &metav1.Duration{Duration: 15 * time.Second}
	}), app, big)
	running(t, 2)
	// If the second pod comes after the first batch, a node for the first alone is there for a moment.
	reach(t, "the pods are on one node", func(s sandbox.State) bool { return s.Nodes == 1 && s.Claims == 1 })
	require.NoError(t, world.Client.Delete(t.Context(), big)) // the node is far too large now
	before := machines()
	reach(t, "one pod is left", func(s sandbox.State) bool { return s.Pods == 1 })
	steady(t, 8*time.Second, func() error {
		for _, m := range world.Cloud.Truth() {
			if !before[m.ID] {
				return fmt.Errorf("the node of a protected pod is being replaced by %s", m.Type)
			}
		}
		return nil
	})
	start := time.Now()
	require.NoError(t, world.Client.Delete(t.Context(), &nodes(t)[0])) // somebody wants it to go
	replaced(t, before, 1)
	require.Greater(t, time.Since(start), 10*time.Second, "it was drained before its time was up")
}

// The cloud takes a spot machine back: what replaces it runs before the pods of the old one are moved.
func TestInterruption(t *testing.T) {
	begin(t, fast(), sandbox.Pool("default", quiet), sandbox.Inflate("web", 1, "1", "1Gi"))
	running(t, 1)
	before := machines()
	var old string
	for id := range before {
		old = id
	}
	at := nodes(t)[0].Name
	require.NoError(t, world.Cloud.Interrupt(old, interruption.SpotInterrupted, 2*time.Minute))
	eventually(t, func() error {
		ready := 0
		for _, n := range nodes(t) {
			if n.Labels[karpv1.NodeInitializedLabelKey] == "true" {
				ready++
			}
		}
		for _, p := range pods(t) {
			if p.Spec.NodeName == at && p.DeletionTimestamp == nil {
				if ready > 1 {
					return nil
				}
				return fmt.Errorf("%d nodes are ready", ready)
			}
		}
		return nil
	})
	replaced(t, before, 1)
	require.NoError(t, hasEvent(t, string(interruption.SpotInterrupted), ""))
}

// A node that is empty goes after the pool's time, and not before.
func TestEmptiness(t *testing.T) {
	app := sandbox.Inflate("app", 1, "1", "1Gi")
	begin(t, fast(), sandbox.Pool("default", func(p *karpv1.NodePool) {
		p.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidationPolicyWhenEmpty
		p.Spec.Disruption.ConsolidateAfter = karpv1.MustParseNillableDuration("15s")
	}), app)
	running(t, 1)
	scale(t, app, 0)
	start := time.Now()
	reach(t, "nothing is left", func(s sandbox.State) bool { return s == sandbox.State{} })
	require.Greater(t, time.Since(start), 8*time.Second)
}

// Nodes that are as old as their pool allows are replaced.
func TestExpiration(t *testing.T) {
	begin(t, fast(), sandbox.Pool("default", quiet, func(p *karpv1.NodePool) {
		p.Spec.Template.Spec.ExpireAfter = karpv1.MustParseNillableDuration("25s")
	}), sandbox.Inflate("app", 2, "1", "1Gi"))
	running(t, 2)
	replaced(t, machines(), 2)
}

// A node class that is changed makes its nodes drift, and so does a pool.
func TestDrift(t *testing.T) {
	pool := sandbox.Pool("default", quiet)
	begin(t, fast(), pool, sandbox.Inflate("app", 2, "1", "1Gi"))
	running(t, 2)
	before := machines()
	class := sandbox.Class()
	class.Spec.NodeRegistrationDelay = metav1.Duration{Duration: time.Second}
	require.NoError(t, world.Apply(t.Context(), class))
	replaced(t, before, 2)
	before = machines()
	patch := client.MergeFrom(pool.DeepCopy())
	pool.Spec.Template.Labels = map[string]string{"team": "a"}
	require.NoError(t, world.Client.Patch(t.Context(), pool, patch))
	replaced(t, before, 2)
	require.Equal(t, "a", nodes(t)[0].Labels["team"])
}

// Many small nodes become few when their pods fit on fewer.
func TestConsolidation(t *testing.T) {
	a, b := sandbox.Inflate("a", 3, "1200m", "1Gi", apart), sandbox.Inflate("b", 6, "400m", "512Mi")
	begin(t, fast(), sandbox.Pool("default"), a, b)
	running(t, 9)
	before := reach(t, "it is at rest", func(s sandbox.State) bool { return s.Nodes == s.Machines })
	scale(t, a, 1)
	reach(t, "fewer nodes, less cost", func(s sandbox.State) bool {
		return s.Running == 7 && s.Pods == 7 && s.Nodes < before.Nodes && s.Cost < before.Cost
	})
}

// The deletion of a node is a drain; so is that of a claim; and that of a pool ends all of its nodes.
func TestDeleteNodeAndPool(t *testing.T) {
	pool := sandbox.Pool("default", quiet)
	app := sandbox.Inflate("app", 2, "1", "1Gi", apart)
	begin(t, fast(), pool, app)
	running(t, 2)
	before := machines()
	for _, n := range nodes(t) {
		require.NoError(t, world.Client.Delete(t.Context(), &n))
	}
	replaced(t, before, 2)
	require.NoError(t, world.Client.Delete(t.Context(), pool))
	reach(t, "no node is left, and the pods wait", func(s sandbox.State) bool { return s.Nodes == 0 && s.Machines == 0 && s.Claims == 0 && s.Pods == 2 })
}

// A node with a startup taint is ready for pods when somebody takes it off, and no second node is bought meanwhile.
func TestStartupTaint(t *testing.T) {
	taint := corev1.Taint{Key: "example.com/agent", Effect: corev1.TaintEffectNoSchedule}
	begin(t, fast(), sandbox.Pool("default", quiet, func(p *karpv1.NodePool) { p.Spec.Template.Spec.StartupTaints = []corev1.Taint{taint} }), sandbox.Inflate("app", 1, "1", "1Gi"))
	reach(t, "the claim is there", func(s sandbox.State) bool { return s.Claims == 1 })
	require.NoError(t, world.Apply(t.Context(), sandbox.Inflate("tiny", 1, "10m", "16Mi"))) // it fits there, too, and has all planned again
	reach(t, "the node is there", func(s sandbox.State) bool { return s.Nodes == 1 })
	steady(t, 8*time.Second, func() error {
		if n := len(world.Cloud.Truth()); n != 1 {
			return fmt.Errorf("%d machines", n)
		}
		return nil
	})
	require.Empty(t, nodes(t)[0].Labels[karpv1.NodeInitializedLabelKey])
	eventually(t, func() error {
		n := nodes(t)[0]
		before := n.DeepCopy()
		n.Spec.Taints = nil
		return world.Client.Patch(t.Context(), &n, client.MergeFrom(before))
	})
	running(t, 2)
}
