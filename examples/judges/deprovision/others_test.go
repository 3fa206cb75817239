package deprovision_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/nodeclaim"
)

func key(p *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

// disturb puts a part of the cluster in motion: nodes leave by a deletion time, a taint or a deleted claim, claims have no node yet or
// one that does not bear their labels, daemons are still to start, and pods are pending, nominated or terminating.
func (w *world) disturb(r *rand.Rand) {
	deleted := metav1.NewTime(now().Add(-time.Minute))
	s := &w.snapshot
	pods, nodes := 2+r.IntN(8), 2+r.IntN(12) // percent for each way to be in motion
	s.Nodes, s.Pods = slices.Clone(s.Nodes), slices.Clone(s.Pods)
	for i, p := range s.Pods {
		q := p.DeepCopy()
		switch k := r.IntN(100); {
		case eviction.Daemon(p):
			if k < pods/2 {
				s.Pods[i] = nil
			}
			continue
		case k < 2*pods:
			q.Spec.NodeName, q.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
			if k < pods/2 {
				q.Status.NominatedNodeName = p.Spec.NodeName
			}
		case k < 3*pods:
			q.DeletionTimestamp = &deleted
			if k < 2*pods+pods/3 {
				q.OwnerReferences = slices.Clone(q.OwnerReferences)
				q.OwnerReferences[0].Kind = "StatefulSet"
			}
		default:
			continue
		}
		s.Pods[i] = q
	}
	s.Pods = slices.DeleteFunc(s.Pods, func(p *corev1.Pod) bool { return p == nil })
	absent := map[string]bool{}
	for i, n := range s.Nodes {
		q := n.DeepCopy()
		claim := scheduling.NodeClaim{Name: "claim-" + n.Name, NodeName: n.Name, Labels: n.Labels, Taints: n.Spec.Taints, Capacity: n.Status.Capacity, Allocatable: n.Status.Allocatable}
		switch k := r.IntN(100); {
		case k < nodes:
			q.DeletionTimestamp = &deleted
		case k < 2*nodes:
			q.Spec.Taints = append(q.Spec.Taints, corev1.Taint{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule})
		case k < 3*nodes:
			claim.Initialized, claim.Deleting = true, true
			s.NodeClaims = append(s.NodeClaims, claim)
			w.manifests.NodeClaims = append(w.manifests.NodeClaims, nodeclaim.NodeClaim{
				Name: claim.Name, Kind: "NodeClaim", NodeName: n.Name, Metadata: metav1.ObjectMeta{Name: claim.Name, DeletionTimestamp: &deleted},
			})
		case k < 4*nodes && len(absent)+1 < len(s.Nodes):
			if absent[n.Name] = true; k%2 == 0 {
				claim.Name, claim.NodeName = n.Name, "" // the plan names the node like the claim
				q = nil
			} else {
				q.Labels = map[string]string{corev1.LabelHostname: n.Labels[corev1.LabelHostname]}
				q.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute}}
			}
			s.NodeClaims = append(s.NodeClaims, claim)
		}
		s.Nodes[i] = q
	}
	s.Nodes = slices.DeleteFunc(s.Nodes, func(n *corev1.Node) bool { return n == nil })
	var list []*corev1.Pod
	for _, p := range s.Pods {
		if absent[p.Spec.NodeName] {
			if eviction.Daemon(p) || p.DeletionTimestamp != nil {
				continue
			}
			p = p.DeepCopy()
			p.Spec.NodeName, p.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
		}
		if absent[p.Status.NominatedNodeName] {
			p = p.DeepCopy()
			p.Status.NominatedNodeName = ""
		}
		list = append(list, p)
	}
	s.Pods = list
}

// others are the pods and nodes that move without a command. Pods go to the places that the simulator keeps for them, where
// kube-scheduler takes them at that moment. When that happens is random: each step moves about a share of what is left.
type others struct {
	world   *world
	r       *rand.Rand
	share   float64
	order   []kubejudge.Binding
	claims  []scheduling.NodeClaim // without a node that bears their labels
	nodes   map[string]bool        // that are there without a command
	moves   map[types.NamespacedName]bool
	refused int // places that kube-scheduler refused when tried
}

