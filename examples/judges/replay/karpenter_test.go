package replay_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/karpenter/pkg/apis"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/examples/judges/karpenter"
	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/examples/judges/replay"
	"github.com/joinery-sdk/joinery/examples/judges/scenario"
)

var (
	against = flag.Int("karpenter", 20, "in how many random scenarios to compare the pods placed with Karpenter's")
	invents = flag.Bool("invented-labels", false, "leave labels on Karpenter's nodes that it makes up for a pod; see README.md")
)

// Over all scenarios, more pods have a place that kube-scheduler accepts in our plans than in Karpenter's, and in at most
// one scenario of a hundred fewer. Fewer means fewer of the highest priority in which the two plans differ. Karpenter's
// plan has no order, so any that is found will do; and it is another one each time, for Karpenter ranges over maps. Clusters that
// change are left out: of free volumes of one size kube-scheduler takes any, and a plan of ours holds whichever it takes, while
// Karpenter's is accepted if it holds for the one that was taken here.
func TestPodsBesideKarpenters(t *testing.T) {
	results := make([]comparison, *against)
	inParallel(*against, func(i int) { results[i] = compared(t.Context(), draw(*from+uint64(i), false)) })
	var all comparison
	all.ours, all.theirs = map[int32]int{}, map[int32]int{}
	more, fewer, by := 0, 0, map[int]int{}
	for i := range results {
		r := &results[i]
		if !assert.NoError(t, r.err, "seed %d", *from+uint64(i)) {
			continue
		}
		all.refused += r.refused
		add(all.ours, r.ours)
		add(all.theirs, r.theirs)
		switch priority, n := r.difference(); {
		case n > 0:
			more++
		case n < 0:
			fewer++
			by[-n]++
			t.Logf("seed %d: %d pods of priority %d fewer; we placed %v by priority, Karpenter %v", *from+uint64(i), -n, priority, r.ours, r.theirs)
		}
	}
	var report strings.Builder
	fmt.Fprintf(&report, "%d scenarios: ours %d pods, Karpenter's %d, and %d that kube-scheduler refuses\n", *against, total(all.ours), total(all.theirs), all.refused)
	for _, p := range slices.Backward(slices.Sorted(maps.Keys(merged(all.ours, all.theirs)))) {
		fmt.Fprintf(&report, "  of priority %d: ours %d, Karpenter's %d\n", p, all.ours[p], all.theirs[p])
	}
	fmt.Fprintf(&report, "  more in %d scenarios, fewer in %d\n", more, fewer)
	for _, n := range slices.Sorted(maps.Keys(by)) {
		fmt.Fprintf(&report, "  by %d pods in %d\n", n, by[n])
	}
	fmt.Print(report.String())
	assert.Greater(t, total(all.ours), total(all.theirs))
	assert.LessOrEqual(t, fewer, (*against+99)/100)
}

// comparison is how many pods of each priority each planner places so that kube-scheduler accepts it.
type comparison struct {
	ours, theirs map[int32]int
	// refused are how many of Karpenter's pods kube-scheduler does not accept.
	refused int
	err     error
}

// difference is by how many pods of which priority our plan is ahead, or behind if negative: the highest in which the
// plans differ. It is 0 if there is none.
func (c *comparison) difference() (priority int32, more int) {
	for _, p := range slices.Backward(slices.Sorted(maps.Keys(merged(c.ours, c.theirs)))) {
		if n := c.ours[p] - c.theirs[p]; n != 0 {
			return p, n
		}
	}
	return 0, 0
}

func add(to, from map[int32]int) {
	for p, n := range from {
		to[p] += n
	}
}

func merged(a, b map[int32]int) map[int32]int {
	out := maps.Clone(a)
	add(out, b)
	return out
}

func total(pods map[int32]int) int {
	sum := 0
	for _, n := range pods {
		sum += n
	}
	return sum
}

func compared(ctx context.Context, s scenario.Scenario) comparison {
	o := judge(ctx, s)
	theirs, refused, err := karpenters(ctx, s)
	if err := cmp.Or(o.err, err); err != nil {
		return comparison{err: err}
	}
	out := comparison{refused: refused}
	out.ours, out.err = byPriority(ctx, s, o.verdict.Accepted)
	if out.err == nil {
		out.theirs, out.err = byPriority(ctx, s, theirs)
	}
	return out
}

// byPriority counts the scenario's pods among the bindings, and no daemons.
func byPriority(ctx context.Context, s scenario.Scenario, plan []kubejudge.Binding) (map[int32]int, error) {
	cluster, err := kubejudge.Admit(ctx, s.Cluster())
	if err != nil {
		return nil, err
	}
	priority := map[types.NamespacedName]int32{}
	for _, p := range cluster.Pods {
		priority[nameOf(p)] = *p.Spec.Priority
	}
	out := map[int32]int{}
	for _, b := range plan {
		if p, ok := priority[b.Pod]; ok {
			out[p]++
		}
	}
	return out, nil
}

