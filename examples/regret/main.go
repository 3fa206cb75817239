// Regret reads what a cluster did, from snapshots or logs. Hour by hour it prints what the cluster
// cost, what our policy would have paid on the same arrivals, and what any policy must pay. Then it
// lists the decisions that cost most, and what would have been better. It needs neither a cluster
// nor credentials.
package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/deprovision/policy"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/history"
	"github.com/joinery-sdk/joinery/examples/pipeline/history/recording"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/regret"
	"github.com/joinery-sdk/joinery/examples/pipeline/ruletest"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
)

// The sample is a morning that replay recorded under the policy that gives back only empty nodes.
//
//go:embed sample.jsonl
var sampleLog string

//go:embed sample.yaml
var samplePool string

func main() { os.Exit(inputs.End(os.Stderr, command(os.Stdin).Execute())) }

type options struct {
	inputs.Flags
	snapshots   string
	logs        []string
	from, until time.Time
	policy      string
	step        time.Duration
	startup     time.Duration
	top         int
	aboveBound  float64
	given       map[string]bool // the flags that are set
}

func policies() []string { return []string{"karpenter", "balanced", "default", "payback"} }

func command(stdin io.Reader) *cobra.Command {
	var o options
	cmd := inputs.Command(&cobra.Command{
		Use:   "regret [--snapshots DIR | --log FILE...] [-f FILE]...",
		Short: "what the past could have cost, hour by hour, and which decisions cost most",
		Long: `Regret reads a cluster over time and prints, hour by hour, the bill as it was, the bill of our policy on the same arrivals,
and two lower bounds: for any policy that knows only the present, and for any policy at all, even one that knows the future.
Then it lists the decisions that cost most and what would have been better; each of these was planned again.

--snapshots reads a folder of what kubectl get -o yaml wrote, with the time in the name of each file. --log reads audit logs
of an API server (audit.k8s.io/v1) and logs of Karpenter, in JSON; they may be mixed. With logs, -f names the pools, and may
name the pods and nodes that were there at first. Karpenter's logs have no pods: they are enough for the bill alone.
--log also reads what kwokctl snapshot export --record wrote, of any cluster; --from says when it began. Files may be gzipped.
Nodes of cluster-autoscaler and of EKS Auto Mode are read by their labels.

What is there at last is billed, too: the last snapshot for as long as the one before it, an only one for an hour, and a
log to the end of the --step after its last line, if --until does not say when it ends.

Exit codes: 0 done, 1 failed, 2 bad usage or input, 4 with --max-above-bound: more was paid than it allows.`,
		Example: `  regret                                          # the built-in sample
  kubectl get pods,nodes,nodepools,nodeclaims,ec2nodeclasses,daemonsets,pdb -A -o yaml \
    > day/$(date -u +%FT%H-%M-%SZ).yaml
  regret --snapshots day/                         # take one every five minutes
  regret --log audit.log --log karpenter.log -f pools.yaml
  kwokctl snapshot export --record --path day.yaml --filter nodes,pods,daemonsets.apps,poddisruptionbudgets.policy
  regret --log day.yaml --from 2026-01-15T08:00:00Z -f pools.yaml
  regret --snapshots day/ -o html > day.html
  replay --record day.jsonl && regret --log day.jsonl -f pools.yaml --startup 0s`,
	}, func(cmd *cobra.Command, out io.Writer) error { return o.run(cmd, out, stdin) })
	o.Pictures = true
	o.Register(cmd.Flags())
	f := cmd.Flags()
	f.StringVar(&o.snapshots, "snapshots", "", "`DIR` with snapshots: files that kubectl get -o yaml or -o json wrote, named by their time")
	f.StringArrayVar(&o.logs, "log", nil, "`FILE` with an audit log of an API server, a log of Karpenter, or a recording of kwokctl (repeatable)")
	f.Var((*moment)(&o.from), "from", "when recordings of kwokctl began, such as 2026-01-15T08:00:00Z, because they do not say; by default 1970")
	f.DurationVar(&o.step, "step", time.Minute, "how often to sample the logs")
	f.Var((*moment)(&o.until), "until", "when logs end, such as 2026-01-15T12:00:00Z; by default at the end of the --step in which their last line is, or one later if a pod or node changed in it")
	f.StringVar(&o.policy, "policy", "karpenter", "what consolidation is worth: karpenter (any saving, unless a pool asks for Balanced), balanced, or default (more than a cent for each eviction, within the time since a pod last came or left, two hours to a day; payback is the same)")
	f.DurationVar(&o.startup, "startup", time.Minute, "how long our policy pays for both a node and its replacement")
	f.Float64Var(&o.aboveBound, "max-above-bound", -1, "exit with 4 if the bill is more than this many percent above the bound for policies that know only the present")
	f.IntVar(&o.top, "top", 10, "how many decisions are planned again and shown")
	inputs.Complete(cmd, "output", o.Formats()...)
	inputs.Complete(cmd, "policy", policies()...)
	return cmd
}

// moment is a time as a flag; zero if it is not set.
type moment time.Time

func (m *moment) String() string {
	if t := time.Time(*m); !t.IsZero() {
		return t.Format(time.RFC3339)
	}
	return ""
}

func (m *moment) Set(text string) error {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return errors.New("want a time such as 2026-01-15T12:00:00Z")
	}
	*m = moment(t)
	return nil
}

func (*moment) Type() string { return "time" }