func (w *world) others(sim *simulate.Simulator, share float64, r *rand.Rand) *others {
	o := &others{world: w, r: r, share: share, moves: map[types.NamespacedName]bool{}, nodes: map[string]bool{}}
	for _, p := range sim.Reserved() {
		o.order = append(o.order, kubejudge.Binding{Pod: key(p.Pod), Node: p.Node})
	}
	for _, c := range w.snapshot.NodeClaims {
		if !c.Initialized {
			o.claims = append(o.claims, c)
			o.nodes[c.Node().Name] = true
		}
	}
	for _, n := range w.snapshot.Nodes {
		o.nodes[n.Name] = true
	}
	leaving := pipeline.Leaving(w.snapshot)
	for _, p := range w.snapshot.Pods {
		if eviction.Reschedulable(p) && (p.Spec.NodeName == "" || leaving[p.Spec.NodeName]) {
			o.moves[key(p)] = true
		}
	}
	return o
}

func (o *others) now() bool { return o.r.Float64() < o.share }

// step lets some of them move.
func (o *others) step(ctx context.Context, s scheduling.Snapshot) (scheduling.Snapshot, error) {
	leaving := pipeline.Leaving(s)
	s.Nodes = slices.Clone(s.Nodes)
	var arrived []*corev1.Node
	o.claims = slices.DeleteFunc(slices.Clone(o.claims), func(c scheduling.NodeClaim) bool {
		if !o.now() {
			return false
		}
		arrived = append(arrived, c.Node())
		s.Nodes = slices.DeleteFunc(s.Nodes, func(n *corev1.Node) bool { return n.Name == c.NodeName })
		return true
	})
	s.Nodes = append(s.Nodes, arrived...)
	var pods []*corev1.Pod
	stuck := map[string]bool{}
	for _, p := range s.Pods {
		switch {
		case p.DeletionTimestamp != nil && !o.moves[key(p)] && o.now():
			if !eviction.Reschedulable(p) {
				continue
			}
			p = p.DeepCopy() // its StatefulSet makes it again
			p.Spec.NodeName, p.DeletionTimestamp = "", nil
		case leaving[p.Spec.NodeName] && o.moves[key(p)] && o.now():
			p = p.DeepCopy()
			p.Spec.NodeName, p.DeletionTimestamp = "", nil
		}
		if leaving[p.Spec.NodeName] && !eviction.Daemon(p) && !eviction.Mirror(p) {
			stuck[p.Spec.NodeName] = true
		}
		pods = append(pods, p)
	}
	gone := map[string]bool{}
	for _, n := range s.Nodes {
		if leaving[n.Name] && !stuck[n.Name] && o.now() {
			gone[n.Name] = true
		}
	}
	s.Nodes = slices.DeleteFunc(s.Nodes, func(n *corev1.Node) bool { return gone[n.Name] })
	s.Pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return gone[p.Spec.NodeName] })

	var daemons []*corev1.Pod
	var bindings []kubejudge.Binding
	for _, n := range s.Nodes {
		if !o.nodes[n.Name] || leaving[n.Name] {
			continue
		}
		more, at := kubejudge.Daemons(s.DaemonSets, []*corev1.Node{n}, s.Pods)
		for i, p := range more {
			if slices.Contains(arrived, n) || o.now() {
				daemons, bindings = append(daemons, p), append(bindings, at[i])
			}
		}
	}
	j := o.world.scenario.Cluster()
	j.Nodes, j.Running, j.Pods = s.Nodes, nil, daemons
	there := map[string]bool{}
	for _, n := range s.Nodes {
		there[n.Name] = true
	}
	waits := map[types.NamespacedName]bool{}
	for _, p := range s.Pods {
		if p.Spec.NodeName != "" {
			j.Running = append(j.Running, p)
		} else if o.moves[key(p)] {
			j.Pods = append(j.Pods, p)
			waits[key(p)] = true
		}
	}
	for _, b := range o.order {
		if waits[b.Pod] && there[b.Node] && o.now() {
			bindings = append(bindings, b)
		}
	}
	verdict, err := kubejudge.Judge(ctx, j, bindings)
	if err != nil {
		return s, err
	}
	for _, r := range verdict.Refused {
		if o.moves[r.Pod] {
			o.refused++
		}
	}
	at := map[types.NamespacedName]string{}
	for _, b := range verdict.Accepted {
		at[b.Pod] = b.Node
	}
	s.Pods = slices.Concat(s.Pods, slices.DeleteFunc(daemons, func(p *corev1.Pod) bool { return at[key(p)] == "" }))
	for i, p := range s.Pods {
		if node := at[key(p)]; node != "" && p.Spec.NodeName == "" {
			q := p.DeepCopy()
			q.Spec.NodeName, q.Status = node, corev1.PodStatus{Phase: corev1.PodRunning}
			s.Pods[i] = q
		}
	}
	return s, nil
}

