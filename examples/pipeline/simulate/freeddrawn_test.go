package simulate_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/capacityquota"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// scarce is a drawn cluster in which machines are scarce in several ways at once.
type scarce struct {
	s       scheduling.Snapshot
	objects simulate.Objects
	due     map[string]eligibility.Method // by node
}

func quantity(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }

// drawScarce draws up to three pools with types with and without GPUs, each sold in up to three ways (a
// reservation, a stock, any number), with limits, quotas, fixed numbers of nodes, PodDisruptionBudgets,
// pending pods and leaving nodes.
func drawScarce(r *rand.Rand) *scarce {
	w := &scarce{due: map[string]eligibility.Method{}}
	for i := range 1 + r.IntN(3) {
		pool := scheduling.Pool{NodePool: nodepool.New(fmt.Sprintf("pool%d", i))}
		pool.Disruption.Budgets = []nodepool.Budget{{Nodes: 1 + r.IntN(4)}}
		for k := range 1 + r.IntN(3) {
			cpu, gpus := int64(4)<<r.IntN(3), int64(0)
			if r.IntN(2) == 0 {
				gpus = 4 << r.IntN(2)
			}
			size := corev1.ResourceList{"cpu": quantity(cpu), "memory": quantity(4 * cpu << 30)}
			if gpus > 0 {
				size["nvidia.com/gpu"] = quantity(gpus)
			}
			price := float64(cpu)*0.05 + float64(gpus)
			var offers []instancetypes.Offering
			ways := 1 + r.IntN(7) // a set of the three
			for _, zone := range []string{"z1", "z2"}[:1+r.IntN(2)] {
				if ways&1 > 0 {
					o := instancetypes.Offer(zone, "reserved", 0.001)
					id, n := fmt.Sprintf("cr-%d-%d-%s", i, k, zone), max(0, r.IntN(4)-2)
					o.Requirements = requirements.FromLabels(map[string]string{corev1.LabelTopologyZone: zone, instancetypes.LabelCapacityType: "reserved", instancetypes.LabelReservationID: id})
					o.Available, o.Full, o.ReservationCount = n > 0, n == 0, n
					offers = append(offers, o)
				}
				if ways&2 > 0 {
					offers = append(offers, instancetypes.Offer(zone, "spot", price/3).Stock([]string{"", fmt.Sprintf("stock-%d-%d-%s", i, k, zone)}[r.IntN(2)], max(0, r.IntN(4)-2)))
				}
				if ways == 4 {
					o := instancetypes.Offer(zone, "on-demand", price)
					o.Available = r.IntN(4) > 0 // else the cloud refuses it
					offers = append(offers, o)
				}
			}
			pool.Types = append(pool.Types, instancetypes.New(fmt.Sprintf("t%d-%d-c%d-g%d", i, k, cpu, gpus), nil, size, offers...))
			typ := &pool.Types[k]
			var all requirements.Builder
			all.AddSet(typ.Requirements)
			typ.Requirements, _ = all.Set()
		}
		w.s.Pools = append(w.s.Pools, pool)
	}
	yes := true
	for i := range 2 + r.IntN(6) {
		pool := &w.s.Pools[r.IntN(len(w.s.Pools))]
		typ := pool.Types[r.IntN(len(pool.Types))]
		n := typ.Node(fmt.Sprintf("n%d", i), typ.Offerings[r.IntN(len(typ.Offerings))], pool.PoolLabels())
		n.Labels[nodepool.LabelKey] = pool.Name
		if r.IntN(8) == 0 {
			n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}}
		}
		w.s.Nodes = append(w.s.Nodes, n)
		switch r.IntN(4) {
		case 0:
			w.due[n.Name] = eligibility.Unhealthy
		case 1, 2:
			w.due[n.Name] = eligibility.Drift
		}
		cpu, gpus := n.Status.Allocatable.Cpu().Value(), typ.Capacity.Name("nvidia.com/gpu", resource.DecimalSI).Value()
		for range r.IntN(4) {
			need := corev1.ResourceList{"cpu": quantity(1 + r.Int64N(max(1, cpu/2)))}
			if gpus > 0 && r.IntN(3) > 0 {
				need["nvidia.com/gpu"] = quantity(1 + r.Int64N(gpus))
			}
			if own := need["nvidia.com/gpu"]; need.Cpu().Value() > cpu || own.Value() > gpus {
				break
			}
			own := need["nvidia.com/gpu"]
			cpu, gpus = cpu-need.Cpu().Value(), gpus-own.Value()
			app := fmt.Sprintf("app%d", r.IntN(2))
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: fmt.Sprintf("p%d", len(w.s.Pods)), Labels: map[string]string{"app": app}, OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: app, Controller: &yes}}}}
			p.OwnerReferences[0].UID = "uid-of-its-set"
			p.Spec.NodeName, p.Status.Phase = n.Name, corev1.PodRunning
			p.Spec.Containers = []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: need, Limits: need}}}
			if r.IntN(3) == 0 {
				p.Spec.NodeSelector = map[string]string{nodepool.LabelKey: pool.Name}
			}
			if r.IntN(25) == 0 {
				p.Spec.NodeName, p.Status.Phase = "", corev1.PodPending
			}
			w.s.Pods = append(w.s.Pods, p)
		}
	}
	used := func(pool string, name corev1.ResourceName) (sum int64) {
		for _, n := range w.s.Nodes {
			if q := n.Status.Capacity[name]; pool == "" || n.Labels[nodepool.LabelKey] == pool {
				if sum += q.Value(); name == "nodes" {
					sum++
				}
			}
		}
		return sum
	}
	for i := range w.s.Pools {
		p := &w.s.Pools[i]
		if name := []corev1.ResourceName{"cpu", "nvidia.com/gpu", "nodes"}[r.IntN(3)]; r.IntN(3) == 0 {
			p.Limits = corev1.ResourceList{name: quantity(used(p.Name, name) + r.Int64N(4)*r.Int64N(2))}
		}
		if nodes := used(p.Name, "nodes"); r.IntN(4) == 0 && nodes > 0 {
			p.Replicas, p.Limits = new(nodes), nil
			if r.IntN(2) == 0 {
				p.Limits = corev1.ResourceList{"nodes": quantity(nodes + r.Int64N(2))}
			}
		}
	}
	if name := []corev1.ResourceName{"cpu", capacityquota.Nodes}[r.IntN(2)]; r.IntN(4) == 0 {
		w.s.Quotas = []capacityquota.Quota{{Name: "all", Limits: corev1.ResourceList{name: quantity(used("", name) + r.Int64N(3))}}}
	}
	for i := range 2 {
		if r.IntN(3) == 0 {
			continue
		}
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: fmt.Sprintf("b%d", i)}}
		allowed := r.Int32N(3)
		b.Spec.Selector, b.Spec.MaxUnavailable = &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("app%d", i)}}, new(intstr.FromInt32(allowed))
		b.Status = policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed, ExpectedPods: 9, CurrentHealthy: 9, DesiredHealthy: 9 - allowed}
		w.objects.PodDisruptionBudgets = append(w.objects.PodDisruptionBudgets, b)
	}
	return w
}

