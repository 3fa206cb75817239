package deprovision_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/examples/judges/kubejudge"
	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/policy"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

type finding struct {
	kind string
	text string
}

type sums struct {
	clusters, commands, evictions, quietFail, quietAgain, plans int
	before, after, scratch                                       float64
	nodesAfter, nodesScratch                                     int
	worst                                                        float64
	f80, evict80                                                 []float64
	largest                                                      int
	questions                                                    int
	took, cpu time.Duration
}

func own(w *world, g *sg, s scheduling.Snapshot, c *deprovision.Command, nodes map[string]*eligibility.Node, at time.Time) []finding {
	var out []finding
	for _, n := range c.Nodes {
		e := nodes[n.Name]
		if e == nil {
			out = append(out, finding{"gives back what is no node of the start", n.Name})
			continue
		}
		if e.Pool == nil {
			out = append(out, finding{"not ours", n.Name})
			continue
		}
		for _, t := range e.Node.Spec.Taints {
			if t.Key == "karpenter.sh/disrupted" {
				out = append(out, finding{"leaving already", n.Name})
			}
		}
		voluntary := c.Method == eligibility.Emptiness || c.Method == eligibility.Consolidation || c.Method == eligibility.Drift
		if !voluntary {
			continue
		}
		if e.Node.Annotations["karpenter.sh/do-not-disrupt"] == "true" {
			out = append(out, finding{"do-not-disrupt node", n.Name})
		}
		if e.Node.Labels["karpenter.sh/initialized"] != "true" {
			out = append(out, finding{"uninitialized", n.Name})
		}
		if c.Method != eligibility.Drift {
			d := e.Pool.Disruption
			if d.ConsolidateAfter == nil {
				out = append(out, finding{"consolidateAfter Never", n.Name})
			} else if !e.Claim.LastPodEvent.IsZero() && at.Sub(e.Claim.LastPodEvent) < *d.ConsolidateAfter {
				out = append(out, finding{"consolidateAfter too early", n.Name})
			}
			if d.Policy == nodepool.WhenEmpty && c.Method == eligibility.Consolidation {
				out = append(out, finding{"WhenEmpty consolidated", n.Name})
			}
		}
		grace := e.Pool.TerminationGracePeriod != nil && c.Method == eligibility.Drift
		for _, p := range s.Pods {
			if p.Spec.NodeName != n.Name || p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded {
				continue
			}
			o := metav1.GetControllerOf(p)
			if o != nil && o.Kind == "DaemonSet" || p.Annotations[corev1.MirrorPodAnnotationKey] != "" {
				continue
			}
			if v := p.Annotations["karpenter.sh/do-not-disrupt"]; !grace && (v == "true" || v == "24h") {
				out = append(out, finding{"do-not-disrupt pod", p.Name + " on " + n.Name + " by " + string(c.Method)})
			}
			match := 0
			for _, b := range g.m.PodDisruptionBudgets {
				sel, _ := metav1.LabelSelectorAsSelector(b.Spec.Selector)
				if b.Namespace == p.Namespace && sel.Matches(labels.Set(p.Labels)) {
					match++
					ready := p.Status.Conditions[1].Status == corev1.ConditionTrue
					spared := !ready && (b.Spec.UnhealthyPodEvictionPolicy != nil || b.Status.CurrentHealthy >= b.Status.DesiredHealthy && b.Status.DesiredHealthy > 0)
					if !grace && !spared && b.Status.DisruptionsAllowed < 1 {
						out = append(out, finding{"pdb", b.Name + " " + p.Name + " by " + string(c.Method)})
					}
				}
			}
			if match > 1 && !grace {
				out = append(out, finding{"two pdbs", p.Name})
			}
		}
	}
	return out
}

