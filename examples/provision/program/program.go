// Package program is the program provision as a command, so that others can have it as one of their
// own.
package program

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/proof"
	"github.com/joinery-sdk/joinery/examples/plan/survive"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/gang"
)

//go:embed sample.yaml
var sample string

//go:embed refusals.yaml
var refusals string

// The names of the built-in samples: a cluster that plans whole, and the same with pods that can't
// be placed.
const (
	usualSample   = "usual"
	refusalSample = "refusals"
)

// builtIn is the sample that the flags name.
func (o *options) builtIn() string {
	if o.sample == refusalSample {
		return sample + "\n---\n" + refusals
	}
	return sample
}

type options struct {
	inputs.Flags
	planning  inputs.Planning
	explain   string
	fixes     string
	sizes     bool
	sample    string
	diff      string
	assert    string
	rehearsal string
	proof     string
	rulesCost bool
	survives  string
	now       string
	moved     movedFlags
	groups    []gang.Group // of the pods that were read
	buffers   []manifests.Buffer
	objects   simulate.Objects
	work      *work
}

// Command is the program provision. The argument "-" means stdin. Output goes to the writers of the
// cobra command.
func Command(stdin io.Reader) *cobra.Command {
	o := options{work: new(work)}
	cmd := inputs.Command(&cobra.Command{
		Use:   "provision [-f FILE]...",
		Short: "plan the nodes that pending pods need, with prices and reasons",
		Long: `Provision reads Kubernetes and Karpenter manifests and plans the nodes to buy for pending pods: which types, in which
zone, at what price, which pod goes where, and for each pod that can't be placed what stops it.
An object that is invalid by itself stops everything (exit code 2); all mistakes are listed, with file and line. A pod
that contradicts a LimitRange or its RuntimeClass only has no place.

Exit codes: 0 all pods have a place, 1 failed, 2 bad usage or input, 3 some pod has no place or a rule is broken,
4 --diff: every pod keeps its place, but the plan is dearer. Pods that are not ours to place, such as those of another
scheduler, change no exit code, unless --diff finds that they had a place before the change (3).`,
		Example: `  provision                                   # plan the built-in sample
  provision --sample refusals                 # the same with pods that can't be placed, and why
  provision -f cluster/ -o wide               # a directory of manifests
  kubectl get pods,nodes,daemonsets,pvc,pv,sc,csinodes,nodepools,ec2nodeclasses -A -o yaml |
    provision -f -
  provision -f cluster/ --explain shop/web-0  # why this pod goes where it goes
  provision -f cluster/ --diff new-pool.yaml  # what a change would do
  provision -f cluster/ --assert rules.yaml   # what must be true of the plan
  provision -f cluster/ --rules-cost          # what each rule costs
  provision -f cluster/ --survives zone,node  # what it would live through, and the missing headroom
  provision -f cluster/ --rehearse scarce.yaml # what would be bought if the cloud ran out
  launch -f cluster/ --cluster prod           # buy the plan on EC2: a program of its own`,
	}, func(cmd *cobra.Command, out io.Writer) error { return o.run(cmd, out, stdin) })
	o.Pictures, o.Buffers = true, true
	o.Register(cmd.Flags())
	o.planning.Register(cmd)
	cmd.Flags().StringVar(&o.explain, "explain", "", "say why the pod `NAMESPACE/POD` goes where it goes, or what stops it; of a workload, NAMESPACE/NAME or NAMESPACE/KIND/NAME, the first pod with a place and the first without")
	cmd.Flags().StringVar(&o.sample, "sample", usualSample, "built-in sample to plan without -f: usual, or refusals, with pods that can't be placed")
	cmd.Flags().StringVar(&o.fixes, "fixes", someFixes, "changes to try for pods that can't be placed: none, some (a bounded amount of work) or all")
	cmd.Flags().BoolVar(&o.sizes, "sizes", false, "plan again with several limits on the size of nodes, and show what each plan costs; takes nine times as long")
	cmd.Flags().StringVar(&o.diff, "diff", "", "`FILE` or directory whose objects replace those of the same kind and name: compare both plans")
	cmd.Flags().StringVar(&o.assert, "assert", "", "`FILE` of rules that the plan must keep; a broken rule names what moved its pods, and the exit code is 3; to find that out takes up to a few times as long as the plan")
	cmd.Flags().StringVar(&o.rehearsal, "rehearse", "", "`FILE` with capacity and quotas: buy the plan from a simulated cloud that has no more than this, and plan again around what it refuses")
	cmd.Flags().StringVar(&o.proof, "proof", "", "`FILE` to write the plan to, with everything needed to check it, as JSON for examples/check")
	cmd.Flags().BoolVar(&o.rulesCost, "rules-cost", false, "say what each rule of pools and pods costs a month, verified by planning without it")
	cmd.Flags().StringVar(&o.survives, "survives", "", "rehearse the loss of any one zone, spot-pool, reservation, node or instance-family (one or more kinds, separated by commas), and plan the headroom with which no pod waits")
	cmd.Flags().StringVar(&o.now, "now", "", "the time at which --rehearse begins, as 2026-01-31T12:00:00Z; the present if empty")
	cmd.Flags().StringArrayVar(&o.Headroom, "headroom", nil, "[NAMESPACE/]KIND/NAME=PODS or =PERCENT%: plan room for that many more pods of a workload, as a CapacityBuffer does (repeatable)")
	o.moved.register(cmd.Flags())
	inputs.Complete(cmd, "output", o.Formats()...)
	inputs.Complete(cmd, "sample", usualSample, refusalSample)
	inputs.Complete(cmd, "fixes", noFixes, someFixes, allFixes)
	return cmd
}

