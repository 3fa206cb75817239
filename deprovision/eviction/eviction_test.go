package eviction_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joinery-sdk/joinery/deprovision/eviction"
)

func now() time.Time { return time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC) }

func pod(change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", Labels: map[string]string{"app": "web"}}}
	for _, c := range change {
		c(p)
	}
	return p
}

func owner(kind string, controller bool) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{Kind: kind, Name: "o", Controller: &controller})
	}
}

func annotation(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value) }
}

func phase(ph corev1.PodPhase) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.Phase = ph } }

func ending(p *corev1.Pod) { at := metav1.NewTime(now()); p.DeletionTimestamp = &at }

func unready(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
}

func TestReschedulable(t *testing.T) {
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"usual":                         {pod(owner("ReplicaSet", true)), true},
		"unowned":                       {pod(), true},
		"finished":                      {pod(phase(corev1.PodSucceeded)), false},
		"failed":                        {pod(phase(corev1.PodFailed)), false},
		"daemon":                        {pod(owner("DaemonSet", true)), false},
		"owned, not run by, a daemon":   {pod(owner("DaemonSet", false)), true},
		"static":                        {pod(owner("Node", true)), false},
		"mirror":                        {pod(annotation(corev1.MirrorPodAnnotationKey, "x")), false},
		"ending":                        {pod(owner("ReplicaSet", true), ending), false},
		"ending, its set makes it anew": {pod(owner("StatefulSet", true), ending), true},
	} {
		assert.Equal(t, c.want, eviction.Reschedulable(c.pod), name)
	}
}

func TestUnowned(t *testing.T) {
	assert.True(t, eviction.Unowned(pod()))
	assert.True(t, eviction.Unowned(pod(owner("ReplicaSet", false))))
	assert.False(t, eviction.Unowned(pod(owner("ReplicaSet", true))))
	assert.False(t, eviction.Unowned(pod(annotation(corev1.MirrorPodAnnotationKey, "x"))))
}

func TestCost(t *testing.T) {
	priority := func(n int32) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.Priority = &n } }
	assert.InDelta(t, 1.0, eviction.Cost(pod()), 1e-12)
	assert.InDelta(t, 2.0, eviction.Cost(pod(annotation(eviction.DeletionCost, "134217728"))), 1e-12)
	assert.InDelta(t, 2.0, eviction.Cost(pod(priority(1<<25))), 1e-12)
	assert.InDelta(t, 10.0, eviction.Cost(pod(priority(2_000_000_000))), 1e-12, "at most 10")
	assert.InDelta(t, -10.0, eviction.Cost(pod(priority(-2_000_000_000))), 1e-12, "at least -10")
	assert.InDelta(t, 1.0, eviction.Cost(pod(annotation(eviction.DeletionCost, "a lot"))), 1e-12)
	const one = "134217728" // as much as a pod
	for own, want := range map[string]float64{"0": 1, one: 2, "-" + one: 0, "": 1, "1.5": 1, one + "x": 1, " " + one: 1, "4294967296": 1} {
		for _, other := range []string{"", one, "-" + one} { // the annotation decides alone, even if it is void
			p := pod(annotation(eviction.DisruptionCost, own), annotation(eviction.DeletionCost, other))
			assert.InDelta(t, want, eviction.Cost(p), 1e-12, "%q and %q", own, other)
			if own == "" {
				continue
			}
			assert.InDelta(t, want, eviction.Cost(pod(annotation(eviction.DeletionCost, own))), 1e-12, "%q", own)
		}
	}
	assert.InDelta(t, 1.0, eviction.Disruption([]*corev1.Pod{pod(priority(-2_000_000_000))}), 1e-12, "pods that ask to go take nothing off others")
}

