package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/operator/memory"
	"github.com/joinery-sdk/joinery/scheduling/gang"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// job is pods of one group, each of which fills a machine of two cores.
func job(n int) []client.Object {
	var out []client.Object
	for i := range n {
		out = append(out, pod(fmt.Sprintf("train-%d", i), "", func(p *corev1.Pod) {
			p.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": "train"}
		}))
	}
	return out
}

// podGroup is a PodGroup of the coscheduling plugin.
func podGroup(minimum int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": map[string]any{"name": "train", "namespace": "default"},
		"spec": map[string]any{"minMember": minimum},
	}}
}

// pair is a pool of machines of two cores.
func pair() *karpv1.NodePool {
	return pool("default", func(p *karpv1.NodePool) {
		p.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
			{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"m6a.large"}},
			{Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"on-demand"}},
		}
	})
}

// standing are the claims that are not on their way out.
func standing(t *testing.T, o *Operator) []*karpv1.NodeClaim {
	t.Helper()
	all, err := list[*karpv1.NodeClaim](t.Context(), o.client, &karpv1.NodeClaimList{})
	require.NoError(t, err)
	return slices.DeleteFunc(all, func(c *karpv1.NodeClaim) bool { return c.DeletionTimestamp != nil })
}

// said reports whether an event has the text.
func said(o *Operator, text string) bool {
	for {
		select {
		case e := <-o.events.(*events.FakeRecorder).Events:
			if strings.Contains(e, text) {
				return true
			}
		default:
			return false
		}
	}
}

// Nothing is bought for a group whose PodGroup is missing, whether its API is there or not, or asks for more pods than there are. Its
// pods are told.
func TestGroupsAreBoughtWhole(t *testing.T) {
	for _, c := range []struct {
		objects []client.Object
		claims  int
		event   string
	}{
		{nil, 0, "its PodGroup of scheduling.x-k8s.io does not exist"},
		{[]client.Object{podGroup(4)}, 0, "it needs 4 pods, but there are 3"},
		{[]client.Object{podGroup(3)}, 3, "Nominated"},
	} {
		o, _ := operate(t, interceptor.Funcs{}, slices.Concat([]client.Object{pair()}, job(3), c.objects)...)
		_, err := o.provision(t.Context())
		require.NoError(t, err)
		require.Len(t, standing(t, o), c.claims)
		require.True(t, said(o, c.event), c.event)
	}
}

// When the cloud refuses the last machine of a group, those that it has bought are given back, and other pods keep theirs.
func TestPartOfAGroupIsGivenBack(t *testing.T) {
	number := 0
	o, cloud := operate(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, x client.Object, opts ...client.CreateOption) error {
		number++
		x.SetUID(types.UID(fmt.Sprint("claim-", number)))
		return c.Create(ctx, x, opts...)
	}}, slices.Concat([]client.Object{pair(), podGroup(3), pod("web", "")}, job(3))...)
	fill(t, cloud, "m6a.large", 2)
	_, err := o.provision(t.Context())
	require.NoError(t, err)
	require.Len(t, standing(t, o), 4)
	for _, c := range standing(t, o) {
		_, err = o.reconcileClaim(t.Context(), c)
		require.NoError(t, err)
	}
	require.Len(t, standing(t, o), 2, "two are refused")
	_, err = o.provision(t.Context())
	require.NoError(t, err)
	require.LessOrEqual(t, len(standing(t, o)), 1)
	require.True(t, said(o, "group default/train needs 3 of its pods at once"))
}

// fill leaves so many machines of a type.
func fill(t *testing.T, cloud *memory.Cloud, name string, n int) {
	t.Helper()
	types, err := cloud.InstanceTypes(t.Context(), nodepool.NodePool{})
	require.NoError(t, err)
	for _, it := range types {
		for _, offering := range it.Offerings {
			if it.Name == name {
				require.NoError(t, cloud.SetCapacity(name, offering.Requirements, n))
				if offering.CapacityType() == "on-demand" {
					n = 0
				}
			}
		}
	}
}

// A static pool gets as many claims as its replicas and no more, and gives back what it has above them.
func TestReplicas(t *testing.T) {
	static := pool("default")
	set := func(o *Operator, n int64) {
		p := get(t, o, &karpv1.NodePool{ObjectMeta: static.ObjectMeta})
		p.Spec.Replicas = &n
		require.NoError(t, o.client.Update(t.Context(), p))
	}
	o, _ := operate(t, interceptor.Funcs{}, static)
	for _, n := range []int64{3, 5, 5, 2, 0} {
		set(o, n)
		_, err := o.provision(t.Context())
		require.NoError(t, err)
		require.Len(t, standing(t, o), int(n))
	}
}

// Nodes of a static pool take pods before anything is bought for them.
func TestReplicasTakePods(t *testing.T) {
	static := pool("default", func(p *karpv1.NodePool) {
		n := int64(1)
		p.Spec.Replicas = &n
	})
	o, _ := operate(t, interceptor.Funcs{}, static, pool("other"), pod("web", ""))
	_, err := o.provision(t.Context())
	require.NoError(t, err)
	require.Len(t, standing(t, o), 1)
	require.True(t, said(o, "Nominated"))
}

// Commands that move pods of one group do not run at the same time.
func TestCommandsOfAGroup(t *testing.T) {
	a, b, c := pod("a", "x"), pod("b", "y"), pod("c", "z")
	v := &view{}
	v.objects.Groups = []gang.Group{{Name: "train", Member: func(p *corev1.Pod) bool { return p.Name != "c" }}}
	moves := func(p *corev1.Pod, method eligibility.Method) giveback.Command {
		return giveback.Command{Method: method, Placements: []giveback.Placement{{Pod: p}}}
	}
	got := v.apart([]giveback.Command{moves(a, eligibility.Consolidation), moves(b, eligibility.Consolidation), moves(c, eligibility.Consolidation), moves(b, eligibility.Interruption)})
	require.Len(t, got, 3)
	require.Equal(t, c, got[1].Placements[0].Pod)
	require.Equal(t, eligibility.Interruption, got[2].Method)
}
