package bruteforce_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/examples/judges/bruteforce"
	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
)

var (
	problems = flag.Int("problems", 100, "how many problems to judge; JOINERY_LONG=1 judges thirty times as many")
	from     = flag.Uint64("from", 1, "the seed of the first problem; the others follow")
	work     = flag.Int("work", 200_000, "how many binds one search may try")
)

// way is a way to plan: what is planned, and how a search must count to find the same.
type way struct {
	name     string
	snapshot scheduling.Snapshot
	options  *plan.Options
	counting bruteforce.Counting
}

// ways are the plan with the defaults, and two plans without weights and preferences, which may
// cost more: one counts all domains for sale, the other leaves zones.
func ways(s scheduling.Snapshot) []way {
	level := s
	level.Pools = slices.Clone(s.Pools)
	for i := range level.Pools {
		level.Pools[i].Weight = 0
	}
	with := func(leave bool) *plan.Options {
		return &plan.Options{Scheduling: &scheduling.Options{IgnorePreferences: true, LeaveZones: leave}}
	}
	return []way{
		{"default", s, nil, bruteforce.ForSale},
		{"level", level, with(false), bruteforce.ForSale},
		{"leave zones", level, with(true), bruteforce.ForSaleButZones},
	}
}

// outcome is what became of one plan.
type outcome struct {
	err error
	// wrong are broken promises: refused binds, exceeded limits, bounds above a cheaper plan, fixes
	// that do not hold.
	wrong []string
	// incomplete counts searches that gave up, of so many.
	incomplete, searches int
	placed, refused      int
	// closed says that the plan does not count all domains for sale, because pods would have no
	// place then.
	closed bool
	// more is what a search places instead, and saved is how much less the cheapest nodes for the
	// placed pods cost, in percent: with the domains that the plan counts, and with those of
	// kube-scheduler.
	more  [2]string
	saved [2]float64
	// choices are bounds of the plan's own domains that were compared.
	choices int
	// fixes were tried, and dear are those that cost more than was said.
	fixes int
	dear  []string
}

func look(ctx context.Context, w way) (out outcome) {
	p, err := plan.Make(ctx, w.snapshot, w.options)
	if err != nil {
		return outcome{err: err}
	}
	if err := p.Bound.Verify(); err != nil {
		return outcome{err: err}
	}
	out.wrong = append(violations(w.snapshot, p), overLimits(w.snapshot, p)...)
	var placed []*corev1.Pod
	for _, b := range p.Bindings() {
		placed = append(placed, b.Pod)
	}
	out.placed = len(placed)
	for _, u := range p.Unplaced() {
		out.refused += len(u.Pods)
	}
	for i, counting := range []bruteforce.Counting{w.counting, bruteforce.WithNodes} {
		out.search(ctx, w, p, placed, i, counting)
	}
	out.choice(ctx, w, p, placed)
	if w.options == nil {
		out.tryFixes(ctx, w, p)
	}
	return out
}

// search compares the plan with what a search finds.
func (out *outcome) search(ctx context.Context, w way, p *plan.Plan, placed []*corev1.Pod, i int, counting bruteforce.Counting) {
	if out.refused > 0 {
		x := bruteforce.NewSearch(w.snapshot, counting, nil, *work)
		if a := x.Most(placed); a != nil {
			out.more[i] = told(a)
			out.accepted(ctx, w.snapshot, a)
		}
		out.count(x)
	}
	cost, bound := bruteforce.Billionths(p.Cost().Dollars()), bruteforce.Billionths(p.Bound.Price.Dollars())
	x := bruteforce.NewSearch(w.snapshot, counting, nil, *work)
	a := x.Cheapest(placed, cost+1) // the plan itself is one answer
	out.count(x)
	switch {
	case a != nil:
		if may := float64(cost) - premium(p); may > float64(a.Price)*(1+1e-9) && !weighted(w.snapshot) {
			out.saved[i] = 100 * (may - float64(a.Price)) / float64(cost)
		}
		if a.Price < cost {
			out.accepted(ctx, w.snapshot, a)
		}
		if a.Price < bound {
			out.wrong = append(out.wrong, fmt.Sprintf("the bound is %v, but this costs less: %s", p.Bound.Price, told(a)))
		}
	case x.Left >= 0 && counting == bruteforce.WithNodes:
		out.wrong = append(out.wrong, "the search does not find the plan")
	case x.Left >= 0:
		out.closed = true
	}
}

