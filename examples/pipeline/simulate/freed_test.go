package simulate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/capacityquota"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// tight is a cluster of a pool whose machines have 8 GPUs, with nodes called "a", "b" and so on that a
// pod fills each, and of which so many more can be bought.
type tight struct {
	scheduling.Snapshot
	simulate.Objects
	due eligibility.Method
}

// scarcities are the ways in which machines can be scarce, by name. Each makes so many more than the
// nodes of the cluster available, and returns what is said where none is.
func scarcities() map[string]func(w *tight, spare int) string {
	return map[string]func(w *tight, spare int) string{
		"reservation": func(w *tight, spare int) string {
			w.sell(func(o instancetypes.Offering) instancetypes.Offering {
				o.Requirements = requirements.FromLabels(map[string]string{corev1.LabelTopologyZone: "z", instancetypes.LabelCapacityType: "reserved", instancetypes.LabelReservationID: "cr-1"})
				o.Available, o.Full, o.ReservationCount = spare > 0, spare == 0, spare
				return o
			})
			return "reservation cr-1 is full"
		},
		"stock": func(w *tight, spare int) string {
			w.sell(func(o instancetypes.Offering) instancetypes.Offering { return o.Stock("block", spare) })
			return "stock block is full"
		},
		"stock without a name": func(w *tight, spare int) string {
			w.sell(func(o instancetypes.Offering) instancetypes.Offering { return o.Stock("", spare) })
			return "gpu8 in z (on-demand) is full"
		},
		"limit": func(w *tight, spare int) string {
			w.Pools[0].Limits = corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(8*(len(w.Nodes)+spare)), resource.DecimalSI)}
			return "pool default is at its limit of nvidia.com/gpu"
		},
		"limit of nodes": func(w *tight, spare int) string {
			w.Pools[0].Limits = corev1.ResourceList{"nodes": *resource.NewQuantity(int64(len(w.Nodes)+spare), resource.DecimalSI)}
			return "pool default is at its limit of nodes"
		},
		"quota": func(w *tight, spare int) string {
			w.Quotas = []capacityquota.Quota{{Name: "gpus", Limits: corev1.ResourceList{capacityquota.Nodes: *resource.NewQuantity(int64(len(w.Nodes)+spare), resource.DecimalSI)}}}
			return `quota "gpus" is used up: nodes`
		},
		"static pool": func(w *tight, spare int) string {
			w.Pools[0].Replicas = new(int64(len(w.Nodes)))
			w.Pools[0].Limits = corev1.ResourceList{"nodes": *resource.NewQuantity(int64(len(w.Nodes)+spare), resource.DecimalSI)}
			return fmt.Sprintf("pool default has as many nodes as it may have (limits.nodes: %d)", len(w.Nodes))
		},
		"static pool with a reservation": func(w *tight, spare int) string {
			w.Pools[0].Replicas = new(int64(len(w.Nodes)))
			return scarcities()["reservation"](w, spare)
		},
		"static pool within a quota": func(w *tight, spare int) string {
			w.Pools[0].Replicas = new(int64(len(w.Nodes)))
			return scarcities()["quota"](w, spare)
		},
	}
}

func newTight(nodes int) *tight {
	w := &tight{due: eligibility.Unhealthy}
	gpu := corev1.ResourceList{"cpu": resource.MustParse("32"), "memory": resource.MustParse("128Gi"), "nvidia.com/gpu": resource.MustParse("8")}
	typ := instancetypes.New("gpu8", nil, gpu, instancetypes.Offer("z", "on-demand", 10))
	w.Pools = []scheduling.Pool{{NodePool: nodepool.New("default"), Types: []instancetypes.InstanceType{typ}}}
	w.Pools[0].Disruption.Budgets = []nodepool.Budget{{Nodes: 100}}
	for i := range nodes {
		w.Nodes = append(w.Nodes, typ.Node(string(rune('a'+i)), typ.Offerings[0], w.Pools[0].PoolLabels()))
		w.Pods = append(w.Pods, w.pod(w.Nodes[i].Name))
	}
	return w
}

// pod is one that fills a node; an empty name is that of no node.
func (w *tight) pod(node string) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: fmt.Sprintf("p%d-%s", len(w.Pods), node), Labels: map[string]string{"app": "train"}, OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "r", UID: "r", Controller: &yes}}}}
	p.Spec.NodeName = node
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}, Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}}}}
	if p.Status.Phase = corev1.PodRunning; node == "" {
		p.Status.Phase = corev1.PodPending
	}
	return p
}