func TestProtected(t *testing.T) {
	started := func(ago time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { at := metav1.NewTime(now().Add(-ago)); p.Status.StartTime = &at }
	}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"nothing":              {pod(), ""},
		"do-not-disrupt":       {pod(annotation(eviction.DoNotDisrupt, "true")), "karpenter.sh/do-not-disrupt=true"},
		"do-not-evict":         {pod(annotation(eviction.DoNotEvict, "true")), "karpenter.sh/do-not-evict=true"},
		"false":                {pod(annotation(eviction.DoNotDisrupt, "false")), ""},
		"for an hour, started": {pod(annotation(eviction.DoNotDisrupt, "1h"), started(30*time.Minute)), "karpenter.sh/do-not-disrupt=1h"},
		"for an hour, over":    {pod(annotation(eviction.DoNotDisrupt, "1h"), started(time.Hour)), ""},
		"for an hour, waiting": {pod(annotation(eviction.DoNotDisrupt, "1h")), "karpenter.sh/do-not-disrupt=1h"},
		"no duration":          {pod(annotation(eviction.DoNotDisrupt, "soon")), ""},
		"less than nothing":    {pod(annotation(eviction.DoNotDisrupt, "-1h")), ""},
		"finished":             {pod(annotation(eviction.DoNotDisrupt, "true"), phase(corev1.PodSucceeded)), ""},
	} {
		assert.Equal(t, c.want, eviction.Protected(c.pod, now()), name)
	}
}

func TestEvictable(t *testing.T) {
	tolerant := func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }
	assert.True(t, eviction.Evictable(pod()))
	assert.True(t, eviction.Evictable(pod(owner("DaemonSet", true))))
	assert.False(t, eviction.Evictable(pod(tolerant)))
	assert.False(t, eviction.Evictable(pod(owner("Node", true))))
	assert.False(t, eviction.Evictable(pod(ending)))
}

func pdb(name string, change ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	for _, c := range change {
		c(b)
	}
	return b
}

func allows(n int32) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = n }
}

func TestBudgets(t *testing.T) {
	always := policyv1.AlwaysAllow
	zero, whole := intstr.FromString("0%"), intstr.FromString("100%")
	lenient := func(b *policyv1.PodDisruptionBudget) { b.Spec.UnhealthyPodEvictionPolicy = &always }
	for name, c := range map[string]struct {
		list   []*policyv1.PodDisruptionBudget
		pod    *corev1.Pod
		blocks bool
		always bool
	}{
		"none":                         {nil, pod(), false, false},
		"one that allows":              {[]*policyv1.PodDisruptionBudget{pdb("a", allows(1))}, pod(), false, false},
		"one that does not":            {[]*policyv1.PodDisruptionBudget{pdb("a")}, pod(), true, false},
		"two":                          {[]*policyv1.PodDisruptionBudget{pdb("a", allows(1)), pdb("b", allows(1))}, pod(), true, true},
		"not ready, lenient":           {[]*policyv1.PodDisruptionBudget{pdb("a", lenient)}, pod(unready), false, false},
		"ready, lenient":               {[]*policyv1.PodDisruptionBudget{pdb("a", lenient)}, pod(), true, false},
		"not ready, enough others":     {[]*policyv1.PodDisruptionBudget{pdb("a", func(b *policyv1.PodDisruptionBudget) { b.Status.CurrentHealthy, b.Status.DesiredHealthy = 2, 2 })}, pod(unready), false, false},
		"not ready, not enough others": {[]*policyv1.PodDisruptionBudget{pdb("a", func(b *policyv1.PodDisruptionBudget) { b.Status.CurrentHealthy, b.Status.DesiredHealthy = 1, 2 })}, pod(unready), true, false},
		"allows none, maxUnavailable":  {[]*policyv1.PodDisruptionBudget{pdb("a", func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable = &zero })}, pod(), true, true},
		"allows none, minAvailable":    {[]*policyv1.PodDisruptionBudget{pdb("a", func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable = &whole })}, pod(), true, true},
		"of another namespace":         {[]*policyv1.PodDisruptionBudget{pdb("a", func(b *policyv1.PodDisruptionBudget) { b.Namespace = "batch" })}, pod(), false, false},
		"empty selector takes all":     {[]*policyv1.PodDisruptionBudget{pdb("a", func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = &metav1.LabelSelector{} })}, pod(), true, false},
		"no selector takes none":       {[]*policyv1.PodDisruptionBudget{pdb("a", func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = nil })}, pod(), false, false},
	} {
		r := eviction.NewBudgets(c.list).Check(c.pod)
		assert.Equal(t, c.blocks, r.Text != "", name)
		assert.Equal(t, c.always, r.Always, name)
	}
	b := eviction.NewBudgets([]*policyv1.PodDisruptionBudget{pdb("a", allows(3))})
	assert.Equal(t, 3, b.Allowed("shop/a"))
	assert.Equal(t, 0, b.Allowed("shop/none"))
	assert.False(t, b.Free(pod()))
	assert.True(t, eviction.Budgets{}.Free(pod()))
}