// choice compares the bound for the plan's own domains with pods that are tied to the values of all
// labels that any pod asks about. The domains that are counted are part of the choice.
func (out *outcome) choice(ctx context.Context, w way, p *plan.Plan, placed []*corev1.Pod) {
	bound := bruteforce.Billionths(p.Bound.Choice.Dollars())
	if w.name != "level" || bound == 0 {
		return
	}
	nodes := map[string]*corev1.Node{}
	for _, n := range w.snapshot.Nodes {
		nodes[n.Name] = n
	}
	for _, n := range p.NewNodes() {
		nodes[n.Name] = n.Node()
	}
	at := map[*corev1.Pod]*corev1.Node{}
	for _, b := range p.Bindings() {
		at[b.Pod] = nodes[b.Node]
	}
	x := bruteforce.NewSearch(w.snapshot, w.counting, func(pod *corev1.Pod) map[string]string {
		n, ok := at[pod]
		if !ok {
			return nil
		}
		ties := map[string]string{}
		for _, key := range []string{corev1.LabelTopologyZone, "karpenter.sh/capacity-type", "karpenter.sh/nodepool", corev1.LabelInstanceTypeStable, labelRack, labelGeneration} {
			if key != corev1.LabelInstanceTypeStable || asks(w.snapshot, key) {
				ties[key] = n.Labels[key]
			}
		}
		return ties
	}, *work)
	out.choices++
	if a := x.Cheapest(placed, bound); a != nil {
		out.accepted(ctx, w.snapshot, a)
		out.wrong = append(out.wrong, fmt.Sprintf("the bound for these domains is %v, but this costs less: %s", p.Bound.Choice, told(a)))
	}
}

// asks reports whether a constraint of a pod is over the key.
func asks(s scheduling.Snapshot, key string) bool {
	return slices.ContainsFunc(s.Pods, func(p *corev1.Pod) bool {
		text, err := json.Marshal(p.Spec)
		return err != nil || strings.Contains(string(text), key)
	})
}

func (out *outcome) count(x *bruteforce.Search) {
	out.searches++
	if x.Left < 0 {
		out.incomplete++
	}
}

// premium is how much the plan may pay for all preferences of its pods together.
func premium(p *plan.Plan) (sum float64) {
	if p.Problem.Options().IgnorePreferences {
		return 0
	}
	for _, b := range p.Bindings() {
		class, _ := p.Problem.Class(b.Pod.Namespace, b.Pod.Name)
		given, kept := p.GivenUp(b.Pod)
		sum += float64(len(given)+len(kept)) * p.Problem.Options().PreferenceShare() * p.Problem.PodPrice(class) * 1e9
	}
	return sum
}

// weighted says that pools may be preferred whatever they cost.
func weighted(s scheduling.Snapshot) bool {
	return slices.ContainsFunc(s.Pools, func(p scheduling.Pool) bool { return p.Weight != s.Pools[0].Weight })
}

// accepted asks kube-scheduler whether a search's answer is right.
func (out *outcome) accepted(ctx context.Context, s scheduling.Snapshot, a *bruteforce.Answer) {
	c := clusterOf(s)
	for i, o := range a.Bought {
		n := o.Node.DeepCopy()
		n.Name = fmt.Sprint("bought-", i)
		n.Labels[corev1.LabelHostname] = n.Name
		c.add(n)
	}
	var binds []kubejudge.Binding
	for i, pod := range a.Pods {
		binds = append(binds, kubejudge.Binding{Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, Node: c.nodes[a.Nodes[i]].Name})
	}
	verdict, err := kubejudge.Judge(ctx, c.scenario(), binds)
	if err != nil || !verdict.Valid() {
		out.wrong = append(out.wrong, fmt.Sprintf("kube-scheduler refuses what the search has found: %s: %v %v", told(a), verdict, err))
	}
}

// told is an answer in words.
func told(a *bruteforce.Answer) string {
	out := []string{fmt.Sprintf("$%.4f", float64(a.Price)/1e9)}
	for i, o := range a.Bought {
		l := o.Node.Labels
		out = append(out, fmt.Sprintf("bought-%d: %s in %s %s of %s at $%.4f", i, o.Node.Name, l[corev1.LabelTopologyZone], l["karpenter.sh/capacity-type"], l["karpenter.sh/nodepool"], float64(o.Price)/1e9))
	}
	for i, pod := range a.Pods {
		out = append(out, fmt.Sprintf("%s to node %d", pod.Name, a.Nodes[i]))
	}
	return strings.Join(out, ", ")
}

