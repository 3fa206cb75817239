package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kwok "sigs.k8s.io/karpenter/kwok/apis/v1alpha1"
	autoscaling "sigs.k8s.io/karpenter/pkg/apis/autoscaling/v1beta1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/operator/memory"
	"github.com/joinery-sdk/joinery/examples/plan"
)

// operate is an operator on a fake API server with these objects, and a cloud that boots at once.
func operate(t *testing.T, faults interceptor.Funcs, objects ...client.Object) (*Operator, *memory.Cloud) {
	t.Helper()
	classes := schema.GroupVersion{Group: "karpenter.kwok.sh", Version: "v1alpha1"}
	groups := schema.GroupVersion{Group: "scheduling.x-k8s.io", Version: "v1alpha1"}
	overlays := schema.GroupVersion{Group: "karpenter.sh", Version: "v1alpha1"}
	buffers := schema.GroupVersion{Group: autoscaling.Group, Version: "v1beta1"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{classes, groups, overlays, buffers})
	for _, x := range objects {
		switch x.GetObjectKind().GroupVersionKind().Kind {
		case "PodGroup":
			mapper.Add(groups.WithKind("PodGroup"), meta.RESTScopeNamespace)
		case "CapacityBuffer":
			mapper.Add(buffers.WithKind("CapacityBuffer"), meta.RESTScopeNamespace)
		case "NodeOverlay":
			mapper.Add(overlays.WithKind("NodeOverlay"), meta.RESTScopeRoot)
		case "CapacityQuota":
			mapper.Add(buffers.WithKind("CapacityQuota"), meta.RESTScopeRoot)
		}
	}
	mapper.Add(classes.WithKind("KWOKNodeClass"), meta.RESTScopeRoot)
	b := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithRESTMapper(mapper).WithInterceptorFuncs(faults).
		WithStatusSubresource(&autoscaling.CapacityBuffer{}, &karpv1.NodeClaim{}, &karpv1.NodePool{}, &corev1.Pod{}, &corev1.Node{}).
		WithObjects(&kwok.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}).WithObjects(objects...)
	require.NoError(t, indexes(func(_ context.Context, o client.Object, field string, value client.IndexerFunc) error {
		b = b.WithIndex(o, field, value)
		return nil
	}))
	catalogue, err := memory.Catalogue("", "us-east-1")
	require.NoError(t, err)
	cloud, err := memory.New(catalogue, memcloud.Config{})
	require.NoError(t, err)
	c := b.Build()
	o := &Operator{
		options: Options{Provider: cloud}.withDefaults(), client: c, api: c, events: events.NewFakeRecorder(10000), wake: make(chan struct{}, 1),
		busy: map[string]bool{}, planned: map[types.UID]planned{},
	}
	return o, cloud
}

func pool(name string, changes ...func(*karpv1.NodePool)) *karpv1.NodePool {
	p := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1}}
	p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
	for _, change := range changes {
		change(p)
	}
	return p
}

func claim(name, id string, conditions ...string) *karpv1.NodeClaim {
	c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), Labels: map[string]string{karpv1.NodePoolLabelKey: "default"}, Finalizers: []string{karpv1.TerminationFinalizer},
	}}
	c.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
	c.Status.ProviderID, c.Status.NodeName = id, name
	for _, kind := range append([]string{karpv1.ConditionTypeLaunched}, conditions...) {
		c.StatusConditions().SetUnknown(kind) // what is true from the start is as old as the claim
		c.StatusConditions().SetTrue(kind)
	}
	return c
}

func node(name, id string, changes ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{karpv1.TerminationFinalizer}}, Spec: corev1.NodeSpec{ProviderID: id}}
	for _, change := range changes {
		change(n)
	}
	return n
}

func pod(name, on string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{NodeName: on}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}
	if on == "" {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

func get[T client.Object](t *testing.T, o *Operator, object T) T {
	t.Helper()
	require.NoError(t, o.client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	return object
}

func claims(t *testing.T, o *Operator) []karpv1.NodeClaim {
	t.Helper()
	var list karpv1.NodeClaimList
	require.NoError(t, o.client.List(t.Context(), &list))
	return list.Items
}

// A claim that the cloud refuses before the caches have shown it does not hold the provisioner up.
func TestAClaimThatIsGoneAtOnce(t *testing.T) {
	faults := interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return nil }}
	o, _ := operate(t, faults, pool("default"), pod("a", ""))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := o.provision(ctx)
	require.NoError(t, err)
	require.NoError(t, ctx.Err())
}