// karpenters are the bindings of Karpenter's plan that kube-scheduler accepts in some order, and how many it refuses.
func karpenters(ctx context.Context, s scenario.Scenario) ([]kubejudge.Binding, int, error) {
	in, err := s.Karpenter(ctx)
	if err != nil {
		return nil, 0, err
	}
	result, err := karpenter.Solve(ctx, in)
	if err != nil {
		return nil, 0, err
	}
	nodes, plan := replay.KarpenterPlan(result)
	plan = withinLimits(s, nodes, plan)
	if !*invents {
		withoutInvented(s, nodes)
	}
	cluster, order, err := s.Planned(ctx, nodes, nil, plan)
	if err != nil {
		return nil, 0, err
	}
	if cluster, err = kubejudge.Admit(ctx, cluster); err != nil {
		return nil, 0, err
	}
	if cluster, err = withDaemons(ctx, cluster, order[:len(order)-len(plan)]); err != nil {
		return nil, 0, err
	}
	verdict, err := kubejudge.JudgeAnyOrder(ctx, cluster, plan)
	return verdict.Accepted, len(verdict.Refused), err
}

// withinLimits is the plan without the nodes that exceed their pool's limit of nodes, those of the fewest pods. Karpenter
// looks whether the limit is reached when it begins, but does not count the nodes of the same plan.
func withinLimits(s scenario.Scenario, nodes []*corev1.Node, plan []kubejudge.Binding) []kubejudge.Binding {
	pods, beyond := map[string]int{}, map[string]bool{}
	for _, b := range plan {
		pods[b.Node]++
	}
	for _, pool := range s.NodePools {
		limit, ok := pool.Spec.Limits["nodes"]
		if !ok {
			continue
		}
		of := func(n *corev1.Node) bool { return n.Labels[karpv1.NodePoolLabelKey] == pool.Name }
		left := int(limit.Value())
		for _, n := range s.Nodes {
			if of(n) {
				left--
			}
		}
		bought := slices.DeleteFunc(slices.Clone(nodes), func(n *corev1.Node) bool { return !of(n) })
		slices.SortStableFunc(bought, func(a, b *corev1.Node) int { return pods[b.Name] - pods[a.Name] })
		for _, n := range bought[min(max(left, 0), len(bought)):] {
			beyond[n.Name] = true
		}
	}
	return slices.DeleteFunc(plan, func(b kubejudge.Binding) bool { return beyond[b.Node] })
}

// withoutInvented takes off the nodes what neither their pool nor a type says of them. Where one pod must not have some
// value of a label that the pool does not have, Karpenter takes the label for the pool's from then on, so that another pod
// of that node gets the value that it asks for.
func withoutInvented(s scenario.Scenario, nodes []*corev1.Node) {
	said := map[string]map[string]bool{}
	for _, p := range s.NodePools {
		keys := map[string]bool{}
		for key := range p.Spec.Template.Labels {
			keys[key] = true
		}
		for _, r := range p.Spec.Template.Spec.Requirements {
			keys[r.Key] = true
		}
		for _, key := range scenario.WellKnownLabels() {
			keys[key] = true
		}
		said[p.Name] = keys
	}
	for _, n := range nodes {
		keys := said[n.Labels[karpv1.NodePoolLabelKey]]
		maps.DeleteFunc(n.Labels, func(key, _ string) bool {
			domain, _, _ := strings.Cut(key, "/")
			return !keys[key] && !strings.HasSuffix(domain, "kubernetes.io") && domain != apis.Group
		})
	}
}

// withDaemons is the cluster with its daemons running: they are there first, whatever order the others are judged in.
func withDaemons(ctx context.Context, cluster kubejudge.Scenario, daemons []kubejudge.Binding) (kubejudge.Scenario, error) {
	verdict, err := kubejudge.Judge(ctx, cluster, daemons)
	if err != nil {
		return cluster, err
	}
	at, tried := map[types.NamespacedName]string{}, map[types.NamespacedName]bool{}
	for _, b := range daemons {
		tried[b.Pod] = true
	}
	for _, b := range verdict.Accepted {
		at[b.Pod] = b.Node
	}
	pods := cluster.Pods
	cluster.Pods, cluster.Running = nil, slices.Clone(cluster.Running)
	for _, p := range pods {
		switch node, ok := at[nameOf(p)]; {
		case ok:
			p = p.DeepCopy()
			p.Spec.NodeName = node
			cluster.Running = append(cluster.Running, p)
		case !tried[nameOf(p)]:
			cluster.Pods = append(cluster.Pods, p)
		}
	}
	return cluster, nil
}

func nameOf(p *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}
