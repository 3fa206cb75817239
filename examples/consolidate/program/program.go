// Package program is the program consolidate as a command, so that others can have it as one of
// their own.
package program

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/deprovision/policy"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/protection"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/gang"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

//go:embed sample.yaml
var sample string

// sampleTime is the moment at which the sample is: some days after its nodes were made, and before
// they expire.
func sampleTime() time.Time { return time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC) }

type options struct {
	inputs.Flags
	methods     []string
	policy      string
	evictions   int
	minSavings  float64
	minAge      time.Duration
	now         string
	spotToSpot  bool
	zoneBudgets []string
	driftByZone bool
	leaveZones  bool
	first       bool
	interrupted []string
	rank        bool
	rulesCost   bool
	beyond      inputs.Objective
}

func methods() []string {
	return []string{string(eligibility.Interruption), string(eligibility.Emptiness), string(eligibility.Expiration), string(eligibility.Unhealthy), string(eligibility.Drift), string(eligibility.Consolidation)}
}

func policies() []string { return []string{"karpenter", "balanced", "default", "payback"} }

// Command is the program consolidate. The argument "-" means stdin. Output goes to the writers of
// the cobra command.
func Command(stdin io.Reader) *cobra.Command {
	var o options
	cmd := inputs.Command(&cobra.Command{
		Use:   "consolidate [-f FILE]...",
		Short: "plan which nodes to give back, with savings and reasons",
		Long: `Consolidate reads Kubernetes and Karpenter manifests of a running cluster and plans which nodes to give back: empty ones,
expired ones, those that have drifted, and those whose pods fit elsewhere or on cheaper nodes. Commands are in the order
in which they are to be carried out; every node has a verdict that says why it goes or stays.
An object that is invalid by itself stops everything (exit code 2); all mistakes are listed, with file and line. A pod
that contradicts a LimitRange or its RuntimeClass only has no place.

Exit codes: 0 planned, 1 failed, 2 bad usage or input.`,
		Example: `  consolidate                                   # the built-in sample
  consolidate -f cluster/ -o wide               # with every pod's new place
  kubectl get -A -o yaml \
    pods,nodes,daemonsets,pdb,pvc,pv,sc,csinodes,nodepools,nodeclaims,ec2nodeclasses |
    consolidate -f -
  consolidate -f cluster/ --policy balanced     # only what is worth its disruption
  consolidate -f cluster/ --rank                # what emptying each node would cost
  consolidate -f cluster/ --rules-cost          # what PodDisruptionBudgets and do-not-disrupt cost
  consolidate -f cluster/ --max-evictions 50    # what 50 evictions can save
  consolidate -f cluster/ --per-node 0.02       # keep what provision --per-node bought
  consolidate -f cluster/ --interrupted ip-10-0-0-7=2026-01-15T12:02:00Z`,
	}, func(cmd *cobra.Command, out io.Writer) error { return o.run(cmd, out, stdin) })
	o.Pictures = true
	o.Register(cmd.Flags())
	f := cmd.Flags()
	f.StringArrayVar(&o.methods, "method", nil, "only this method: "+strings.Join(methods(), ", ")+" (repeatable); unhealthy, which replaces nodes that have been broken for half an hour, is off unless named, as in Karpenter")
	f.StringVar(&o.policy, "policy", "karpenter", "objective: karpenter (any saving, unless a pool asks for Balanced), balanced, or default (more than a cent for each eviction, within the time since a pod last came or left, two hours to a day; payback is the same)")
	f.String("search", "", "")
	if err := f.MarkDeprecated("search", "there is only one search; examples/judges/deprovision runs Karpenter's own"); err != nil {
		panic(err) // the flag is there
	}
	f.IntVar(&o.evictions, "max-evictions", 0, "how many pods consolidation may move; 0 for any number")
	f.Float64Var(&o.minSavings, "min-savings", 0, "the minimum that a consolidation must save, in dollars an hour")
	f.DurationVar(&o.minAge, "min-age", 0, "how old a node must be to be given back, such as 1h; interruption and expiration do not wait for that")
	f.StringVar(&o.now, "now", "", "the moment to plan for, such as 2026-01-15T12:00:00Z; by default the current time, or the sample's own time")
	f.BoolVar(&o.spotToSpot, "spot-to-spot", false, "let cheaper spot nodes replace spot nodes")
	f.StringArrayVar(&o.zoneBudgets, "zone-budget", nil, "how many nodes of each zone may leave at once, whatever their pools, such as 2 or 10% (repeatable; the smallest counts)")
	f.BoolVar(&o.leaveZones, "leave-zones", false, "allow a zone to be left without nodes; hard spreads then do not count that zone")
	f.BoolVar(&o.driftByZone, "drift-by-zone", false, "replace drifted nodes in one zone at a time")
	f.BoolVar(&o.first, "terminate-first", false, "if no replacement can be bought before a drifted node goes (a full reservation, a limit that is reached), remove the node first; its pods wait for the replacement")
	f.StringArrayVar(&o.interrupted, "interrupted", nil, "NODE[=TIME]: the cloud takes this node back, at that time (repeatable)")
	f.BoolVar(&o.rank, "rank", false, "only rank: what each node costs, what emptying it costs, and what blocks it; nothing is simulated")
	f.BoolVar(&o.rulesCost, "rules-cost", false, "say what PodDisruptionBudgets and do-not-disrupt annotations cost a month, verified by planning without each")
	o.beyond.Register(f)
	inputs.Complete(cmd, "output", o.Formats()...)
	inputs.Complete(cmd, "method", methods()...)
	inputs.Complete(cmd, "policy", policies()...)
	return cmd
}

