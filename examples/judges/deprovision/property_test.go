package deprovision_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/deprovision/policy"
	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/examples/judges/replay"
	"github.com/joinery-sdk/joinery/examples/judges/scenario"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// clusters is how many clusters are drawn: the full count where the environment asks for long tests, or for a number.
func clusters(usual, full int) int {
	if os.Getenv("JOINERY_LONG") == "1" {
		return full
	}
	if n, err := strconv.Atoi(os.Getenv("JOINERY_CLUSTERS")); err == nil {
		return n
	}
	if testing.Short() {
		return usual / 10
	}
	return usual
}

func now() time.Time { return time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC) }

// world is a cluster that runs, and what its pods may be asked.
type world struct {
	manifests *manifests.Snapshot
	snapshot  scheduling.Snapshot
	scenario  scenario.Scenario
	// interrupted is what the cloud takes back.
	interrupted []deprovision.Interruption
}

// draw provisions a random scenario, binds what kube-scheduler accepts, and lets a part of the pods end.
func draw(ctx context.Context, seed uint64, careful bool) (*world, error) {
	s := scenario.Generate(seed, scenario.Options{})
	file, err := scenario.CatalogueJSON(s.Catalogue)
	if err != nil {
		return nil, err
	}
	market, err := pipeline.KWOKMarket("scenario", file)
	if err != nil {
		return nil, err
	}
	text, err := s.YAML()
	if err != nil {
		return nil, err
	}
	m, err := manifests.Parse([]manifests.File{{Name: "all.yaml", Data: text}}, nil)
	if err != nil {
		return nil, err
	}
	snapshot, _, err := pipeline.Snapshot(m, market)
	if err != nil {
		return nil, err
	}
	// A quick plan is a good start here: what it leaves to save is what the searches are for.
	packed, err := plan.Make(ctx, snapshot, &plan.Options{Packing: &binpack.Options{Strategy: binpack.CostAware{Effort: binpack.EffortFast}}})
	if err != nil {
		return nil, err
	}
	nodes, order := replay.Plan(packed)
	cluster, order, err := s.Planned(ctx, nodes, nil, order)
	if err != nil {
		return nil, err
	}
	verdict, err := kubejudge.Judge(ctx, cluster, order)
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(seed, 77))
	at := map[types.NamespacedName]string{}
	for _, b := range verdict.Accepted {
		at[b.Pod] = b.Node
	}
	var running []*corev1.Pod
	for _, p := range slices.Concat(cluster.Running, cluster.Pods) {
		p = p.DeepCopy()
		if p.Spec.NodeName == "" {
			p.Spec.NodeName = at[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}]
		}
		if p.Spec.NodeName == "" || !eviction.Daemon(p) && r.IntN(100) < 50 {
			continue
		}
		p.Status = corev1.PodStatus{Phase: corev1.PodRunning}
		if len(p.OwnerReferences) == 0 {
			yes := true
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "r", Controller: &yes}}
		}
		if careful && r.IntN(40) == 0 {
			p.Annotations = map[string]string{eviction.DoNotDisrupt: "true"}
		}
		running = append(running, p)
	}
	for _, n := range cluster.Nodes {
		n.CreationTimestamp = metav1.NewTime(now().Add(-time.Hour))
		if careful && r.IntN(15) == 0 {
			n.Annotations = map[string]string{eviction.DoNotDisrupt: "true"}
		}
	}
	bindVolumes(&s, running, cluster.Nodes)
	snapshot.PersistentVolumes, snapshot.PersistentVolumeClaims = s.PVs, s.PVCs
	snapshot.Nodes, snapshot.Pods = cluster.Nodes, running
	zero := time.Duration(0)
	for i := range snapshot.Pools {
		d := &snapshot.Pools[i].Disruption
		d.Policy, d.ConsolidateAfter, d.ExpireAfter = nodepool.WhenEmptyOrUnderutilized, &zero, nil
		d.Budgets = nil
		if careful && r.IntN(3) == 0 {
			d.Budgets = []nodepool.Budget{{Nodes: r.IntN(4)}, {Nodes: 60, Percent: true}}
		}
	}
	if careful {
		for i := range r.IntN(5) {
			p := running[r.IntN(len(running))]
			if len(p.Labels) == 0 {
				continue
			}
			b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: fmt.Sprintf("pdb-%d", i)}}
			b.Spec.Selector = &metav1.LabelSelector{MatchLabels: p.Labels}
			b.Status.DisruptionsAllowed = int32(r.IntN(3))
			m.PodDisruptionBudgets = append(m.PodDisruptionBudgets, b)
		}
	}
	return &world{manifests: m, snapshot: snapshot, scenario: s}, nil
}