// A pool whose node class is missing does not stop the others.
func TestPoolWithoutAClass(t *testing.T) {
	weight := int32(10)
	o, _ := operate(t, interceptor.Funcs{}, pool("default"), pod("a", ""), pool("broken", func(p *karpv1.NodePool) {
		p.Spec.Weight, p.Spec.Template.Spec.NodeClassRef.Name = &weight, "missing"
	}))
	v, err := o.read(t.Context())
	require.ErrorContains(t, err, "NodePool broken: its node class")
	require.Len(t, v.Pools, 1)
	_, err = o.provision(t.Context())
	require.NoError(t, err)
	require.Equal(t, "default", claims(t, o)[0].Labels[karpv1.NodePoolLabelKey])
}

// A claim that cannot be written down does not cost the pods of the others their nominations.
func TestOneOrderFails(t *testing.T) {
	var failed atomic.Bool
	o, _ := operate(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, x client.Object, opts ...client.CreateOption) error {
		if !failed.Swap(true) {
			return errors.New("no")
		}
		return c.Create(ctx, x, opts...)
	}}, pool("default"), pod("a", "", alone), pod("b", "", alone))
	_, err := o.provision(t.Context())
	require.EqualError(t, err, "no")
	require.Len(t, claims(t, o), 1)
	require.Equal(t, 1, len(o.planned))
}

// A plan that is not confirmed buys nothing, and one that is buys what it says.
func TestPlansAreConfirmed(t *testing.T) {
	o, _ := operate(t, interceptor.Funcs{}, pool("default"), pod("a", ""))
	var asked []int
	o.options.Confirm = func(_ context.Context, p *plan.Plan) error {
		if asked = append(asked, len(p.NewNodes())); len(asked) == 1 {
			return errors.New("no proof is enough")
		}
		return nil
	}
	_, err := o.provision(t.Context())
	require.EqualError(t, err, "no proof is enough")
	require.Empty(t, claims(t, o))
	require.Empty(t, o.planned)
	_, err = o.provision(t.Context())
	require.NoError(t, err)
	require.Len(t, claims(t, o), 1)
	require.Equal(t, []int{1, 1}, asked)
}

func alone(p *corev1.Pod) {
	p.Labels = map[string]string{"app": "alone"}
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
	}}}}
}

// What is asked for is the same on every retry, and what the plan fixed is in the spec.
func TestRequests(t *testing.T) {
	o, cloud := operate(t, interceptor.Funcs{}, pod("a", "", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"team": "red"} }), pool("default", func(p *karpv1.NodePool) {
		p.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{{Key: "team", Operator: corev1.NodeSelectorOpIn, Values: []string{"blue", "red"}}}
	}))
	_, err := o.provision(t.Context())
	require.NoError(t, err)
	c := claims(t, o)[0]
	c.UID = "uid"
	require.NoError(t, o.client.Update(t.Context(), &c))
	ask, err := readRequest(&c)
	require.NoError(t, err)
	require.NoError(t, ask.Validate())
	require.Equal(t, "uid", ask.Token)
	require.Contains(t, c.Spec.Requirements, karpv1.NodeSelectorRequirementWithMinValues{Key: "team", Operator: corev1.NodeSelectorOpIn, Values: []string{"red"}})
	_, err = o.reconcileClaim(t.Context(), &c)
	require.NoError(t, err)
	require.Equal(t, "red", get(t, o, &c).Labels["team"])
	require.Equal(t, "default", c.Labels["karpenter.kwok.sh/kwoknodeclass"], "who lists the claims of a class finds them")
	require.Len(t, cloud.Truth(), 1)
}

