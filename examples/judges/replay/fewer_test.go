package replay_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/examples/judges/karpenter"
	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/examples/judges/replay"
	"github.com/joinery-sdk/joinery/examples/judges/scenario"
	"github.com/joinery-sdk/joinery/scheduling/podclass"
)

var (
	against  = flag.Int("karpenter", 40, "number of scenarios in which the pods placed are compared with Karpenter's")
	minimize = flag.Bool("minimize", false, "make scenarios in which we place less than Karpenter as small as possible before they are written to -dump")
)

// A pod that Karpenter places must be placed by us too, unless kube-scheduler refuses that very pod in Karpenter's plan.
// Where limits make pods compete it is the number that counts, of the highest priority first. Of pods that exclude each
// other, such as two apps that keep apart by zone, each planner takes some. Where we take more than hold of Karpenter's, or
// as many and larger ones, and neither planner finds room for the missing one beside ours, the test tells and goes on.
func TestNeverFewerThanKarpenter(t *testing.T) {
	ctx := t.Context()
	var sum comparison
	bad, exchanged := 0, 0
	for i := range *against {
		seed := *first + uint64(i)
		limits, s := seed%4 == 0, drawn(seed)
		c, err := compared(ctx, s)
		require.NoError(t, err, s.String())
		sum.ours, sum.theirs, sum.refused = sum.ours+c.ours, sum.theirs+c.theirs, sum.refused+c.refused
		if !c.lost(limits) {
			continue
		}
		bad++
		tell, why := t.Errorf, ""
		if !limits && c.exchanged() {
			if why, err = c.unexcused(ctx, s); why == "" {
				tell = t.Logf
				exchanged++
			}
			require.NoError(t, err, s.String())
		}
		always, err := c.everyTime(ctx, s)
		require.NoError(t, err, s.String())
		tell("%s: we placed %d, Karpenter %d (%d refused by kube-scheduler); missing %v, in each of three runs of Karpenter's %v%s", s, c.ours, c.theirs, c.refused, c.missing, always, why)
		if *minimize {
			fewer := !c.exchanged()
			s = scenario.Minimize(s, func(smaller scenario.Scenario) bool {
				c, err := compared(ctx, smaller)
				return err == nil && c.lost(limits) && (!fewer || !c.exchanged())
			})
			c, err = compared(ctx, s)
			require.NoError(t, err)
			t.Logf("smallest: %s: we placed %d, Karpenter %d; missing %v", s, c.ours, c.theirs, c.missing)
		}
		keep(t, s)
	}
	fmt.Printf("ours %d, Karpenter's %d of which kube-scheduler refuses %d, bad scenarios %d, in %d of which we place more, or as many and larger ones\n", sum.ours, sum.theirs, sum.refused, bad, exchanged)
}

// Of the pods that Karpenter places, those that kube-scheduler accepts are a set of which it is known that all of them
// can be placed. Where nothing else is asked for, we must place them all: there is nothing to exchange. Under limits that
// leave no slack this is a matter of packing, which is told, not judged.
func TestKarpentersPodsAlone(t *testing.T) {
	pods, short := 0, 0
	for i := range *against {
		seed := *first + uint64(i)
		s := drawn(seed)
		held, _, err := karpenters(t.Context(), s)
		require.NoError(t, err, s.String())
		s = only(s, func(pod types.NamespacedName) bool { return held[pod] })
		pods += len(held)
		packed, err := planned(s)
		require.NoError(t, err, s.String())
		if n := len(packed.Result.Order); n < len(s.Pods) {
			short++
			tell := t.Errorf
			if seed%4 == 0 {
				tell = t.Logf
			}
			tell("%s: we place %d", s, n)
			keep(t, s)
		}
	}
	fmt.Printf("%d pods of Karpenter's that hold; in %d scenarios we leave some out\n", pods, short)
}

