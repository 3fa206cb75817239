// Command gate is a check for CI. It says how a change of manifests changes the price of the nodes
// that they need, and fails if the change costs too much:
//
//	go run ./examples/gate -before main/deploy -after deploy -max-dearer 50
//
// Both folders are planned with the same prices, each as a cluster of its own. So the answer is
// about manifests, not about what runs today. It is meant to be copied. The exit codes are
//
//	0  the change may pass
//	2  something can't be read
//	3  pods that are new or had a place before have none, or a rule is broken
//	4  a month would cost more than the limit allows
//
// A pod that is not planned, such as one of another scheduler or with a scheduling gate, is named
// with the reason. If it had a place before, it has lost it, and the change may not pass (3). If it
// is new, or was not planned before either, it stops nothing.
//
// -assert names a file of rules that the plan of the new manifests must keep. Package ruletest
// describes such rules. Three rules have flags:
//
//	-survives zone,node    if any one zone or node is lost, all pods must have places at once;
//	                       with -may-wait they may wait for new nodes
//	-max-rule-cost 200     no requirement, spread, PodDisruptionBudget or other rule may cost more
//	                       dollars a month
//	-max-above-bound 20    a recorded day may have cost at most this many percent more than the
//	                       bound for policies that know only the present
//
// The day comes from -log, an audit log as replay --record writes one, or from -snapshots, a folder
// of files that kubectl get -o yaml wrote. Its pools are those of the new manifests.
//
// With -check, the plan of the new manifests must also convince a program that does not trust the
// planner, such as examples/check. The program gets the plan with its proof on stdin. If it exits
// with anything but 0, the change may not pass (3).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/deprovision/policy"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/history"
	"github.com/joinery-sdk/joinery/examples/pipeline/history/recording"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/regret"
	"github.com/joinery-sdk/joinery/examples/pipeline/ruletest"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/proof"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

const hours = 730.0 // of a month

const exitCodes = `Exit codes: 0 the change may pass, 1 failed, 2 bad usage or input, 3 a pod that is new or had a place has none,
or a rule is broken, 4 a month would cost more than the limit allows. A pod that had a place and is not planned any more,
such as one with another schedulerName, has none (3). Other pods that are not planned are named, and stop nothing.`

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

func run(ctx context.Context, args []string, out, problems io.Writer) int {
	flags := flag.NewFlagSet("gate", flag.ContinueOnError)
	before := flags.String("before", "", "folder or file of the current manifests, with pools")
	after := flags.String("after", "", "folder or file of the changed manifests")
	region := flags.String("region", "", "region whose prices count; by default the region of the manifests")
	limit := flags.Float64("max-dearer", 0, "how many more dollars a month the change may cost")
	checker := flags.String("check", "", "a program that must confirm the plan of -after, read from stdin, such as a build of examples/check")
	file := flags.String("assert", "", "a file of rules that the plan of -after must keep")
	var demands demands
	flags.StringVar(&demands.losses, "survives", "", "losses that the plan of -after must survive, one at a time: zone, spot-pool, reservation, node, instance-family (one or more, separated by commas)")
	flags.BoolVar(&demands.mayWait, "may-wait", false, "with -survives, pods may wait for nodes that are bought after the loss")
	flags.Float64Var(&demands.ruleCost, "max-rule-cost", -1, "how many dollars a month a rule of the cluster may cost")
	flags.Float64Var(&demands.aboveBound, "max-above-bound", -1, "by how many percent the recorded past may have cost more than its lower bound")
	var past past
	flags.StringVar(&past.snapshots, "snapshots", "", "the recorded past, as a folder of snapshots")
	flags.Func("log", "the recorded past, as a file with an audit log, a log of Karpenter or a recording of kwokctl (repeatable)", func(name string) error {
		past.logs = append(past.logs, name)
		return nil
	})
	if code, done := inputs.ParseFlagsExplained(flags, exitCodes, args, out, problems); done {
		return code
	}
	if err := errors.Join(named(*before, *after), demands.check(flags, *limit, past)); err != nil {
		fmt.Fprintln(problems, err)
		return inputs.ExitInput
	}
	rules, err := demands.rules(*file)
	if isPast := past.snapshots != "" || len(past.logs) > 0; isPast && err == nil && !slices.ContainsFunc(rules, func(r ruletest.Rule) bool { return r.Regret != nil }) {
		err = errors.New("-snapshots and -log: want -max-above-bound, or -assert with a rule about regret, too")
	}
	if err != nil {
		fmt.Fprintln(problems, err)
		return inputs.ExitInput
	}
	old, err := read(ctx, *region, *before)
	if err != nil {
		fmt.Fprintln(problems, err)
		return inputs.ExitInput
	}
	young, err := read(ctx, *region, *after)
	if err != nil {
		fmt.Fprintln(problems, err)
		return inputs.ExitInput
	}
	d := plan.Diff(old.plan, young.plan)
	dearer := (d.After.PricePerHour - d.Before.PricePerHour) * hours
	fmt.Fprintf(out, "$%.2f -> $%.2f a month: %s, the limit is %s\n", d.Before.PricePerHour*hours, d.After.PricePerHour*hours, beside(dearer, *limit), beside(*limit, dearer))
	for _, w := range d.Workloads {
		fmt.Fprintf(out, "  %-40s $%9.2f -> $%9.2f\n", w.Workload, w.Before*hours, w.After*hours)
	}
	young.unplaced(old, d.Lost).write(out)
	day, err := past.report(ctx, young)
	if err != nil {
		fmt.Fprintln(problems, err)
		return inputs.ExitInput
	}
	kept := true
	for _, r := range ruletest.NewPlan(young.plan, nil).Guarded(simulate.ObjectsOf(young.manifests), time.Now()).Recorded(day).Check(rules...) {
		kept = kept && r.Holds()
		fmt.Fprintln(out, r)
	}
	if *checker != "" {
		if err := proof.Confirm(ctx, *checker, young.plan, out); err != nil {
			fmt.Fprintf(problems, "gate: %v\n", err)
			return inputs.ExitNotAll
		}
	}
	switch {
	case len(d.Lost) > 0 || !kept:
		return inputs.ExitNotAll
	case dearer > *limit:
		return inputs.ExitDearer
	}
	return inputs.ExitOK
}