func (w *scarce) plan(t *testing.T, o giveback.Options) giveback.Result {
	t.Helper()
	sim, nominated, err := simulate.New(w.s)
	require.NoError(t, err)
	c := w.objects.Cluster(w.s, nominated, time.Unix(1e6, 0))
	for i := range c.Nodes {
		switch n := &c.Nodes[i]; w.due[n.Name()] {
		case eligibility.Unhealthy:
			n.Repair = &eligibility.Repair{Why: "no disk"}
		case eligibility.Drift:
			n.Drifted = []string{"old"}
		default:
		}
	}
	r, err := giveback.Make(t.Context(), c, sim, &o)
	require.NoError(t, err)
	return r
}

// sold returns the snapshot with the counts of offerings after a machine with these labels was bought
// (by -1) or given back (by 1).
func sold(s scheduling.Snapshot, labels map[string]string, by int) scheduling.Snapshot {
	s.Pools = slices.Clone(s.Pools)
	for i := range s.Pools {
		s.Pools[i].Types = slices.Clone(s.Pools[i].Types)
		for k := range s.Pools[i].Types {
			typ := &s.Pools[i].Types[k]
			typ.Offerings = slices.Clone(typ.Offerings)
			for j := range typ.Offerings {
				o := &typ.Offerings[j]
				id, _ := o.Requirements.Get(instancetypes.LabelReservationID).Single()
				if o.ReservationCount == 0 && !o.Full || typ.Name != labels[corev1.LabelInstanceTypeStable] || id != labels[instancetypes.LabelReservationID] ||
					!o.Requirements.Get(corev1.LabelTopologyZone).Contains(labels[corev1.LabelTopologyZone]) || o.CapacityType() != labels[instancetypes.LabelCapacityType] {
					continue
				}
				o.ReservationCount += by
				o.Available, o.Full = o.ReservationCount > 0, o.ReservationCount == 0
			}
		}
	}
	return s
}