// bindVolumes gives every claim that a running pod uses a volume in the zone where the pod runs.
func bindVolumes(s *scenario.Scenario, running []*corev1.Pod, nodes []*corev1.Node) {
	zones := map[string]string{}
	for _, n := range nodes {
		zones[n.Name] = n.Labels[corev1.LabelTopologyZone]
	}
	claims := map[string]*corev1.PersistentVolumeClaim{}
	for i, c := range s.PVCs {
		c = c.DeepCopy()
		s.PVCs[i], claims[c.Namespace+"/"+c.Name] = c, c
	}
	for _, p := range running {
		for _, v := range p.Spec.Volumes {
			if v.PersistentVolumeClaim == nil {
				continue // the claim of an ephemeral volume goes with its pod
			}
			name := v.PersistentVolumeClaim.ClaimName
			c := claims[p.Namespace+"/"+name]
			if c == nil || c.Spec.VolumeName != "" {
				continue
			}
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "made-" + p.Namespace + "-" + name}}
			pv.Spec.AccessModes, pv.Spec.Capacity = c.Spec.AccessModes, c.Spec.Resources.Requests
			if c.Spec.StorageClassName != nil {
				pv.Spec.StorageClassName = *c.Spec.StorageClassName
			}
			pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: s.StorageClasses[0].Provisioner, VolumeHandle: pv.Name}
			pv.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: c.Namespace, Name: c.Name}
			pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zones[p.Spec.NodeName]}},
			}}}}}
			pv.Status.Phase = corev1.VolumeBound
			c.Spec.VolumeName, c.Status.Phase = pv.Name, corev1.ClaimBound
			s.PVs = append(s.PVs, pv)
		}
	}
}

// brief says what a command does in one line.
func brief(c *deprovision.Command) string {
	out := string(c.Method) + " -"
	for _, n := range c.Nodes {
		out += " " + n.Name
	}
	for _, n := range c.NewNodes {
		out += " + " + n.Name + " " + n.InstanceType + " " + n.Zone
	}
	return out
}

func give(ctx context.Context, w *world, s scheduling.Snapshot, o *deprovision.Options) (deprovision.Result, deprovision.Cluster, error) {
	sim, nominated, err := simulate.New(s)
	if err != nil {
		return deprovision.Result{}, deprovision.Cluster{}, err
	}
	o.Rules.Placeable = sim.Placeable
	c := simulate.Cluster(w.manifests, s, nominated, now())
	c.Interruptions = w.interrupted
	r, err := deprovision.Plan(ctx, c, sim, o)
	return r, c, err
}