// combinations says which flags go together.
func combinations() []inputs.Combination {
	return []inputs.Combination{
		{
			Flag: "rank", Does: "only ranks nodes", Outputs: []string{"json", "yaml"},
			Without: []string{"method", "max-evictions", "min-savings", "spot-to-spot", "zone-budget", "drift-by-zone", "leave-zones", "terminate-first", "interrupted", "rules-cost"},
		},
		{Flag: "rules-cost", Does: "prints a table of rules", Outputs: []string{"json", "yaml", "html"}},
		{Flag: "pods", Does: "is about objects of files", With: []string{"filename"}},
	}
}

// needsMethod returns an error for each flag that no method named by --method heeds. Without
// --method all are used but unhealthy.
func (o *options) needsMethod() (errs []error) {
	for _, f := range []struct {
		flag string
		set  bool
		of   []eligibility.Method
	}{
		{"max-evictions", o.evictions > 0, []eligibility.Method{eligibility.Consolidation}},
		{"min-savings", o.minSavings > 0, []eligibility.Method{eligibility.Consolidation}},
		{"spot-to-spot", o.spotToSpot, []eligibility.Method{eligibility.Consolidation}},
		{"drift-by-zone", o.driftByZone, []eligibility.Method{eligibility.Drift}},
		{"terminate-first", o.first, []eligibility.Method{eligibility.Drift, eligibility.Unhealthy}},
	} {
		if f.set && len(o.methods) > 0 && !slices.ContainsFunc(f.of, func(m eligibility.Method) bool { return slices.Contains(o.methods, string(m)) }) {
			errs = append(errs, fmt.Errorf("--%s is for --method %s: add it, or leave out --%[1]s", f.flag, f.of[0]))
		}
	}
	return errs
}

