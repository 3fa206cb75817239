package controller

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/examples/operator/memory"
)

// rebootPolicy reboots nodes that have not been heard of.
func rebootPolicy(grace *time.Duration) []cloudprovider.RepairPolicy {
	return []cloudprovider.RepairPolicy{{Condition: corev1.NodeReady, Status: corev1.ConditionUnknown, Reboot: true, Grace: grace}}
}

// machine is a ready claim and its node, with a machine in a cloud.
func machine(t *testing.T, cloud *memory.Cloud, changes ...func(*karpv1.NodeClaim, *corev1.Node)) (*karpv1.NodeClaim, *corev1.Node) {
	t.Helper()
	ask := someRequest(t)
	ask.Name, ask.Token = "n", "n"
	launched, err := cloud.Create(t.Context(), ask)
	require.NoError(t, err)
	c, n := ready("n", launched.ID)
	n.Status.NodeInfo.BootID = "a"
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, change := range changes {
		change(c, n)
	}
	return c, n
}

// rebooting makes the reboot of a claim one that was requested a while ago.
func rebooting(reason string, ago time.Duration) func(*karpv1.NodeClaim, *corev1.Node) {
	return func(c *karpv1.NodeClaim, _ *corev1.Node) {
		c.StatusConditions().SetTrueWithReason(karpv1.ConditionTypeRebooting, reason, "its disk fails")
		if reason == karpv1.RebootReasonIssued {
			c.StatusConditions().SetUnknownWithReason(karpv1.ConditionTypeInitialized, karpv1.RebootReasonRebooting, "it reboots")
		}
		for i := range c.Status.Conditions {
			if k := c.Status.Conditions[i].Type; k == karpv1.ConditionTypeRebooting || k == karpv1.ConditionTypeInitialized {
				c.Status.Conditions[i].LastTransitionTime = metav1.NewTime(time.Now().Add(-ago))
			}
		}
	}
}

func annotated(pairs ...string) func(*karpv1.NodeClaim, *corev1.Node) {
	return func(c *karpv1.NodeClaim, _ *corev1.Node) {
		for i := 0; i < len(pairs); i += 2 {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, pairs[i], pairs[i+1])
		}
	}
}

// What is rebooted, what is replaced, and what is left alone.
func TestRebootOrReplace(t *testing.T) {
	sick := func(_ *karpv1.NodeClaim, n *corev1.Node) { broken(n) }
	lately := time.Now().Add(-time.Hour).Format(time.RFC3339)
	longAgo := time.Now().Add(-25 * time.Hour).Format(time.RFC3339)
	grace := 10 * time.Minute
	for name, c := range map[string]struct {
		change          func(*karpv1.NodeClaim, *corev1.Node)
		policy          *time.Duration
		budget          string
		protected       bool // a pod
		reboots, leaves bool
		bound           string
	}{
		"rebooted":     {nil, nil, "1", false, true, false, ""},
		"with a bound": {nil, &grace, "1", true, true, false, "10m0s"},
		"with that of the claim": {func(c *karpv1.NodeClaim, _ *corev1.Node) {
			c.Spec.TerminationGracePeriod = &metav1.Duration{Duration: time.Minute}
		}, &grace, "1", true, true, false, "1m0s"},
		"a pod holds on to it": {nil, nil, "1", true, false, false, ""},
		"no budget":            {nil, nil, "0", false, false, false, ""},
		"vetoed": {func(_ *karpv1.NodeClaim, n *corev1.Node) {
			n.Annotations = map[string]string{"karpenter.sh/do-not-repair": "true"}
		}, nil, "1", false, false, false, ""},
		"after one":                       {annotated(rebootsAnnotation, lately), nil, "1", false, true, false, ""},
		"after two, one of them long ago": {annotated(rebootsAnnotation, longAgo+","+lately), nil, "1", false, true, false, ""},
		"after two":                       {annotated(rebootsAnnotation, lately+","+lately), nil, "1", false, false, true, ""},
		"never ready": {func(c *karpv1.NodeClaim, _ *corev1.Node) {
			c.StatusConditions().SetUnknown(karpv1.ConditionTypeInitialized)
		}, nil, "1", false, false, true, ""},
		"being rebooted": {rebooting(karpv1.RebootReasonIssued, time.Minute), nil, "1", false, true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cloud, err := memoryCloud()
			require.NoError(t, err)
			changes := []func(*karpv1.NodeClaim, *corev1.Node){sick}
			if c.change != nil {
				changes = append(changes, c.change)
			}
			own, on := machine(t, cloud, changes...)
			p := pod("p", "n", func(p *corev1.Pod) {
				p.Status.Phase = corev1.PodRunning
				if c.protected {
					p.Annotations = map[string]string{karpv1.DoNotDisruptAnnotationKey: "true"}
				}
			})
			o, _ := operate(t, interceptor.Funcs{}, pool("default", func(p *karpv1.NodePool) { p.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: c.budget}} }), own, on, p)
			o.options.Provider = adviser{cloud, rebootPolicy(c.policy)}
			v, err := o.read(t.Context())
			require.NoError(t, err)
			result, err := o.planDisruption(t.Context(), v)
			require.NoError(t, err)
			leaves := len(result.Commands) > 0 && result.Commands[0].Method == eligibility.Unhealthy
			now := get(t, o, own)
			require.Equal(t, c.reboots, is(karpv1.ConditionTypeRebooting)(now))
			require.Equal(t, c.leaves, leaves)
			require.Equal(t, c.bound, now.Annotations[karpv1.RebootTerminationGracePeriodAnnotationKey])
			require.Equal(t, name != "being rebooted", v.Nodes[0].Spec.Unschedulable, "what is rebooted counts as room, and nothing else that is broken")
		})
	}
}

