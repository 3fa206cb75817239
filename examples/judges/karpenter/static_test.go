//go:build !karpenter1.14

package karpenter_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgo "k8s.io/client-go/kubernetes/scheme"
	clock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"
	kwok "sigs.k8s.io/karpenter/kwok/apis/v1alpha1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	staticdeprovisioning "sigs.k8s.io/karpenter/pkg/controllers/static/deprovisioning"
	staticprovisioning "sigs.k8s.io/karpenter/pkg/controllers/static/provisioning"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	karpdisruption "sigs.k8s.io/karpenter/pkg/utils/disruption"

	"github.com/joinery-sdk/joinery/deprovision/budget"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// quiet is a provider that owns all nodes of KWOK's class, and sells nothing.
type quiet struct{ cloudprovider.CloudProvider }

func (quiet) GetSupportedNodeClasses() []status.Object { return []status.Object{&kwok.KWOKNodeClass{}} }

func (quiet) GetInstanceTypes(context.Context, *karpv1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return nil, nil
}

type silent struct{}

func (silent) Publish(...events.Event) {}

// class refers to the one node class of these tests.
func class() *karpv1.NodeClassReference {
	return &karpv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
}

func apiScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgo.AddToScheme(scheme))
	gv := corev1.SchemeGroupVersion
	gv.Group, gv.Version = "karpenter.sh", "v1"
	metav1.AddToGroupVersion(scheme, gv)
	scheme.AddKnownTypes(gv, &karpv1.NodePool{}, &karpv1.NodePoolList{}, &karpv1.NodeClaim{}, &karpv1.NodeClaimList{})
	return scheme
}

// fleet is a pool and its nodes, as Karpenter and as package eligibility have them.
type fleet struct {
	pool    *karpv1.NodePool
	objects []client.Object // nodes, claims and pods
	claims  []*karpv1.NodeClaim
	nodes   []*corev1.Node
	pods    []*corev1.Pod
}

// drawFleet draws up to 12 nodes with pods of a pool, some of which leave or are not ready.
//
// A node has either DaemonSet pods or others: where it has both, the pods of DaemonSets count in Karpenter's cost of a static pool's
// node, and not in its other costs, nor here, because they need no new place.
func drawFleet(rng *rand.Rand, now time.Time, pool *karpv1.NodePool) fleet {
	f := fleet{pool: pool}
	one := func(n int) bool { return rng.IntN(n) == 0 }
	for i := range rng.IntN(12) {
		name, id := fmt.Sprintf("n%02d", i), fmt.Sprintf("kwok://%02d", i)
		labels := map[string]string{karpv1.NodePoolLabelKey: pool.Name, karpv1.NodeRegisteredLabelKey: "true", corev1.LabelInstanceTypeStable: "m"}
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: labels, CreationTimestamp: metav1.NewTime(now.Add(-time.Duration(rng.IntN(48)) * time.Hour))}}
		claim.Spec.NodeClassRef = class()
		claim.Spec.ExpireAfter = pool.Spec.Template.Spec.ExpireAfter
		claim.Status.ProviderID, claim.Status.NodeName = id, name
		claim.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name), Labels: maps.Clone(labels), CreationTimestamp: claim.CreationTimestamp}}
		node.Spec.ProviderID = id
		ready := corev1.ConditionTrue
		if one(4) {
			ready = []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionUnknown}[rng.IntN(2)]
		}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		if !one(5) {
			node.Labels[karpv1.NodeInitializedLabelKey] = "true"
			claim.StatusConditions().SetTrue(karpv1.ConditionTypeInitialized)
		}
		if one(6) {
			at := metav1.NewTime(now)
			claim.DeletionTimestamp, claim.Finalizers = &at, []string{karpv1.TerminationFinalizer}
			node.DeletionTimestamp, node.Finalizers = &at, []string{karpv1.TerminationFinalizer}
		}
		f.claims, f.nodes = append(f.claims, claim), append(f.nodes, node)
		f.objects = append(f.objects, claim, node)
		agents := one(3)
		for j := range rng.IntN(4) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("%s-%d", name, j), UID: types.UID(fmt.Sprint(name, j)), Annotations: map[string]string{}}}
			pod.Spec.NodeName, pod.Status.Phase = name, corev1.PodRunning
			switch {
			case agents:
				pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "d", Controller: new(true)}}
			case one(4):
				pod.Annotations[karpv1.DoNotDisruptAnnotationKey] = "true"
			case one(3):
				pod.Annotations["controller.kubernetes.io/pod-deletion-cost"] = fmt.Sprint(rng.IntN(1<<30) - 1<<29)
			case one(2):
				pod.Spec.Priority = new(rng.Int32N(1 << 24))
			}
			f.pods, f.objects = append(f.pods, pod), append(f.objects, pod)
		}
	}
	return f
}