// settings are the flags as package deprovision takes them. All that is wrong with them is said at
// once.
func (o *options) settings() (giveback.Options, *plan.Objective, []deprovision.Interruption, time.Time, error) {
	var out giveback.Options
	errs := []error{inputs.OneOf("policy", o.policy, policies()...)}
	for _, m := range o.methods {
		errs = append(errs, inputs.OneOf("method", m, methods()...))
		out.Methods = append(out.Methods, eligibility.Method(m))
	}
	if !(o.minSavings >= 0) || o.minSavings > 1e6 {
		errs = append(errs, fmt.Errorf("--min-savings %v: want dollars an hour, at least 0", o.minSavings))
	}
	if o.evictions < 0 {
		errs = append(errs, fmt.Errorf("--max-evictions %d: want a number of pods, at least 0", o.evictions))
	}
	if o.minAge < 0 {
		errs = append(errs, fmt.Errorf("--min-age %v: want a duration such as 1h, at least 0", o.minAge))
	}
	for _, text := range o.zoneBudgets {
		b, err := nodepool.ParseBudget(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--zone-budget %w", err))
		}
		out.ZoneBudgets = append(out.ZoneBudgets, b)
	}
	errs = append(errs, o.needsMethod()...)
	now := time.Now()
	if len(o.Files) == 0 {
		now = sampleTime()
	}
	if o.now != "" {
		var err error
		if now, err = time.Parse(time.RFC3339, o.now); err != nil {
			errs = append(errs, fmt.Errorf("--now %q: want a time such as 2026-01-15T12:00:00Z", o.now))
		}
	}
	var list []deprovision.Interruption
	for _, text := range o.interrupted {
		node, at, timed := strings.Cut(text, "=")
		i := deprovision.Interruption{Node: node}
		if timed {
			var err error
			if i.Deadline, err = time.Parse(time.RFC3339, at); err != nil {
				errs = append(errs, fmt.Errorf("--interrupted %q: want NODE=TIME with a time such as 2026-01-15T12:00:00Z", text))
			}
		}
		list = append(list, i)
	}
	beyond, err := o.beyond.Parse()
	errs = append(errs, err)
	switch o.policy {
	case "karpenter":
		out.Objective = policy.AnySaving()
	case "balanced":
		out.Objective = policy.Balanced(2)
	}
	out.Rules.MinimumAge = o.minAge
	out.DriftByZone = o.driftByZone
	if o.first {
		out.TerminateFirst = []eligibility.Method{eligibility.Unhealthy, eligibility.Drift}
	}
	out.MaxEvictions, out.MinSavings, out.SpotToSpot = o.evictions, deprovision.Dollars(o.minSavings), o.spotToSpot
	if err := errors.Join(errs...); err != nil {
		return out, nil, nil, now, inputs.Bad(err)
	}
	return out, beyond, list, now, nil
}

func (o *options) run(cmd *cobra.Command, out io.Writer, stdin io.Reader) error {
	if err := o.Check(); err != nil {
		return err
	}
	if err := inputs.Combined(cmd.Flags(), combinations()...); err != nil {
		return err
	}
	if err := o.CheckStdin(stdin); err != nil {
		return err
	}
	settings, beyond, interrupted, now, err := o.settings()
	if err != nil {
		return err
	}
	if o.rank {
		return o.ranking(cmd, out, stdin, settings, beyond, now)
	}
	done := terminal.Progress(cmd.ErrOrStderr(), "planning")
	r, seen, err := o.plan(cmd, stdin, settings, beyond, interrupted, now)
	done()
	if err != nil {
		return err
	}
	switch o.Output {
	case "json", "yaml":
		return inputs.Encode(out, o.Output, r)
	case "html":
		r.sample = o.Sample()
		return r.draw(out, seen)
	default:
		writeSample(out, terminal.StyleOf(cmd.OutOrStdout()), o.Sample())
		if o.rulesCost {
			return writeRulesCost(out, terminal.StyleOf(cmd.OutOrStdout()), r.RulesCost)
		}
		return r.write(out, terminal.StyleOf(cmd.OutOrStdout()), o.Output == "wide")
	}
}

// fractions is for how many shares of the evictions, each half of the one before, the frontier has
// a plan.
const fractions = 5

