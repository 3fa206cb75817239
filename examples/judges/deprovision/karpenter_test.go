package deprovision_test

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	karpsched "sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	karpreq "sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/yaml"

	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// memory answers Karpenter's reads of a cluster; writing panics on the nil that is embedded.
type memory struct {
	client.Client
	lists map[reflect.Type][]client.Object
}

func remember[T client.Object](m *memory, list ...T) {
	for _, o := range list {
		t := reflect.TypeOf(o)
		m.lists[t] = append(m.lists[t], o)
	}
}

func (m *memory) Get(_ context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	for _, o := range m.lists[reflect.TypeOf(out)] {
		if o.GetName() == key.Name && (o.GetNamespace() == "" || o.GetNamespace() == key.Namespace) {
			reflect.ValueOf(out).Elem().Set(reflect.ValueOf(o.DeepCopyObject()).Elem())
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: reflect.TypeOf(out).Elem().Name()}, key.String())
}

func (m *memory) List(_ context.Context, out client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	items := reflect.ValueOf(out).Elem().FieldByName("Items")
	found := reflect.MakeSlice(items.Type(), 0, 0)
	for _, c := range m.lists[reflect.PointerTo(items.Type().Elem())] {
		if o.FieldSelector != nil && !o.FieldSelector.Empty() {
			node, ok := o.FieldSelector.RequiresExactMatch("spec.nodeName")
			p, isPod := c.(*corev1.Pod)
			if !ok || !isPod {
				return fmt.Errorf("list of %s by field %q", items.Type().Elem(), o.FieldSelector)
			}
			if p.Spec.NodeName != node {
				continue
			}
		}
		if o.Namespace != "" && o.Namespace != c.GetNamespace() || o.LabelSelector != nil && !o.LabelSelector.Matches(labelSet(c.GetLabels())) {
			continue
		}
		found = reflect.Append(found, reflect.ValueOf(c.DeepCopyObject()).Elem())
	}
	items.Set(found)
	return nil
}

type labelSet map[string]string

func (l labelSet) Has(key string) bool              { _, ok := l[key]; return ok }
func (l labelSet) Get(key string) string            { return l[key] }
func (l labelSet) Lookup(key string) (string, bool) { v, ok := l[key]; return v, ok }

// cloud sells instance types and does nothing else.
type cloud struct {
	cloudprovider.CloudProvider
	types []*cloudprovider.InstanceType
}

func (c cloud) GetInstanceTypes(context.Context, *karpv1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return c.types, nil
}

// class is a node class of which only the kind is asked.
type class struct{ *unstructured.Unstructured }

func (class) GetConditions() []status.Condition                        { return nil }
func (class) SetConditions([]status.Condition)                         {}
func (class) StatusConditions(...status.ForOption) status.ConditionSet { return status.ConditionSet{} }

func (cloud) GetSupportedNodeClasses() []status.Object {
	return []status.Object{class{&unstructured.Unstructured{Object: map[string]any{"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass"}}}}
}

type quiet struct{}

func (quiet) Publish(...events.Event) {}

// atOnce leaves out the wait of 15 seconds, after which commands are computed again to see that nothing has changed.
type atOnce struct{}

func (atOnce) Validate(_ context.Context, c disruption.Command, _ time.Duration) (disruption.Command, error) {
	return c, nil
}

// converted are those of our types that the pool may buy, as Karpenter has them.
func converted(list []instancetypes.InstanceType, asked requirements.Set) []*cloudprovider.InstanceType {
	into := func(set requirements.Set) karpreq.Requirements {
		out := karpreq.NewRequirements()
		for r := range set.All() {
			if values, ok := r.Values(); ok {
				out.Add(karpreq.NewRequirement(r.Key(), corev1.NodeSelectorOpIn, values...))
			}
		}
		return out
	}
	var out []*cloudprovider.InstanceType
	for _, t := range list {
		if !t.Requirements.Overlaps(asked) {
			continue
		}
		overhead := corev1.ResourceList{}
		allocatable := t.Allocatable()
		for name, q := range t.Capacity {
			q = q.DeepCopy()
			q.Sub(allocatable[name])
			overhead[name] = q
		}
		x := &cloudprovider.InstanceType{Name: t.Name, Requirements: into(t.Requirements), Capacity: t.Capacity.DeepCopy(), Overhead: &cloudprovider.InstanceTypeOverhead{KubeReserved: overhead}}
		for _, o := range t.Offerings {
			if o.Requirements.Overlaps(asked) {
				x.Offerings = append(x.Offerings, &cloudprovider.Offering{Price: o.Price, Available: o.Available, Requirements: into(o.Requirements)})
			}
		}
		out = append(out, x)
	}
	return out
}

