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
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/examples/judges/karpenter"
	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/examples/judges/replay"
	"github.com/joinery-sdk/joinery/examples/judges/scenario"
	"github.com/joinery-sdk/joinery/scheduling"
)

var (
	against  = flag.Int("karpenter", 40, "number of scenarios in which the pods placed are compared with Karpenter's")
	minimize = flag.Bool("minimize", false, "make scenarios in which we place less than Karpenter as small as possible before they are written to -dump")
)

// A pod that Karpenter places must be placed by us too, unless kube-scheduler refuses that very pod in Karpenter's plan.
// Where limits make pods compete it is the number that counts, of the highest priority first. Karpenter's plan is another
// one each time, for it ranges over maps, and of pods that exclude each other it takes now these, now those. So where one is
// missing it is asked again: one of its plans must have nobody whom we leave out.
func TestNeverFewerThanKarpenter(t *testing.T) {
	ctx := t.Context()
	var sum comparison
	bad, chance := 0, 0
	for i := range *against {
		seed := *first + uint64(i)
		s := drawn(seed)
		limits := limited(s)
		c, err := compared(ctx, s)
		require.NoError(t, err, s.String())
		sum.ours, sum.theirs, sum.refused = sum.ours+c.ours, sum.theirs+c.theirs, sum.refused+c.refused
		if !c.lost(limits) {
			continue
		}
		isChance, what, err := c.byChance(ctx, s)
		require.NoError(t, err, s.String())
		if isChance && !limits {
			t.Log(what)
			chance++
		} else {
			t.Error(what)
			bad++
		}
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
	fmt.Printf("ours %d, Karpenter's %d of which kube-scheduler refuses %d; scenarios with a pod missing %d, and by chance %d\n", sum.ours, sum.theirs, sum.refused, bad, chance)
}

// Why one plan of Karpenter's is not enough to judge by: they contradict each other. Its largest pod may be in zone a or b, and
// it takes now this, now that. Two others keep away from that pod, one in each zone, so one of them always stays out. Whoever
// plans this, some plan of Karpenter's has a pod that he leaves out.
func TestKarpenterContradictsItself(t *testing.T) {
	random := drawn(1)
	pool := random.NodePools[0].DeepCopy()
	pool.Spec.Template.Spec.Requirements, pool.Spec.Template.Spec.Taints, pool.Spec.Template.Spec.StartupTaints = nil, nil, nil
	s := scenario.Scenario{Catalogue: random.Catalogue, Namespaces: random.Namespaces, NodePools: []*karpv1.NodePool{pool}}
	pod := func(app, cpu string, zones ...string) *corev1.Pod {
		p := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}}
		p.Namespace, p.Name, p.Labels = metav1.NamespaceDefault, app+"-0", map[string]string{"app": app}
		p.Spec.Containers = []corev1.Container{{Name: "main", Image: "registry.example.com/app", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		}}}
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: zones},
			}}},
		}}}
		s.Pods = append(s.Pods, p)
		return p
	}
	itself := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "large"}}
	pod("large", "2", "zone-a", "zone-b").Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
		{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: itself},
	}
	for _, p := range []*corev1.Pod{pod("left", "1", "zone-a"), pod("right", "1", "zone-b")} {
		p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelTopologyZone, LabelSelector: itself}},
		}
	}
	plans := map[string]bool{}
	for range moreRuns {
		held, _, err := karpenters(t.Context(), s)
		require.NoError(t, err)
		plans[fmt.Sprint(slices.Sorted(maps.Keys(byApp(held))))] = true
	}
	require.Equal(t, map[string]bool{"[default/large default/left]": true, "[default/large default/right]": true}, plans)
	packed, err := planned(s)
	require.NoError(t, err)
	require.Len(t, packed.Result.Order, 2)
}