// plan reads the files and looks for nodes to give back.
func (o *options) plan(cmd *cobra.Command, stdin io.Reader, settings giveback.Options, beyond *plan.Objective, interrupted []deprovision.Interruption, now time.Time) (*report, scene, error) {
	start := time.Now()
	c, err := o.Read(sample, stdin, cmd.ErrOrStderr())
	if err != nil {
		return nil, scene{}, err
	}
	s, market := c.Snapshot, c.Market
	repairs := slices.Contains(settings.Methods, eligibility.Unhealthy)
	if repairs {
		s.Nodes = closed(s.Nodes, now)
	}
	for _, i := range interrupted {
		if !slices.ContainsFunc(s.Nodes, func(n nodeObject) bool { return n.Name == i.Node }) {
			return nil, scene{}, inputs.Bad(fmt.Errorf("--interrupted %q: there is no such node", i.Node))
		}
	}
	times := seconds{Read: time.Since(start).Seconds()}
	start = time.Now()
	sim, nominated, err := simulate.NewFor(s, o.plans(beyond, c.Groups))
	if err != nil {
		return nil, scene{}, inputs.Bad(err)
	}
	times.Compile = time.Since(start).Seconds()
	start = time.Now()
	cluster := simulate.Counted(simulate.Cluster(c.Manifests, s, nominated, now), beyond)
	cluster.Interruptions = interrupted
	notes := surplus(cluster)
	if repairs {
		var broken []string
		cluster, broken = repaired(cluster)
		notes = append(notes, broken...)
	}
	for _, text := range notes {
		fmt.Fprintln(cmd.ErrOrStderr(), "note:", text)
	}
	times.Rank = time.Since(start).Seconds()
	start = time.Now()
	settings.Rules.Placeable = sim.Placeable
	result, err := giveback.Make(cmd.Context(), cluster, sim, &settings)
	if err != nil {
		return nil, scene{}, err
	}
	times.Plan = time.Since(start).Seconds()
	var frontier []giveback.Point
	if o.Output != "table" && o.Output != "wide" { // neither shows it
		var bounds []int
		for n := result.Evictions / 2; n > 0 && len(bounds) < fractions; n /= 2 {
			bounds = append(bounds, n)
		}
		if frontier, err = giveback.Frontier(cmd.Context(), cluster, sim, &settings, bounds...); err != nil {
			return nil, scene{}, err
		}
	}
	r := newReport(market, cluster, result, frontier, now)
	if o.rulesCost {
		held := protection.Cluster{
			Snapshot: s, Objects: simulate.ObjectsOf(c.Manifests), By: o.plans(beyond, c.Groups), Interruptions: interrupted, Now: now,
		}
		held.Objects.Groups = c.Groups
		if r.RulesCost, err = protection.Of(cmd.Context(), held, &settings, 0); err != nil {
			return nil, scene{}, err
		}
	}
	if !o.NoTiming {
		r.Summary.Seconds = &times
	}
	return r, scene{s, result.Commands, now}, nil
}

// plans returns the options of the plans that consolidation is to go with.
func (o *options) plans(beyond *plan.Objective, groups []gang.Group) *plan.Options {
	return &plan.Options{Objective: beyond, Groups: groups, Scheduling: &scheduling.Options{LeaveZones: o.leaveZones}}
}

// surplus says for each static pool which of its nodes are more than it keeps. They go whatever is
// saved, so they are in no plan.
func surplus(c deprovision.Cluster) []string {
	var notes []string
	for _, pool := range c.Pools {
		var names []string
		for _, n := range eligibility.Surplus(pool, c.Nodes, c.Now) {
			names = append(names, n.Name())
		}
		if len(names) > 0 {
			notes = append(notes, fmt.Sprintf("pool %s keeps a fixed number of nodes (%d), and has %d more; these go first: %s", pool.Name, *pool.Replicas, len(names), strings.Join(names, ", ")))
		}
	}
	return notes
}