func optionsFor(seed uint64) (*deprovision.Options, *plan.Objective) {
	r := rand.New(rand.NewPCG(seed, 99))
	o := &deprovision.Options{}
	switch r.IntN(5) {
	case 0:
		o.Objective = policy.AnySaving()
	case 1:
		o.Objective = policy.Balanced(1 + r.IntN(3))
	case 2:
		o.Objective = policy.Payback(deprovision.Dollars(0.05), 6*time.Hour)
	}
	o.SpotToSpot = r.IntN(2) == 0
	if r.IntN(2) == 0 {
		o.SpotFlexibility = 1 + r.IntN(5)
	}
	if r.IntN(6) == 0 {
		o.MaxEvictions = 1 + r.IntN(60)
	}
	if r.IntN(6) == 0 {
		o.MinSavings = deprovision.Dollars(0.05)
	}
	if r.IntN(6) == 0 {
		o.Ranker = policy.Lifetime{}
	}
	if r.IntN(8) == 0 {
		o.Rules.MinimumAge = 2 * time.Hour
	}
	var beyond *plan.Objective
	if r.IntN(3) == 0 {
		beyond = &plan.Objective{PerNode: 0.02 * float64(r.IntN(3)), Interruption: 0.3 * r.Float64()}
		if r.IntN(2) == 0 {
			set := requirements.FromLabels(map[string]string{"kubernetes.io/arch": "arm64"})
			beyond.Factors = []plan.Factor{{Match: set, Times: 0.5 + r.Float64()}}
		}
	}
	return o, beyond
}

func planOf(ctx context.Context, g *sg, s scheduling.Snapshot, o deprovision.Options, beyond *plan.Objective, ints []deprovision.Interruption) (deprovision.Result, deprovision.Cluster, error) {
	sim, nominated, err := simulate.NewFor(s, beyond)
	if err != nil {
		return deprovision.Result{}, deprovision.Cluster{}, err
	}
	o.Rules.Placeable = sim.Placeable
	c := simulate.Counted(simulate.Cluster(g.m, s, nominated, g.at), beyond)
	c.Interruptions = ints
	r, err := deprovision.Plan(ctx, c, sim, &o)
	return r, c, err
}

func line(r *deprovision.Result) string {
	out := ""
	for i := range r.Commands {
		c := &r.Commands[i]
		out += brief(c) + fmt.Sprint(c.SavingsPerHour)
		for _, p := range c.Placements {
			out += " " + p.Pod.Name + ">" + p.Node
		}
		out += "\n"
	}
	for _, v := range r.Verdicts {
		out += fmt.Sprint(v.Node, v.Outcome, v.Detail, "\n")
	}
	return out + fmt.Sprint(r.Frontier)
}