// yield makes others pending again that went to a node which goes in any case.
func (o *others) yield(s scheduling.Snapshot, c *giveback.Command) scheduling.Snapshot {
	if c.Method != eligibility.Interruption && c.Method != eligibility.Expiration {
		return s
	}
	s.Pods = slices.Clone(s.Pods)
	for i, p := range s.Pods {
		if o.moves[key(p)] && slices.ContainsFunc(c.Nodes, func(n deprovision.Candidate) bool { return n.Name == p.Spec.NodeName }) {
			q := p.DeepCopy()
			q.Spec.NodeName, q.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
			s.Pods[i] = q
		}
	}
	return s
}

// Where pods are pending, nodes leave or arrive and pods end, every command is right whenever these move: before all commands, after
// them, or between them. kube-scheduler judges each command by what is there at that moment.
func TestCommandsAreAcceptedWhileOthersMove(t *testing.T) {
	moments := []float64{0, 1, 0.3, 0.6}
	each(t, clusters(40, 1000), func(ctx context.Context, seed uint64) (seen tally, err error) {
		w, err := draw(ctx, seed, seed%2 == 1)
		if err != nil {
			return seen, err
		}
		r := rand.New(rand.NewPCG(seed, 9))
		if seed%5 == 3 {
			half := 30 * time.Minute
			w.snapshot.Pools[r.IntN(len(w.snapshot.Pools))].Disruption.ExpireAfter = &half
		}
		w.disturb(r)
		o := &giveback.Options{SpotToSpot: true, SpotFlexibility: 3}
		if seed%3 == 0 {
			o.Objective = giveback.Objective{DisruptionPrice: -1}
		}
		result, _, err := give(ctx, w, w.snapshot, o)
		if err != nil {
			return seen, err
		}
		if err := once(&result); err != nil {
			return seen, err
		}
		sim, _, err := simulate.New(w.snapshot)
		if err != nil {
			return seen, err
		}
		for _, share := range moments {
			other := w.others(sim, share, rand.New(rand.NewPCG(seed, uint64(100*share))))
			s := w.snapshot
			for i := range result.Commands {
				c := &result.Commands[i]
				if s, err = other.step(ctx, s); err != nil {
					return seen, err
				}
				s = other.yield(s, c)
				if s, err = w.judge(ctx, s, c); err != nil {
					return seen, fmt.Errorf("share %.1f, command %d, %s: %w", share, i, brief(c), err)
				}
			}
			if share == 0 {
				for i := range result.Commands {
					seen.see(&result.Commands[i])
				}
			}
			seen.refused += other.refused
			if other.share == 0 { // at last the others move, too
				other.share, other.refused = 1, 0
				if _, err = other.step(ctx, s); err != nil {
					return seen, err
				}
				seen.late += other.refused
			}
		}
		seen.others = len(sim.Reserved())
		return seen, nil
	})
}