// outcome is what giving nodes back came to.
type outcome struct {
	before, after       float64
	commands, evictions int
}

func (o *outcome) add(x outcome) {
	o.before, o.after, o.commands, o.evictions = o.before+x.before, o.after+x.after, o.commands+x.commands, o.evictions+x.evictions
}

func (o outcome) percent() float64   { return 100 * (1 - o.after/o.before) }
func (o outcome) perDollar() float64 { return float64(o.evictions) / (o.before - o.after) }
func (o outcome) String() string {
	return fmt.Sprintf("%.1f%% saved by %d commands and %d evictions, %.1f evictions per dollar an hour", o.percent(), o.commands, o.evictions, o.perDollar())
}

// reference is a cluster that Karpenter's own methods give nodes back from.
type reference struct {
	pool  *karpv1.NodePool
	cloud cloud
	nodes map[string]*corev1.Node
	pods  []*corev1.Pod
	price map[string]float64 // by type and zone
	made  int
	gone  int             // nodes that were given back
	busy  map[string]bool // nodes whose pods changed of late, which Karpenter does not look at
}

// referenceOf is a cluster of one pool, whose types are those of the snapshot's pool.
func referenceOf(manifest []byte, s scheduling.Snapshot) (*reference, error) {
	r := &reference{pool: &karpv1.NodePool{}, nodes: map[string]*corev1.Node{}, price: map[string]float64{}}
	if err := yaml.Unmarshal(manifest, r.pool); err != nil {
		return nil, err
	}
	for _, c := range []string{karpv1.ConditionTypeValidationSucceeded, karpv1.ConditionTypeNodeClassReady} {
		r.pool.StatusConditions().SetTrue(c)
	}
	pool := &s.Pools[0]
	r.cloud.types = converted(pool.Types, pool.NodeRequirements())
	for _, t := range r.cloud.types {
		for key := range t.Requirements {
			karpv1.WellKnownLabels.Insert(key)
		}
		for _, o := range t.Offerings {
			r.price[t.Name+o.Zone()] = o.Price
		}
	}
	for _, n := range s.Nodes {
		r.nodes[n.Name] = n.DeepCopy()
	}
	for _, p := range s.Pods {
		p = p.DeepCopy()
		p.UID = types.UID(p.Name)
		r.pods = append(r.pods, p)
	}
	return r, nil
}

func (r *reference) cost() float64 {
	sum := 0.0
	for _, n := range r.nodes {
		sum += r.price[n.Labels[corev1.LabelInstanceTypeStable]+n.Labels[corev1.LabelTopologyZone]]
	}
	return sum
}

// round asks the methods in Karpenter's order for a command and carries the first out; false if none has any.
func (r *reference) round(ctx context.Context) (evictions int, found bool, err error) {
	m := &memory{lists: map[reflect.Type][]client.Object{}}
	remember(m, r.pool)
	remember(m, r.pods...)
	remember(m, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	wall := clock.RealClock{}
	cluster := state.NewCluster(wall, m, r.cloud)
	for _, name := range slices.Sorted(mapKeys(r.nodes)) {
		n := r.nodes[name]
		n.Spec.ProviderID = "aws:///" + name
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: n.Labels, CreationTimestamp: metav1.NewTime(wall.Now().Add(-48 * time.Hour))}}
		claim.Spec.NodeClassRef = r.pool.Spec.Template.Spec.NodeClassRef
		claim.Status.ProviderID, claim.Status.NodeName, claim.Status.Capacity, claim.Status.Allocatable = n.Spec.ProviderID, name, n.Status.Capacity, n.Status.Allocatable
		for _, c := range []string{karpv1.ConditionTypeLaunched, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized} {
			claim.StatusConditions().SetTrue(c)
		}
		if !r.busy[name] {
			claim.StatusConditions().SetTrue(karpv1.ConditionTypeConsolidatable)
		}
		remember(m, n)
		remember(m, claim)
		cluster.UpdateNodeClaim(claim)
		if err := cluster.UpdateNode(ctx, n); err != nil {
			return 0, false, err
		}
	}
	for _, p := range r.pods {
		if err := cluster.UpdatePod(ctx, p); err != nil {
			return 0, false, err
		}
	}
	provisioner := provisioning.NewProvisioner(m, quiet{}, r.cloud, cluster, wall, nil, nil)
	queue := disruption.NewQueue(m, quiet{}, cluster, wall, provisioner)
	base := disruption.MakeConsolidation(wall, cluster, m, provisioner, r.cloud, quiet{}, queue)
	for _, method := range []disruption.Method{
		disruption.NewEmptiness(base, disruption.WithValidator(atOnce{})), disruption.NewMultiNodeConsolidation(base, disruption.WithValidator(atOnce{})),
		disruption.NewSingleNodeConsolidation(base, disruption.WithValidator(atOnce{})),
	} {
		candidates, err := disruption.GetCandidates(ctx, cluster, m, quiet{}, wall, r.cloud, method.ShouldDisrupt, method.Class(), queue)
		if err != nil {
			return 0, false, err
		}
		budgets, err := disruption.BuildDisruptionBudgetMapping(ctx, cluster, wall, m, r.cloud, quiet{}, method.Reason())
		if err != nil {
			return 0, false, err
		}
		commands, err := method.ComputeCommands(ctx, budgets, candidates...)
		if err != nil {
			return 0, false, err
		}
		for i := range commands {
			if len(commands[i].Candidates) > 0 {
				evictions, err := r.carryOut(&commands[i])
				r.gone += len(commands[i].Candidates)
				return evictions, true, err
			}
		}
	}
	return 0, false, nil
}

func mapKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// carryOut launches the cheapest offering for the replacement, and moves pods where the simulation put them.
func (r *reference) carryOut(c *disruption.Command) (evictions int, err error) {
	to := map[types.UID]string{}
	for _, n := range c.Results.ExistingNodes {
		for _, p := range n.Pods {
			to[p.UID] = n.Name()
		}
	}
	for _, x := range c.Replacements {
		n, err := r.launch(x.NodeClaim)
		if err != nil {
			return 0, err
		}
		for _, p := range x.Pods {
			to[p.UID] = n
		}
	}
	gone := map[string]bool{}
	for _, x := range c.Candidates {
		gone[x.Name()] = true
		delete(r.nodes, x.Name())
	}
	for _, p := range r.pods {
		if !gone[p.Spec.NodeName] {
			continue
		}
		if to[p.UID] == "" {
			return 0, fmt.Errorf("pod %s was given no place", p.Name)
		}
		p.Spec.NodeName = to[p.UID]
		evictions++
	}
	return evictions, nil
}

func (r *reference) launch(claim *karpsched.NodeClaim) (string, error) {
	var best *cloudprovider.Offering
	var typ *cloudprovider.InstanceType
	for _, t := range claim.InstanceTypeOptions {
		for _, o := range t.Offerings.Available().Compatible(claim.Requirements) {
			if best == nil || o.Price < best.Price {
				best, typ = o, t
			}
		}
	}
	if best == nil {
		return "", fmt.Errorf("nothing is offered for the replacement")
	}
	r.made++
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("new-%d", r.made), Labels: map[string]string{}}}
	for _, set := range []karpreq.Requirements{typ.Requirements, best.Requirements} {
		for key, q := range set {
			if q.Operator() == corev1.NodeSelectorOpIn && q.Len() == 1 {
				n.Labels[key] = q.Values()[0]
			}
		}
	}
	n.Labels[corev1.LabelHostname], n.Labels[karpv1.NodePoolLabelKey] = n.Name, r.pool.Name
	n.Labels[karpv1.NodeRegisteredLabelKey], n.Labels[karpv1.NodeInitializedLabelKey] = "true", "true"
	n.Status.Capacity, n.Status.Allocatable = typ.Capacity, typ.Allocatable()
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	r.nodes[n.Name] = n
	return n.Name, nil
}

// varies is by what part of a cluster's price Karpenter's saving differs from run to run, for it goes through maps in whatever
// order: seed 11 is 54.2% in most runs and 54.5% in some.
const varies = 0.01