// combinations says which flags go together. Most combinations ask for two answers, of which only
// one would be printed.
func combinations() []inputs.Combination {
	return []inputs.Combination{
		{
			Flag: "explain", Does: "says where one pod goes, and prints nothing else", Outputs: []string{},
			Without: []string{"diff", "assert", "rehearse", "rules-cost", "survives", "sizes", "headroom"},
		},
		{
			Flag: "diff", Does: "compares two plans, and prints no more of them", Outputs: []string{"json", "yaml"},
			Without: []string{"assert", "rehearse", "rules-cost", "survives", "sizes", "headroom", "proof", "fixes"},
		},
		{
			Flag: "rehearse", Does: "buys a plan from a simulated cloud", Outputs: []string{"wide", "json", "yaml"},
			Without: []string{"assert", "rules-cost", "survives", "sizes", "proof"},
		},
		{Flag: "assert", Does: "lists rules", Outputs: []string{"wide", "json", "yaml"}},
		{Flag: "rules-cost", Does: "prints a table of rules", Outputs: []string{"json", "yaml", "html"}},
		{Flag: "survives", Does: "prints a table of losses", Outputs: []string{"json", "yaml", "html"}},
		{Flag: "sizes", Does: "prints a table or a chart", Outputs: []string{"wide", "html"}},
		{Flag: "now", Does: "is when a rehearsal begins", With: []string{"rehearse"}},
		{Flag: "sample", Does: "names a built-in sample", Without: []string{"filename"}},
		{Flag: "pods", Does: "is about objects of files", With: []string{"filename", "diff"}},
	}
}

func (o *options) check(flags *pflag.FlagSet) error {
	if err := o.Check(); err != nil {
		return err
	}
	if err := o.moved.check(); err != nil {
		return err
	}
	if _, err := o.planning.Options(); err != nil {
		return err
	}
	if err := inputs.OneOf("sample", o.sample, usualSample, refusalSample); err != nil {
		return err
	}
	if o.survives != "" {
		if _, err := survive.ParseKinds(o.survives); err != nil {
			return inputs.Bad(fmt.Errorf("--survives %w", err))
		}
	}
	if _, err := o.start(); err != nil {
		return err
	}
	if err := inputs.OneOf("fixes", o.fixes, noFixes, someFixes, allFixes); err != nil {
		return err
	}
	return inputs.Combined(flags, combinations()...)
}

func (o *options) run(cmd *cobra.Command, out io.Writer, stdin io.Reader) error {
	if err := o.check(cmd.Flags()); err != nil {
		return err
	}
	if o.diff != "-" {
		if err := o.CheckStdin(stdin); err != nil {
			return err
		}
	}
	rules, err := o.readRules()
	if err != nil {
		return err
	}
	if o.rehearsal != "" {
		return o.rehearse(cmd, out, stdin)
	}
	if o.diff != "" {
		return o.compare(cmd, out, stdin)
	}
	done := terminal.ProgressOf(cmd.ErrOrStderr(), func() string { return "planning" + o.work.text() })
	r, packed, err := o.plan(cmd, stdin)
	done()
	if err != nil {
		return err
	}
	if err := o.writeProof(packed); err != nil {
		return err
	}
	if o.explain != "" {
		return explain(out, terminal.StyleOf(cmd.OutOrStdout()), packed, r, o.explain)
	}
	if rules != nil {
		return o.assertRules(cmd, out, r, packed, rules)
	}
	if o.Output == "html" {
		err = r.draw(cmd.Context(), out, packed)
	} else {
		err = o.print(cmd, out, r)
	}
	if err != nil {
		return err
	}
	if r.Summary.Unschedulable > 0 {
		return &inputs.ExitError{Code: inputs.ExitNotAll}
	}
	return nil
}