// cluster is a folder with its plan.
type cluster struct {
	manifests *manifests.Snapshot
	market    *pipeline.Market
	plan      *plan.Plan
}

// read reads a folder and plans it with what its region offers its pools.
func read(ctx context.Context, region, folder string) (*cluster, error) {
	flags := inputs.Flags{Files: []string{folder}, Region: region}
	found, err := flags.Manifests("", nil)
	if err != nil {
		return nil, err
	}
	market, err := flags.Market(found)
	if err != nil {
		return nil, err
	}
	snapshot, _, err := pipeline.Snapshot(found, market)
	if err != nil {
		return nil, err
	}
	snapshot, _ = pipeline.Static(snapshot)
	p, err := plan.Make(ctx, snapshot, &plan.Options{Groups: pipeline.Groups(found, snapshot.Pods)})
	return &cluster{found, market, p}, err
}

// line says what became of pods of a workload, and why.
type line struct {
	text, workload, why string
}

// lines counts the pods of each line. order is that of the first pods.
type lines struct {
	order []line
	pods  map[line]int
}

func (l *lines) add(one line) {
	if l.pods[one] == 0 {
		l.order = append(l.order, one)
	}
	l.pods[one]++
}

func (l *lines) write(out io.Writer) {
	for _, one := range l.order {
		fmt.Fprintf(out, "  "+one.text, terminal.Plural(l.pods[one], "pod"), one.workload, one.why)
	}
}

// unplaced names the workloads of the pods that have no place or are not planned, and why. lost are
// the pods that have lost their place, sorted.
func (c *cluster) unplaced(old *cluster, lost []string) *lines {
	out := &lines{pods: map[line]int{}}
	for _, u := range c.plan.Unplaced() {
		why := c.refusal(u, old)
		for _, pod := range u.Pods {
			out.add(line{"no place for %s of %s: %s\n", plan.WorkloadOf(pod), why})
		}
	}
	for _, i := range c.plan.Ignored() {
		if i.Node != "" {
			continue // the node keeps room for it
		}
		l := line{"not ours to place: %s of %s: %s\n", plan.WorkloadOf(i.Pod), i.Why}
		if _, had := slices.BinarySearch(lost, i.Pod.Namespace+"/"+i.Pod.Name); had {
			l.text = "no place any more for %s of %s, not planned because: %s\n"
		}
		out.add(l)
	}
	return out
}

// refusal says why the pods have no place. Of several reasons, those of the pools that had the pods
// before the change tell what has changed.
func (c *cluster) refusal(u scheduling.Unplaced, old *cluster) string {
	reasons, had := u.Reasons(), old.poolsOf(plan.WorkloadOf(u.Pods[0]))
	if changed := slices.DeleteFunc(slices.Clone(reasons), func(r scheduling.Reason) bool { return !had[r.Pool] }); len(changed) > 0 {
		reasons = changed
	}
	return c.market.Refusal(c.plan.Problem.Classes[u.Class], reasons)
}

