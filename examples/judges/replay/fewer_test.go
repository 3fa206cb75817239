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
)

var (
	against  = flag.Int("karpenter", 40, "number of scenarios in which the pods placed are compared with Karpenter's")
	minimize = flag.Bool("minimize", false, "make scenarios in which we place less than Karpenter as small as possible before they are written to -dump")
)

// A pod that Karpenter places must be placed by us too, unless kube-scheduler refuses that very pod in Karpenter's plan.
// Where limits make pods compete it is the number that counts, of the highest priority first. Of pods that exclude each
// other, such as two apps that keep apart by zone, each planner takes some; where we take as many as hold of Karpenter's,
// the test tells and goes on.
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
		if c.exchanged() {
			exchanged++
		}
		tell := t.Errorf
		if c.exchanged() && !limits {
			tell = t.Logf
		}
		tell("%s: we placed %d, Karpenter %d (%d refused by kube-scheduler); missing %v", s, c.ours, c.theirs, c.refused, c.missing)
		if *minimize {
			s = scenario.Minimize(s, func(smaller scenario.Scenario) bool {
				c, err := compared(ctx, smaller)
				return err == nil && c.lost(limits)
			})
			c, err = compared(ctx, s)
			require.NoError(t, err)
			t.Logf("smallest: %s: we placed %d, Karpenter %d; missing %v", s, c.ours, c.theirs, c.missing)
		}
		keep(t, s)
	}
	fmt.Printf("ours %d, Karpenter's %d of which kube-scheduler refuses %d, bad scenarios %d, in %d of which we place as many, but others\n", sum.ours, sum.theirs, sum.refused, bad, exchanged)
}

// Of the pods that Karpenter places, those that kube-scheduler accepts are a set of which it is known that all of them
// can be placed. Where nothing else is asked for, we must place them all: there is nothing to exchange.
func TestKarpentersPodsAlone(t *testing.T) {
	pods := 0
	for i := range *against {
		s := drawn(*first + uint64(i))
		held, _, err := karpenters(t.Context(), s)
		require.NoError(t, err, s.String())
		s.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p *corev1.Pod) bool { return !held[nameOf(p)] })
		pods += len(s.Pods)
		packed, err := planned(s)
		require.NoError(t, err, s.String())
		placed := packed.Result.Order
		if !assert.Len(t, placed, len(s.Pods), s.String()) {
			keep(t, s)
		}
	}
	fmt.Printf("%d pods of Karpenter's that hold\n", pods)
}

// Scenarios in which we once left out pods that Karpenter places: of outcomes that differ in which of two classes of one size they
// leave out, that of fewer pods was kept; or a domain was closed, for one pod at the price of twelve;
// or a pod that another has to be beside went where that one cannot be.
func TestNoFewerAgain(t *testing.T) {
	for _, seed := range []uint64{327, 427, 447, 737} {
		s := drawn(seed)
		c, err := compared(t.Context(), s)
		require.NoError(t, err, s.String())
		assert.False(t, c.lost(false), "%s: we placed %d, Karpenter %d (%d refused by kube-scheduler); missing %v", s, c.ours, c.theirs, c.refused, c.missing)
	}
}

// comparison is how many pods each placed, and which of Karpenter's that hold we leave out.
type comparison struct {
	ours, theirs, refused int
	missing               []string
	// more is by how many pods of a priority we place more than hold of Karpenter's.
	more map[int32]int
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
	// Replicas of one app are exchangeable: which of them stay out is chance, so the apps' numbers are compared.
	more := map[string]int{}
	out.more = map[int32]int{}
	priority := priorities(s)
	for pod := range held {
		more[appOf(pod)]++
		out.more[priority[pod]]--
	}
	for pod := range placed {
		more[appOf(pod)]--
		out.more[priority[pod]]++
	}
	for _, app := range slices.Sorted(maps.Keys(more)) {
		if n := more[app]; n > 0 {
			out.missing = append(out.missing, fmt.Sprintf("%d of %s", n, app))
		}
	}
	return out, nil
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
	verdict, err := kubejudge.JudgeAnyOrder(ctx, cluster, order)
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
