package deprovision_test

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/scheduling"
)

// brief says what a command does in one line.
func brief(c *giveback.Command) string {
	out := string(c.Method) + " -"
	for _, n := range c.Nodes {
		out += " " + n.Name
	}
	for _, n := range c.NewNodes {
		out += " + " + n.Name + " " + n.InstanceType + " " + n.Zone
	}
	return out
}

func give(ctx context.Context, w *world, s scheduling.Snapshot, o *giveback.Options) (giveback.Result, deprovision.Cluster, error) {
	sim, nominated, err := simulate.New(s)
	if err != nil {
		return giveback.Result{}, deprovision.Cluster{}, err
	}
	o.Rules.Placeable = sim.Placeable
	c := simulate.Cluster(w.manifests, s, nominated, now())
	c.Interruptions = w.interrupted
	for i := range c.Nodes {
		c.Nodes[i].Repair = w.broken[c.Nodes[i].Name()]
	}
	r, err := giveback.Make(ctx, c, sim, o)
	return r, c, err
}

// waves are the commands that a command is for those who see its waves one after the other. The first one buys all nodes, as package
// execution does.
func waves(c *giveback.Command) []giveback.Command {
	if len(c.Waves) == 0 {
		return []giveback.Command{*c}
	}
	var out []giveback.Command
	for i, names := range c.Waves {
		part := *c
		part.Nodes, part.Placements = nil, nil
		for _, n := range c.Nodes {
			if slices.Contains(names, n.Name) {
				part.Nodes = append(part.Nodes, n)
			}
		}
		for _, p := range c.Placements {
			if slices.Contains(names, p.Pod.Spec.NodeName) {
				part.Placements = append(part.Placements, p)
			}
		}
		if i > 0 {
			part.NewNodes = nil
		}
		out = append(out, part)
	}
	return out
}

// judge carries out a command, wave by wave. It returns the snapshot afterwards.
func (w *world) judge(ctx context.Context, s scheduling.Snapshot, c *giveback.Command) (scheduling.Snapshot, error) {
	nodes, placed := 0, 0
	for i, part := range waves(c) {
		nodes, placed = nodes+len(part.Nodes), placed+len(part.Placements)
		var err error
		if s, err = w.judgeWave(ctx, s, &part); err != nil {
			return s, fmt.Errorf("wave %d of %d: %w", i, max(1, len(c.Waves)), err)
		}
	}
	if nodes != len(c.Nodes) || placed != len(c.Placements) {
		return s, fmt.Errorf("the waves give back %d of %d nodes and move %d of %d pods", nodes, len(c.Nodes), placed, len(c.Placements))
	}
	return s, nil
}

// judgeWave carries out a command without waves and has the pods bound in its order. It returns the snapshot afterwards.
func (w *world) judgeWave(ctx context.Context, s scheduling.Snapshot, c *giveback.Command) (scheduling.Snapshot, error) {
	if len(c.Stranded) > 0 && c.Method != eligibility.Interruption && c.Method != eligibility.Expiration {
		return s, fmt.Errorf("%s strands %d pods", c.Method, len(c.Stranded))
	}
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
		stranded := slices.ContainsFunc(c.Stranded, func(q *corev1.Pod) bool { return q.Namespace == p.Namespace && q.Name == p.Name })
		if _, moves := to[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}]; gone[p.Spec.NodeName] && !moves && !stranded && p.DeletionTimestamp == nil && !eviction.Daemon(p) && !eviction.Mirror(p) {
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
		if slices.ContainsFunc(c.NewNodes, func(x giveback.NewNode) bool { return x.Name == n.Name }) {
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
		if p.Spec.NodeName != "" {
			running = append(running, p)
		}
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
	if err := madeAnew(ctx, j, after.Pods, to); err != nil {
		return s, err
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
func respects(w *world, s scheduling.Snapshot, c *giveback.Command) error {
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
			if x.Name == n.Name && x.Annotations[eviction.DoNotDisrupt] == "true" && c.Method != eligibility.Unhealthy { // repair is not kept by it
				return fmt.Errorf("node %s is not to be disrupted", n.Name)
			}
		}
	}
	return nil
}

// madeAnew gives pods that move the requests that an API server stores of their successors, which RuntimeClasses and LimitRanges of today act on.
func madeAnew(ctx context.Context, j kubejudge.Scenario, pods []*corev1.Pod, to map[types.NamespacedName]string) error {
	admitted, err := kubejudge.Admit(ctx, j)
	if err != nil {
		return err
	}
	stored := map[types.NamespacedName]*corev1.Pod{}
	for _, p := range admitted.Pods {
		stored[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = p
	}
	for i, p := range pods {
		name := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
		if at, moves := to[name]; moves {
			next := stored[name]
			q := p.DeepCopy()
			q.Spec.NodeName = at
			q.Spec.Overhead = next.Spec.Overhead
			for k := range q.Spec.Containers {
				q.Spec.Containers[k].Resources = next.Spec.Containers[k].Resources
			}
			for k := range q.Spec.InitContainers {
				q.Spec.InitContainers[k].Resources = next.Spec.InitContainers[k].Resources
			}
			if !maps.EqualFunc(resources.OfPod(p, false), resources.OfPod(q, false), func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }) {
				pods[i] = q
			}
		}
	}
	return nil
}