func strangerCheck(ctx context.Context, seed uint64, size int, open, plain bool, opt string) (out []finding, su sums) {
	bad := func(kind, f string, a ...any) {
		out = append(out, finding{kind, fmt.Sprintf("seed %d size %d: ", seed, size) + fmt.Sprintf(f, a...)})
	}
	defer func() {
		if x := recover(); x != nil {
			buf := make([]byte, 4000)
			bad("panic", "%v %s", x, buf[:runtime.Stack(buf, false)])
		}
	}()
	g, err := stranger(seed, size, open, plain)
	if err != nil {
		bad("draw", "%v", err)
		return out, su
	}
	w := &world{manifests: g.m, snapshot: g.s}
	w.scenario.PVs, w.scenario.PVCs, w.scenario.StorageClasses = g.m.PersistentVolumes, g.m.PersistentVolumeClaims, g.m.StorageClasses
	w.scenario.PriorityClasses = g.m.PriorityClasses
	var ints []deprovision.Interruption
	o, beyond := optionsFor(seed)
	if open {
		o, beyond = &deprovision.Options{}, nil
		if os.Getenv("ANYSAVING") != "" {
			o.Objective = policy.AnySaving()
		}
	} else if seed%5 == 0 {
		ints = append(ints, deprovision.Interruption{Node: g.nodes[0].Name, Deadline: g.at.Add(2 * time.Minute)}, deprovision.Interruption{Node: "nobody"})
	}
	start := time.Now()
	r, c, err := planOf(ctx, g, g.s, *o, beyond, ints)
	su.took = time.Since(start)
	if err != nil {
		bad("error", "%v", err)
		return out, su
	}
	su.clusters, su.commands, su.evictions, su.questions = 1, len(r.Commands), r.Evictions, r.Questions
	su.before, su.after = r.PricePerHour.Dollars(), r.PricePerHourAfter.Dollars()
	nodes := map[string]*eligibility.Node{}
	for i := range c.Nodes {
		nodes[c.Nodes[i].Name()] = &c.Nodes[i]
	}
	if err := once(&r); err != nil {
		bad("once", "%v", err)
	}
	if len(r.Verdicts) != len(c.Nodes) {
		bad("verdicts", "%d for %d", len(r.Verdicts), len(c.Nodes))
	}
	chosen := map[string]bool{}
	for i := range r.Commands {
		for _, n := range r.Commands[i].Nodes {
			chosen[n.Name] = true
		}
	}
	for _, v := range r.Verdicts {
		if (v.Outcome == deprovision.Chosen) != chosen[v.Node] {
			bad("verdict wrong", "%s %s %s", v.Node, v.Outcome, v.Detail)
		}
		if v.Detail == "" {
			bad("verdict without detail", "%s %s", v.Node, v.Outcome)
		}
	}
	// budgets
	type use struct{ nodes, out int }
	uses := map[string]*use{}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if n.Pool == nil {
			continue
		}
		u := uses[n.PoolName()]
		if u == nil {
			u = &use{}
			uses[n.PoolName()] = u
		}
		if n.Node.Labels["karpenter.sh/initialized"] != "true" {
			continue
		}
		u.nodes++
		leaving := n.Claim.Deleting
		for _, t := range n.Node.Spec.Taints {
			leaving = leaving || t.Key == "karpenter.sh/disrupted"
		}
		if leaving || n.Node.Status.Conditions[0].Status != corev1.ConditionTrue {
			u.out++
		}
	}
	horizon := 24 * time.Hour
	if o.Objective.Horizon > 0 {
		horizon = o.Objective.Horizon
	}
	unit := o.Objective.DisruptionPrice.Dollars()
	if o.Objective.DisruptionPrice == 0 {
		unit = 0.01
	}
	unit = max(0, unit)
	balanced := o.Objective.Balanced > 0
	for i := range c.Pools {
		balanced = balanced || c.Pools[i].Disruption.Policy == nodepool.Balanced
	}
	s := g.s
	total, evictions := deprovision.Price(0), 0
	net := 0.0
	for i := range r.Commands {
		cmd := &r.Commands[i]
		for _, f := range own(w, g, s, cmd, nodes, g.at) {
			bad("rule: "+f.kind, "command %d %s: %s", i, brief(cmd), f.text)
		}
		for _, n := range cmd.Nodes {
			u := uses[n.Pool]
			reason := nodepool.Underutilized
			switch {
			case cmd.Method == eligibility.Drift:
				reason = nodepool.Drifted
			case cmd.Method == eligibility.Emptiness || len(n.Pods) == 0:
				reason = nodepool.Empty
			}
			if cmd.Method != eligibility.Interruption && cmd.Method != eligibility.Expiration {
				for _, p := range c.Pools {
					if p.Name != n.Pool {
						continue
					}
					for _, b := range p.Disruption.Budgets {
						if !b.Counts(reason) {
							continue
						}
						active, _ := b.Active(g.at)
						allowed := b.Nodes
						if b.Percent {
							allowed = int(math.Ceil(float64(b.Nodes) * float64(u.nodes) / 100))
						}
						if active && u.out+1 > allowed {
							bad("budget", "command %d %s %s: %d gone of %d, allowed %d", i, brief(cmd), reason, u.out, u.nodes, allowed)
						}
					}
				}
			}
			u.out++
		}
		gone, bought := 0.0, 0.0
		goneCost, lived := 0.0, 0.0
		for _, n := range cmd.Nodes {
			gone += n.PricePerHour.Dollars()
			goneCost += n.CostPerHour.Dollars()
			lived += n.CostPerHour.Dollars() * min(horizon.Hours(), n.RemainingLife.Hours())
		}
		boughtCost := 0.0
		for _, n := range cmd.NewNodes {
			bought += n.PricePerHour.Dollars()
			cost := n.CostPerHour
			if cost == 0 {
				cost = n.PricePerHour
			}
			boughtCost += cost.Dollars()
		}
		if math.Abs(gone-bought-cmd.SavingsPerHour.Dollars()) > 1e-6 {
			bad("saving of command", "%d: %v %v", i, gone-bought, cmd.SavingsPerHour.Dollars())
		}
		dis := 0.0
		for _, n := range cmd.Nodes {
			dis += n.Disruption
		}
		if math.Abs(dis-cmd.Disruption) > 1e-6 {
			bad("disruption of command", "%d: %v %v", i, dis, cmd.Disruption)
		}
		if cmd.Method == eligibility.Consolidation {
			worth := -unit * cmd.Disruption
			if goneCost > 0 {
				worth += lived - boughtCost*lived/goneCost
			}
			net += worth
			if goneCost-boughtCost <= 0 {
				bad("consolidation saves nothing", "command %d %s: %v", i, brief(cmd), goneCost-boughtCost)
			}
			if worth <= 0 {
				bad("consolidation does not pay", "command %d of %d %s: worth %.4f, saves %.4f, disruption %.1f", i, len(r.Commands), brief(cmd), worth, goneCost-boughtCost, cmd.Disruption)
			}
			if o.MinSavings > 0 && cmd.SavingsPerHour < o.MinSavings {
				bad("below MinSavings", "command %d: %v", i, cmd.SavingsPerHour.Dollars())
			}
		}
		su.largest = max(su.largest, len(cmd.Nodes))
		if total+cmd.SavingsPerHour < 0 && -cmd.SavingsPerHour > deprovision.Dollars(gone) {
			bad("stops dear", "after command %d of %d %s: saves %.3f in all %.3f of %.3f at the end", i, len(r.Commands), brief(cmd), cmd.SavingsPerHour.Dollars(), (total+cmd.SavingsPerHour).Dollars(), (r.PricePerHour - r.PricePerHourAfter).Dollars())
		}
		total += cmd.SavingsPerHour
		evictions += len(cmd.Placements)
		judged := w.judge2
		if os.Getenv("LIGHT") != "" {
			judged = func(_ context.Context, s scheduling.Snapshot, c *deprovision.Command) (scheduling.Snapshot, error) {
				return simulate.Apply(s, c, g.at)
			}
		}
		if s, err = judged(ctx, s, cmd); err != nil {
			bad("kube-scheduler refuses", "command %d of %d %s: %v", i, len(r.Commands), brief(cmd), strings.ReplaceAll(err.Error(), "\n", " "))
			break
		}
	}
	_ = balanced
	if evictions != r.Evictions {
		bad("evictions", "%d %d", evictions, r.Evictions)
	}
	if o.MaxEvictions > 0 {
		moved := 0
		for i := range r.Commands {
			if r.Commands[i].Method == eligibility.Consolidation {
				moved += len(r.Commands[i].Placements)
			}
		}
		if moved > o.MaxEvictions {
			bad("MaxEvictions", "%d > %d", moved, o.MaxEvictions)
		}
	}
	if d := r.PricePerHour - r.PricePerHourAfter - total; d != 0 {
		bad("total price", "differs by %v", d.Dollars())
	}
	for i, p := range r.Frontier {
		if i > 0 && (p.Evictions <= r.Frontier[i-1].Evictions || p.SavingsPerHour <= r.Frontier[i-1].SavingsPerHour) {
			bad("frontier not monotone", "%+v", r.Frontier)
		}
	}
	if len(r.Commands) > 0 && total > 0 {
		at := slices.IndexFunc(r.Frontier, func(p deprovision.Point) bool { return p.SavingsPerHour == total && p.Evictions == r.Evictions })
		if at < 0 {
			beaten := slices.ContainsFunc(r.Frontier, func(p deprovision.Point) bool { return p.SavingsPerHour >= total && p.Evictions <= r.Evictions })
			bad(fmt.Sprintf("answer is not on its frontier (beaten %v)", beaten), "%v %d of %+v", total.Dollars(), r.Evictions, r.Frontier)
		}
		for _, p := range r.Frontier {
			if p.SavingsPerHour >= total.Times(0.8) {
				su.f80 = append(su.f80, float64(p.Evictions)/float64(max(1, r.Evictions)))
				break
			}
		}
		sum, ev := deprovision.Price(0), 0
		for i := range r.Commands {
			sum += r.Commands[i].SavingsPerHour
			ev += len(r.Commands[i].Placements)
			if sum >= total.Times(0.8) {
				su.evict80 = append(su.evict80, float64(ev)/float64(max(1, r.Evictions)))
				break
			}
		}
	}
	// quiet
	su.plans = 1
	var gone []deprovision.Interruption
	if again, _, err := planOf(ctx, g, s, *o, beyond, gone); err != nil {
		bad("error again", "%v", err)
	} else if len(again.Commands) > 0 && o.MaxEvictions == 0 {
		// budgets come free when planned again: count only pools without budgets
		full := true
		for i := range c.Pools {
			for _, b := range c.Pools[i].Disruption.Budgets {
				full = full && b.Percent && b.Nodes == 100
			}
		}
		if full {
			su.quietAgain++
			if x := fresh(&r, &again); x != nil {
				su.quietFail++
				bad("not quiet: fresh command", "%s saves %.4f (%s)", brief(x), x.SavingsPerHour.Dollars(), x.Why)
			} else {
				bad("would go on by a second move", "%d commands, first %s saves %.4f", len(again.Commands), brief(&again.Commands[0]), again.Commands[0].SavingsPerHour.Dollars())
			}
		}
	}
	if os.Getenv("LIGHT") != "" {
		return out, su
	}
	// order
	sh := g.s
	rr := rand.New(rand.NewPCG(seed, 3))
	sh.Nodes, sh.Pods, sh.NodeClaims = slices.Clone(sh.Nodes), slices.Clone(sh.Pods), slices.Clone(sh.NodeClaims)
	rr.Shuffle(len(sh.Nodes), func(i, j int) { sh.Nodes[i], sh.Nodes[j] = sh.Nodes[j], sh.Nodes[i] })
	rr.Shuffle(len(sh.Pods), func(i, j int) { sh.Pods[i], sh.Pods[j] = sh.Pods[j], sh.Pods[i] })
	if other, _, err := planOf(ctx, g, sh, *o, beyond, ints); err != nil {
		bad("error shuffled", "%v", err)
	} else if line(&other) != line(&r) {
		a, b := strings.Split(line(&r), "\n"), strings.Split(line(&other), "\n")
		for i := range a {
			if i >= len(b) || a[i] != b[i] {
				bad("depends on the order of input: "+strconv.FormatBool(strings.Contains(a[i], "blocked")), "line %d:\n%s\n%s", i, a[i], b[min(i, len(b)-1)])
				break
			}
		}
	}
	// rank
	first := deprovision.Rank(c, o)
	cs := c
	cs.Nodes = slices.Clone(c.Nodes)
	rr.Shuffle(len(cs.Nodes), func(i, j int) { cs.Nodes[i], cs.Nodes[j] = cs.Nodes[j], cs.Nodes[i] })
	second := deprovision.Rank(cs, o)
	for i := range first {
		if first[i].Name != second[i].Name || first[i].Disruption != second[i].Disruption {
			bad("rank depends on order", "%d", i)
			break
		}
		x := first[i]
		p := x.Parts
		if math.Abs(p.Node+p.Pods+p.Priorities+p.DeletionCosts+p.Bounds-x.Disruption) > 1e-9 {
			bad("rank parts", "%+v %v", p, x.Disruption)
		}
		if len(x.Blockers) > 0 && x.MostSavings != 0 {
			bad("blocked with savings", "%s", x.Name)
		}
		for _, b := range x.Blockers {
			if b.Text == "" {
				bad("blocker without text", "%s", x.Name)
			}
		}
	}
	if open {
		sc := g.s
		sc.Nodes, sc.Pods, sc.NodeClaims = nil, nil, nil
		for _, p := range g.s.Pods {
			if o := metav1.GetControllerOf(p); o != nil && o.Kind == "DaemonSet" {
				continue
			}
			x := *p
			x.Spec.NodeName, x.Status = "", corev1.PodStatus{}
			sc.Pods = append(sc.Pods, &x)
		}
		packed, err := plan.Make(ctx, sc, &plan.Options{Packing: &binpack.Options{Strategy: binpack.CostAware{}}})
		if err != nil || len(packed.Unplaced()) > 0 {
			bad("scratch", "%v %d", err, len(packed.Unplaced()))
			return out, su
		}
		su.scratch, su.nodesScratch, su.nodesAfter = packed.Packing.Cost.Dollars(), len(packed.NewNodes()), len(s.Nodes)
		su.worst = su.after/su.scratch - 1
		if os.Getenv("DEBUGPACK") != "" {
			kinds := map[string][2]int{}
			for _, n := range s.Nodes {
				k := n.Labels["node.kubernetes.io/instance-type"]+" "+n.Labels["karpenter.sh/nodepool"]+ " "+n.Labels["topology.kubernetes.io/zone"]
				x := kinds[k]
				x[0]++
				kinds[k] = x
			}
			for _, n := range packed.NewNodes() {
				k := n.InstanceType.Name + " " + n.Pool.Name + " " + n.Zone
				x := kinds[k]
				x[1]++
				kinds[k] = x
			}
			var list []string
			for k, x := range kinds {
				list = append(list, fmt.Sprintf("%s ours %d scratch %d", k, x[0], x[1]))
			}
			slices.Sort(list)
			fmt.Println(strings.Join(list, "\n"))
			for _, ef := range []int{0, 1} {
				pk := &binpack.Options{Strategy: binpack.CostAware{Effort: binpack.EffortFast}}
				if ef == 1 {
					pk = &binpack.Options{Strategy: binpack.CostAware{}}
				}
				x, err := plan.Make(ctx, sc, &plan.Options{Packing: pk})
				fmt.Println("effort", ef, x.Packing.Cost.Dollars(), err)
			}
			sim, _, _ := simulate.New(s)
			cc := simulate.Cluster(g.m, s, nil, g.at)
			var q deprovision.Question
			for i := range cc.Nodes {
				n := &cc.Nodes[i]
				if n.Pool != nil {
					q.Remove = append(q.Remove, n.Name())
					q.Pods = append(q.Pods, n.Reschedulable()...)
				}
			}
			q.MaxNodes = len(q.Pods)
			for _, mc := range []float64{0, su.after} {
				q.MaxCost = deprovision.Dollars(mc)
				a, err := sim.Simulate(ctx, q)
				sum := 0.0
				for _, n := range a.NewNodes {
					sum += n.PricePerHour.Dollars()
				}
				fmt.Println("all at once:", sum, len(a.NewNodes), len(a.Left), err, "pods", len(q.Pods), "bound", sim.Bound(q).Dollars())
			}
		}
		if su.worst > 0.02 {
			bad("dearer than scratch", "%.2f%%: $%.3f against $%.3f, was $%.3f, %d nodes against %d", 100*su.worst, su.after, su.scratch, su.before, su.nodesAfter, su.nodesScratch)
		}
		if su.nodesAfter > 2*su.nodesScratch {
			bad("more than twice the nodes", "%d against %d", su.nodesAfter, su.nodesScratch)
		}
	}
	if opt == "v" {
		fmt.Println(line(&r))
	}
	return out, su
}