// Scenarios in which we once left out pods that Karpenter places: of outcomes that differ in which of two classes of one
// size they leave out, that of fewer pods was kept; or a domain was closed, for one pod at the price of twelve, or for a
// preference at the price of three; or a pod that another has to be beside went where that one cannot be, or onto a node
// where others run, so that it was not looked for there; or limits left no more because a new node was the best for what
// goes first; or a pod that keeps a whole zone to itself shut out two dozen; or all that was left over went first together,
// where one of them had to stay out for the others.
func TestNoFewerAgain(t *testing.T) {
	for _, seed := range []uint64{327, 427, 447, 737, 989, 284, 1001, 1368, 1407, 1428, 1878, 1985} {
		s := drawn(seed)
		c, err := compared(t.Context(), s)
		require.NoError(t, err, s.String())
		assert.False(t, c.lost(seed%4 == 0), "%s: we placed %d, Karpenter %d (%d refused by kube-scheduler); missing %v", s, c.ours, c.theirs, c.refused, c.missing)
	}
}

// comparison is how many pods each placed, and which of Karpenter's that hold we leave out.
type comparison struct {
	ours, theirs, refused int
	missing               []string
	// more is by how many pods of a priority we place more than hold of Karpenter's.
	more map[int32]int
	// placed are the pods that we place, held those that hold of Karpenter's.
	placed, held map[types.NamespacedName]bool
}

// lost reports whether Karpenter did better. Where limits make pods compete, the highest priority decides in which the
// numbers differ; Karpenter does not look at priorities.
func (c *comparison) lost(limits bool) bool {
	if !limits || len(c.missing) == 0 {
		return len(c.missing) > 0
	}
	for _, priority := range slices.Backward(slices.Sorted(maps.Keys(c.more))) {
		if n := c.more[priority]; n != 0 {
			return n < 0
		}
	}
	return false
}

// exchanged reports whether we place at least as many pods as hold of Karpenter's, but others: of pods that exclude each
// other, each chose some.
func (c *comparison) exchanged() bool { return c.ours >= c.theirs-c.refused }

func compared(ctx context.Context, s scenario.Scenario) (comparison, error) {
	var out comparison
	packed, err := planned(s)
	if err != nil {
		return out, err
	}
	held, refused, err := karpenters(ctx, s)
	if err != nil {
		return out, err
	}
	placed := map[types.NamespacedName]bool{}
	for _, p := range packed.Result.Order {
		placed[nameOf(p)] = true
	}
	out.ours, out.theirs, out.refused = len(placed), len(held)+refused, refused
	out.placed, out.held = placed, held
	out.missing = missing(placed, held)
	out.more = map[int32]int{}
	priority := priorities(s)
	for pod := range held {
		out.more[priority[pod]]--
	}
	for pod := range placed {
		out.more[priority[pod]]++
	}
	return out, nil
}

// missing is how many pods of each app are held and not placed. Replicas of one app are exchangeable: which of them stay
// out is chance, so the apps' numbers are compared.
func missing(placed, held map[types.NamespacedName]bool) []string {
	more := map[string]int{}
	for pod := range held {
		more[appOf(pod)]++
	}
	for pod := range placed {
		more[appOf(pod)]--
	}
	var out []string
	for _, app := range slices.Sorted(maps.Keys(more)) {
		if n := more[app]; n > 0 {
			out = append(out, fmt.Sprintf("%d of %s", n, app))
		}
	}
	return out
}

// everyTime is what is missing against Karpenter's plan each time, for it varies from run to run.
func (c *comparison) everyTime(ctx context.Context, s scenario.Scenario) ([]string, error) {
	always := slices.Clone(c.missing)
	for range 2 {
		held, _, err := karpenters(ctx, s)
		if err != nil {
			return nil, err
		}
		now := missing(c.placed, held)
		always = slices.DeleteFunc(always, func(m string) bool { return !slices.Contains(now, m) })
	}
	return always, nil
}

