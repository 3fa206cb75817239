package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/history"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/replay/day"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/nodeclaim"
)

// regime is a way to give nodes back.
type regime struct {
	name string
	o    giveback.Options
}

// point is the cluster at one moment.
type point struct {
	at           time.Time
	pricePerHour float64
	evictions    int // since the beginning
	nodes, pods  int
	waiting      int
}

// outcome is a day under one regime.
type outcome struct {
	regime      string
	points      []point
	cost        float64 // dollars
	evictions   int     // by our own commands
	interrupted int     // machines that the cloud took
	waited      time.Duration
	arrivals    int
	launches    int
	unplaced    int    // pods that never had a place
	why         string // the first reason
}

// step is how far the time moves at once, boot how long a machine takes.
const (
	step = 5 * time.Minute
	boot = 70 * time.Second
)

// world is a cluster on a cloud in memory.
type world struct {
	m        *manifests.Snapshot
	base     scheduling.Snapshot
	cloud    *memcloud.Cloud
	nodes    map[string]*machine // by name
	pods     []*corev1.Pod
	arrived  map[string]time.Time // pods that wait, by name
	specs    map[string]corev1.PodSpec
	next     map[string]int // by app: number of the next pod
	out      outcome
	tokens   int
	cursor   string
	overlaps float64         // the cost of machines until their replacements are there
	recorder *history.Writer // nil for a day that is not recorded
}

type machine struct {
	node    *corev1.Node
	id      string
	price   float64
	ready   time.Time
	touched time.Time // when a pod came or went
}

// beginning is the manifests and what their pools can buy.
type beginning struct {
	m     *manifests.Snapshot
	base  scheduling.Snapshot
	notes []string
}

// readPools reads pools and opens the catalogue of their region.
func readPools(name string, text []byte) (*beginning, error) {
	m, err := manifests.Parse([]manifests.File{{Name: name, Data: text}}, &manifests.Options{Classes: pipeline.NodeClassDecoders()})
	if err != nil {
		return nil, err
	}
	var flags inputs.Flags
	market, err := flags.Market(m)
	if err != nil {
		return nil, err
	}
	s, notes, err := pipeline.Snapshot(m, market)
	if err != nil {
		return nil, err
	}
	if len(s.Pools) == 0 {
		return nil, fmt.Errorf("%s: no pool to buy from", name)
	}
	for i := range s.Pools { // the cloud need not know types that no pool takes
		ask := s.Pools[i].NodeRequirements()
		s.Pools[i].Types = slices.DeleteFunc(slices.Clone(s.Pools[i].Types), func(t instancetypes.InstanceType) bool {
			return !t.Requirements.Overlaps(ask)
		})
	}
	return &beginning{m, s, slices.Concat(m.Notes, notes)}, nil
}

func newWorld(from *beginning, regimeName string, seed uint64, at time.Time) (*world, error) {
	cloud, err := memcloud.New(memcloud.Config{Types: pipeline.Offered(from.base), Boot: boot, SpotLife: 30 * time.Hour, Clock: memcloud.NewClock(at), Seed: seed})
	if err != nil {
		return nil, err
	}
	m := *from.m
	return &world{
		m: &m, base: from.base, cloud: cloud, nodes: map[string]*machine{}, arrived: map[string]time.Time{}, specs: map[string]corev1.PodSpec{},
		next: map[string]int{}, out: outcome{regime: regimeName},
	}, nil
}

// run plays the events and a last quiet hour.
func (w *world) run(ctx context.Context, events []day.Event, r regime) (outcome, error) {
	end := events[len(events)-1].At.Add(time.Hour)
	for now := w.cloud.Clock().Now(); !now.After(end); now = w.cloud.Clock().Advance(step) {
		for len(events) > 0 && !events[0].At.After(now) {
			w.scale(events[0], now)
			events = events[1:]
		}
		if err := w.giveBack(ctx, r, now); err != nil {
			return w.out, err
		}
		if err := w.provision(ctx, now); err != nil {
			return w.out, err
		}
		w.note(now)
		if err := w.record(now); err != nil {
			return w.out, err
		}
	}
	if w.recorder != nil {
		if err := w.recorder.End(w.cloud.Clock().Now()); err != nil {
			return w.out, err
		}
	}
	w.out.unplaced = len(w.arrived)
	return w.out, nil
}