// What wakes a claim after its launch may be older than that: the cloud is not asked twice.
func TestStaleCache(t *testing.T) {
	stale := claim("a", "")
	stale.Status = karpv1.NodeClaimStatus{}
	require.NoError(t, writeRequest(stale, someRequest(t)))
	behind := 3
	o, cloud := operate(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, x client.Object, opts ...client.GetOption) error {
		err := c.Get(ctx, key, x, opts...)
		if now, ok := x.(*karpv1.NodeClaim); ok && behind > 0 {
			behind--
			now.Status = karpv1.NodeClaimStatus{}
		}
		return err
	}}, stale)
	for range 2 {
		_, err := o.reconcileClaim(t.Context(), get(t, o, &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "a"}}))
		require.NoError(t, err)
	}
	require.Zero(t, behind)
	require.True(t, get(t, o, stale).StatusConditions().IsTrue(karpv1.ConditionTypeLaunched))
	require.Len(t, cloud.Truth(), 1)
}

func someRequest(t *testing.T) cloudprovider.NodeClaim {
	t.Helper()
	o, _ := operate(t, interceptor.Funcs{}, pool("default"), pod("a", ""))
	_, err := o.provision(t.Context())
	require.NoError(t, err)
	ask, err := readRequest(&claims(t, o)[0])
	require.NoError(t, err)
	return ask
}

// deleting is a claim on its way out.
func deleting(c *karpv1.NodeClaim) *karpv1.NodeClaim {
	now := metav1.Now()
	c.DeletionTimestamp = &now
	return c
}

// One pod that cannot be evicted does not hold up the others.
func TestOneEvictionFails(t *testing.T) {
	o, _ := operate(t, interceptor.Funcs{SubResourceCreate: func(ctx context.Context, c client.Client, sub string, x, s client.Object, opts ...client.SubResourceCreateOption) error {
		if x.GetName() == "a" {
			return apierrors.NewInternalError(errors.New("two budgets select it"))
		}
		return c.SubResource(sub).Create(ctx, x, s, opts...)
	}}, deleting(claim("n", "id")), node("n", "id"), pod("a", "n"), pod("b", "n"))
	waits, err := o.empty(t.Context(), get(t, o, claim("n", "id")), get(t, o, node("n", "id")))
	require.Error(t, err)
	require.True(t, waits)
	require.True(t, apierrors.IsNotFound(o.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "b"}, &corev1.Pod{})))
}

// A node counts as empty when it was so twice: the caches may not have the last pod yet.
func TestEmptyTwice(t *testing.T) {
	o, _ := operate(t, interceptor.Funcs{}, deleting(claim("n", "id")), node("n", "id"))
	look := func() bool {
		waits, err := o.empty(t.Context(), get(t, o, claim("n", "id")), get(t, o, node("n", "id")))
		require.NoError(t, err)
		return waits
	}
	require.True(t, look())
	require.NoError(t, o.client.Create(t.Context(), pod("late", "n")))
	require.True(t, look(), "it was bound before the node was closed")
	require.True(t, apierrors.IsNotFound(o.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "late"}, &corev1.Pod{})), "and is evicted")
	require.False(t, look())
}

// Pods whose kubelet does not answer do not keep a node for ever.
func TestPodsThatNeverEnd(t *testing.T) {
	ended := metav1.NewTime(time.Now().Add(-2 * time.Minute))
	o, _ := operate(t, interceptor.Funcs{}, deleting(claim("n", "id")), node("n", "id"), pod("a", "n", func(p *corev1.Pod) {
		p.DeletionTimestamp, p.Finalizers = &ended, []string{"example.com/stuck"}
	}))
	waits := true
	for range 2 {
		var err error
		waits, err = o.empty(t.Context(), get(t, o, claim("n", "id")), get(t, o, node("n", "id")))
		require.NoError(t, err)
	}
	require.False(t, waits)
}

// A machine may be interrupted before its claim knows which it is.
func TestInterruptedAtOnce(t *testing.T) {
	c := claim("a", "")
	c.Status = karpv1.NodeClaimStatus{}
	o, cloud := operate(t, interceptor.Funcs{}, c)
	ask := someRequest(t)
	ask.Name, ask.Token = "a", "a"
	launch, err := cloud.Create(t.Context(), ask)
	require.NoError(t, err)
	require.NoError(t, o.notice(t.Context(), interruption.Event{Instance: launch.ID, Kind: interruption.SpotInterrupted, Deadline: time.Now().Add(2 * time.Minute)}))
	require.NotNil(t, get(t, o, c).DeletionTimestamp, "nothing runs there")
}