// plan reads the files and packs.
func (o *options) plan(cmd *cobra.Command, stdin io.Reader) (*report, *plan.Plan, error) {
	s, market, read, err := o.snapshot(cmd, stdin)
	if err != nil {
		return nil, nil, err
	}
	packed, compile, solve, err := o.pack(cmd.Context(), cmd.ErrOrStderr(), s)
	if err != nil {
		return nil, nil, err
	}
	r := newReport(market, packed, o.fixes)
	r.sample = o.Sample()
	weights, err := packed.WeightsCost(cmd.Context())
	if err != nil {
		return nil, nil, err
	}
	r.Summary.WeightsPerHour = weights.Dollars()
	if !o.NoTiming {
		r.addTiming(read, compile, solve)
	}
	r.running = s.Pods
	var kept []*corev1.Node
	if len(o.buffers) > 0 {
		if kept, err = r.addBuffers(cmd.Context(), packed, o.buffers); err != nil {
			return nil, nil, err
		}
	}
	if o.rulesCost {
		if err := o.addRulesCost(cmd.Context(), r, packed, s); err != nil {
			return nil, nil, err
		}
	}
	if o.survives != "" {
		if err := o.addSurvival(cmd.Context(), r, packed, kept); err != nil {
			return nil, nil, err
		}
	}
	if o.sizes {
		if err := o.addCurve(cmd.Context(), r, s); err != nil {
			return nil, nil, err
		}
	}
	return r, packed, nil
}

// snapshot reads the files, and opens the catalogue that they are of. Nodes that static pools are
// yet to get are in the snapshot.
func (o *options) snapshot(cmd *cobra.Command, stdin io.Reader) (scheduling.Snapshot, *pipeline.Market, time.Duration, error) {
	start := time.Now()
	c, err := o.Read(o.builtIn(), stdin, cmd.ErrOrStderr())
	if err != nil {
		return scheduling.Snapshot{}, nil, 0, err
	}
	s, notes := pipeline.Static(c.Snapshot)
	inputs.Note(cmd.ErrOrStderr(), notes...)
	o.groups, o.buffers, o.objects = c.Groups, c.Manifests.Buffers, simulate.ObjectsOf(c.Manifests)
	return s, c.Market, time.Since(start), nil
}

// work is how far a plan is, for the line on a terminal. A pipe does not get it.
type work struct{ said atomic.Value }

func (w *work) say(p binpack.Progress) {
	w.said.Store(fmt.Sprintf(": %s an hour, at least %s with these zones, %.0f%% of the work", terminal.Dollars(p.Price.Dollars()), terminal.Dollars(p.Bound.Dollars()), 100*p.Work))
}

func (w *work) text() string {
	text, _ := w.said.Load().(string)
	return text
}

// pack plans a snapshot. An interrupt ends it with the best plan so far.
func (o *options) pack(ctx context.Context, stderr io.Writer, s scheduling.Snapshot) (packed *plan.Plan, compile, solve time.Duration, err error) {
	start := time.Now()
	how, err := o.planning.Options()
	if err != nil {
		return nil, 0, 0, err
	}
	how.Groups = o.groups
	p, err := scheduling.Compile(how.Objective.Narrow(s), how.Objective.Scheduling(how.Scheduling))
	if err != nil {
		return nil, 0, 0, inputs.Bad(err)
	}
	compile = time.Since(start)
	start = time.Now()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	how.Packing.Progress = o.work.say
	if len(how.Groups) > 0 { // more than one problem may have to be solved
		packed, err = plan.Make(ctx, s, how)
	} else {
		packed, err = plan.Solve(ctx, p, how)
	}
	if err == nil && packed.Packing.Stopped {
		fmt.Fprintln(stderr, "note: interrupted; this is the best plan so far")
	}
	return packed, compile, time.Since(start), err
}

func (o *options) print(cmd *cobra.Command, out io.Writer, r *report) error {
	style := terminal.StyleOf(cmd.OutOrStdout())
	switch {
	case o.Output == "json" || o.Output == "yaml":
		return inputs.Encode(out, o.Output, r)
	case r.RulesCost != nil || r.Survival != nil:
		return r.writeAnswers(out, style)
	}
	return r.write(out, style, o.Output == "wide")
}

// writeProof writes the plan with its proof to the file that the flag names, for examples/check.
func (o *options) writeProof(packed *plan.Plan) error {
	if o.proof == "" {
		return nil
	}
	d, err := proof.Of(packed)
	if err != nil {
		return err
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return os.WriteFile(o.proof, append(text, '\n'), 0o600)
}

func duration(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