// without returns the snapshot without nodes, whose pods wait.
func without(s scheduling.Snapshot, nodes ...deprovision.Candidate) scheduling.Snapshot {
	gone := map[string]bool{}
	for _, n := range nodes {
		gone[n.Name] = true
		s = sold(s, n.Node.Node.Labels, 1)
	}
	s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n *corev1.Node) bool { return gone[n.Name] })
	return waiting(s, gone)
}

// waiting returns the snapshot with the pods of the nodes as pending ones, and no other pending pods.
func waiting(s scheduling.Snapshot, nodes map[string]bool) scheduling.Snapshot {
	var pods []*corev1.Pod
	for _, p := range s.Pods {
		if p.Spec.NodeName == "" {
			continue
		}
		if nodes[p.Spec.NodeName] {
			q := *p
			q.Spec.NodeName, q.Status.Phase = "", corev1.PodPending
			p = &q
		}
		pods = append(pods, p)
	}
	s.Pods = pods
	return s
}

// provisioned returns how many pods of the nodes remain without a place when pending pods and those of
// leaving nodes are planned, and the plan.
func provisioned(t *testing.T, s scheduling.Snapshot, of ...deprovision.Candidate) (int, *plan.Plan) {
	t.Helper()
	s, _ = pipeline.Static(s)
	p, err := plan.Make(t.Context(), s, nil)
	require.NoError(t, err)
	n := 0
	for _, u := range p.Unplaced() {
		for _, pod := range u.Pods {
			for _, c := range of {
				if slices.ContainsFunc(c.Pods, func(own *corev1.Pod) bool { return own.Name == pod.Name }) {
					n++
				}
			}
		}
	}
	return n, p
}

