package simulate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/deprovision/policy"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// told is a cluster as people tell of it: nodes of given types, and pods on them.
type told struct {
	m *manifests.Snapshot
	s scheduling.Snapshot
}

func tell(t *testing.T, requirement ...string) *told {
	t.Helper()
	text := `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      expireAfter: Never
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a]}
`
	for _, r := range requirement {
		text += "      - " + r + "\n"
	}
	text += `  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 0s, budgets: [{nodes: "100%"}]}` + "\n"
	m, err := manifests.Parse([]manifests.File{{Name: "pool.yaml", Data: []byte(text)}}, &manifests.Options{Classes: pipeline.NodeClassDecoders()})
	require.NoError(t, err)
	market, err := pipeline.EC2Market("us-east-1")
	require.NoError(t, err)
	s, _, err := pipeline.Snapshot(m, market)
	require.NoError(t, err)
	return &told{m, s}
}

// node adds a node with so many pods of a size.
func (x *told) node(t *testing.T, name, typ, capacity string, pods int, cpu, memory string) {
	t.Helper()
	at := slices.IndexFunc(x.s.Pools[0].Types, func(t instancetypes.InstanceType) bool { return t.Name == typ })
	require.GreaterOrEqual(t, at, 0, typ)
	n := giveback.NewNode{Name: name, Pool: "default", InstanceType: typ, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelTopologyZone: "us-east-1a", instancetypes.LabelCapacityType: capacity, "karpenter.sh/nodepool": "default",
	}}
	for r := range x.s.Pools[0].Types[at].Requirements.All() {
		if v, ok := r.Single(); ok {
			n.Labels[r.Key()] = v
		}
	}
	node, err := simulate.Node(x.s, &n, fragment.Now().Add(-48*time.Hour))
	require.NoError(t, err)
	x.s.Nodes = append(x.s.Nodes, node)
	yes := true
	for i := range pods {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprintf("%s-%d", name, i),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: "1", Controller: &yes}},
		}}
		p.Spec.NodeName = name
		p.Status.Phase = corev1.PodRunning
		p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
		}}}}
		x.s.Pods = append(x.s.Pods, p)
	}
}

func (x *told) plan(t *testing.T, o giveback.Options, interruptions ...deprovision.Interruption) giveback.Result {
	t.Helper()
	sim, nominated, err := simulate.New(x.s)
	require.NoError(t, err)
	c := simulate.Cluster(x.m, x.s, nominated, fragment.Now())
	c.Interruptions = interruptions
	r, err := giveback.Make(t.Context(), c, sim, &o)
	require.NoError(t, err)
	return r
}

func policies() map[string]giveback.Objective {
	return map[string]giveback.Objective{"karpenter": policy.AnySaving(), "balanced": policy.Balanced(2), "payback": {}}
}

func families(list string) string {
	return "{key: karpenter.k8s.aws/instance-family, operator: In, values: [" + list + "]}"
}

const onDemand = "{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}"

// "Replaced an m6a.8xlarge by an m6a.8xlarge": a type is never given back to be bought again.
func TestTheSameTypeIsNotBoughtAgain(t *testing.T) {
	for name, p := range policies() {
		x := tell(t, families("m6a"), onDemand)
		x.node(t, "a", "m6a.8xlarge", "on-demand", 20, "1", "4Gi")
		x.node(t, "b", "m6a.8xlarge", "on-demand", 20, "1", "4Gi")
		r := x.plan(t, giveback.Options{Objective: p})
		for _, c := range r.Commands {
			for _, old := range c.Nodes {
				for _, fresh := range c.NewNodes {
					assert.NotEqual(t, old.InstanceType, fresh.InstanceType, name)
				}
			}
		}
		x = tell(t, families("m6a"), onDemand)
		x.node(t, "a", "m6a.8xlarge", "on-demand", 30, "1", "4Gi")
		assert.Empty(t, x.plan(t, giveback.Options{Objective: p}).Commands, name)
	}
}

// A few cents for many evictions: Karpenter's policy takes any saving, and no other does.
func TestTrivialSavings(t *testing.T) {
	want := map[string]int{"karpenter": 1, "balanced": 0, "payback": 0}
	for name, p := range policies() {
		x := tell(t, families("m5, m5a"), onDemand)
		x.node(t, "a", "m5.large", "on-demand", 28, "50m", "200Mi")
		if name == "payback" {
			p = policy.Payback(deprovision.Dollars(0.01), 12*time.Hour)
		}
		if name == "balanced" {
			p = policy.Balanced(1)
		}
		r := x.plan(t, giveback.Options{Objective: p})
		assert.Len(t, r.Commands, want[name], name)
		if want[name] == 0 {
			assert.Equal(t, giveback.Outranked, r.Verdicts[0].Outcome, name)
			assert.NotEmpty(t, r.Verdicts[0].Detail)
		}
	}
	x := tell(t, families("m5, m5a"), onDemand)
	x.node(t, "a", "m5.large", "on-demand", 28, "50m", "200Mi")
	assert.Empty(t, x.plan(t, giveback.Options{MinSavings: deprovision.Dollars(0.05)}).Commands)
}

