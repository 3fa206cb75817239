package simulate_test

import (
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
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/capacityquota"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// fixed is a cluster of two nodes of a static pool and one of another pool, with a pod each.
func fixed(selects string) scheduling.Snapshot {
	sold := func(name, cpu string, price float64) instancetypes.InstanceType {
		return instancetypes.New(name, nil, corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("16Gi")}, instancetypes.Offer("z", "on-demand", price))
	}
	types := []instancetypes.InstanceType{sold("small", "4", 0.2), sold("large", "8", 0.4)}
	pool := func(name string) scheduling.Pool {
		return scheduling.Pool{NodePool: nodepool.New(name), Types: types}
	}
	s := scheduling.Snapshot{Pools: []scheduling.Pool{pool("default"), pool("fixed")}}
	s.Pools[1].Replicas, s.Pools[1].Disruption.Budgets = new(int64(2)), []nodepool.Budget{{Nodes: 2}}
	yes := true
	for i, name := range []string{"a", "b", "c"} {
		of := []string{"fixed", "fixed", "default"}[i]
		n := types[1].Node(name, types[1].Offerings[0], s.Pools[0].PoolLabels())
		n.Labels[nodepool.LabelKey] = of
		s.Nodes = append(s.Nodes, n)
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pod-" + name, OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "r", UID: "r", Controller: &yes}}}}
		p.Spec.Containers = []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("3")}}}}
		if p.Spec.NodeName = name; selects != "" && name != "c" {
			p.Spec.NodeSelector = map[string]string{nodepool.LabelKey: selects}
		}
		s.Pods = append(s.Pods, p)
	}
	return s
}

func planFixed(t *testing.T, s scheduling.Snapshot, due func(*deprovision.Cluster)) giveback.Result {
	t.Helper()
	sim, nominated, err := simulate.New(s)
	require.NoError(t, err)
	c := simulate.Objects{}.Cluster(s, nominated, time.Unix(1e6, 0))
	due(&c)
	r, err := giveback.Make(t.Context(), c, sim, &giveback.Options{Methods: []eligibility.Method{eligibility.Interruption, eligibility.Drift}})
	require.NoError(t, err)
	return r
}

func driftOf(names ...string) func(*deprovision.Cluster) {
	return func(c *deprovision.Cluster) {
		for i := range c.Nodes {
			for _, name := range names {
				if c.Nodes[i].Name() == name {
					c.Nodes[i].Drifted = []string{"old"}
				}
			}
		}
	}
}

// A static pool buys its cheapest node in the place of each that goes, whether or not pods need it.
func TestStaticPoolsBuyInThePlace(t *testing.T) {
	for _, selects := range []string{"", "fixed"} {
		r := planFixed(t, fixed(selects), driftOf("a", "b"))
		require.Len(t, r.Commands, 2, selects)
		for _, c := range r.Commands {
			assert.Equal(t, eligibility.Drift, c.Method, selects)
			require.Len(t, c.NewNodes, 1, selects)
			assert.Equal(t, []string{"fixed", "small"}, []string{c.NewNodes[0].Pool, c.NewNodes[0].InstanceType}, selects)
			assert.Equal(t, deprovision.Dollars(0.2), c.SavingsPerHour, selects)
			if selects != "" {
				assert.Len(t, c.NewNodes[0].Pods, 1)
			}
		}
		assert.Equal(t, deprovision.Dollars(0.8), r.PricePerHourAfter, selects)
	}
}

// No pod buys a node of a static pool, not even one that fits nowhere else.
func TestPodsBuyNoNodeOfAStaticPool(t *testing.T) {
	s := fixed("")
	for _, p := range s.Pods {
		if p.Spec.NodeName == "c" { // its node may go only if a node of the static pool is bought
			p.Spec.NodeSelector = map[string]string{nodepool.LabelKey: "fixed"}
			p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("6")
		}
	}
	r := planFixed(t, s, driftOf("c"))
	assert.Empty(t, r.Commands)
}

// A quota that forbids the node in its place keeps the old one, unless it goes in any case.
func TestStaticPoolsWithinQuotas(t *testing.T) {
	s := fixed("")
	s.Quotas = []capacityquota.Quota{{Name: "all", Limits: corev1.ResourceList{capacityquota.Nodes: resource.MustParse("3")}}}
	r := planFixed(t, s, driftOf("a"))
	require.Empty(t, r.Commands)
	assert.Contains(t, r.Verdicts[0].Detail, "pool fixed cannot buy a node in its place now")
	r = planFixed(t, s, func(c *deprovision.Cluster) {
		c.Interruptions = []deprovision.Interruption{{Node: "a", Deadline: time.Unix(2e6, 0)}}
	})
	require.Len(t, r.Commands, 1)
	assert.Contains(t, r.Commands[0].Why, "though pool fixed cannot buy a node in its place now")
}