func memoryCloud() (*memory.Cloud, error) {
	catalogue, err := memory.Catalogue("", "us-east-1")
	if err != nil {
		return nil, err
	}
	return memory.New(catalogue, memcloud.Config{})
}

// A reboot is carried out once, whichever of its writes fails, before or after it takes effect, and with another process at every step.
func TestARebootSurvivesRestarts(t *testing.T) {
	for _, after := range []bool{false, true} {
		for k := 0; ; k++ {
			writes, failed := 0, false
			fail := func(write func() error) error {
				writes++
				if writes-1 != k {
					return write()
				}
				failed = true
				if after {
					_ = write()
				}
				return errors.New("the process ends here")
			}
			faults := interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, x client.Object, patch client.Patch, opts ...client.PatchOption) error {
					return fail(func() error { return c.Patch(ctx, x, patch, opts...) })
				},
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, x client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
					return fail(func() error { return c.SubResource(sub).Patch(ctx, x, patch, opts...) })
				},
			}
			cloud, err := memoryCloud()
			require.NoError(t, err)
			own, on := machine(t, cloud, rebooting(karpv1.RebootReasonRequested, 10*time.Second))
			o, _ := operate(t, faults, pool("default"), own, on, pod("p", "n", func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }))
			id, done := own.Status.ProviderID, false
			for round := 0; round < 40 && !done; round++ {
				another := &Operator{options: o.options, client: o.client, api: o.api, events: o.events, wake: o.wake, busy: map[string]bool{}, planned: o.planned}
				another.options.Provider = cloud
				_, _ = another.reconcileClaim(t.Context(), get(t, o, own.DeepCopy()))
				seen := k%2 == 1 || get(t, o, own.DeepCopy()).StatusConditions().Get(karpv1.ConditionTypeRebooting).Reason == karpv1.RebootReasonIssued // else it boots slowly
				if now := get(t, o, on.DeepCopy()); cloud.Reboots(id) > 0 && now.Status.NodeInfo.BootID == "a" && seen {
					now.Status.NodeInfo.BootID = "b"
					require.NoError(t, o.client.Status().Update(t.Context(), now))
				}
				now := get(t, o, own.DeepCopy())
				done = !is(karpv1.ConditionTypeRebooting)(now) && is(karpv1.ConditionTypeInitialized)(now)
			}
			require.True(t, done, "write %d, after %t", k, after)
			require.Equal(t, 1, cloud.Reboots(id))
			now, node := get(t, o, own.DeepCopy()), get(t, o, on.DeepCopy())
			require.Nil(t, now.DeletionTimestamp)
			require.Equal(t, karpv1.RebootReasonSucceeded, now.StatusConditions().Get(karpv1.ConditionTypeRebooting).Reason)
			require.Len(t, rebootTimes(now), 1)
			require.NotContains(t, now.Annotations, karpv1.RebootPreBootIDAnnotationKey)
			require.False(t, hasTaint(node, karpv1.RebootingTaintKey))
			require.Equal(t, "true", node.Labels[karpv1.NodeInitializedLabelKey])
			require.True(t, apierrors.IsNotFound(o.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "p"}, &corev1.Pod{})), "it was evicted")
			if !failed {
				require.Greater(t, k, 5)
				break
			}
		}
	}
}