// ours is the fleet as package eligibility has it.
func (f *fleet) ours(t *testing.T) (nodepool.NodePool, []eligibility.Node) {
	t.Helper()
	pool, err := nodepool.DecodeObject(f.pool)
	require.NoError(t, err)
	var out []eligibility.Node
	for i, node := range f.nodes {
		n := eligibility.Node{Node: node, Pool: &pool, Claim: eligibility.Claim{
			Created: f.claims[i].CreationTimestamp.Time, Deleting: f.claims[i].DeletionTimestamp != nil, Decides: true,
			Rebooting: f.claims[i].StatusConditions().IsTrue(karpv1.ConditionTypeRebooting), ExpireAfter: f.claims[i].Spec.ExpireAfter.Duration,
		}}
		for _, p := range f.pods {
			if p.Spec.NodeName == node.Name {
				n.Pods = append(n.Pods, p)
			}
		}
		out = append(out, n)
	}
	return pool, out
}

// The budgets of 1,000 pools allow as many nodes, for each reason, as Karpenter's.
func TestBudgetsAllowWhatKarpentersDo(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 1))
	reasons := []karpv1.DisruptionReason{karpv1.DisruptionReasonUnderutilized, karpv1.DisruptionReasonEmpty, karpv1.DisruptionReasonDrifted, karpv1.DisruptionReasonUnhealthy}
	compared, allowing := 0, 0
	for range 1000 {
		now := time.Date(2026, 11, 2+rng.IntN(20), rng.IntN(24), rng.IntN(60), 0, 0, time.UTC)
		pool := pool("web", func(p *karpv1.NodePool) {
			p.Spec.Template.Spec.NodeClassRef = class()
			p.Spec.Template.Spec.ExpireAfter = karpv1.MustParseNillableDuration("Never")
			p.Spec.Disruption.ConsolidateAfter = karpv1.MustParseNillableDuration("0s")
			for range 1 + rng.IntN(3) { // an API server puts one where there is none
				b := karpv1.Budget{Nodes: []string{"0", "1", "3", "7", "10%", "33%", "50%", "100%"}[rng.IntN(8)]}
				for _, r := range reasons {
					if rng.IntN(3) == 0 {
						b.Reasons = append(b.Reasons, r)
					}
				}
				if rng.IntN(3) == 0 {
					b.Schedule = new([]string{"0 9 * * *", "30 */2 * * *", "@daily", "0 0 * * 1-5"}[rng.IntN(4)])
					b.Duration = &metav1.Duration{Duration: time.Duration(1+rng.IntN(600)) * time.Minute}
				}
				p.Spec.Disruption.Budgets = append(p.Spec.Disruption.Budgets, b)
			}
		})
		f := drawFleet(rng, now, pool)
		var theirs []*state.StateNode
		for i := range f.nodes {
			if rng.IntN(6) == 0 {
				f.claims[i].StatusConditions().SetTrue(karpv1.ConditionTypeRebooting)
			}
			n := state.NewNode()
			n.Node, n.NodeClaim = f.nodes[i], f.claims[i]
			theirs = append(theirs, n)
		}
		ours, nodes := f.ours(t)
		ledger := budget.New([]nodepool.NodePool{ours}, budget.Count(nodes), now)
		for _, r := range reasons {
			numbers, disrupting := disruption.NodePoolStatsFromNodes(theirs, r)
			want := disruption.NodePoolBudgetMap(t.Context(), clock.NewFakeClock(now), map[string]*karpv1.NodePool{"web": pool}, numbers, disrupting, r)["web"]
			got := ledger.Left("web", nodepool.Reason(r))
			assert.Equal(t, min(want, len(nodes)), min(got, len(nodes)), "%s at %s of %d nodes: %+v", r, now, len(nodes), pool.Spec.Disruption.Budgets)
			if compared++; want > 0 {
				allowing++
			}
		}
	}
	fmt.Printf("%d budgets, %d allow something\n", compared, allowing)
}