// On the same clusters we save at least as much as Karpenter's own emptiness, multi-node and single-node methods in a loop, and
// with no more evictions than it makes still as much, so that no dollar costs more of them; but for what its figures vary by.
// Both have no budget, and both have Karpenter's default of a tenth of the nodes. JOINERY_NODES=NODES:SEED is one cluster.
func TestAgainstKarpentersMethods(t *testing.T) {
	clusters := []fragment.Options{{Nodes: 12, Seed: 11}, {Nodes: 20, Seed: 12}}
	if os.Getenv("JOINERY_LONG") == "1" {
		for seed := range uint64(10) {
			clusters = append(clusters, fragment.Options{Nodes: 50, Seed: seed})
		}
	}
	if text := os.Getenv("JOINERY_NODES"); text != "" {
		clusters = make([]fragment.Options, 1)
		_, err := fmt.Sscanf(text, "%d:%d", &clusters[0].Nodes, &clusters[0].Seed)
		require.NoError(t, err)
	}
	ctx := log.IntoContext(t.Context(), logr.Discard())
	ctx = options.ToContext(ctx, &options.Options{IgnoreDRARequests: true, MinValuesPolicy: options.MinValuesPolicyStrict, PreferencePolicy: options.PreferencePolicyRespect})
	for _, budget := range []string{"100%", "10%"} {
		var all [3]outcome
		for _, o := range clusters {
			o.Pool = strings.Replace(fragment.Pool, "100%", budget, 1)
			c, err := fragment.Generate(o)
			require.NoError(t, err)
			start := time.Now()
			theirs, err := karpenters(ctx, o.Pool, c)
			require.NoError(t, err)
			took := time.Since(start)
			start = time.Now()
			ours := giveBack(t, c, nil)
			t.Logf("seed %d, %d nodes, %d pods, budget %s\n  Karpenter in %6.2f s: %s\n  Joinery   in %6.2f s: %s", o.Seed, o.Nodes, len(c.Snapshot.Pods), budget, took.Seconds(), theirs, time.Since(start).Seconds(), ours)
			require.InDelta(t, theirs.before, ours.before, 1e-6, "the same cluster at the same prices")
			assert.LessOrEqual(t, ours.after, theirs.after+varies*theirs.before, "seed %d, budget %s", o.Seed, budget)
			bounded := giveBack(t, c, &giveback.Options{MaxEvictions: theirs.evictions})
			t.Logf("  with no more evictions than Karpenter: %s", bounded)
			for i, x := range []outcome{theirs, ours, bounded} {
				all[i].add(x)
			}
		}
		t.Logf("all together, budget %s\n  Karpenter: %s\n  Joinery:   %s\n  bounded:   %s", budget, all[0], all[1], all[2])
		assert.LessOrEqual(t, all[1].after, all[0].after+varies/2*all[0].before)
		assert.LessOrEqual(t, all[2].after, all[0].after+varies/2*all[0].before)
		assert.LessOrEqual(t, all[2].perDollar(), 1.05*all[0].perDollar())
	}
}

// giveBack plans and carries out commands, hour by hour, until nothing is found for more than a day. MaxEvictions is for all plans together.
func giveBack(t *testing.T, c *fragment.Cluster, o *giveback.Options) (out outcome) {
	t.Helper()
	s := c.Snapshot
	for at, last := fragment.Now(), fragment.Now(); at.Sub(last) <= 25*time.Hour; at = at.Add(time.Hour) {
		var options giveback.Options
		if o != nil {
			options = *o
			if options.MaxEvictions -= out.evictions; options.MaxEvictions <= 0 {
				break
			}
		}
		sim, nominated, err := simulate.New(s)
		require.NoError(t, err)
		r, err := giveback.Make(t.Context(), simulate.Cluster(c.Manifests, s, nominated, at), sim, &options)
		require.NoError(t, err)
		if at.Equal(fragment.Now()) {
			out.before = r.PricePerHour.Dollars()
		}
		for i := range r.Commands {
			s, err = simulate.Apply(s, &r.Commands[i], at)
			require.NoError(t, err)
			last = at
		}
		out.add(outcome{0, 0, len(r.Commands), r.Evictions})
		if out.after = r.PricePerHourAfter.Dollars(); len(r.Commands) == 0 {
			at = at.Add(8 * time.Hour)
		}
	}
	if o != nil {
		require.LessOrEqual(t, out.evictions, o.MaxEvictions)
	}
	return out
}

// patience is for how long Karpenter is waited for; what it has come to by then is what counts.
const patience = 10 * time.Minute

// karpenters is what Karpenter's methods come to on the cluster.
func karpenters(ctx context.Context, pool string, c *fragment.Cluster) (outcome, error) {
	end := time.Now().Add(patience)
	r, err := referenceOf([]byte(pool), c.Snapshot)
	if err != nil {
		return outcome{}, err
	}
	out := outcome{before: r.cost()}
	for {
		evictions, found, err := r.round(ctx)
		if err != nil || !found || time.Now().After(end) {
			out.after = r.cost()
			return out, err
		}
		out.commands++
		out.evictions += evictions
	}
}