// "Can't remove without creating 2 candidates": one large node is split into several, and three become two.
func TestAnyNumberBecomesAnyNumber(t *testing.T) {
	x := tell(t, families("m5, c5"), onDemand)
	x.node(t, "a", "m5.12xlarge", "on-demand", 9, "2", "2Gi")
	x.s.Pods = append(x.s.Pods[:8:8], x.s.Pods[8]) // nine pods of two CPUs: 18 of 48
	r := x.plan(t, giveback.Options{})
	require.Len(t, r.Commands, 1)
	assert.GreaterOrEqual(t, len(r.Commands[0].NewNodes), 2, "20 CPUs are in no single type")
	assert.Greater(t, r.Commands[0].SavingsPerHour.Dollars(), 1.2)

	x = tell(t, families("m5"), onDemand)
	for _, name := range []string{"a", "b", "c"} {
		x.node(t, name, "m5.4xlarge", "on-demand", 2, "5", "8Gi")
	}
	r = x.plan(t, giveback.Options{})
	require.NotEmpty(t, r.Commands)
	assert.Less(t, r.PricePerHourAfter, r.PricePerHour)
}

// A spot node moves to cheaper spot capacity only where there is enough to choose from.
func TestSpotNeedsChoice(t *testing.T) {
	spot := "{key: karpenter.sh/capacity-type, operator: In, values: [spot]}"
	few := tell(t, families("m5"), spot)
	few.node(t, "a", "m5.8xlarge", "spot", 2, "500m", "1Gi")
	r := few.plan(t, giveback.Options{})
	assert.Empty(t, r.Commands, "not asked for")
	assert.Contains(t, r.Verdicts[0].Detail, "only on request (option spot-to-spot): then too few types of spot capacity would be cheaper (4): 15 are required")
	r = few.plan(t, giveback.Options{SpotToSpot: true})
	assert.Empty(t, r.Commands)
	assert.Contains(t, r.Verdicts[0].Detail, "too few types of spot capacity would be cheaper (4): 15 are required")
	many := tell(t, "{key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}", spot)
	many.node(t, "a", "m5.8xlarge", "spot", 2, "500m", "1Gi")
	r = many.plan(t, giveback.Options{})
	assert.Empty(t, r.Commands, "not asked for")
	assert.Contains(t, r.Verdicts[0].Detail, "only on request (option spot-to-spot): then c")
	r = many.plan(t, giveback.Options{SpotToSpot: true})
	require.Len(t, r.Commands, 1)
	assert.GreaterOrEqual(t, len(r.Commands[0].NewNodes[0].Alternatives), 14)
	for _, a := range r.Commands[0].NewNodes[0].Alternatives {
		assert.Less(t, a.PricePerHour, r.Commands[0].Nodes[0].PricePerHour, "never dearer, whichever is launched")
	}
}

// Interrupted machines are replaced first where time allows, and left at once where not.
func TestInterruption(t *testing.T) {
	x := tell(t, families("m5"))
	x.node(t, "a", "m5.xlarge", "spot", 3, "1", "2Gi")
	x.node(t, "b", "m5.xlarge", "spot", 3, "1", "2Gi")
	r := x.plan(t, giveback.Options{Methods: []eligibility.Method{eligibility.Interruption}},
		deprovision.Interruption{Node: "a", Deadline: fragment.Now().Add(50 * time.Second)}, deprovision.Interruption{Node: "b", Deadline: fragment.Now().Add(2 * time.Minute)})
	require.Len(t, r.Commands, 2)
	assert.True(t, r.Commands[0].AtOnce)
	assert.False(t, r.Commands[1].AtOnce)
	for _, c := range r.Commands {
		assert.Len(t, c.Placements, 3)
		for _, p := range c.Placements {
			assert.NotContains(t, []string{"a", "b"}, p.Node, "no pod moves to a machine that goes next")
		}
	}
}