// The eviction API asks no budget about a pod that has not started, is done, or is being deleted already.
func TestBudgetsProtectPodsThatRun(t *testing.T) {
	never := intstr.FromInt32(0)
	lists := map[string][]*policyv1.PodDisruptionBudget{
		"used up": {pdb("a")}, "never": {pdb("a", func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable = &never })}, "two": {pdb("a", allows(2)), pdb("b")},
	}
	for name, list := range lists {
		b := eviction.NewBudgets(list)
		for what, p := range map[string]*corev1.Pod{
			"waits for its image": pod(phase(corev1.PodPending), unready), "is done": pod(phase(corev1.PodSucceeded)), "has failed": pod(phase(corev1.PodFailed)), "is going": pod(phase(corev1.PodRunning), ending),
		} {
			assert.Equal(t, eviction.Refusal{}, b.Check(p), "%s: a pod that %s", name, what)
			assert.True(t, b.Free(p), "%s: a pod that %s", name, what)
		}
		for what, p := range map[string]*corev1.Pod{"runs": pod(phase(corev1.PodRunning)), "is not ready": pod(phase(corev1.PodRunning), unready), "is as in a manifest": pod()} {
			assert.NotEmpty(t, b.Check(p).Text, "%s: a pod that %s", name, what)
			assert.False(t, b.Free(p), "%s: a pod that %s", name, what)
		}
	}
}

func ExampleNewBudgets() {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	budgets := eviction.NewBudgets([]*policyv1.PodDisruptionBudget{b})
	fmt.Println(budgets.Check(pod()).Text)
	b.Status.ExpectedPods, b.Status.CurrentHealthy, b.Status.DesiredHealthy = 2, 1, 1 // as a cluster writes it
	fmt.Println(budgets.Check(pod()).Text)
	// Output:
	// PodDisruptionBudget shop/web has no status, which counts as 0 allowed disruptions
	// PodDisruptionBudget shop/web allows 0 disruptions
}

// A budget that never allows a disruption says so, with a status or without. One of a manifest says that it has none.
func TestBudgetsWithoutStatus(t *testing.T) {
	one, none := intstr.FromInt32(1), intstr.FromInt32(0)
	for want, change := range map[string]func(*policyv1.PodDisruptionBudget){
		"PodDisruptionBudget shop/a has no status, which counts as 0 allowed disruptions": func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable = &one },
		"PodDisruptionBudget shop/a allows 0 disruptions":                                 func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable = &none },
		"PodDisruptionBudget shop/a allows 0 disruptions ": func(b *policyv1.PodDisruptionBudget) {
			b.Spec.MaxUnavailable, b.Status.ObservedGeneration = &one, 1
		},
		"": allows(1),
	} {
		assert.Equal(t, strings.TrimSpace(want), eviction.NewBudgets([]*policyv1.PodDisruptionBudget{pdb("a", change)}).Check(pod()).Text)
	}
}

func ExampleProtected() {
	fmt.Println(eviction.Protected(pod(annotation(eviction.DoNotDisrupt, "true")), now()))
	// Output: karpenter.sh/do-not-disrupt=true
}

// The eviction API refuses until the controller has seen the latest spec, except for unready pods
// that do not count.
func TestAStatusOfAnOlderSpec(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	o := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 3},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selector},
		Status:     policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, DisruptionsAllowed: 2, CurrentHealthy: 3, DesiredHealthy: 1},
	}
	b := eviction.NewBudgets([]*policyv1.PodDisruptionBudget{o})
	r := b.Check(pod())
	assert.Equal(t, "PodDisruptionBudget shop/web allows 0 disruptions until its controller has seen its latest spec (generation 3, observed 2)", r.Text)
	assert.False(t, r.Always)
	assert.Equal(t, 0, b.Allowed("shop/web"))
	assert.Empty(t, b.Check(pod(unready)).Text)
	none := intstr.FromInt32(0)
	strict := o.DeepCopy()
	strict.Spec.MaxUnavailable = &none
	assert.True(t, eviction.NewBudgets([]*policyv1.PodDisruptionBudget{strict}).Check(pod()).Always, "the new spec allows none")
	seen := o.DeepCopy()
	seen.Status.ObservedGeneration = 3
	b = eviction.NewBudgets([]*policyv1.PodDisruptionBudget{seen})
	assert.Empty(t, b.Check(pod()).Text)
	assert.Equal(t, 2, b.Allowed("shop/web"))
}