// judge carries out a command and has the pods bound in its order. It returns the snapshot afterwards.
func (w *world) judge(ctx context.Context, s scheduling.Snapshot, c *deprovision.Command) (scheduling.Snapshot, error) {
	after, err := simulate.Apply(s, c, now())
	if err != nil {
		return s, err
	}
	to := map[types.NamespacedName]string{}
	var order []kubejudge.Binding
	for _, p := range c.Placements {
		name := types.NamespacedName{Namespace: p.Pod.Namespace, Name: p.Pod.Name}
		to[name] = p.Node
		order = append(order, kubejudge.Binding{Pod: name, Node: p.Node})
	}
	gone := map[string]bool{}
	for _, n := range c.Nodes {
		gone[n.Name] = true
	}
	for _, p := range s.Pods {
		if _, moves := to[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}]; gone[p.Spec.NodeName] && !moves && p.DeletionTimestamp == nil && !eviction.Daemon(p) && !eviction.Mirror(p) {
			return s, fmt.Errorf("pod %s/%s runs on %s, which goes, and is not placed (owners %v, phase %s)", p.Namespace, p.Name, p.Spec.NodeName, p.OwnerReferences, p.Status.Phase)
		}
	}
	var fresh []*corev1.Node
	for _, n := range c.NewNodes {
		if len(n.Pods) == 0 {
			return s, fmt.Errorf("%s is bought for no pod", n.Name)
		}
	}
	for _, n := range after.Nodes {
		if slices.ContainsFunc(c.NewNodes, func(x deprovision.NewNode) bool { return x.Name == n.Name }) {
			fresh = append(fresh, n)
		}
	}
	daemons, first := kubejudge.Daemons(s.DaemonSets, fresh, nil)
	var running, moving []*corev1.Pod
	for _, p := range after.Pods {
		if _, moves := to[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}]; moves {
			q := p.DeepCopy()
			q.Spec.NodeName = ""
			moving = append(moving, q)
			continue
		}
		running = append(running, p)
	}
	j := w.scenario.Cluster()
	j.Nodes, j.Running, j.Pods = after.Nodes, running, slices.Concat(daemons, moving)
	empty, err := kubejudge.Judge(ctx, j, first)
	if err != nil {
		return s, err
	}
	first = slices.DeleteFunc(first, func(b kubejudge.Binding) bool { // no plan is to blame for daemons that running pods keep away
		return slices.ContainsFunc(empty.Refused, func(r kubejudge.Refusal) bool { return r.Binding == b && r.Plugin == "InterPodAffinity" })
	})
	verdict, err := kubejudge.Judge(ctx, j, slices.Concat(first, order))
	if err != nil {
		return s, err
	}
	if !verdict.Valid() {
		return s, fmt.Errorf("%s", verdict)
	}
	for _, d := range daemons { // they run from now on
		for _, b := range first {
			if b.Pod.Name == d.Name && b.Pod.Namespace == d.Namespace {
				q := d.DeepCopy()
				q.Spec.NodeName = b.Node
				q.Status.Phase = corev1.PodRunning
				after.Pods = append(after.Pods, q)
			}
		}
	}
	return after, nil
}

// respects checks, in a way of its own, that a command breaks neither budgets of pods nor annotations.
func respects(w *world, s scheduling.Snapshot, c *deprovision.Command) error {
	for _, n := range c.Nodes {
		for _, p := range s.Pods {
			if p.Spec.NodeName != n.Name || p.DeletionTimestamp != nil {
				continue
			}
			if p.Annotations[eviction.DoNotDisrupt] == "true" {
				return fmt.Errorf("pod %s on %s is not to be disrupted", p.Name, n.Name)
			}
			if eviction.Daemon(p) && slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == "" }) {
				continue // it goes when its node is gone, and not before
			}
			matching := 0
			for _, b := range w.manifests.PodDisruptionBudgets {
				sel, _ := metav1.LabelSelectorAsSelector(b.Spec.Selector)
				if b.Namespace != p.Namespace || !sel.Matches(labels.Set(p.Labels)) {
					continue
				}
				if matching++; b.Status.DisruptionsAllowed < 1 || matching > 1 {
					return fmt.Errorf("budget %s keeps pod %s on %s", b.Name, p.Name, n.Name)
				}
			}
		}
		for _, x := range s.Nodes {
			if x.Name == n.Name && x.Annotations[eviction.DoNotDisrupt] == "true" {
				return fmt.Errorf("node %s is not to be disrupted", n.Name)
			}
		}
	}
	return nil
}

// tally is what was seen over many clusters.
type tally struct {
	clusters, commands, evictions int
	methods                       map[string]int
}