// A reservation that is free again draws nodes back to it.
func TestBackIntoTheReservation(t *testing.T) {
	x := tell(t, families("m5"))
	x.node(t, "a", "m5.xlarge", "on-demand", 3, "1", "2Gi")
	x.node(t, "b", "m5.xlarge", "on-demand", 3, "1", "2Gi")
	types, err := ec2.Reserve(x.s.Pools[0].Types, ec2.Reservation{ID: "cr-1", InstanceType: "m5.xlarge", Zone: "us-east-1a", Count: 1})
	require.NoError(t, err)
	x.s.Pools[0].Types = types
	set, err := x.s.Pools[0].Requirements.Intersect(requirements.MustOf(requirements.In(instancetypes.LabelCapacityType, "on-demand", "reserved")))
	require.NoError(t, err)
	x.s.Pools[0].Requirements = set
	r := x.plan(t, giveback.Options{})
	require.Len(t, r.Commands, 1, "there is one place")
	require.Len(t, r.Commands[0].NewNodes, 1)
	assert.Equal(t, "reserved", r.Commands[0].NewNodes[0].CapacityType)
}

// A node that goes in any case goes although its pod has no other place, and its verdict names the pod.
func TestVerdictsOfWhatGoesInAnyCase(t *testing.T) {
	x := tell(t, families("m5"), onDemand)
	x.node(t, "a", "m5.xlarge", "on-demand", 1, "3", "2Gi")
	x.s.Pools[0].Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	r := x.plan(t, giveback.Options{}, deprovision.Interruption{Node: "a", Deadline: fragment.Now().Add(2 * time.Minute)})
	v := r.Verdicts[0]
	assert.Equal(t, []any{giveback.Chosen, eligibility.Interruption}, []any{v.Outcome, v.Method}, "%+v", v)
	require.Len(t, r.Commands, 1)
	assert.Len(t, r.Commands[0].Stranded, 1)
	assert.Contains(t, v.Detail, "though")
}

// A node that a pod is nominated to is not empty, although nothing runs there yet.
func TestNominatedPodsKeepTheirNode(t *testing.T) {
	x := tell(t, families("m5"), onDemand)
	x.node(t, "a", "m5.xlarge", "on-demand", 1, "1", "2Gi")
	x.node(t, "b", "m5.xlarge", "on-demand", 1, "1", "2Gi")
	x.s.Pods[1].Spec.NodeName, x.s.Pods[1].Status.NominatedNodeName = "", "b"
	x.s.Pods[1].Status.Phase = corev1.PodPending
	_, nominated, err := simulate.New(x.s)
	require.NoError(t, err)
	assert.Equal(t, []string{"b"}, nominated)
	for _, c := range x.plan(t, giveback.Options{}).Commands {
		for _, n := range c.Nodes {
			assert.NotEqual(t, "b", n.Name)
		}
	}
}

// The capacity that pods of a leaving node will take is not free, however the node is known to leave.
func TestRoomForPodsOfLeavingNodes(t *testing.T) {
	deleted := metav1.NewTime(fragment.Now())
	for name, leave := range map[string]func(x *told){
		"": func(*told) {},
		"marked": func(x *told) {
			x.s.Nodes[1].Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}}
		},
		"deleted": func(x *told) { x.s.Nodes[1].DeletionTimestamp = &deleted },
		"its claim is, by name": func(x *told) {
			x.s.NodeClaims = []scheduling.NodeClaim{{Name: "b-claim", NodeName: "b", Deleting: true, Initialized: true}}
		},
		"its claim is, by id": func(x *told) {
			x.s.Nodes[1].Spec.ProviderID = "cloud://b"
			x.s.NodeClaims = []scheduling.NodeClaim{{Name: "b-claim", ProviderID: "cloud://b", Deleting: true, Initialized: true}, {Name: "c-claim", NodeName: "c", Initialized: true}}
		},
	} {
		x := tell(t, `{key: node.kubernetes.io/instance-type, operator: In, values: [m5.xlarge]}`, onDemand)
		x.node(t, "a", "m5.xlarge", "on-demand", 1, "1", "2Gi")
		x.node(t, "b", "m5.xlarge", "on-demand", 1, "2", "2Gi")
		x.node(t, "c", "m5.xlarge", "on-demand", 1, "2", "2Gi")
		leave(x)
		assert.Equal(t, map[string]bool{"a": false, "b": name != "", "c": false}, map[string]bool{"a": pipeline.Leaving(x.s)["a"], "b": pipeline.Leaving(x.s)["b"], "c": pipeline.Leaving(x.s)["c"]}, name)
		_, nominated, err := simulate.New(x.s)
		require.NoError(t, err)
		onto := slices.DeleteFunc(x.plan(t, giveback.Options{}).Commands, func(c giveback.Command) bool { return len(c.NewNodes) > 0 })
		if name == "" {
			assert.Empty(t, nominated)
			assert.NotEmpty(t, onto, "two pods share a node")
			continue
		}
		assert.Equal(t, []string{"a"}, nominated, name)
		assert.Empty(t, onto, name)
	}
}
