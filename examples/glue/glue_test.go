package glue_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/cloudtest"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/examples/glue"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/gang"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// world is a cluster in memory, and the cloud that it buys from.
type world struct {
	pods    []*corev1.Pod
	nodes   []*corev1.Node
	records map[string]glue.Record
	plan    *plan.Plan
	full    error // of Save
	cloud   *memcloud.Cloud
	tokens  int
}

func (w *world) Snapshot(context.Context) (scheduling.Snapshot, error) {
	return scheduling.Snapshot{Pods: w.pods, Nodes: w.nodes, Pools: []scheduling.Pool{{NodePool: nodepool.NodePool{Name: "default"}}}}, nil
}

func (w *world) Records(context.Context) ([]glue.Record, error) {
	return slices.Collect(maps.Values(w.records)), nil
}

func (w *world) Save(_ context.Context, r glue.Record) error {
	if w.full != nil {
		return w.full
	}
	w.records[r.Claim.Name] = r
	return nil
}

func (w *world) Forget(_ context.Context, claim string) error {
	delete(w.records, claim)
	return nil
}

func (w *world) Tell(_ context.Context, p *plan.Plan) error {
	w.plan = p
	return nil
}

func (w *world) Patch(_ context.Context, n *corev1.Node) error {
	for i, have := range w.nodes {
		if have.Spec.ProviderID == n.Spec.ProviderID {
			w.nodes[i] = n
		}
	}
	return nil
}

func machine(name string, price float64) instancetypes.InstanceType {
	return instancetypes.InstanceType{
		Name:      name,
		Capacity:  corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("100")},
		Offerings: []instancetypes.Offering{{Requirements: requirements.MustParse("topology.kubernetes.io/zone=a, karpenter.sh/capacity-type=on-demand"), Price: price, Available: true}},
	}
}

func newWorld(t *testing.T, n int) *world {
	t.Helper()
	cloud, err := memcloud.New(memcloud.Config{Types: []instancetypes.InstanceType{machine("small", 0.1), machine("dear", 0.2)}, Lag: 30 * time.Second, Boot: time.Minute})
	require.NoError(t, err)
	return &world{records: map[string]glue.Record{}, cloud: cloud, pods: pods(n)}
}

// pods take a core each.
func pods(n int) []*corev1.Pod {
	out := make([]*corev1.Pod, n)
	for i := range out {
		out[i] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-%d", i)}}
		out[i].Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}
	}
	return out
}

func (w *world) token() string {
	w.tokens++
	return fmt.Sprint("token-", w.tokens)
}

// pass is one by a program that has just been started.
func (w *world) pass(t *testing.T, p cloudprovider.Provider) error {
	t.Helper()
	o := &glue.Provisioner{Cluster: w, Provider: p, Now: w.cloud.Clock().Now, Token: w.token}
	return o.Pass(t.Context())
}

// join lets the machines register, and kube-scheduler bind what was planned there.
func (w *world) join() {
	for _, r := range w.records {
		w.nodes = append(w.nodes, r.Instance.Node(r.Claim))
	}
	for _, b := range w.plan.Bindings() {
		b.Pod.Spec.NodeName = b.Node
	}
}

