package upkeep_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
	"github.com/joinery-sdk/joinery/cloudprovider/lifecycle"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/examples/karpenter/upkeep"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
)

var offering = requirements.MustParse("karpenter.sh/capacity-type=spot, topology.kubernetes.io/zone=zone-1")

// open is a cloud of the wall's time with a machine for each claim.
func open(claims ...string) (*memcloud.Cloud, error) {
	cloud, err := memcloud.New(memcloud.Config{Clock: memcloud.NewClock(time.Now()), Types: []instancetypes.InstanceType{{
		Name: "box", Requirements: requirements.MustOf(requirements.In(corev1.LabelInstanceTypeStable, "box")),
		Capacity:  corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110")},
		Offerings: []instancetypes.Offering{{Requirements: offering, Price: 1, Available: true}},
	}}})
	for _, name := range claims {
		if err == nil {
			_, err = cloud.Create(context.Background(), cloudprovider.NodeClaim{Name: name, Token: name, Candidates: []cloudprovider.Candidate{{Type: "box", Offering: offering}}}) //nolint:forbidigo // examples have no test
		}
	}
	return cloud, err
}

// claim has the machine with the number.
func claim(name string, machine int) *karpv1.NodeClaim {
	return &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Finalizers: []string{"karpenter.sh/termination"}},
		Status:     karpv1.NodeClaimStatus{ProviderID: fmt.Sprintf("memcloud://i-%08d", machine)},
	}
}

// run is one look, and then the end.
func run(t *testing.T, k upkeep.Keeper, until func() bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	k.Poll = time.Millisecond
	go func() { ended <- k.Start(ctx) }()
	assert.Eventually(t, until, 10*time.Second, time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
}

func TestMachinesOfNobody(t *testing.T) {
	cloud, err := open("owned", "orphan", "twice")
	require.NoError(t, err)
	api := fake.NewClientBuilder().WithObjects(claim("owned", 1), claim("twice", 77)).Build()
	// The second has no claim; the third is of one that has another machine.
	run(t, upkeep.Keeper{Client: api, Provider: cloud, Timeouts: lifecycle.Timeouts{Orphan: time.Nanosecond}}, func() bool { return len(cloud.Truth()) == 1 })
	assert.Equal(t, "owned", cloud.Truth()[0].Claim)
	require.NoError(t, api.Get(t.Context(), client.ObjectKey{Name: "twice"}, &karpv1.NodeClaim{}), "claims are Karpenter's")
}

// A machine whose claim cannot be seen yet is left alone, and so is everything while the API server does not answer.
func TestPatience(t *testing.T) {
	cloud, err := open("young")
	require.NoError(t, err)
	var looks atomic.Int64
	listing := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		looks.Add(1)
		return errors.New("no answer")
	}}
	run(t, upkeep.Keeper{Client: fake.NewClientBuilder().WithInterceptorFuncs(listing).Build(), Provider: cloud, Timeouts: lifecycle.Timeouts{Orphan: time.Nanosecond}}, func() bool { return looks.Load() > 3 })
	looks.Store(0)
	listing.List = func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		looks.Add(1)
		return nil
	}
	run(t, upkeep.Keeper{Client: fake.NewClientBuilder().WithInterceptorFuncs(listing).Build(), Provider: cloud}, func() bool { return looks.Load() > 3 })
	assert.Len(t, cloud.Truth(), 1)
}