// combinations says which flags go together.
func combinations() []inputs.Combination {
	return []inputs.Combination{
		{Flag: "snapshots", Does: "has its own pools, pods and times", Without: []string{"log", "filename", "step", "from", "until", "pods", "scheduler-config"}},
		{Flag: "from", Does: "says when recordings of logs began", With: []string{"log"}},
		{Flag: "pods", Does: "is about objects of files", With: []string{"filename", "log"}},
	}
}

// settings are the flags as package regret takes them. All that is wrong with them is said at once.
func (o *options) settings() (*regret.Options, error) {
	errs := []error{inputs.OneOf("policy", o.policy, policies()...)}
	if o.snapshots == "" && len(o.logs) == 0 && len(o.Files) > 0 {
		errs = append(errs, errors.New("-f names pools, but no history: add --log FILE, or use --snapshots DIR"))
	}
	if o.step < time.Second || o.step > time.Hour {
		errs = append(errs, fmt.Errorf("--step %v: want 1s to 1h", o.step))
	}
	if o.startup < 0 {
		errs = append(errs, fmt.Errorf("--startup %v: want a duration such as 1m, at least 0", o.startup))
	}
	if o.given["max-above-bound"] && (!(o.aboveBound >= 0) || math.IsInf(o.aboveBound, 0)) {
		errs = append(errs, fmt.Errorf("--max-above-bound %v: want percent, 0 or more", o.aboveBound))
	}
	if o.top < 0 {
		errs = append(errs, fmt.Errorf("--top %d: want a number, at least 0", o.top))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, inputs.Bad(err)
	}
	out := &regret.Options{Startup: o.startup, Verify: o.top, Deprovision: &giveback.Options{}}
	if o.startup == 0 {
		out.Startup = -1
	}
	if o.top == 0 {
		out.Verify = -1
	}
	switch o.policy {
	case "karpenter":
		out.Deprovision.Objective = policy.AnySaving()
	case "balanced":
		out.Deprovision.Objective = policy.Balanced(2)
	}
	return out, nil
}

// sampled reports whether no flag names a history.
func (o *options) sampled() bool { return o.snapshots == "" && len(o.logs) == 0 }

// read reads the history that the flags name.
func (o *options) read(stdin io.Reader) (*history.History, error) {
	if o.snapshots != "" {
		h, err := history.ReadFolder(o.snapshots, pipeline.ReadOptions())
		if err != nil {
			return nil, inputs.Bad(err)
		}
		return h, nil
	}
	logs, objects, closed, err := recording.Open(o.logs, o.from)
	defer closed()
	if err != nil {
		return nil, inputs.Bad(fmt.Errorf("--log: %w", err))
	}
	pools := ""
	if o.sampled() {
		pools, logs = samplePool, []history.Log{{Name: "sample.jsonl", Data: strings.NewReader(sampleLog)}}
	}
	m, err := o.Manifests(pools, stdin, objects...)
	if err != nil {
		return nil, err
	}
	h, err := history.ReadLogs(m, logs, &history.Options{Step: o.step, Until: o.until})
	if err != nil {
		return nil, inputs.Bad(err)
	}
	return h, nil
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
	o.given = map[string]bool{}
	cmd.Flags().Visit(func(f *pflag.Flag) { o.given[f.Name] = true })
	by, err := o.settings()
	if err != nil {
		return err
	}
	start := time.Now()
	h, err := o.read(stdin)
	if err != nil {
		return err
	}
	market, err := o.Market(h.Cluster)
	if err != nil {
		return err
	}
	sale, err := h.Sale(market)
	if err != nil {
		return inputs.Bad(err)
	}
	times := seconds{Read: time.Since(start).Seconds()}
	start = time.Now()
	done := terminal.Progress(cmd.ErrOrStderr(), fmt.Sprintf("playing %s", span(h.Observations[0].At, h.Until)))
	found, err := regret.Audit(cmd.Context(), h, sale, by)
	done()
	if err != nil {
		return err
	}
	times.Audit = time.Since(start).Seconds()
	r := newReport(found, market, o.top, slices.Concat(h.Cluster.Notes, found.Notes))
	if !o.NoTiming {
		r.Summary.Seconds = &times
	}
	if o.Output != "json" && o.Output != "yaml" {
		inputs.Note(cmd.ErrOrStderr(), r.Notes...)
	}
	if err := o.print(cmd, out, r); err != nil {
		return err
	}
	return o.demand(found)
}

func (o *options) print(cmd *cobra.Command, out io.Writer, r *report) error {
	style := terminal.StyleOf(cmd.OutOrStdout())
	switch o.Output {
	case "json", "yaml":
		return inputs.Encode(out, o.Output, r)
	case "html":
		return r.draw(out, o.sampled())
	}
	if o.sampled() {
		fmt.Fprintln(out, style.Dim("built-in sample; --snapshots DIR or --log FILE reads your own history"))
	}
	return r.write(out, style, o.Output == "wide")
}

// demand is the exit code of a bill that is too far above the bound.
func (o *options) demand(found *regret.Report) error {
	if o.aboveBound < 0 {
		return nil
	}
	broken, _ := ruletest.Regret{AboveBound: &o.aboveBound}.Check(found)
	if len(broken) == 0 {
		return nil
	}
	return &inputs.ExitError{Code: inputs.ExitDearer, Err: fmt.Errorf("--max-above-bound: %s", broken[0].Why)}
}