// violations are the binds of the plan, in its order, that the model refuses.
func violations(s scheduling.Snapshot, p *plan.Plan) (wrong []string) {
	c, pending := clusterOf(s), map[string]bool{}
	for _, pod := range c.pending {
		pending[pod.Namespace+"/"+pod.Name] = true
	}
	offers := bruteforce.Offers(s)
	for _, n := range p.NewNodes() {
		if !bruteforce.IsOffer(offers, s, &n.NewNode) {
			wrong = append(wrong, fmt.Sprintf("nobody sells %s: %s in %s at %v", n.Name, n.InstanceType.Name, n.Zone, n.PricePerHour))
		}
		c.add(n.Node())
	}
	m := bruteforce.New(c.nodes, nil, slices.Concat(c.running, c.pending), nil)
	st := m.Start()
	for _, b := range p.Bindings() {
		name := b.Pod.Namespace + "/" + b.Pod.Name
		if !pending[name] {
			wrong = append(wrong, name+" is bound twice, or was not pending")
		}
		delete(pending, name)
		n := slices.IndexFunc(c.nodes, func(n *corev1.Node) bool { return n.Name == b.Node })
		if f := st.Refuses(m.Kind(name), n); f != "" {
			wrong = append(wrong, fmt.Sprintf("%s refuses %s on %s", f, name, b.Node))
		}
		st.Bind(m.Kind(name), n)
	}
	for _, u := range p.Unplaced() {
		for _, pod := range u.Pods {
			delete(pending, pod.Namespace+"/"+pod.Name)
		}
	}
	if len(pending) > 0 {
		wrong = append(wrong, fmt.Sprint("neither bound nor refused: ", pending))
	}
	return wrong
}

// overLimits are the pools of which the plan buys more than they allow.
func overLimits(s scheduling.Snapshot, p *plan.Plan) (wrong []string) {
	budgets := bruteforce.Budgets(s)
	for _, n := range p.NewNodes() {
		i := slices.IndexFunc(s.Pools, func(p scheduling.Pool) bool { return p.Name == n.Pool.Name })
		left, ok := budgets[i].Take(n.Node())
		budgets[i] = left
		if !ok {
			wrong = append(wrong, n.Name+" exceeds the limits of "+n.Pool.Name)
		}
	}
	return wrong
}

// total is what became of all problems planned in one way.
type total struct {
	plans, placed, refused, incomplete, searches, wrong int
	fixes, closed, choices                              int
	dear                                                []string
	more                                                [2][]string // seeds
	saved                                               [2][]saving
}

type saving struct {
	seed    uint64
	percent float64
}

func (all *total) add(seed uint64, o outcome) {
	all.plans++
	all.placed, all.refused = all.placed+o.placed, all.refused+o.refused
	all.incomplete, all.searches = all.incomplete+o.incomplete, all.searches+o.searches
	all.fixes, all.choices, all.wrong = all.fixes+o.fixes, all.choices+o.choices, all.wrong+len(o.wrong)
	if o.closed {
		all.closed++
	}
	for _, text := range o.dear {
		all.dear = append(all.dear, fmt.Sprintf("%d: %s", seed, text))
	}
	for i := range all.more {
		if o.more[i] != "" {
			all.more[i] = append(all.more[i], fmt.Sprint(seed))
		}
		if o.saved[i] > 1e-6 {
			all.saved[i] = append(all.saved[i], saving{seed, o.saved[i]})
		}
	}
}

func (all *total) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d plans, %d pods placed and %d refused; %d of them without some domains for sale; %d of %d searches gave up; %d bounds of choices, %d fixes, dearer than said: %q",
		all.plans, all.placed, all.refused, all.closed, all.incomplete, all.searches, all.choices, all.fixes, all.dear)
	for i, how := range []string{"with the domains of the plan", "as kube-scheduler counts"} {
		fmt.Fprintf(&b, "\n  %s: %d place more pods %v", how, len(all.more[i]), all.more[i][:min(10, len(all.more[i]))])
		list, sum := all.saved[i], 0.0
		slices.SortFunc(list, func(a, b saving) int { return cmp.Or(cmp.Compare(b.percent, a.percent), cmp.Compare(a.seed, b.seed)) })
		for _, d := range list {
			sum += d.percent
		}
		fmt.Fprintf(&b, "\n  %s: %d can be cheaper, by %.3f%% in the mean of all plans:", how, len(list), sum/float64(max(1, all.plans)))
		for _, d := range list[:min(10, len(list))] {
			fmt.Fprintf(&b, " %d (%.1f%%)", d.seed, d.percent)
		}
	}
	return b.String()
}

// kube-scheduler accepts every planned bind, no plan places the same pods below the bound, and every
// fix holds. How much more a search places, and for how much less, is logged.
func TestPlansAgainstSearch(t *testing.T) {
	n := *problems
	if os.Getenv("JOINERY_LONG") == "1" {
		n *= 30
	}
	outcomes := make([][]outcome, n)
	inParallel(n, func(i int) {
		for _, w := range ways(draw(*from + uint64(i))) {
			outcomes[i] = append(outcomes[i], look(t.Context(), w))
		}
	})
	for k, w := range ways(scheduling.Snapshot{}) {
		var all total
		for i, list := range outcomes {
			seed := *from + uint64(i)
			require.NoError(t, list[k].err, "seed %d, %s", seed, w.name)
			for _, text := range list[k].wrong {
				t.Errorf("seed %d, %s: %s", seed, w.name, text)
			}
			all.add(seed, list[k])
		}
		fmt.Printf("%s: %s\n", w.name, &all)
	}
}

func inParallel(n int, do func(int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wg.Wait()
}
