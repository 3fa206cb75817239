package protection_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joinery-sdk/joinery/deprovision/eviction"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/protection"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
	"github.com/joinery-sdk/joinery/examples/plan"
)

// guarded is a fragmented cluster some of whose workloads have budgets or annotations, and some nodes annotations.
func guarded(t testing.TB, seed uint64, nodes int) protection.Cluster {
	t.Helper()
	c, err := fragment.Generate(fragment.Options{Nodes: nodes, Seed: seed, Constrained: seed%2 == 0})
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(seed, 48))
	out := protection.Cluster{Snapshot: c.Snapshot, Objects: simulate.ObjectsOf(c.Manifests), Now: fragment.Now()}
	known := map[string]int{}
	for i, p := range c.Snapshot.Pods {
		workload := plan.WorkloadOf(p)
		if _, ok := known[workload]; !ok {
			known[workload] = rng.IntN(5)
			if known[workload] == 0 {
				allowed := intstr.FromInt32(rng.Int32N(2))
				out.Objects.PodDisruptionBudgets = append(out.Objects.PodDisruptionBudgets, &policyv1.PodDisruptionBudget{
					ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: fmt.Sprintf("b%02d", len(known))},
					Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &allowed, Selector: &metav1.LabelSelector{MatchLabels: p.Labels}},
					Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed.IntVal, ExpectedPods: 9, CurrentHealthy: 9},
				})
			}
		}
		if known[workload] == 1 {
			c.Snapshot.Pods[i] = annotated(p)
		}
	}
	for i, n := range c.Snapshot.Nodes {
		if rng.IntN(6) == 0 {
			one := n.DeepCopy()
			metav1.SetMetaDataAnnotation(&one.ObjectMeta, eviction.DoNotDisrupt, "true")
			c.Snapshot.Nodes[i] = one
		}
	}
	return out
}

func annotated(p *corev1.Pod) *corev1.Pod {
	one := p.DeepCopy()
	metav1.SetMetaDataAnnotation(&one.ObjectMeta, eviction.DoNotDisrupt, "true")
	return one
}

// after consolidates a cluster by another path than the package: that of the programs.
func after(t *testing.T, c protection.Cluster) float64 {
	t.Helper()
	sim, nominated, err := simulate.New(c.Snapshot)
	require.NoError(t, err)
	opts := giveback.Options{}
	opts.Rules.Placeable = sim.Placeable
	r, err := giveback.Make(t.Context(), c.Objects.Cluster(c.Snapshot, nominated, c.Now), sim, &opts)
	require.NoError(t, err)
	return r.PricePerHourAfter.Dollars()
}

// A verified cost is the difference of two plans, with the rule and without it, and at most what the nodes cost that it keeps; no rule that was
// not verified costs a hundredth of the bill.
func TestCostsAreDifferences(t *testing.T) {
	clusters := 6
	if testing.Short() {
		clusters = 3
	}
	if parts, err := strconv.Atoi(os.Getenv("JOINERY_LONG")); err == nil {
		clusters = max(clusters, 40/parts)
	}
	if n, err := strconv.Atoi(os.Getenv("JOINERY_CLUSTERS")); err == nil {
		clusters = n
	}
	rules, cost, above := 0, 0, 0
	kinds := map[protection.Kind]int{}
	for seed := range uint64(clusters) {
		c := guarded(t, seed, 12)
		report, err := protection.Of(t.Context(), c, nil, 0)
		require.NoError(t, err)
		with := after(t, c)
		require.InDelta(t, with, report.PerHour, 1e-9)
		for _, r := range report.Rules {
			saved := max(0, with-after(t, lifted(c, r.Rule)))
			if r.Verified {
				require.InDelta(t, saved, r.PerHour, 1e-9, "%+v", r)
			} else {
				require.LessOrEqual(t, saved, 0.01*with, "%+v", r)
			}
			if saved > r.HighPerHour+1e-9 {
				above++
			}
			rules++
			if saved > 0 {
				cost++
				kinds[r.Kind]++
			}
		}
		again, err := protection.Of(t.Context(), c, nil, 0)
		require.NoError(t, err)
		require.Equal(t, report, again)
	}
	fmt.Printf("%d clusters, %d rules, %d cost something: %v; %d save more than their nodes cost\n", clusters, rules, cost, kinds, above)
	require.Len(t, kinds, 3)
	assert.LessOrEqual(t, above, rules/50, "plans are not the best ones, but near")
}

// lifted takes a rule away by hand.
func lifted(c protection.Cluster, r protection.Rule) protection.Cluster {
	var budgets []*policyv1.PodDisruptionBudget
	for _, b := range c.Objects.PodDisruptionBudgets {
		if r.Owner != "PodDisruptionBudget "+b.Namespace+"/"+b.Name {
			budgets = append(budgets, b)
		}
	}
	c.Objects.PodDisruptionBudgets = budgets
	var pods []*corev1.Pod
	for _, p := range c.Snapshot.Pods {
		if plan.WorkloadOf(p) == r.Owner {
			p = p.DeepCopy()
			delete(p.Annotations, eviction.DoNotDisrupt)
		}
		pods = append(pods, p)
	}
	c.Snapshot.Pods = pods
	var nodes []*corev1.Node
	for _, n := range c.Snapshot.Nodes {
		if r.Owner == "Node "+n.Name {
			n = n.DeepCopy()
			delete(n.Annotations, eviction.DoNotDisrupt)
		}
		nodes = append(nodes, n)
	}
	c.Snapshot.Nodes = nodes
	return c
}

func TestItStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := protection.Of(ctx, guarded(t, 1, 12), nil, 0)
	require.ErrorIs(t, err, context.Canceled)
}

func ExampleOf() {
	c, err := fragment.Generate(fragment.Options{Nodes: 2, Seed: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	node := c.Snapshot.Nodes[0].DeepCopy()
	node.Annotations = map[string]string{eviction.DoNotDisrupt: "true"}
	c.Snapshot.Nodes[0] = node
	cluster := protection.Cluster{Snapshot: c.Snapshot, Objects: simulate.ObjectsOf(c.Manifests), Now: fragment.Now()}
	report, err := protection.Of(context.Background(), cluster, nil, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range report.Rules {
		fmt.Printf("%s: $%.3f an hour\n", r.Owner, r.PerHour)
	}
	// Output: Node node-00000: $0.076 an hour
}

func ExampleReport() {
	report := protection.Report{PerHour: 2, Rules: []protection.Cost{
		{Rule: protection.Rule{Kind: protection.Workload, Owner: "Deployment shop/web"}, Verified: true, PerHour: 0.2, HighPerHour: 0.5, Nodes: 2},
	}}
	fmt.Printf("$%.0f a month, of which %s costs $%.0f\n", 730*report.PerHour, report.Rules[0].Owner, 730*report.Rules[0].PerHour)
	// Output: $1460 a month, of which Deployment shop/web costs $146
}