// unexcused says what speaks against a choice between pods that exclude each other: we take no more than Karpenter and
// smaller ones, or a missing pod has room beside all of ours, as we or Karpenter find when asked for those alone.
func (c *comparison) unexcused(ctx context.Context, s scenario.Scenario) (string, error) {
	if c.ours == len(c.held) {
		sizes, err := sizesOf(s)
		if err != nil {
			return "", err
		}
		if larger(sizes, c.held, c.placed) {
			return "; Karpenter's are larger", nil
		}
	}
	for _, p := range s.Pods {
		name := nameOf(p)
		if !c.held[name] || c.placed[name] || !slices.ContainsFunc(c.missing, func(m string) bool { return strings.HasSuffix(m, " of "+appOf(name)) }) {
			continue
		}
		both := only(s, func(pod types.NamespacedName) bool { return pod == name || c.placed[pod] })
		packed, err := planned(both)
		if err != nil {
			return "", err
		}
		held, _, err := karpenters(ctx, both)
		if err != nil {
			return "", err
		}
		if len(packed.Result.Order) == len(both.Pods) || len(held) == len(both.Pods) {
			return "; " + name.String() + " has room beside ours", nil
		}
	}
	return "", nil
}

// only is the scenario with some of its pending pods.
func only(s scenario.Scenario, keep func(types.NamespacedName) bool) scenario.Scenario {
	s.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p *corev1.Pod) bool { return !keep(nameOf(p)) })
	return s
}

// sizesOf is what the scenario's pods request: milli of cpu, then bytes of memory.
func sizesOf(s scenario.Scenario) (map[types.NamespacedName][2]int64, error) {
	snapshot, err := replay.Snapshot(s)
	if err != nil {
		return nil, err
	}
	out := map[types.NamespacedName][2]int64{}
	for _, p := range s.Pods {
		r := podclass.Requests(snapshot.Admission.Pod(p), false)
		out[nameOf(p)] = [2]int64{r.Cpu().MilliValue(), r.Memory().Value()}
	}
	return out, nil
}

// larger reports whether a has more pods than b of the largest size in which they differ.
func larger(sizes map[types.NamespacedName][2]int64, a, b map[types.NamespacedName]bool) bool {
	more := map[[2]int64]int{}
	for pod := range a {
		more[sizes[pod]]++
	}
	for pod := range b {
		more[sizes[pod]]--
	}
	order := slices.SortedFunc(maps.Keys(more), func(x, y [2]int64) int { return slices.Compare(y[:], x[:]) })
	at := slices.IndexFunc(order, func(size [2]int64) bool { return more[size] != 0 })
	return at >= 0 && more[order[at]] > 0
}

// karpenters are the pods that Karpenter places and kube-scheduler accepts there, and how many it refuses.
func karpenters(ctx context.Context, s scenario.Scenario) (held map[types.NamespacedName]bool, refused int, err error) {
	in, err := s.Karpenter(ctx)
	if err != nil {
		return nil, 0, err
	}
	result, err := karpenter.Solve(ctx, in)
	if err != nil {
		return nil, 0, err
	}
	nodes, plan := replay.KarpenterPlan(result)
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
	if err != nil {
		return nil, 0, err
	}
	held = map[types.NamespacedName]bool{}
	for _, b := range plan {
		held[b.Pod] = true
	}
	for _, r := range verdict.Refused {
		delete(held, r.Pod)
	}
	return held, len(verdict.Refused), nil
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

// priorities are those of the scenario's pods.
func priorities(s scenario.Scenario) map[types.NamespacedName]int32 {
	value := map[string]int32{}
	for _, c := range s.PriorityClasses {
		value[c.Name] = c.Value
	}
	out := map[types.NamespacedName]int32{}
	for _, p := range s.Pods {
		out[nameOf(p)] = value[p.Spec.PriorityClassName]
	}
	return out
}

// appOf is the namespace and name of the app that a pod of a scenario is a replica of.
func appOf(pod types.NamespacedName) string {
	return pod.Namespace + "/" + pod.Name[:strings.LastIndex(pod.Name, "-")]
}