func (a *tally) add(b tally) {
	a.clusters += b.clusters
	a.commands += b.commands
	a.evictions += b.evictions
	for m, n := range b.methods {
		if a.methods == nil {
			a.methods = map[string]int{}
		}
		a.methods[m] += n
	}
}

func few(n int) string {
	if n < 2 {
		return strconv.Itoa(n)
	}
	return "several"
}

func (a *tally) see(c *deprovision.Command) {
	a.add(tally{commands: 1, evictions: len(c.Placements), methods: map[string]int{fmt.Sprintf("%s %s %s to %s", c.Method, c.Kind, few(len(c.Nodes)), few(len(c.NewNodes))): 1}})
}

// each draws clusters on all cores. What went wrong is reported in the order of the seeds; JOINERY_FROM is the first of them.
func each(t *testing.T, count int, check func(ctx context.Context, seed uint64) (tally, error)) {
	first, _ := strconv.ParseUint(os.Getenv("JOINERY_FROM"), 10, 64)
	sums, errs := make([]tally, count), make([]error, count)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(count); i = next.Add(1) - 1 {
				sums[i], errs[i] = check(t.Context(), first+uint64(i))
				sums[i].clusters = 1
			}
		})
	}
	wg.Wait()
	var all tally
	for i := range count {
		all.add(sums[i])
		assert.NoError(t, errs[i], "seed %d", first+uint64(i))
	}
	t.Logf("%d clusters, %d commands, %d evictions; by kind: %v", all.clusters, all.commands, all.evictions, all.methods)
	require.Positive(t, all.commands)
}

func TestCommandsAreAccepted(t *testing.T) {
	each(t, clusters(40, 1000), func(ctx context.Context, seed uint64) (seen tally, err error) {
		w, err := draw(ctx, seed, true)
		if err != nil {
			return seen, err
		}
		r1 := rand.New(rand.NewPCG(seed, 5))
		half := 30 * time.Minute
		switch seed % 5 {
		case 3:
			for _, n := range w.snapshot.Nodes[:min(2, len(w.snapshot.Nodes))] {
				w.interrupted = append(w.interrupted, deprovision.Interruption{Node: n.Name, Deadline: now().Add(time.Duration(r1.IntN(60)) * time.Minute)})
			}
		case 4: // all of a pool's nodes are older
			w.snapshot.Pools[r1.IntN(len(w.snapshot.Pools))].Disruption.ExpireAfter = &half
		}
		o := &deprovision.Options{SpotToSpot: seed%2 == 0, SpotFlexibility: 3}
		switch seed % 4 {
		case 1:
			o.Objective = policy.Balanced(2)
		case 2:
			o.Objective = policy.AnySaving()
		case 3:
			o.MaxEvictions = 3 + r1.IntN(10)
		}
		r, c, err := give(ctx, w, w.snapshot, o)
		if err != nil {
			return seen, err
		}
		s := w.snapshot
		taken := map[string]int{}
		if err := once(&r); err != nil {
			return seen, err
		}
		for i := range r.Commands {
			cmd := &r.Commands[i]
			voluntary := cmd.Method != eligibility.Interruption && cmd.Method != eligibility.Expiration
			if err := respects(w, s, cmd); err != nil && voluntary {
				return seen, fmt.Errorf("command %d: %w", i, err)
			}
			if s, err = w.judge(ctx, s, cmd); err != nil {
				return seen, fmt.Errorf("command %d, %s: %w", i, brief(cmd), err)
			}
			for _, n := range cmd.Nodes {
				if voluntary {
					taken[n.Pool]++
				}
			}
			seen.see(cmd)
		}
		for _, p := range w.snapshot.Pools {
			nodes := 0
			for i := range c.Nodes {
				if c.Nodes[i].PoolName() == p.Name {
					nodes++
				}
			}
			for _, b := range p.Disruption.Budgets {
				if taken[p.Name] > b.Allowed(nodes) {
					return seen, fmt.Errorf("pool %s loses %d of %d nodes, and its budgets allow %d", p.Name, taken[p.Name], nodes, b.Allowed(nodes))
				}
			}
		}
		if len(r.Verdicts) != len(w.snapshot.Nodes) {
			return seen, fmt.Errorf("%d verdicts for %d nodes", len(r.Verdicts), len(w.snapshot.Nodes))
		}
		return seen, nil
	})
}