// A command does not wait for its replacements when the cloud is about to take the old machine.
func TestNoTimeToWait(t *testing.T) {
	for left, gone := range map[time.Duration]bool{10 * time.Second: true, 2 * time.Minute: false} {
		old, bought := claim("old", "id-1"), claim("new", "id-2")
		old.Annotations = map[string]string{noticeAnnotation: fmt.Sprintf(`{"Instance":"id-1","Kind":%q,"Deadline":%q}`, interruption.SpotInterrupted, time.Now().Add(left).Format(time.RFC3339))}
		o, _ := operate(t, interceptor.Funcs{}, old, bought)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err := o.finish(ctx, [][]*karpv1.NodeClaim{{old}}, []*karpv1.NodeClaim{bought}, false, nil)
		cancel()
		require.Equal(t, gone, err == nil, "%v", err)
		require.Equal(t, gone, get(t, o, old).DeletionTimestamp != nil)
	}
}

// A node that was deleted past its finalizer takes its claim with it; one that has not joined yet is waited for.
func TestNodeGone(t *testing.T) {
	o, _ := operate(t, interceptor.Funcs{}, claim("a", "id-1", karpv1.ConditionTypeRegistered), claim("b", "id-2"))
	for _, c := range claims(t, o) {
		_, err := o.reconcileClaim(t.Context(), &c)
		require.NoError(t, err)
	}
	require.NotNil(t, get(t, o, claim("a", "")).DeletionTimestamp)
	require.Nil(t, get(t, o, claim("b", "")).DeletionTimestamp)
}

// Every change of a pool has the pods planned again, that of its limits, too.
func TestChangedPoolsWake(t *testing.T) {
	o, _ := operate(t, interceptor.Funcs{}, pool("default"))
	woken := func() bool {
		for range 2 { // once more changes nothing
			_, err := o.reconcilePool(t.Context(), get(t, o, pool("default")))
			require.NoError(t, err)
		}
		select {
		case <-o.wake:
			return true
		default:
			return false
		}
	}
	require.True(t, woken())
	require.False(t, woken())
	p := get(t, o, pool("default"))
	p.Spec.Limits, p.Generation = karpv1.Limits{corev1.ResourceCPU: resource.MustParse("100")}, 2
	require.NoError(t, o.client.Update(t.Context(), p))
	require.True(t, woken())
}

// A pod waits for the node that it is planned for, and is planned anew when that is there, or will never be.
func TestAPlannedPodWaits(t *testing.T) {
	going := claim("going", "id-3")
	going.Finalizers, going.DeletionTimestamp = []string{karpv1.TerminationFinalizer}, &metav1.Time{Time: time.Now()}
	o, _ := operate(t, interceptor.Funcs{}, claim("open", "id", karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized), claim("coming", "id-2"), going)
	for to, want := range map[string]bool{"open": false, "coming": true, "going": false, "gone": false, "": false} {
		o.planned["a"] = planned{claim: to}
		result, err := o.reconcilePod(t.Context(), pod("a", ""))
		require.NoError(t, err)
		require.Equal(t, want, result.RequeueAfter > 0, to)
		require.Equal(t, want, len(o.wake) == 0, to)
		o.wake = make(chan struct{}, 1)
	}
}