// Karpenter's controllers of static pools buy as many nodes for 1,000 pools, and give back nodes that disturb as little.
func TestStaticPoolsAreKarpenters(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 2))
	log.SetLogger(logr.Discard())
	scheme := apiScheme(t)
	bought, returned := 0, 0
	for range 1000 {
		now := time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)
		pool := pool("web", func(p *karpv1.NodePool) {
			p.UID = "pool"
			p.Spec.Replicas = new(int64(rng.IntN(12)))
			if rng.IntN(2) == 0 {
				p.Spec.Limits = karpv1.Limits{"nodes": *resource.NewQuantity(rng.Int64N(12), resource.DecimalSI)}
			}
			p.Spec.Template.Spec.NodeClassRef = class()
			p.Spec.Template.Spec.ExpireAfter = karpv1.MustParseNillableDuration([]string{"Never", "72h"}[rng.IntN(2)])
			p.Spec.Disruption.ConsolidateAfter = karpv1.MustParseNillableDuration("0s")
			p.StatusConditions().SetTrue(karpv1.ConditionTypeValidationSucceeded)
			p.StatusConditions().SetTrue(karpv1.ConditionTypeNodeClassReady)
		})
		f := drawFleet(rng, now, pool)
		api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(f.objects, pool)...).WithStatusSubresource(&karpv1.NodeClaim{}, &karpv1.NodePool{}).
			WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).Build()
		ctx := options.ToContext(t.Context(), &options.Options{})
		watch := clock.NewFakeClock(now)
		cluster := state.NewCluster(watch, api, quiet{})
		for i := range f.claims {
			cluster.UpdateNodeClaim(f.claims[i])
			require.NoError(t, cluster.UpdateNode(ctx, f.nodes[i]))
		}
		require.True(t, cluster.Synced(ctx))
		provisioner := provisioning.NewProvisioner(api, silent{}, quiet{}, cluster, watch, nil, nil)
		_, err := staticprovisioning.NewController(api, cluster, silent{}, quiet{}, provisioner, watch, nil, nil).Reconcile(ctx, pool)
		require.NoError(t, err)
		var after karpv1.NodeClaimList
		require.NoError(t, api.List(ctx, &after))

		ours, nodes := f.ours(t)
		population := nodepool.Population{}
		for i := range nodes {
			if nodes[i].Leaving() {
				population.Leaving++
			} else {
				population.Staying++
			}
		}
		assert.Equal(t, int64(len(after.Items)-len(f.claims)), ours.Deficit(population), "replicas %d, limits %v, %+v", *pool.Spec.Replicas, pool.Spec.Limits, population)
		bought += len(after.Items) - len(f.claims)

		if *pool.Spec.Replicas >= population.Staying {
			continue
		}
		_, err = staticdeprovisioning.NewController(api, cluster, quiet{}, watch, silent{}).Reconcile(ctx, pool)
		require.NoError(t, err)
		require.NoError(t, api.List(ctx, &after))
		here := map[string]bool{}
		for i := range after.Items {
			here[after.Items[i].Name] = true
		}
		var theirs []string
		for _, c := range f.claims {
			if c.DeletionTimestamp == nil && !here[c.Name] {
				theirs = append(theirs, c.Name)
			}
		}
		worth := func(name string) string { return f.disturbance(ctx, watch, name) }
		var want, got []string
		for _, name := range theirs {
			want = append(want, worth(name))
		}
		for _, n := range eligibility.Surplus(ours, nodes, now) {
			got = append(got, worth(n.Name()))
		}
		slices.Sort(want)
		slices.Sort(got)
		assert.Equal(t, want, got, "karpenter: %v", theirs)
		returned += len(theirs)
	}
	fmt.Printf("1000 static pools: %d nodes bought, %d given back\n", bought, returned)
	require.Positive(t, bought)
	require.Positive(t, returned)
}

// disturbance is what Karpenter chooses a node by: nodes of the same text are the same to it.
func (f *fleet) disturbance(ctx context.Context, watch *clock.FakeClock, name string) string {
	var pods []*corev1.Pod
	protected, empty := false, true
	for _, p := range f.pods {
		if p.Spec.NodeName == name {
			pods = append(pods, p)
			protected = protected || p.Annotations[karpv1.DoNotDisruptAnnotationKey] == "true"
			empty = empty && len(p.OwnerReferences) > 0
		}
	}
	if empty {
		return "empty"
	}
	i := slices.IndexFunc(f.claims, func(c *karpv1.NodeClaim) bool { return c.Name == name })
	return fmt.Sprintf("%t %.9f", protected, karpdisruption.ReschedulingCost(ctx, pods)*karpdisruption.LifetimeRemaining(watch, f.pool, f.claims[i]))
}