func TestInterruptions(t *testing.T) {
	for _, test := range []struct {
		kind    interruption.Kind
		deleted bool
		end     time.Duration // from now until Karpenter drains by force
		refused int
	}{
		{interruption.SpotInterrupted, true, 2 * time.Minute, 1},
		{interruption.MaintenanceScheduled, true, 2 * time.Minute, 0},
		{interruption.InstanceImpaired, true, 0, 0},
		{interruption.RebalanceRecommended, false, 0, 0},
	} {
		t.Run(string(test.kind), func(t *testing.T) {
			cloud, err := open("a", "b")
			require.NoError(t, err)
			api := fake.NewClientBuilder().WithObjects(claim("a", 1), claim("b", 2)).Build()
			require.NoError(t, cloud.Interrupt("memcloud://i-00000001", test.kind, 2*time.Minute))
			var refused []cloudprovider.Refusal
			keeper := upkeep.Keeper{Client: api, Provider: cloud, Refuse: func(r ...cloudprovider.Refusal) { refused = append(refused, r...) }}
			confirmed := func() bool {
				events, _, err := cloud.Interruptions(t.Context(), "")
				return err == nil && len(events) == 0
			}
			run(t, keeper, confirmed)
			var a, b karpv1.NodeClaim
			require.NoError(t, api.Get(t.Context(), client.ObjectKey{Name: "a"}, &a))
			require.NoError(t, api.Get(t.Context(), client.ObjectKey{Name: "b"}, &b))
			assert.Equal(t, test.deleted, a.DeletionTimestamp != nil)
			assert.Nil(t, b.DeletionTimestamp, "another's")
			if test.deleted {
				end, err := time.Parse(time.RFC3339, a.Annotations[karpv1.NodeClaimTerminationTimestampAnnotationKey])
				require.NoError(t, err)
				assert.WithinDuration(t, time.Now().Add(test.end), end, 30*time.Second)
			}
			assert.Len(t, refused, test.refused)
		})
	}
}

// What could not be acted on is not confirmed, and comes again.
func TestAnInterruptionIsNotForgotten(t *testing.T) {
	cloud, err := open("a")
	require.NoError(t, err)
	require.NoError(t, cloud.Interrupt("memcloud://i-00000001", interruption.SpotInterrupted, time.Hour))
	deaf := 3
	api := fake.NewClientBuilder().WithObjects(claim("a", 1)).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if deaf--; deaf >= 0 {
				return errors.New("no answer")
			}
			return c.Delete(ctx, o, opts...)
		},
	}).Build()
	run(t, upkeep.Keeper{Client: api, Provider: cloud}, func() bool {
		var a karpv1.NodeClaim
		return api.Get(t.Context(), client.ObjectKey{Name: "a"}, &a) == nil && a.DeletionTimestamp != nil
	})
}

// registrar is a provider with something to do once a machine has joined.
type registrar struct {
	cloudprovider.Provider
	seen []string
}

func (r *registrar) Registered(_ context.Context, id string, node *corev1.Node) error {
	if len(r.seen) == 0 {
		r.seen = append(r.seen, "refused")
		return errors.New("not yet")
	}
	r.seen = append(r.seen, id+" as "+node.Name)
	return nil
}

func TestHooks(t *testing.T) {
	cloud, err := open("a")
	require.NoError(t, err)
	assert.Empty(t, upkeep.Keeper{Provider: cloud}.Hooks(), "it has nothing to do")
	api := fake.NewClientBuilder().WithIndex(&corev1.Node{}, "spec.providerID", func(o client.Object) []string { return []string{o.(*corev1.Node).Spec.ProviderID} }).Build()
	provider := &registrar{Provider: cloud}
	hooks := upkeep.Keeper{Client: api, Provider: provider}.Hooks()
	require.Len(t, hooks, 1)
	assert.NotEmpty(t, hooks[0].Name())
	_, err = hooks[0].Registered(t.Context(), claim("a", 1))
	require.ErrorContains(t, err, "0 nodes")
	require.NoError(t, api.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}, Spec: corev1.NodeSpec{ProviderID: "memcloud://i-00000001"}}))
	_, err = hooks[0].Registered(t.Context(), claim("a", 1))
	require.ErrorContains(t, err, "not yet")
	result, err := hooks[0].Registered(t.Context(), claim("a", 1))
	require.NoError(t, err)
	assert.Zero(t, result)
	assert.Equal(t, []string{"refused", "memcloud://i-00000001 as node-a"}, provider.seen)
}

func ExampleKeeper() {
	cloud, err := open("nobodys")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	api := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{})
	go func() {
		for len(cloud.Truth()) > 0 {
			time.Sleep(time.Millisecond)
		}
		stop()
	}()
	// In a program: op.Manager.Add(keeper), with the manager's client.
	keeper := upkeep.Keeper{Client: api, Provider: cloud, Timeouts: lifecycle.Timeouts{Orphan: time.Nanosecond}, Poll: time.Millisecond}
	fmt.Println(keeper.Start(ctx), len(cloud.Truth()))
	// Output: <nil> 0
}