// poolsOf returns the pools on whose nodes the workload's pods run once the plan has been carried
// out.
func (c *cluster) poolsOf(workload string) map[string]bool {
	s := c.plan.CarriedOut()
	pools, out := map[string]string{}, map[string]bool{}
	for _, n := range s.Nodes {
		pools[n.Name] = n.Labels[nodepool.LabelKey]
	}
	for _, p := range s.Pods {
		if pool := pools[p.Spec.NodeName]; pool != "" && plan.WorkloadOf(p) == workload {
			out[pool] = true
		}
	}
	return out
}

// beside returns an amount in cents, or with as many decimals as show how it compares with another.
func beside(amount, other float64) string {
	for digits := 2; ; digits++ {
		a, b := fmt.Sprintf("%+.*f", digits, amount), fmt.Sprintf("%+.*f", digits, other)
		if a != b || amount == other || digits == 9 {
			return a
		}
	}
}

// named reports which of the two flags that every run needs is missing.
func named(before, after string) error {
	var errs []error
	if before == "" {
		errs = append(errs, errors.New("-before: want the current manifests, a folder or a file"))
	}
	if after == "" {
		errs = append(errs, errors.New("-after: want the changed manifests, a folder or a file"))
	}
	return errors.Join(errs...)
}

// demands are the rules that have flags; if ruleCost or aboveBound is below 0, nothing is asked.
type demands struct {
	losses               string
	mayWait              bool
	ruleCost, aboveBound float64
}

// check reports everything wrong with the flags themselves.
func (d *demands) check(flags *flag.FlagSet, limit float64, past past) error {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var errs []error
	for _, f := range []struct {
		name, want string
		value      float64
	}{
		{"max-dearer", "dollars a month", limit}, {"max-rule-cost", "dollars a month", d.ruleCost}, {"max-above-bound", "percent", d.aboveBound},
	} {
		if given[f.name] && (!(f.value >= 0) || math.IsInf(f.value, 0)) {
			errs = append(errs, fmt.Errorf("-%s %v: want %s, 0 or more", f.name, f.value, f.want))
		}
	}
	if d.mayWait && d.losses == "" {
		errs = append(errs, errors.New("-may-wait: want -survives, too: it says what the pods may wait after"))
	}
	if past.snapshots != "" && len(past.logs) > 0 {
		errs = append(errs, errors.New("-snapshots and -log exclude each other"))
	}
	return errors.Join(errs...)
}

// rules are those of the file and of the flags.
func (d *demands) rules(file string) ([]ruletest.Rule, error) {
	var out []ruletest.Rule
	if file != "" {
		var err error
		if out, err = ruletest.ReadFile(file); err != nil {
			return nil, err
		}
	}
	if d.losses != "" {
		out = append(out, ruletest.Rule{Survives: d.losses, MayWait: d.mayWait})
	}
	if d.ruleCost >= 0 {
		out = append(out, ruletest.Rule{RulesCost: &ruletest.RulesCost{AtMostPerMonth: d.ruleCost}})
	}
	if d.aboveBound >= 0 {
		out = append(out, ruletest.Rule{Regret: &ruletest.Regret{AboveBound: &d.aboveBound}})
	}
	var errs []error
	for _, r := range out {
		errs = append(errs, r.Validate())
	}
	return out, errors.Join(errs...)
}

// past names what was recorded of a cluster.
type past struct {
	snapshots string
	logs      []string
}

// report reckons what the recorded time cost and had to; nil if none is named. Logs without pools
// are of the pools of the new manifests.
func (p *past) report(ctx context.Context, young *cluster) (*regret.Report, error) {
	var h *history.History
	var err error
	switch {
	case p.snapshots != "":
		h, err = history.ReadFolder(p.snapshots, pipeline.ReadOptions())
	case len(p.logs) > 0:
		logs, objects, closed, err := recording.Open(p.logs, time.Time{})
		defer closed()
		if err != nil {
			return nil, err
		}
		first, err := manifests.Parse(objects, pipeline.ReadOptions())
		if err != nil {
			return nil, err
		}
		if len(first.NodePools) == 0 { // what was recorded, and the pools of today
			pools := *young.manifests
			pools.Pods, pools.Nodes, pools.NodeClaims = first.Pods, first.Nodes, first.NodeClaims
			first = &pools
		}
		if h, err = history.ReadLogs(first, logs, nil); err != nil {
			return nil, err
		}
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	sale, err := h.Sale(young.market)
	if err != nil {
		return nil, err
	}
	return regret.Audit(ctx, h, sale, &regret.Options{Deprovision: &giveback.Options{Objective: policy.AnySaving()}})
}
