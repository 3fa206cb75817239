package regret

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/history"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/nodeclaim"
)

// policy is the cluster under our policy. At each observation it knows what exists at that moment,
// and nothing about later ones.
type policy struct {
	options
	manifests manifests.Snapshot // its claims are those of the nodes below
	sale      *history.Sale
	classes   *classes
	nodes     map[string]*machine
	pods      map[string]*corev1.Pod // placed or waiting, by name
	seen      map[string]*corev1.Pod // as in the history
	daemons   []*corev1.Pod          // of nodes that existed at first
	inherited map[string]bool        // nodes of the first observation that the history still has, too
	number    int                    // of the observation
	changes   int                    // to pods and nodes so far
	noCommand attempt                // the last one that found nothing to give back
	noPlace   attempt                // the last one to place waiting pods

	evictions, launches int
	lost                []string // machines that the cloud took back
	notOurs             notOurs  // of the last attempt to place waiting pods
	overlap             Amount   // cost of nodes that are given back, until their replacements are ready
}

type machine struct {
	node    *corev1.Node
	price   deprovision.Price
	touched time.Time // when a pod last came or left
}

// attempt is when something was planned, and how many changes there had been. The zero value is no
// attempt.
type attempt struct {
	at      time.Time
	changes int
}

// again reports whether another attempt can find more: something has changed, or the passing of
// time may have changed the answer.
func (a attempt) again(changes int, at time.Time) bool {
	return a.at.IsZero() || a.changes != changes || at.Sub(a.at) >= recheck
}

// recheck is how long an unchanged cluster is left alone. The passing of time alone can make a node
// due.
const recheck = 10 * time.Minute

// begin takes over the cluster of the first observation, except nodes of unknown price.
func (p *policy) begin(at time.Time, nodes []machine, pods, daemons []*corev1.Pod) {
	for _, m := range nodes {
		m.touched = cmp.Or(m.touched, at)
		p.nodes[m.node.Name] = &m
		p.inherited[m.node.Name] = true
	}
	for _, pod := range pods {
		key := eviction.Name(pod)
		p.pods[key], p.seen[key] = pod, pod
	}
	p.daemons = daemons
}

// lose removes machines that the cloud took back from the policy's cluster. It removes only
// machines of the first observation, because it is unknown whether the cloud would have taken back
// the others. What the cloud says later of a name that x no longer has is about another machine.
func (p *policy) lose(names []string, x *scene) {
	for _, name := range names {
		if p.nodes[name] == nil || !p.inherited[name] {
			continue
		}
		delete(p.nodes, name)
		p.changes++
		p.lost = append(p.lost, name)
		for key, pod := range p.pods {
			if pod.Spec.NodeName == name {
				p.pods[key] = on(pod, "")
			}
		}
	}
	maps.DeleteFunc(p.inherited, func(name string, _ bool) bool { return p.nodes[name] == nil || !x.has(p.nodes[name].node) })
}

// arrive takes the pods of an observation. Known pods stay where the policy has them. If a pod
// appears while an equal pod of the same owner disappears, it is the successor and takes its place,
// because evictions by the other policy are not arrivals.
func (p *policy) arrive(pods []*corev1.Pod, at time.Time) {
	there := map[string]bool{}
	for _, pod := range pods {
		key := eviction.Name(pod)
		before := p.seen[key]
		there[key] = before == nil || before.UID == pod.UID || before.UID == "" || pod.UID == "" // else another pod of the same name
	}
	free := map[likeness][]string{} // places that are free again
	for _, key := range slices.Sorted(maps.Keys(p.pods)) {
		if there[key] {
			continue
		}
		pod := p.pods[key]
		delete(p.pods, key)
		delete(p.seen, key)
		p.changes++
		if pod.Spec.NodeName != "" {
			like := p.likeness(pod)
			free[like] = append(free[like], pod.Spec.NodeName)
		}
	}
	for _, pod := range pods {
		key := eviction.Name(pod)
		before, node := p.pods[key], ""
		if before != nil {
			if p.seen[key] == pod {
				continue
			}
			node = before.Spec.NodeName
		} else {
			p.changes++
			if like := p.likeness(pod); len(free[like]) > 0 {
				node, free[like] = free[like][0], free[like][1:]
			}
		}
		p.seen[key] = pod
		p.pods[key] = on(pod, node)
	}
	for _, nodes := range free {
		for _, name := range nodes {
			if m := p.nodes[name]; m != nil {
				m.touched = at
			}
		}
	}
}

// on returns a copy of the pod on a node of the policy, or waiting.
func on(pod *corev1.Pod, node string) *corev1.Pod {
	phase := corev1.PodRunning
	if node == "" {
		phase = corev1.PodPending
	}
	if pod.Spec.NodeName == node && pod.Status.Phase == phase && pod.Status.NominatedNodeName == "" {
		return pod
	}
	q := *pod
	q.Spec.NodeName, q.Status.Phase, q.Status.NominatedNodeName = node, phase, ""
	return &q
}

// likeness is what a pod and its successor share: the owner and everything that affects the place.
type likeness struct {
	kind, name, uid string
	class           int
}

func (p *policy) likeness(pod *corev1.Pod) likeness {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		owner = &metav1.OwnerReference{Kind: "Pod", Name: pod.Name}
	}
	return likeness{owner.Kind, owner.Name, string(owner.UID), p.classes.of(pod)}
}