// How well the reference that decides who has a right to a place foretells what Karpenter places. It need not be exact: what
// it misses is placed beside it nearly always. What it gets wrong is chance, mostly.
func TestReferenceIsLikeKarpenter(t *testing.T) {
	theirs, missed, more := 0, 0, 0
	for i := range *against {
		seed := *first + uint64(i)
		s := drawn(seed)
		if limited(s) {
			continue
		}
		in, err := s.Karpenter(t.Context())
		require.NoError(t, err, s.String())
		result, err := karpenter.Solve(t.Context(), in)
		require.NoError(t, err, s.String())
		_, plan := replay.KarpenterPlan(result)
		snapshot, err := replay.Snapshot(s)
		require.NoError(t, err, s.String())
		problem, err := scheduling.Compile(snapshot, nil)
		require.NoError(t, err, s.String())
		differs := map[string]int{}
		for k, n := range problem.Reference() {
			differs[appOf(nameOf(problem.Classes[k].Pods[0]))] += n
		}
		for _, b := range plan {
			differs[appOf(b.Pod)]--
		}
		theirs += len(plan)
		for _, n := range differs {
			missed, more = missed-min(n, 0), more+max(n, 0)
		}
	}
	fmt.Printf("of %d pods that Karpenter places the reference misses %d, and places %d more\n", theirs, missed, more)
	require.Less(t, missed, theirs/100)
	require.Less(t, more, theirs/100)
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
		s = only(s, func(pod types.NamespacedName) bool { return held[pod] != "" })
		pods += len(held)
		packed, err := planned(s)
		require.NoError(t, err, s.String())
		if n := len(packed.Result.Order); n < len(s.Pods) {
			short++
			tell := t.Errorf
			if limited(s) {
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
// where one of them had to stay out for the others; or of pods that exclude each other we took others than Karpenter, by
// their number or size; or its plan has pods in another domain than where we look for a place first; or pods that others
// spread by were where those have to be; or of several plans of the reference the first decided alone; or pods that Karpenter
// places where kube-scheduler refuses them were not in the reference, so that others were who are not in Karpenter's;
// or limits were met only by nodes packed as Karpenter packs them; or pods that use one volume took an attachment each; or the
// reference had somebody on a node where more was in use than there is; or the debts to one reference outweighed several others;
// or a spread by hostname that counts existing nodes only took the least count for 0; or pods held only in an order in which those
// came last who kept them out; or a spread by hostname kept others from a node who came later;
// or a priority decided between pods that did not compete; or others took what limits left before the reference's nodes were packed.
func TestNoFewerAgain(t *testing.T) {
	for _, seed := range []uint64{31, 121, 284, 370, 427, 447, 655, 677, 737, 775, 783, 989, 1001, 1006, 1149, 1255, 1368, 1407, 1428, 1509, 1540, 1809, 1862, 1878, 1917, 1985, 2440, 2675, 2685, 3588, 3641, 3723, 4071, 4832, 6089, 9123, 9796, 10576, 10932} {
		s := drawn(seed)
		c, err := compared(t.Context(), s)
		require.NoError(t, err, s.String())
		if limits := limited(s); c.lost(limits) {
			isChance, what, err := c.byChance(t.Context(), s)
			require.NoError(t, err, s.String())
			assert.True(t, isChance && !limits, what)
		}
	}
}

// comparison is how many pods each placed, and which of Karpenter's that hold we leave out.
type comparison struct {
	ours, theirs, refused int
	missing               []string
	// more is by how many pods of a priority we place more than hold of Karpenter's.
	more map[int32]int
	// crowded is the highest priority of those missing, where Karpenter has all of them on nodes that exist; nil otherwise.
	crowded *int32
	placed  map[types.NamespacedName]bool // by us
}

// lost reports whether Karpenter did better. Where limits make pods compete, the highest priority decides in which the
// numbers differ; Karpenter does not look at priorities. For the room of nodes that exist kube-scheduler takes pods by
// priority, too: there pods of a higher one come before any that Karpenter places.
func (c *comparison) lost(limits bool) bool {
	if len(c.missing) == 0 {
		return false
	}
	for _, priority := range slices.Backward(slices.Sorted(maps.Keys(c.more))) {
		switch n := c.more[priority]; {
		case n == 0:
		case limits:
			return n < 0
		default:
			return n < 0 || c.crowded == nil || priority <= *c.crowded
		}
	}
	return !limits
}

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
	out.placed = placed
	out.missing = short(byApp(placed), byApp(held))
	out.more = map[int32]int{}
	priority := priorities(s)
	out.crowded = crowded(s, placed, held)
	for pod := range held {
		out.more[priority[pod]]--
	}
	for pod := range placed {
		out.more[priority[pod]]++
	}
	return out, nil
}

// crowded is the highest priority of the apps of which some are missing, if all that hold of Karpenter's are on nodes that
// exist; nil otherwise.
func crowded(s scenario.Scenario, placed map[types.NamespacedName]bool, held map[types.NamespacedName]string) *int32 {
	are, should, priority := byApp(placed), byApp(held), priorities(s)
	var out *int32
	for pod, node := range held {
		if app := appOf(pod); are[app] < should[app] {
			if !slices.ContainsFunc(s.Nodes, func(n *corev1.Node) bool { return n.Name == node }) {
				return nil
			}
			if p := priority[pod]; out == nil || p > *out {
				out = &p
			}
		}
	}
	return out
}

// byApp counts pods by app. Replicas of one app are exchangeable: which of them stay out is chance, so the apps' numbers
// are compared.
func byApp[V any](pods map[types.NamespacedName]V) map[string]int {
	out := map[string]int{}
	for pod := range pods {
		out[appOf(pod)]++
	}
	return out
}

// short is how many pods of each app there should be and are not.
func short(are, should map[string]int) []string {
	var out []string
	for _, app := range slices.Sorted(maps.Keys(should)) {
		if n := should[app] - are[app]; n > 0 {
			out = append(out, fmt.Sprintf("%d of %s", n, app))
		}
	}
	return out
}

const moreRuns = 50

// byChance makes more plans of Karpenter's until there is one that has nobody whom we leave out, and reports whether there
// was. It says what came of it.
func (c *comparison) byChance(ctx context.Context, s scenario.Scenario) (bool, string, error) {
	placed := byApp(c.placed)
	what := fmt.Sprintf("%s: we placed %d, Karpenter %d (%d refused by kube-scheduler); missing %v", s, c.ours, c.theirs, c.refused, c.missing)
	for run := range moreRuns {
		held, _, err := karpenters(ctx, s)
		if err != nil {
			return false, "", err
		}
		if len(short(placed, byApp(held))) == 0 {
			return true, fmt.Sprintf("%s; nobody in another plan of Karpenter's, the next but %d", what, run), nil
		}
	}
	return false, fmt.Sprintf("%s; some in each of %d more plans of Karpenter's", what, moreRuns), nil
}

// limited reports whether some pool has limits, so that pods compete for what it may buy.
func limited(s scenario.Scenario) bool {
	return slices.ContainsFunc(s.NodePools, func(p *karpv1.NodePool) bool { return len(p.Spec.Limits) > 0 })
}

// only is the scenario with some of its pending pods.
func only(s scenario.Scenario, keep func(types.NamespacedName) bool) scenario.Scenario {
	s.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p *corev1.Pod) bool { return !keep(nameOf(p)) })
	return s
}

// karpenters are the pods that Karpenter places and kube-scheduler accepts there, with their nodes, and how many it refuses.
func karpenters(ctx context.Context, s scenario.Scenario) (held map[types.NamespacedName]string, refused int, err error) {
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
	held = map[types.NamespacedName]string{}
	for _, b := range plan {
		held[b.Pod] = b.Node
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