// judge carries out a command and has the pods bound in its order. It returns the snapshot afterwards.
func (w *world) judge2(ctx context.Context, s scheduling.Snapshot, c *deprovision.Command) (scheduling.Snapshot, error) {
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
		if _, moves := to[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}]; gone[p.Spec.NodeName] && !moves && p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodSucceeded && !eviction.Daemon(p) && !eviction.Mirror(p) {
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
		if slices.ContainsFunc(c.NewNodes, func(x deprovision.NewNode) bool { return x.Name == n.Name }) {
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
		if p.Spec.NodeName == "" {
			continue
		}
		running = append(running, p)
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


// STRANGER=from:count:minsize:maxsize:open:plain
func TestStranger(t *testing.T) {
	text := os.Getenv("STRANGER")
	if text == "" {
		t.Skip()
	}
	f := strings.Split(text, ":")
	num := func(i int) int { n, _ := strconv.Atoi(f[i]); return n }
	from, count, lo, hi, open, plain := num(0), num(1), num(2), num(3), f[4] == "1", f[5] == "1"
	var mu sync.Mutex
	kinds := map[string][]string{}
	var all sums
	var next atomic.Int64
	var wg sync.WaitGroup
	var rows []string
	for range 2 {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(count); i = next.Add(1) - 1 {
				seed := uint64(from) + uint64(i)
				size := lo + rand.New(rand.NewPCG(seed, 1)).IntN(hi-lo+1)
				found, su := strangerCheck(t.Context(), seed, size, open, plain, os.Getenv("STRANGERV"))
				mu.Lock()
				for _, x := range found {
					kinds[x.kind] = append(kinds[x.kind], x.text)
				}
				all.clusters += su.clusters
				all.commands += su.commands
				all.evictions += su.evictions
				all.plans += su.plans
				all.quietAgain += su.quietAgain
				all.quietFail += su.quietFail
				all.before += su.before
				all.after += su.after
				all.scratch += su.scratch
				all.nodesAfter += su.nodesAfter
				all.nodesScratch += su.nodesScratch
				all.worst = max(all.worst, su.worst)
				all.largest = max(all.largest, su.largest)
				all.questions += su.questions
				all.f80 = append(all.f80, su.f80...)
				all.evict80 = append(all.evict80, su.evict80...)
				all.cpu += su.took
				rows = append(rows, fmt.Sprintf("%d %d %d %.4f %.4f %d %v", seed, size, su.commands, su.before, su.after, su.evictions, su.took.Round(time.Millisecond)))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if os.Getenv("STRANGERROWS") != "" {
		slices.Sort(rows)
		os.WriteFile(os.Getenv("STRANGERROWS"), []byte(strings.Join(rows, "\n")), 0o644)
	}
	var names []string
	for k := range kinds {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		slices.Sort(kinds[k])
		t.Logf("== %s: %d", k, len(kinds[k]))
		for _, x := range kinds[k][:min(4, len(kinds[k]))] {
			if len(x) > 700 {
				x = x[:700]
			}
			t.Logf("     %s", x)
		}
	}
	mean := 0.0
	for _, x := range all.f80 {
		mean += x / float64(len(all.f80))
	}
	mean2 := 0.0
	for _, x := range all.evict80 {
		mean2 += x / float64(len(all.evict80))
	}
	t.Logf("prefix at 80%%: mean %.3f max %.3f; planning took %v", mean2, slices.Max(append(all.evict80, 0)), all.cpu.Round(time.Millisecond))
	t.Logf("%d clusters, %d commands, %d evictions, %d questions; price %.3f -> %.3f (%.2f%%), scratch %.3f; nodes %d scratch %d; worst %.2f%%; largest %d; 80%% at mean %.3f max %.3f; goes on %d of %d, fresh %d", all.clusters, all.commands, all.evictions, all.questions, all.before, all.after, 100*(1-all.after/all.before), all.scratch, all.nodesAfter, all.nodesScratch, 100*all.worst, all.largest, mean, slices.Max(append(all.f80, 0)), all.quietAgain, all.plans, all.quietFail)
}