// Whatever is scarce: a node goes first only if a plan without such nodes leaves it, and everything else
// is planned as in that plan if the budgets allow both. Nearly always provisioning, which tries more packings, would find no way
// to replace it before it goes, either. When it is gone, provisioning places its pods, within
// counts, limits and quotas. Pods that wait at once are within their PodDisruptionBudgets.
func TestWhoGoesFirstHasTo(t *testing.T) {
	first, found, others, texts := 0, 0, 0, map[string]int{}
	rounds := 800
	if testing.Short() {
		rounds = 200
	}
	for seed := range rounds {
		w := drawScarce(rand.New(rand.NewPCG(uint64(seed), 4)))
		ample := seed%2 == 0
		for i := range w.s.Pools {
			if ample {
				w.s.Pools[i].Disruption.Budgets = []nodepool.Budget{{Nodes: 100, Percent: true}}
			}
		}
		on := giveback.Options{TerminateFirst: []eligibility.Method{eligibility.Unhealthy, eligibility.Drift}}
		r, off := w.plan(t, on), w.plan(t, giveback.Options{TerminateFirst: []eligibility.Method{}})
		name := fmt.Sprintf("seed %d: %v", seed, going(r))
		s := w.s
		var gone []deprovision.Candidate
		taken := map[string]bool{}
		for i := range r.Commands {
			c := &r.Commands[i]
			if !c.TerminateFirst {
				require.True(t, !ample || i < len(off.Commands), name)
				if ample {
					require.Equal(t, going(giveback.Result{Commands: off.Commands[i : i+1]}), going(giveback.Result{Commands: r.Commands[i : i+1]}), name)
				}
				require.Empty(t, gone, "%s: they come last", name)
				next, err := simulate.Apply(s, c, time.Unix(1e6, 0))
				require.NoError(t, err, name)
				for _, n := range c.Nodes {
					next = sold(next, n.Node.Node.Labels, 1)
				}
				for k := range c.NewNodes {
					n, err := simulate.Node(s, &c.NewNodes[k], time.Unix(1e6, 0))
					require.NoError(t, err)
					next = sold(next, n.Labels, -1)
				}
				s = next
				others++
				continue
			}
			first++
			require.Len(t, c.Nodes, 1, name)
			require.Contains(t, []eligibility.Method{eligibility.Unhealthy, eligibility.Drift}, c.Method)
			require.Equal(t, w.due[c.Nodes[0].Name], c.Method, name)
			require.NotContains(t, going(off), c.Nodes[0].Name, name)
			require.NotEmpty(t, c.NewNodes, name)
			gone = append(gone, c.Nodes...)
			texts[c.Why[:min(len(c.Why), 24)]]++
			require.False(t, taken[c.Why], "%s: two at once", name)
			taken[c.Why] = true
			if c.Nodes[0].Node.Pool.IsStatic() {
				continue // nothing but the pool buys there
			}
			left, _ := provisioned(t, waiting(cordoned(kept(t, w.s), c.Nodes[0].Name), map[string]bool{c.Nodes[0].Name: true}), c.Nodes...)
			if left == 0 {
				t.Logf("%s: node %s could be replaced before it goes: %s", name, c.Nodes[0].Name, c.Why)
				found++
			}
		}
		require.True(t, !ample || len(off.Commands) == len(r.Commands)-len(gone), name)
		if len(gone) == 0 {
			continue
		}
		left, p := provisioned(t, without(s, gone...), gone...)
		require.Zero(t, left, "%s: pods have no place, though %v", name, r.Commands[len(r.Commands)-1].Why)
		counts := without(s, gone...)
		for _, n := range p.NewNodes() {
			require.True(t, n.Offering.Available && !n.Offering.Full, name)
			before := counts
			counts = sold(counts, n.Labels, -1)
			for i := range counts.Pools {
				for k := range counts.Pools[i].Types {
					for j, o := range counts.Pools[i].Types[k].Offerings {
						require.GreaterOrEqual(t, o.ReservationCount, 0, "%s: %v", name, before.Pools[i].Types[k].Offerings[j])
					}
				}
			}
		}
		budgets, wait := eviction.NewBudgets(w.objects.PodDisruptionBudgets), map[string]int{}
		for _, n := range gone {
			for _, pod := range n.Pods {
				for _, b := range budgets.Of(pod) {
					wait[b]++
				}
			}
		}
		for b, n := range wait {
			require.LessOrEqual(t, n, budgets.Allowed(b), "%s: %s", name, b)
		}
	}
	require.LessOrEqual(t, 50*found, first+25)
	t.Log(first, "go first,", found, "could be replaced before, and", others, "other commands;", texts)
	require.Greater(t, first, rounds/20)
	require.Greater(t, others, rounds/20)
}

// kept returns the snapshot with pods that move by themselves at the places that are kept for them, and
// without those that have none.
func kept(t *testing.T, s scheduling.Snapshot) scheduling.Snapshot {
	t.Helper()
	sim, _, err := simulate.New(s)
	require.NoError(t, err)
	places, leaving := map[*corev1.Pod]string{}, pipeline.Leaving(s)
	for _, p := range sim.Reserved() {
		places[p.Pod] = p.Node
	}
	var pods []*corev1.Pod
	for _, p := range s.Pods {
		if p.Spec.NodeName == "" || leaving[p.Spec.NodeName] {
			q := *p
			if q.Spec.NodeName = places[p]; q.Spec.NodeName == "" {
				continue
			}
			p = &q
		}
		pods = append(pods, p)
	}
	s.Pods = pods
	return s
}

// cordoned returns the snapshot with a node that takes no pods and counts as before.
func cordoned(s scheduling.Snapshot, name string) scheduling.Snapshot {
	s.Nodes = slices.Clone(s.Nodes)
	for i, n := range s.Nodes {
		if n.Name == name {
			closed := *n
			closed.Spec.Unschedulable, s.Nodes[i] = true, &closed
		}
	}
	return s
}