// Nodes of one plan are opened together, after their pods are nominated, but not those that would keep each other out. The next plan does
// not count on nominations of ours: kube-scheduler may have refused them.
func TestOpen(t *testing.T) {
	joined := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{karpv1.UnregisteredNoExecuteTaint}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	}
	spread := func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule}}
	}
	making := func(p *corev1.Pod) { p.Status.NominatedNodeName = "n" }
	o, _ := operate(t, interceptor.Funcs{}, claim("n", "id-n", karpv1.ConditionTypeRegistered), node("n", "id-n", joined), claim("m", "id-m"), node("m", "id-m", joined),
		pod("a", ""), pod("s", "", spread), pod("c", ""), pod("bound", "n"), pod("other", "", making))
	for to, names := range map[string][]string{"n": {"a", "s", "bound"}, "m": {"c"}, "gone": {"d"}} {
		for _, name := range names {
			o.planned[types.UID(name)] = planned{to, types.NamespacedName{Namespace: "default", Name: name}}
		}
	}
	// open returns when the claim of n has to look again, and what is then nominated and open.
	open := func() (again time.Duration, nominated, open []string) {
		result, err := o.stepClaim(t.Context(), get(t, o, claim("n", "")))
		require.NoError(t, err)
		for _, name := range []string{"a", "s", "c", "bound", "other"} {
			if get(t, o, pod(name, "")).Status.NominatedNodeName != "" {
				nominated = append(nominated, name)
			}
		}
		for _, name := range []string{"n", "m"} {
			if !hasTaint(get(t, o, node(name, "")), karpv1.UnregisteredTaintKey) {
				open = append(open, name)
			}
		}
		return result.RequeueAfter, nominated, open
	}
	again, nominated, opened := open()
	require.Positive(t, again, "the other one is still coming")
	require.LessOrEqual(t, again, openAfter)
	require.Equal(t, []string{"other"}, nominated)
	require.Empty(t, opened)

	require.NoError(t, o.register(t.Context(), get(t, o, claim("m", "")), get(t, o, node("m", ""))))
	again, nominated, opened = open()
	require.Zero(t, again)
	require.Equal(t, []string{"a", "c", "other"}, nominated)
	require.Equal(t, []string{"n", "m"}, opened)
	dropped := get(t, o, pod("c", ""))
	require.NoError(t, o.writeStatus(t.Context(), dropped, func() { dropped.Status.NominatedNodeName = "" }))
	_, err := o.reconcilePod(t.Context(), dropped)
	require.NoError(t, err)
	require.Equal(t, "m", get(t, o, pod("c", "")).Status.NominatedNodeName, "kube-scheduler had tried it before the node was open")

	v, err := o.read(t.Context())
	require.NoError(t, err)
	for _, p := range v.Pods {
		require.Equal(t, p.Name == "other", p.Status.NominatedNodeName != "", "%s: there kube-scheduler makes room", p.Name)
	}
}

// A node that is not ready, or that waits for the others of its plan, is opened after a while, and with it all that are ready. Of
// thousands of pods, none is nominated.
func TestOpenLate(t *testing.T) {
	joined := func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{karpv1.UnregisteredNoExecuteTaint} }
	works := func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	}
	for _, more := range []int{0, mostNominated} {
		late := claim("late", "id-late", karpv1.ConditionTypeRegistered)
		for i := range late.Status.Conditions {
			late.Status.Conditions[i].LastTransitionTime = metav1.NewTime(time.Now().Add(-openAfter))
		}
		o, _ := operate(t, interceptor.Funcs{}, late, node("late", "id-late", joined), claim("coming", "id-coming"), pod("a", ""),
			claim("n", "id-n", karpv1.ConditionTypeRegistered), node("n", "id-n", joined, works), claim("unready", "id-unready", karpv1.ConditionTypeRegistered), node("unready", "id-unready", joined))
		opened := func() (out []string) {
			for _, name := range []string{"late", "n", "unready"} {
				if !hasTaint(get(t, o, node(name, "")), karpv1.UnregisteredTaintKey) {
					out = append(out, name)
				}
			}
			return out
		}
		for i := range more {
			o.planned[types.UID(fmt.Sprint(i))] = planned{claim: "n"}
		}
		o.planned["a"] = planned{"n", types.NamespacedName{Namespace: "default", Name: "a"}}
		o.planned["c"] = planned{claim: "coming"}
		for _, name := range []string{"unready", "n"} {
			_, err := o.stepClaim(t.Context(), get(t, o, claim(name, "")))
			require.NoError(t, err)
			require.Empty(t, opened())
		}
		_, err := o.stepClaim(t.Context(), get(t, o, claim("late", "")))
		require.NoError(t, err)
		require.Equal(t, []string{"late", "n"}, opened())
		require.Equal(t, more == 0, get(t, o, pod("a", "")).Status.NominatedNodeName == "n")
	}
}