// Pods that hold on to a node live through its reboot when the time to drain is over; nothing forces them. Meanwhile the node takes no pods.
func TestPodsLiveThroughAReboot(t *testing.T) {
	for ago, want := range map[time.Duration]int{30 * time.Second: 0, 2 * time.Minute: 1} {
		cloud, err := memoryCloud()
		require.NoError(t, err)
		own, on := machine(t, cloud, rebooting(karpv1.RebootReasonRequested, ago), annotated(karpv1.RebootTerminationGracePeriodAnnotationKey, "1m"))
		held := pod("p", "n", func(p *corev1.Pod) {
			p.Status.Phase, p.Annotations = corev1.PodRunning, map[string]string{karpv1.DoNotDisruptAnnotationKey: "true"}
		})
		o, _ := operate(t, interceptor.Funcs{}, pool("default"), own, on, held)
		o.options.Provider = cloud
		for range 3 {
			_, err := o.reconcileClaim(t.Context(), get(t, o, own))
			require.NoError(t, err)
		}
		require.Nil(t, get(t, o, held).DeletionTimestamp)
		require.True(t, hasTaint(get(t, o, on), karpv1.RebootingTaintKey))
		require.Equal(t, want, cloud.Reboots(own.Status.ProviderID), ago)
	}
}

// refusing is a cloud whose reboots fail.
type refusing struct {
	*memory.Cloud
	err error
}

func (r refusing) Reboot(context.Context, string, string) error { return r.err }

// A reboot that fails has its node replaced, but not one that was asked for in a way that makes no sense, nor one that may still succeed.
func TestRebootsThatFail(t *testing.T) {
	noted := annotated(karpv1.RebootPreBootIDAnnotationKey, "a", karpv1.RebootTerminationGracePeriodAnnotationKey, "1m0s")
	for name, c := range map[string]struct {
		state  func(*karpv1.NodeClaim, *corev1.Node)
		more   func(*karpv1.NodeClaim, *corev1.Node)
		err    error
		leaves bool
		reason string
	}{
		"the cloud cannot":         {rebooting(karpv1.RebootReasonRequested, time.Minute), noted, &cloudprovider.Error{Code: cloudprovider.ErrUnsupported}, true, ""},
		"the cloud must not":       {rebooting(karpv1.RebootReasonRequested, time.Minute), noted, &cloudprovider.Error{Code: cloudprovider.ErrUnauthorized}, true, ""},
		"the cloud is busy":        {rebooting(karpv1.RebootReasonRequested, time.Minute), noted, &cloudprovider.Error{Code: cloudprovider.ErrThrottled}, false, karpv1.RebootReasonRequested},
		"it does not come back":    {rebooting(karpv1.RebootReasonIssued, 21*time.Minute), noted, nil, true, ""},
		"it may still come back":   {rebooting(karpv1.RebootReasonIssued, 19*time.Minute), noted, nil, false, karpv1.RebootReasonIssued},
		"nobody can read the time": {rebooting(karpv1.RebootReasonRequested, time.Minute), annotated(karpv1.RebootTerminationGracePeriodAnnotationKey, "soon"), nil, false, karpv1.RebootReasonFailed},
	} {
		t.Run(name, func(t *testing.T) {
			cloud, err := memoryCloud()
			require.NoError(t, err)
			own, on := machine(t, cloud, c.state, c.more)
			o, _ := operate(t, interceptor.Funcs{}, pool("default"), own, on)
			o.options.Provider = refusing{cloud, c.err}
			_, _ = o.reconcileClaim(t.Context(), get(t, o, own))
			now := get(t, o, own)
			require.Equal(t, c.leaves, now.DeletionTimestamp != nil)
			if c.leaves {
				require.WithinDuration(t, time.Now().Add(time.Minute), drainEnd(now), 10*time.Second, "it has the bound of the reboot")
				require.False(t, hasTaint(get(t, o, on), karpv1.RebootingTaintKey))
				return
			}
			require.Equal(t, c.reason, now.StatusConditions().Get(karpv1.ConditionTypeRebooting).Reason)
			require.Equal(t, c.reason == karpv1.RebootReasonFailed, !strings.Contains(strings.Join(slices.Collect(maps.Keys(now.Annotations)), " "), "karpenter.sh/reboot"))
		})
	}
}