// snapshot returns the cluster in the form that a planner reads.
func (p *policy) snapshot() scheduling.Snapshot {
	s := p.sale.Snapshot
	s.Nodes, s.Pods = nil, nil
	p.manifests.NodeClaims = nil
	for _, name := range slices.Sorted(maps.Keys(p.nodes)) {
		m := p.nodes[name]
		s.Nodes = append(s.Nodes, m.node)
		p.manifests.NodeClaims = append(p.manifests.NodeClaims, nodeclaim.NodeClaim{
			Name: name, NodeName: name, Metadata: metav1.ObjectMeta{CreationTimestamp: m.node.CreationTimestamp}, LastPodEvent: m.touched,
		})
	}
	for _, key := range slices.Sorted(maps.Keys(p.pods)) {
		s.Pods = append(s.Pods, p.pods[key])
	}
	for _, d := range p.daemons {
		if p.nodes[d.Spec.NodeName] != nil {
			s.Pods = append(s.Pods, d)
		}
	}
	return s
}

func (p *policy) planning(pods []*corev1.Pod) *plan.Options {
	o := p.Plan
	o.Groups = pipeline.Groups(&p.manifests, pods)
	return &o
}

// giveBack plans which nodes go and carries the plan out.
func (p *policy) giveBack(ctx context.Context, at time.Time) error {
	if len(p.nodes) == 0 || !p.noCommand.again(p.changes, at) {
		return nil
	}
	s := p.snapshot()
	sim, nominated, err := simulate.NewFor(s, p.planning(s.Pods))
	if err != nil {
		return err
	}
	c := simulate.Counted(simulate.Cluster(&p.manifests, s, nominated, at), p.Plan.Objective)
	o := p.Deprovision
	o.Rules.Placeable = sim.Placeable
	result, err := giveback.Make(ctx, c, sim, &o)
	if err != nil {
		return err
	}
	p.changes += len(result.Commands)
	if p.noCommand = (attempt{at, p.changes}); len(result.Commands) > 0 {
		p.noCommand = attempt{}
	}
	for i := range result.Commands {
		cmd := &result.Commands[i]
		if s, err = simulate.Apply(s, cmd, at); err != nil {
			return err
		}
		p.carryOut(cmd, s, at)
	}
	return nil
}

// carryOut carries a command out. Pods of removed nodes that have no new place wait again.
func (p *policy) carryOut(cmd *giveback.Command, s scheduling.Snapshot, at time.Time) {
	for i := range cmd.NewNodes {
		n := &cmd.NewNodes[i]
		k := slices.IndexFunc(s.Nodes, func(x *corev1.Node) bool { return x.Name == n.Name })
		p.nodes[n.Name] = &machine{node: s.Nodes[k], price: n.PricePerHour, touched: at}
		p.launches++
	}
	for _, m := range cmd.Placements {
		key := eviction.Name(m.Pod)
		if pod := p.pods[key]; pod != nil {
			p.pods[key] = on(pod, m.Node)
			p.evictions++
		}
		if to := p.nodes[m.Node]; to != nil {
			to.touched = at
		}
	}
	for _, n := range cmd.Nodes {
		if m := p.nodes[n.Name]; m != nil && len(cmd.NewNodes) > 0 {
			p.overlap += over(m.price, int64(p.Startup.Seconds()))
		}
		delete(p.nodes, n.Name)
		delete(p.inherited, n.Name)
	}
	for key, pod := range p.pods {
		if pod.Spec.NodeName != "" && p.nodes[pod.Spec.NodeName] == nil {
			p.pods[key] = on(pod, "")
		}
	}
}

// provision buys for waiting pods.
func (p *policy) provision(ctx context.Context, at time.Time) error {
	waits := false
	for _, pod := range p.pods {
		waits = waits || pod.Spec.NodeName == ""
	}
	if !waits || !p.noPlace.again(p.changes, at) {
		return nil
	}
	s := p.snapshot()
	packed, err := plan.Make(ctx, s, p.planning(s.Pods))
	if err != nil {
		return err
	}
	p.notOurs = notOurs{}
	for _, i := range packed.Ignored() {
		p.notOurs = p.notOurs.add(i.Pod, i.Why)
	}
	bind := func(pod *corev1.Pod, m *machine) {
		m.touched = at
		key := eviction.Name(pod)
		p.pods[key] = on(p.pods[key], m.node.Name)
		p.changes++
	}
	for _, b := range packed.Bindings() {
		if m := p.nodes[b.Node]; !b.New && m != nil {
			bind(b.Pod, m)
		}
	}
	planned := packed.NewNodes()
	for i := range planned {
		n := &planned[i]
		node := n.Node()
		for k := i; p.nodes[node.Name] != nil || k == i; k++ { // a node that it began with may have such a name
			node.Name = fmt.Sprintf("%s-%d-%d", n.Pool.Name, p.number, k)
		}
		node.Labels[corev1.LabelHostname] = node.Name
		node.Labels["karpenter.sh/registered"], node.Labels["karpenter.sh/initialized"] = "true", "true"
		node.CreationTimestamp = metav1.NewTime(at)
		m := &machine{node: node, price: eligibility.Dollars(n.PricePerHour)}
		p.nodes[node.Name] = m
		p.launches++
		for _, pod := range n.Pods {
			bind(pod, m)
		}
	}
	p.noPlace = attempt{at, p.changes}
	return nil
}

// observation returns the current cluster.
func (p *policy) observation(at time.Time) history.Observation {
	s := p.snapshot()
	out := history.Observation{At: at, Pods: s.Pods, Nodes: s.Nodes, LastPodEvent: map[string]time.Time{}, TakenBack: slices.Clone(p.lost)}
	for name, m := range p.nodes {
		out.LastPodEvent[name] = m.touched
	}
	return out
}

// typeOf returns the type of the node.
func typeOf(n *corev1.Node) (name, zone, capacityType string) {
	return n.Labels[corev1.LabelInstanceTypeStable], n.Labels[corev1.LabelTopologyZone], n.Labels[instancetypes.LabelCapacityType]
}