// sell changes the offering, and with it the nodes.
func (w *tight) sell(change func(instancetypes.Offering) instancetypes.Offering) {
	t := &w.Pools[0].Types[0]
	o := change(t.Offerings[0])
	t.Offerings = []instancetypes.Offering{o}
	var own requirements.Builder
	own.AddSet(t.Requirements.Without(o.Requirements.Keys()))
	own.AddSet(o.Requirements)
	t.Requirements, _ = own.Set()
	for i, n := range w.Nodes {
		again := t.Node(n.Name, o, w.Pools[0].PoolLabels())
		again.Spec = n.Spec
		w.Nodes[i] = again
	}
}

func (w *tight) budget(allowed int32) {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "train"}}
	b.Spec.Selector, b.Spec.MaxUnavailable = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "train"}}, new(intstr.FromInt32(allowed))
	b.Status = policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed, ExpectedPods: int32(len(w.Pods)), CurrentHealthy: int32(len(w.Pods)), DesiredHealthy: int32(len(w.Pods)) - allowed}
	w.PodDisruptionBudgets = []*policyv1.PodDisruptionBudget{b}
}

// plan plans with the nodes broken or drifted.
func (w *tight) plan(t *testing.T, o giveback.Options, due ...string) giveback.Result {
	t.Helper()
	sim, nominated, err := simulate.New(w.Snapshot)
	require.NoError(t, err)
	c := w.Cluster(w.Snapshot, nominated, time.Unix(1e6, 0))
	for i := range c.Nodes {
		for _, name := range due {
			switch n := &c.Nodes[i]; {
			case n.Name() != name:
			case w.due == eligibility.Drift:
				n.Drifted = []string{"old"}
			default:
				n.Repair = &eligibility.Repair{Why: "no disk"}
			}
		}
	}
	r, err := giveback.Make(t.Context(), c, sim, &o)
	require.NoError(t, err)
	return r
}

// going returns the nodes that the commands give back.
func going(r giveback.Result) (out []string) {
	for _, c := range r.Commands {
		for _, n := range c.Nodes {
			out = append(out, n.Name)
		}
	}
	return out
}

// Where no machine can be bought, a node goes first, one at a time, and says why; where one can, it is
// bought first.
func TestTheLastMachine(t *testing.T) {
	for name, scarce := range scarcities() {
		for _, method := range []eligibility.Method{eligibility.Unhealthy, eligibility.Drift} {
			t.Run(name+" "+string(method), func(t *testing.T) {
				made := func(spare int) *tight {
					w := newTight(3)
					w.due = method
					scarce(w, spare)
					return w
				}
				on := giveback.Options{TerminateFirst: []eligibility.Method{method}}
				why := scarce(newTight(3), 0)
				r := made(0).plan(t, on, "a", "c")
				require.Equal(t, []string{"a"}, going(r), r.Verdicts[0].Detail)
				c := r.Commands[0]
				assert.True(t, c.TerminateFirst)
				assert.Equal(t, giveback.Replace, c.Kind)
				assert.Equal(t, "a", c.Nodes[0].Name)
				require.Len(t, c.NewNodes, 1)
				assert.Len(t, c.NewNodes[0].Pods, 1)
				assert.Len(t, c.Placements, 1)
				assert.Contains(t, c.Why, "; goes first: "+why)
				assert.Contains(t, r.Verdicts[0].Detail, "nodes to buy then: 1 (gpu8)")
				assert.Contains(t, r.Verdicts[2].Detail, "nothing can be bought before it goes ("+why+"), and node a goes before it")

				assert.Empty(t, going(made(0).plan(t, giveback.Options{TerminateFirst: []eligibility.Method{}}, "a")), "off")
				assert.Equal(t, method == eligibility.Unhealthy, len(made(0).plan(t, giveback.Options{}, "a").Commands) == 1, "by default only what is broken")
				assert.Empty(t, going(made(0).plan(t, on)), "nothing is due")
				for _, c := range made(1).plan(t, on, "a", "c").Commands {
					assert.False(t, c.TerminateFirst, "there is a spare")
				}
				assert.NotEmpty(t, going(made(1).plan(t, on, "a", "c")), "there is a spare")

				held := made(0)
				held.Pools[0].Disruption.Budgets = []nodepool.Budget{{Nodes: 0}}
				r = held.plan(t, on, "a")
				require.Empty(t, going(r), "budgets")
				assert.Equal(t, giveback.OverBudget, r.Verdicts[0].Outcome)

				guarded := made(0)
				guarded.budget(0)
				assert.Empty(t, going(guarded.plan(t, on, "a")), "a PodDisruptionBudget")
				guarded.budget(1)
				assert.Equal(t, []string{"a"}, going(guarded.plan(t, on, "a")))

				leaving := made(0)
				leaving.Nodes[1].Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}}
				assert.Empty(t, going(leaving.plan(t, on, "a")), "another one is leaving")
				leaving.Pods = slices.Delete(leaving.Pods, 1, 2) // even if nothing runs there
				assert.Empty(t, going(leaving.plan(t, on, "a")), "another one is leaving")
				if static := made(0).Pools[0].Replicas != nil; !static {
					pending := made(0)
					pending.Pods = append(pending.Pods, pending.pod(""))
					r = pending.plan(t, on, "a")
					require.Empty(t, going(r), "a pod waits for the place")
					assert.Contains(t, r.Verdicts[0].Detail, "pod ml/p3- has no place, and would take what is bought")
				}
			})
		}
	}
}