// A plan drops what an earlier one planned for pods that are gone, or that it has no place for.
func TestPlannedPods(t *testing.T) {
	giant := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("100k")
	}
	c, n := ready("n", "id")
	o, _ := operate(t, interceptor.Funcs{}, pool("default"), c, n, pod("bound", "n"), pod("fits", ""), pod("giant", "", giant))
	for _, name := range []types.UID{"bound", "fits", "giant", "gone"} {
		o.planned[name] = planned{claim: "n"}
	}
	_, err := o.provision(t.Context())
	require.NoError(t, err)
	require.ElementsMatch(t, []types.UID{"bound", "fits"}, slices.Collect(maps.Keys(o.planned)))
}

// What was made of a claim holds for its version only.
func TestClaimsAreReadAnew(t *testing.T) {
	o, _ := operate(t, interceptor.Funcs{}, claim("n", "id"))
	for _, team := range []string{"a", "b"} {
		c := get(t, o, claim("n", ""))
		metav1.SetMetaDataLabel(&c.ObjectMeta, "team", team)
		require.NoError(t, o.client.Update(t.Context(), c))
		for range 2 {
			v, err := o.read(t.Context())
			require.NoError(t, err)
			require.Equal(t, team, v.objects.NodeClaims[0].Metadata.Labels["team"])
		}
	}
}

// A saving that was planned before pods were given places is not begun; what has to go goes.
func TestStaleSavings(t *testing.T) {
	for method, begun := range map[eligibility.Method]bool{eligibility.Emptiness: false, eligibility.Expiration: true} {
		o, _ := operate(t, interceptor.Funcs{}, claim("n", "id", karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized), node("n", "id"))
		v, err := o.read(t.Context())
		require.NoError(t, err)
		o.locked(func(now time.Time) { o.provisioned = now.Add(time.Millisecond) })
		c := giveback.Command{Method: method, Kind: giveback.Delete, Nodes: []deprovision.Candidate{{Name: "n"}}}
		o.start(t.Context(), v, &c)
		require.Equal(t, begun, hasTaint(get(t, o, node("n", "id")), karpv1.DisruptedTaintKey))
	}
}

// A claim has its time for a launch from the first try on: one that waits for its turn behind others is not late.
func TestTimeToLaunch(t *testing.T) {
	waiting := claim("waiting", "")
	waiting.Status, waiting.CreationTimestamp = karpv1.NodeClaimStatus{}, metav1.NewTime(time.Now().Add(-time.Hour))
	o, _ := operate(t, interceptor.Funcs{}, waiting)
	require.NoError(t, o.review(t.Context(), 0))
	require.Len(t, claims(t, o), 1)
	require.Nil(t, get(t, o, waiting).DeletionTimestamp)
	o.tried.Store(waiting.UID, time.Now().Add(-10*time.Minute))
	require.NoError(t, o.review(t.Context(), 1))
	require.NotNil(t, get(t, o, waiting).DeletionTimestamp)
}

// Every claim is asked for drift in one of a few reviews, not in each.
func TestDriftInTurns(t *testing.T) {
	var objects []client.Object
	for i := range driftRounds + 1 {
		c := claim(fmt.Sprintf("c%d", i), fmt.Sprintf("id-%d", i), karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized)
		c.CreationTimestamp, c.Annotations = metav1.Now(), map[string]string{classHashAnnotation: "another"}
		objects = append(objects, c, node(c.Name, c.Status.ProviderID))
	}
	o, _ := operate(t, interceptor.Funcs{}, objects...)
	drifted := func() (n int) {
		for _, c := range claims(t, o) {
			if c.StatusConditions().IsTrue(karpv1.ConditionTypeDrifted) {
				n++
			}
		}
		return n
	}
	for round := range driftRounds {
		require.NoError(t, o.review(t.Context(), round))
		require.Equal(t, 2+round, drifted())
	}
}

// ready is a claim, two hours old, and its node.
func ready(name, id string) (*karpv1.NodeClaim, *corev1.Node) {
	c := claim(name, id, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized)
	c.CreationTimestamp = metav1.NewTime(time.Now().Add(-2 * time.Hour))
	c.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("20")}
	return c, node(name, id, func(n *corev1.Node) {
		n.Labels = map[string]string{
			karpv1.NodePoolLabelKey: "default", karpv1.NodeInitializedLabelKey: "true", karpv1.NodeRegisteredLabelKey: "true",
			corev1.LabelInstanceTypeStable: "m6a.xlarge", corev1.LabelTopologyZone: "us-east-1a", karpv1.CapacityTypeLabelKey: "on-demand",
		}
		n.Status.Capacity, n.Status.Allocatable = c.Status.Capacity, c.Status.Capacity
	})
}