// once checks that no pod moves twice, that no node is bought to be given back, and that a node which is given back takes no pod.
func once(r *deprovision.Result) error {
	moved, bought, gone := map[*corev1.Pod]bool{}, map[string]bool{}, map[string]bool{}
	for i := range r.Commands {
		for _, n := range r.Commands[i].Nodes {
			gone[n.Name] = true
		}
	}
	for i := range r.Commands {
		c := &r.Commands[i]
		for _, n := range c.NewNodes {
			bought[n.Name] = true
		}
		for _, n := range c.Nodes {
			if bought[n.Name] {
				return fmt.Errorf("command %d gives %s back, which the plan buys", i, n.Name)
			}
		}
		for _, p := range c.Placements {
			if moved[p.Pod] || gone[p.Node] {
				return fmt.Errorf("command %d moves %s to %s, and it moves again", i, p.Pod.Name, p.Node)
			}
			moved[p.Pod] = true
		}
	}
	if len(moved) != r.Evictions {
		return fmt.Errorf("%d pods move, and %d evictions are reported", len(moved), r.Evictions)
	}
	return nil
}

// fresh is the first command of a later plan if it moves only pods which the plan before it left where they were: that plan should
// have had it. One that moves a pod for the second time it could not have, for it moves each pod at most once; nor one that comes
// after such a one, for it builds on what that makes room for.
func fresh(before, after *deprovision.Result) *deprovision.Command {
	moved := map[string]bool{}
	for i := range before.Commands {
		for _, p := range before.Commands[i].Pods() {
			moved[p.Namespace+"/"+p.Name] = true
		}
	}
	if len(after.Commands) == 0 {
		return nil
	}
	c := &after.Commands[0]
	if slices.ContainsFunc(c.Pods(), func(p *corev1.Pod) bool { return moved[p.Namespace+"/"+p.Name] }) {
		return nil
	}
	return c
}

// A consolidated cluster is quiet when it is planned again, under every policy: a plan that is made again begins with no command that
// moves only pods which have not moved. What would move a pod once more is excused and counted.
func TestConsolidatedStaysQuiet(t *testing.T) {
	var twice atomic.Int64
	policies := []deprovision.Objective{policy.AnySaving(), policy.Balanced(2), {}}
	each(t, clusters(20, 500), func(ctx context.Context, seed uint64) (seen tally, err error) {
		w, err := draw(ctx, seed, false)
		if err != nil {
			return seen, err
		}
		for _, pol := range policies {
			r, _, err := give(ctx, w, w.snapshot, &deprovision.Options{Objective: pol})
			if err != nil {
				return seen, err
			}
			s := w.snapshot
			for i := range r.Commands {
				seen.see(&r.Commands[i])
				if s, err = w.judge(ctx, s, &r.Commands[i]); err != nil {
					return seen, fmt.Errorf("policy %+v, command %d, %s: %w", pol, i, brief(&r.Commands[i]), err)
				}
			}
			again, _, err := give(ctx, w, s, &deprovision.Options{Objective: pol})
			if err != nil {
				return seen, err
			}
			if c := fresh(&r, &again); c != nil {
				return seen, fmt.Errorf("policy %+v is not quiet after %d commands: %s saves $%.4f (%s)", pol, len(r.Commands), brief(c), c.SavingsPerHour.Dollars(), c.Why)
			}
			if len(again.Commands) > 0 {
				twice.Add(1)
			}
		}
		return seen, nil
	})
	t.Logf("%d plans would go on if pods moved twice", twice.Load())
}