// A machine that the cloud refuses, for whatever reason, is no proof that one is free once the node is
// gone.
func TestARefusalIsNoProof(t *testing.T) {
	w := newTight(2)
	w.sell(func(o instancetypes.Offering) instancetypes.Offering {
		o.Available = false
		return o
	})
	assert.Empty(t, going(w.plan(t, giveback.Options{}, "a")))
}

// What the node itself uses up until it is gone keeps its successor from being bought. A verdict names
// that, whether the node could be cheaper or its life is over; where there is enough, it does not.
func TestVerdictsNameWhatIsUsedUp(t *testing.T) {
	capacity := func(cpu string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("64Gi")}
	}
	at := func(q string) *resource.Quantity { return new(resource.MustParse(q)) }
	large := instancetypes.New("large", nil, capacity("12"), instancetypes.Offer("z", "on-demand", 0.9))
	small := instancetypes.New("small", nil, capacity("3"), instancetypes.Offer("z", "on-demand", 0.2))
	for name, c := range map[string]struct {
		limit func(w *tight)
		want  string
	}{
		"cpu":   {func(w *tight) { w.Pools[0].Limits = corev1.ResourceList{"cpu": *at("14")} }, "pool default is at its limit of cpu"},
		"nodes": {func(w *tight) { w.Pools[0].Limits = corev1.ResourceList{"nodes": *at("1")} }, "pool default is at its limit of nodes"},
		"quota": {func(w *tight) {
			w.Quotas = []capacityquota.Quota{{Name: "all", Limits: corev1.ResourceList{"memory": *at("100Gi")}}}
		}, `quota "all" is used up: memory`},
		"enough": {func(w *tight) { w.Pools[0].Limits = corev1.ResourceList{"cpu": *at("15"), "nodes": *at("2")} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := &tight{}
			w.Pools = []scheduling.Pool{{NodePool: nodepool.New("default"), Types: []instancetypes.InstanceType{large, small}}}
			w.Pools[0].Disruption.Budgets = []nodepool.Budget{{Nodes: 100, Percent: true}}
			w.Pools[0].Disruption.ConsolidateAfter = new(time.Duration)
			w.Nodes = []*corev1.Node{large.Node("a", large.Offerings[0], w.Pools[0].PoolLabels())}
			w.Pods = []*corev1.Pod{w.pod("a")}
			w.Pods[0].Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("700m")}}
			c.limit(w)
			r := w.plan(t, giveback.Options{})
			if c.want == "" {
				require.Equal(t, []string{"a"}, going(r))
			} else {
				require.Equal(t, giveback.WouldNotFit, r.Verdicts[0].Outcome)
				assert.Contains(t, r.Verdicts[0].Detail, "; nothing can be bought before it goes: "+c.want)
			}

			w.Nodes[0].CreationTimestamp = metav1.NewTime(time.Unix(0, 0))
			w.Pools[0].Disruption.ExpireAfter = new(time.Hour)
			r = w.plan(t, giveback.Options{Methods: []eligibility.Method{eligibility.Expiration}})
			require.Equal(t, []string{"a"}, going(r), "a life that is over ends in any case")
			if c.want == "" {
				assert.NotContains(t, r.Commands[0].Why, "nothing can be bought")
			} else {
				assert.Contains(t, r.Commands[0].Why, "; nothing can be bought before it goes: "+c.want)
			}
		})
	}
}