// A node that a pending pod is planned for is not given back, even if the pod fits on another one.
func TestAwaited(t *testing.T) {
	atOnce := func(p *karpv1.NodePool) {
		p.Spec.Disruption.ConsolidationPolicy, p.Spec.Disruption.ConsolidateAfter = karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized, karpv1.MustParseNillableDuration("0s")
		p.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "100%"}}
	}
	for awaited, goes := range map[string]string{"": "b", "b": "", "gone": "b"} {
		a, onA := ready("a", "id-1")
		b, onB := ready("b", "id-2")
		o, _ := operate(t, interceptor.Funcs{}, pool("default", atOnce), a, b, onA, onB, pod("p", ""))
		o.planned["p"] = planned{claim: awaited}
		v, err := o.read(t.Context())
		require.NoError(t, err)
		result, err := o.planDisruption(t.Context(), v)
		require.NoError(t, err)
		var names string
		for _, c := range result.Commands {
			for _, n := range c.Nodes {
				names += n.Name
			}
		}
		require.Equal(t, goes, names, awaited)
	}
}

// Expiry is forceful: a node whose pods fit nowhere else goes, too, and so does one that the cloud takes.
func TestWhatGoesInAnyCase(t *testing.T) {
	limits := func(p *karpv1.NodePool) {
		p.Spec.Limits = karpv1.Limits{corev1.ResourceCPU: resource.MustParse("4")}
		p.Spec.Disruption.ConsolidationPolicy, p.Spec.Disruption.ConsolidateAfter = karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized, karpv1.MustParseNillableDuration("0s")
	}
	for why, change := range map[string]func(*karpv1.NodeClaim){
		"expired": func(c *karpv1.NodeClaim) { c.Spec.ExpireAfter = karpv1.MustParseNillableDuration("1h") },
		"interrupted": func(c *karpv1.NodeClaim) {
			c.Annotations = map[string]string{noticeAnnotation: fmt.Sprintf(`{"Instance":"id","Kind":%q,"Deadline":%q}`, interruption.SpotInterrupted, time.Now().Add(2*time.Minute).Format(time.RFC3339))}
		},
		"": func(*karpv1.NodeClaim) {},
	} {
		c, full := ready("n", "id")
		change(c)
		o, _ := operate(t, interceptor.Funcs{}, pool("default", limits), c, full, pod("a", "n", func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }))
		var seen giveback.Sightings
		_, err := o.disrupt(t.Context(), &seen)
		require.NoError(t, err)
		if why == "" {
			require.Nil(t, get(t, o, c).DeletionTimestamp)
			continue
		}
		require.Eventually(t, func() bool { return get(t, o, c).DeletionTimestamp != nil }, time.Minute, 10*time.Millisecond, why)
	}
}

// Nodes of a command that was given up are opened again; those of one under way, and those that go, stay closed.
func TestReopen(t *testing.T) {
	closed := func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{karpv1.DisruptedNoScheduleTaint} }
	initialized := []string{karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized}
	o, _ := operate(t, interceptor.Funcs{}, claim("left-over", "id-1", initialized...), claim("busy", "id-2", initialized...), deleting(claim("going", "id-3", initialized...)),
		node("left-over", "id-1", closed), node("busy", "id-2", closed), node("going", "id-3", closed), node("nobody's", "id-4", closed))
	o.busy["busy"] = true
	v, err := o.read(t.Context())
	require.NoError(t, err)
	delete(o.busy, "busy") // the command has ended meanwhile, perhaps by deleting the claim
	require.NoError(t, o.reopen(t.Context(), v))
	for name, want := range map[string]bool{"left-over": false, "busy": true, "going": true, "nobody's": true} {
		require.Equal(t, want, hasTaint(get(t, o, node(name, "")), karpv1.DisruptedTaintKey), name)
	}
}
