package bruteforce_test

import (
	"cmp"
	"context"
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

	"github.com/joinery-sdk/joinery/examples/judges/bruteforce"
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
	// fixes were tried, and dearer cost more than was said.
	fixes, dearer int
	fixSeeds      []string
}

func look(ctx context.Context, w way, fixes bool) (out outcome) {
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
	cost, bound := bruteforce.Billionths(p.Cost().Dollars()), bruteforce.Billionths(p.Bound.Price.Dollars())
	for i, counting := range []bruteforce.Counting{w.counting, bruteforce.WithNodes} {
		if out.refused > 0 {
			x := bruteforce.NewSearch(w.snapshot, counting, *work)
			if counts := x.Most(placed); counts != nil {
				out.more[i] = x.Describe(counts)
			}
			out.count(x)
		}
		x := bruteforce.NewSearch(w.snapshot, counting, *work)
		least, offers, ok := x.Cheapest(placed, cost+1) // the plan itself is one answer
		switch {
		case ok:
			if cost > 0 {
				out.saved[i] = 100 - 100*float64(least)/float64(cost)
			}
			if least < bound {
				out.wrong = append(out.wrong, fmt.Sprintf("the bound is %v, but these nodes cost %d: %s", p.Bound.Price, least, names(offers)))
			}
		case x.Left >= 0 && counting == bruteforce.WithNodes:
			out.wrong = append(out.wrong, "the search does not find the plan")
		case x.Left >= 0:
			out.closed = true
		}
		out.count(x)
	}
	if fixes {
		out.tryFixes(ctx, w, p)
	}
	return out
}

func (out *outcome) count(x *bruteforce.Search) {
	out.searches++
	if x.Left < 0 {
		out.incomplete++
	}
}

func names(offers []bruteforce.Offer) string {
	var out []string
	for _, o := range offers {
		l := o.Node.Labels
		out = append(out, fmt.Sprintf("%s in %s %s of %s at %d", o.Node.Name, l[corev1.LabelTopologyZone], l["karpenter.sh/capacity-type"], l["karpenter.sh/nodepool"], o.Price))
	}
	return strings.Join(out, ", ")
}

// violations are the binds of the plan, in its order, that the model refuses.
func violations(s scheduling.Snapshot, p *plan.Plan) (wrong []string) {
	c := cluster{snapshot: s, nodes: slices.Clone(s.Nodes)}
	pending := map[string]bool{}
	for _, pod := range s.Pods {
		if pod.Spec.NodeName == "" {
			c.pending = append(c.pending, pod)
			pending[pod.Namespace+"/"+pod.Name] = true
		} else {
			c.running = append(c.running, pod)
		}
	}
	offers := bruteforce.Offers(s)
	for _, n := range p.NewNodes() {
		if !bruteforce.IsOffer(offers, s, &n.NewNode) {
			wrong = append(wrong, fmt.Sprintf("nobody sells %s: %s in %s at %v", n.Name, n.InstanceType.Name, n.Zone, n.PricePerHour))
		}
		c.add(n.Node())
	}
	m := bruteforce.New(c.nodes, nil, slices.Concat(c.running, c.pending))
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
	fixes, dearer, closed                               int
	fixSeeds                                            []string
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
	all.fixes, all.dearer, all.wrong = all.fixes+o.fixes, all.dearer+o.dearer, all.wrong+len(o.wrong)
	if o.closed {
		all.closed++
	}
	for _, text := range o.fixSeeds {
		all.fixSeeds = append(all.fixSeeds, fmt.Sprintf("%d: %s", seed, text))
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
	fmt.Fprintf(&b, "%d plans, %d pods placed and %d refused; %d of them without some domains for sale; %d of %d searches gave up; %d fixes, %d dearer than said %q",
		all.plans, all.placed, all.refused, all.closed, all.incomplete, all.searches, all.fixes, all.dearer, all.fixSeeds)
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

// kube-scheduler accepts every planned bind, nobody places the same pods below the bound, and every
// fix holds. How much more a search places, and for how much less, is logged.
func TestPlansAgainstSearch(t *testing.T) {
	n := *problems
	if os.Getenv("JOINERY_LONG") == "1" {
		n *= 30
	}
	outcomes := make([][]outcome, n)
	inParallel(n, func(i int) {
		for k, w := range ways(bruteforce.Draw(*from + uint64(i))) {
			outcomes[i] = append(outcomes[i], look(t.Context(), w, k == 0))
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