// The first pass writes down what is needed and buys it, the second finds it on its way.
func ExampleProvisioner() {
	cloud, err := memcloud.New(memcloud.Config{Types: []instancetypes.InstanceType{machine("small", 0.1)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	w := &world{records: map[string]glue.Record{}, cloud: cloud, pods: pods(3)}
	o := &glue.Provisioner{Cluster: w, Provider: cloud, Now: cloud.Clock().Now, Token: w.token}
	for range 2 {
		err := o.Pass(context.Background())
		fmt.Println(len(w.plan.NewNodes()), "to buy,", len(cloud.Truth()), "there,", len(w.plan.Bindings()), "pods placed", err)
	}
	// Output:
	// 2 to buy, 2 there, 3 pods placed <nil>
	// 0 to buy, 2 there, 3 pods placed <nil>
}

func TestNodesAreBoughtOnce(t *testing.T) {
	w := newWorld(t, 5)
	for range 3 { // the cloud shows them late, they boot, and are not there
		require.NoError(t, w.pass(t, w.cloud))
		assert.Len(t, w.records, 3)
		assert.Len(t, w.cloud.Truth(), 3)
		assert.Empty(t, w.plan.Unplaced())
		w.cloud.Clock().Advance(20 * time.Second)
	}
	w.join()
	require.NoError(t, w.pass(t, w.cloud))
	for _, r := range w.records {
		assert.False(t, r.Life.Initialized.IsZero(), r.Claim.Name)
	}
	w.cloud.Clock().Advance(time.Hour)
	require.NoError(t, w.pass(t, w.cloud))
	assert.Len(t, w.cloud.Truth(), 3, "nothing is overdue")
}

// Nodes register with what a kubelet knows, and no more. What type and offering promise, and the taints of the pool, are put there by the pass that sees
// them first; so pods that select them find their node, and no pass buys again.
func TestNodesGetWhatTheirClaimPromises(t *testing.T) {
	w := newWorld(t, 2)
	for _, p := range w.pods {
		p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "a", "karpenter.sh/capacity-type": "on-demand"}
	}
	require.NoError(t, w.pass(t, w.cloud))
	require.Len(t, w.cloud.Truth(), 1)
	for name, r := range w.records {
		r.Claim.StartupTaints = []corev1.Taint{{Key: "starting", Effect: corev1.TaintEffectNoSchedule}}
		w.records[name] = r
		node := r.Instance.Node(r.Claim)
		node.Labels = map[string]string{corev1.LabelHostname: node.Name}
		w.nodes = append(w.nodes, node)
	}
	for range 4 {
		w.cloud.Clock().Advance(time.Minute)
		require.NoError(t, w.pass(t, w.cloud))
	}
	assert.Len(t, w.cloud.Truth(), 1, "nothing is bought again")
	require.Len(t, w.nodes, 1)
	assert.Equal(t, "a", w.nodes[0].Labels[corev1.LabelTopologyZone])
	assert.Equal(t, "starting", w.nodes[0].Spec.Taints[0].Key)
	w.nodes[0].Spec.Taints = nil // what starts there has started
	require.NoError(t, w.pass(t, w.cloud))
	assert.Empty(t, w.nodes[0].Spec.Taints, "it is not put there again")
	assert.Len(t, w.cloud.Truth(), 1)
}

func TestALostReplyIsAskedForAgain(t *testing.T) {
	w := newWorld(t, 2)
	lossy := cloudtest.Inject(w.cloud, cloudtest.Nth(cloudtest.OpCreate, 1, cloudtest.LoseReply()))
	require.ErrorIs(t, w.pass(t, lossy), cloudtest.ErrLostReply)
	require.NoError(t, w.pass(t, lossy))
	assert.Len(t, w.cloud.Truth(), 1)
	assert.Len(t, w.records, 1)
	assert.Empty(t, w.plan.NewNodes())
}

func TestWhatIsSoldOutIsBoughtElsewhere(t *testing.T) {
	w := newWorld(t, 2)
	require.NoError(t, w.cloud.SetCapacity("small", machine("small", 0).Offerings[0].Requirements, 0))
	o := &glue.Provisioner{Cluster: w, Provider: w.cloud, Now: w.cloud.Clock().Now, Token: w.token}
	for range 2 {
		require.NoError(t, o.Pass(t.Context()))
	}
	require.Len(t, w.cloud.Truth(), 1)
	assert.Equal(t, "dear", w.cloud.Truth()[0].Type)
}

// What is sold out altogether is asked for once, and again after a while.
func TestWhatNobodyHasIsNotAskedForAllTheTime(t *testing.T) {
	w := newWorld(t, 2)
	where := machine("small", 0).Offerings[0].Requirements
	sell := func(free int) {
		require.NoError(t, w.cloud.SetCapacity("small", where, free))
		require.NoError(t, w.cloud.SetCapacity("dear", where, free))
	}
	o := &glue.Provisioner{Cluster: w, Provider: w.cloud, Now: w.cloud.Clock().Now, Token: w.token}
	sell(0)
	for range 5 {
		require.NoError(t, o.Pass(t.Context()))
	}
	assert.Equal(t, 1, w.tokens)
	assert.Empty(t, w.records)
	assert.NotEmpty(t, w.plan.Unplaced())
	sell(1)
	w.cloud.Clock().Advance(time.Hour)
	require.NoError(t, o.Pass(t.Context()))
	assert.Len(t, w.cloud.Truth(), 1)
}

func TestAMachineThatNeverJoinsIsReplaced(t *testing.T) {
	w := newWorld(t, 2)
	require.NoError(t, w.pass(t, w.cloud))
	first := w.cloud.Truth()[0].ID
	w.cloud.Clock().Advance(16 * time.Minute)
	require.NoError(t, w.pass(t, w.cloud))
	w.cloud.Settle()
	require.Len(t, w.cloud.Truth(), 1)
	assert.NotEqual(t, first, w.cloud.Truth()[0].ID)
}

// forgetful leaves a machine out of its lists.
type forgetful struct {
	cloudprovider.Provider
	id string
}

func (f forgetful) List(ctx context.Context) ([]cloudprovider.Instance, error) {
	list, err := f.Provider.List(ctx)
	return slices.DeleteFunc(list, func(i cloudprovider.Instance) bool { return i.ID == f.id }), err
}

// What a list leaves out stays as long as its node is ready, and is given back when the node has fallen silent.
func TestAMachineLeftOutOfAListStays(t *testing.T) {
	w := newWorld(t, 1)
	require.NoError(t, w.pass(t, w.cloud))
	w.cloud.Clock().Advance(2 * time.Minute)
	w.join()
	for _, status := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionUnknown} {
		w.nodes[0].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
		w.cloud.Clock().Advance(time.Hour)
		require.NoError(t, w.pass(t, forgetful{w.cloud, w.nodes[0].Spec.ProviderID}))
		assert.Equal(t, status == corev1.ConditionTrue, len(w.records) == 1, "%s", status)
	}
}

// Nothing is bought that was not written down, and what nobody remembers is given back.
func TestNothingIsBoughtThatNobodyRemembers(t *testing.T) {
	w := newWorld(t, 2)
	w.full = errors.New("the API server is away")
	require.ErrorIs(t, w.pass(t, w.cloud), w.full)
	assert.Empty(t, w.cloud.Truth())
	w.full = nil
	require.NoError(t, w.pass(t, w.cloud))
	w.pods, w.records = nil, map[string]glue.Record{}
	w.cloud.Clock().Advance(5 * time.Minute)
	require.NoError(t, w.pass(t, w.cloud))
	w.cloud.Settle()
	assert.Empty(t, w.cloud.Truth())
}

// Nothing is bought for a part of a group.
func TestGroupsAreBoughtWhole(t *testing.T) {
	w := newWorld(t, 3)
	minimum := 4
	o := &glue.Provisioner{Cluster: w, Provider: w.cloud, Now: w.cloud.Clock().Now, Token: w.token, Groups: func([]*corev1.Pod) []gang.Group {
		return []gang.Group{{Name: "train", Member: func(*corev1.Pod) bool { return true }, Minimum: minimum}}
	}}
	require.NoError(t, o.Pass(t.Context()))
	assert.Empty(t, w.cloud.Truth())
	minimum = 3
	require.NoError(t, o.Pass(t.Context()))
	assert.Len(t, w.cloud.Truth(), 2)
}