// scale makes or takes away pods of an app, the newest first.
func (w *world) scale(e day.Event, now time.Time) {
	if e.CPU != "" {
		w.specs[e.App] = corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/app", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(e.CPU), corev1.ResourceMemory: resource.MustParse(e.Memory)},
		}}}}
	}
	have := 0
	for _, p := range w.pods {
		if p.Labels["app"] == e.App {
			have++
		}
	}
	yes := true
	for ; have < e.Replicas; have++ {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprintf("%s-%d", e.App, w.next[e.App]), Labels: map[string]string{"app": e.App},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: e.App, UID: "1", Controller: &yes}},
		}, Spec: w.specs[e.App]}
		w.next[e.App]++
		w.arrived[p.Name] = now
		w.out.arrivals++
		w.pods = append(w.pods, p)
	}
	for i := len(w.pods) - 1; i >= 0 && have > e.Replicas; i-- {
		if p := w.pods[i]; p.Labels["app"] == e.App {
			if m := w.nodes[p.Spec.NodeName]; m != nil {
				m.touched = now
			}
			delete(w.arrived, p.Name)
			w.pods = slices.Delete(w.pods, i, i+1)
			have--
		}
	}
}

// snapshot is the cluster as a planner would read it.
func (w *world) snapshot() scheduling.Snapshot {
	s := w.base
	s.Pods, s.Nodes = slices.Clone(w.pods), nil
	w.m.NodeClaims = nil
	for _, m := range w.nodes {
		s.Nodes = append(s.Nodes, m.node)
		w.m.NodeClaims = append(w.m.NodeClaims, nodeclaim.NodeClaim{
			Name: m.node.Name, NodeName: m.node.Name, Metadata: metav1.ObjectMeta{CreationTimestamp: m.node.CreationTimestamp}, LastPodEvent: m.touched,
		})
	}
	slices.SortFunc(s.Nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(w.m.NodeClaims, func(a, b nodeclaim.NodeClaim) int { return strings.Compare(a.Name, b.Name) })
	return s
}

// giveBack carries out what the regime plans, and what the cloud forces upon us.
func (w *world) giveBack(ctx context.Context, r regime, now time.Time) error {
	events, next, err := w.cloud.Interruptions(ctx, w.cursor)
	if err != nil {
		return err
	}
	w.cursor = next
	if len(w.nodes) == 0 {
		return nil
	}
	s := w.snapshot()
	sim, nominated, err := simulate.NewFor(s, &plan.Options{Groups: pipeline.Groups(w.m, s.Pods)})
	if err != nil {
		return err
	}
	c := simulate.Cluster(w.m, s, nominated, now)
	c.Interruptions = w.interruptions(events)
	o := r.o
	o.Rules.Placeable = sim.Placeable
	result, err := giveback.Make(ctx, c, sim, &o)
	if err != nil {
		return err
	}
	for i := range result.Commands {
		cmd := &result.Commands[i]
		if s, err = simulate.Apply(s, cmd, now); err != nil {
			return err
		}
		if err := w.carryOut(ctx, cmd, s, now); err != nil {
			return err
		}
	}
	w.pods = s.Pods
	return w.lost(ctx, events, now)
}

func (w *world) interruptions(events []interruption.Event) []deprovision.Interruption {
	var out []deprovision.Interruption
	for _, e := range events {
		for name, m := range w.nodes {
			if m.id == e.Instance && e.Kind.Respond() != interruption.Ignore {
				out = append(out, deprovision.Interruption{Node: name, Deadline: e.Deadline, Force: e.Kind.Respond() == interruption.Force, Why: string(e.Kind)})
			}
		}
	}
	slices.SortFunc(out, func(a, b deprovision.Interruption) int { return strings.Compare(a.Node, b.Node) })
	return out
}

// lost takes away machines that are gone although no command could save their pods, which then wait
// again.
func (w *world) lost(ctx context.Context, events []interruption.Event, now time.Time) error {
	for _, i := range w.interruptions(events) {
		m := w.nodes[i.Node]
		w.out.interrupted++
		for k, p := range w.pods {
			if p.Spec.NodeName == i.Node {
				q := *p
				q.Spec.NodeName = ""
				w.pods[k] = &q
				w.arrived[p.Name] = now
			}
		}
		if err := w.end(ctx, m); err != nil {
			return err
		}
		delete(w.nodes, i.Node)
	}
	return nil
}

func (w *world) carryOut(ctx context.Context, cmd *giveback.Command, s scheduling.Snapshot, now time.Time) error {
	for i := range cmd.NewNodes {
		n := &cmd.NewNodes[i]
		at := slices.IndexFunc(s.Nodes, func(x *corev1.Node) bool { return x.Name == n.Name })
		offering, err := w.offering(n)
		if err != nil {
			return err
		}
		if err := w.launch(ctx, s.Nodes[at], cloudprovider.Candidate{Type: n.InstanceType, Offering: offering}, n.PricePerHour.Dollars(), now); err != nil {
			return err
		}
	}
	ready := now
	for _, p := range cmd.Placements {
		if m := w.nodes[p.Node]; m != nil {
			m.touched = now
			if m.ready.After(ready) && !cmd.AtOnce {
				ready = m.ready
			}
			if cmd.AtOnce && m.ready.After(now) {
				w.out.waited += m.ready.Sub(now)
			}
		}
	}
	if cmd.Method == eligibility.Interruption {
		w.out.interrupted += len(cmd.Nodes)
	} else {
		w.out.evictions += len(cmd.Placements)
	}
	for _, n := range cmd.Nodes {
		m := w.nodes[n.Name]
		w.overlaps += m.price * ready.Sub(now).Hours() // it stays until its replacements are there
		if err := w.end(ctx, m); err != nil {
			return err
		}
		delete(w.nodes, n.Name)
	}
	return nil
}

// end gives a machine back. The cloud may have taken it before: a step is longer than the notice of
// spot capacity.
func (w *world) end(ctx context.Context, m *machine) error {
	if err := w.cloud.Delete(ctx, m.id); err != nil && !errors.Is(err, cloudprovider.ErrNotFound) {
		return err
	}
	return nil
}

func (w *world) offering(n *giveback.NewNode) (requirements.Set, error) {
	for _, p := range w.base.Pools {
		for i := range p.Types {
			if p.Types[i].Name != n.InstanceType || p.Name != n.Pool {
				continue
			}
			for _, o := range p.Types[i].Offerings {
				if o.Requirements.Get(corev1.LabelTopologyZone).Contains(n.Zone) && o.CapacityType() == n.CapacityType && o.Available {
					return o.Requirements, nil
				}
			}
		}
	}
	return requirements.Set{}, fmt.Errorf("replay: no offering of %s in %s as %s", n.InstanceType, n.Zone, n.CapacityType)
}

func (w *world) launch(ctx context.Context, node *corev1.Node, c cloudprovider.Candidate, price float64, now time.Time) error {
	w.tokens++
	claim := cloudprovider.NodeClaim{Name: node.Name, Token: fmt.Sprintf("t%d", w.tokens), Candidates: []cloudprovider.Candidate{c}}
	launch, err := w.cloud.Create(ctx, claim)
	if err != nil {
		return err
	}
	w.out.launches++
	w.nodes[node.Name] = &machine{node: node, id: launch.ID, price: price, ready: now.Add(boot), touched: now}
	return nil
}

// provision buys for pods that wait.
func (w *world) provision(ctx context.Context, now time.Time) error {
	if len(w.arrived) == 0 {
		return nil
	}
	s := w.snapshot()
	packed, err := plan.Make(ctx, s, &plan.Options{Groups: pipeline.Groups(w.m, s.Pods)})
	if err != nil {
		return err
	}
	bind := func(pods []*corev1.Pod, m *machine) {
		m.touched = now
		for _, p := range pods {
			q := *p
			q.Spec.NodeName = m.node.Name
			q.Status.Phase = corev1.PodRunning
			at := slices.Index(w.pods, p)
			w.pods[at] = &q
			since := w.arrived[p.Name]
			delete(w.arrived, p.Name)
			w.out.waited += max(now.Sub(since), m.ready.Sub(since))
		}
	}
	for _, b := range packed.Bindings() {
		if !b.New {
			bind([]*corev1.Pod{b.Pod}, w.nodes[b.Node])
		}
	}
	w.out.why = ""
	if left := packed.Unplaced(); len(left) > 0 {
		w.out.why = left[0].Reasons()[0].String()
	}
	planned := packed.NewNodes()
	for i := range planned {
		n := &planned[i]
		w.tokens++
		node := n.Node()
		node.Name = fmt.Sprintf("%s-p%d", n.Pool.Name, w.tokens)
		node.Labels[corev1.LabelHostname] = node.Name
		node.Labels["karpenter.sh/registered"], node.Labels["karpenter.sh/initialized"] = "true", "true"
		node.CreationTimestamp = metav1.NewTime(now)
		claim := pipeline.Claim(n, fmt.Sprintf("p%d", w.tokens))
		if err := w.launch(ctx, node, claim.Candidates[0], n.PricePerHour, now); err != nil {
			return err
		}
		bind(n.Pods, w.nodes[node.Name])
	}
	return nil
}

// record writes what is different since the last step.
func (w *world) record(now time.Time) error {
	if w.recorder == nil {
		return nil
	}
	s := w.snapshot()
	return w.recorder.Observe(history.Observation{At: now, Pods: s.Pods, Nodes: s.Nodes})
}

// note writes down what there is, and what it costs until the next step.
func (w *world) note(now time.Time) {
	p := point{at: now, evictions: w.out.evictions, nodes: len(w.nodes), pods: len(w.pods), waiting: len(w.arrived)}
	names := make([]string, 0, len(w.nodes))
	for name := range w.nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names { // in order: sums of fractions depend on it
		p.pricePerHour += w.nodes[name].price
	}
	w.out.cost += p.pricePerHour*step.Hours() + w.overlaps
	w.overlaps = 0
	w.out.points = append(w.out.points, p)
}

// perArrival is how long a pod waited on average.
func (o *outcome) perArrival() time.Duration {
	return o.waited / time.Duration(cmp.Or(o.arrivals, 1))
}
