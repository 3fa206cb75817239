// Consolidate reads manifests of a cluster and prints which nodes to give back, in which order, what that saves and whom it
// moves, and for every node that stays why. It needs neither a cluster nor credentials.
package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/policy"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
)

//go:embed sample.yaml
var sample string

func main() {
	cmd := command(os.Stdin)
	os.Exit(inputs.End(os.Stderr, cmd.Execute()))
}

type options struct {
	inputs.Flags
	methods     []string
	policy      string
	search      string
	minSavings  float64
	minAge      time.Duration
	now         string
	spotToSpot  bool
	interrupted []string
}

func methods() []string {
	return []string{string(eligibility.Interruption), string(eligibility.Emptiness), string(eligibility.Expiration), string(eligibility.Drift), string(eligibility.Consolidation)}
}

func policies() []string { return []string{"karpenter", "balanced", "payback"} }

func searches() []string {
	return []string{string(deprovision.SearchAll), string(deprovision.SearchKarpenter)}
}

func command(stdin io.Reader) *cobra.Command {
	var o options
	cmd := inputs.Command(&cobra.Command{
		Use:   "consolidate [-f FILE]...",
		Short: "plan which nodes to give back, with savings and reasons",
		Long: `Consolidate reads Kubernetes and Karpenter manifests of a running cluster and plans which nodes to give back: empty ones,
expired ones, those that have drifted, and those whose pods fit elsewhere or on cheaper nodes. Commands are in the order
in which they are to be carried out; every node has a verdict that says why it goes or stays.`,
		Example: `  consolidate                                   # the built-in sample
  consolidate -f cluster/ -o wide               # with every pod's new place
  kubectl get pods,nodes,pdb,nodepools,nodeclaims -A -o yaml | consolidate -f -
  consolidate -f cluster/ --policy balanced     # only what is worth its disruption
  consolidate -f cluster/ --search karpenter    # what the reference's search would find
  consolidate -f cluster/ --interrupted ip-10-0-0-7=2026-01-15T12:02:00Z`,
	}, func(cmd *cobra.Command, out io.Writer) error { return o.run(cmd, out, stdin) })
	o.Register(cmd.Flags())
	f := cmd.Flags()
	f.StringArrayVar(&o.methods, "method", nil, "only this method: "+strings.Join(methods(), ", ")+" (repeatable)")
	f.StringVar(&o.policy, "policy", "karpenter", "what is worth it: karpenter (any saving, unless a pool asks for Balanced), balanced or payback")
	f.StringVar(&o.search, "search", "all", "how consolidation looks: all, or karpenter for the reference's search")
	f.Float64Var(&o.minSavings, "min-savings", 0, "what a consolidation must save at least, in dollars an hour")
	f.DurationVar(&o.minAge, "min-age", 0, "how old a node must be to be given back, such as 1h; interruption and expiration do not wait for that")
	f.StringVar(&o.now, "now", "", "the moment to plan for, such as 2026-01-15T12:00:00Z; the current time by default")
	f.BoolVar(&o.spotToSpot, "spot-to-spot", false, "let cheaper spot nodes replace spot nodes")
	f.StringArrayVar(&o.interrupted, "interrupted", nil, "NODE[=TIME]: the cloud takes this node back, at that time (repeatable)")
	inputs.Complete(cmd, "output", inputs.Formats()...)
	inputs.Complete(cmd, "method", methods()...)
	inputs.Complete(cmd, "policy", policies()...)
	inputs.Complete(cmd, "search", searches()...)
	return cmd
}

// settings are the flags as package deprovision takes them. All that is wrong with them is said at once.
func (o *options) settings() (deprovision.Options, []deprovision.Interruption, time.Time, error) {
	var out deprovision.Options
	errs := []error{inputs.OneOf("policy", o.policy, policies()...), inputs.OneOf("search", o.search, searches()...)}
	for _, m := range o.methods {
		errs = append(errs, inputs.OneOf("method", m, methods()...))
		out.Methods = append(out.Methods, eligibility.Method(m))
	}
	if o.minSavings < 0 {
		errs = append(errs, fmt.Errorf("--min-savings %v: want dollars an hour, at least 0", o.minSavings))
	}
	if o.minAge < 0 {
		errs = append(errs, fmt.Errorf("--min-age %v: want a duration such as 1h, at least 0", o.minAge))
	}
	now := time.Now()
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
	switch o.policy {
	case "karpenter":
		out.Policy = policy.Balanced{Only: true}
	case "balanced":
		out.Policy = policy.Balanced{}
	case "payback":
		out.Policy = policy.Payback{}
	}
	out.Rules.MinimumAge = o.minAge
	out.Search, out.MinSavings, out.SpotToSpot = deprovision.Search(o.search), o.minSavings, o.spotToSpot
	if err := errors.Join(errs...); err != nil {
		return out, nil, now, inputs.Bad(err)
	}
	return out, list, now, nil
}

func (o *options) run(cmd *cobra.Command, out io.Writer, stdin io.Reader) error {
	if err := o.Check(); err != nil {
		return err
	}
	settings, interrupted, now, err := o.settings()
	if err != nil {
		return err
	}
	market, err := o.Market()
	if err != nil {
		return err
	}
	done := terminal.Progress(cmd.ErrOrStderr(), "planning")
	r, err := o.plan(cmd, market, stdin, settings, interrupted, now)
	done()
	if err != nil {
		return err
	}
	switch o.Output {
	case "json", "yaml":
		return encode(out, o.Output, r)
	default:
		return r.write(out, terminal.StyleOf(cmd.OutOrStdout()), o.Output == "wide")
	}
}

// plan reads the files and looks for nodes to give back.
func (o *options) plan(cmd *cobra.Command, market *pipeline.Market, stdin io.Reader, settings deprovision.Options, interrupted []deprovision.Interruption, now time.Time) (*report, error) {
	start := time.Now()
	m, err := o.Manifests(sample, stdin)
	if err != nil {
		return nil, err
	}
	s, notes, err := pipeline.Snapshot(m, market)
	if err != nil {
		return nil, inputs.Bad(err)
	}
	for _, n := range slices.Concat(m.Notes, notes) {
		fmt.Fprintln(cmd.ErrOrStderr(), "note:", n)
	}
	for _, i := range interrupted {
		if !slices.ContainsFunc(s.Nodes, func(n nodeObject) bool { return n.Name == i.Node }) {
			return nil, inputs.Bad(fmt.Errorf("--interrupted %q: there is no such node", i.Node))
		}
	}
	times := seconds{Read: time.Since(start).Seconds()}
	start = time.Now()
	sim, nominated, err := simulate.New(s)
	if err != nil {
		return nil, inputs.Bad(err)
	}
	times.Compile = time.Since(start).Seconds()
	start = time.Now()
	cluster := simulate.Cluster(m, s, nominated, now)
	cluster.Interruptions = interrupted
	times.Rank = time.Since(start).Seconds()
	start = time.Now()
	settings.Rules.Placeable = sim.Placeable
	result := deprovision.Plan(cluster, sim, &settings)
	times.Plan = time.Since(start).Seconds()
	r := newReport(market, cluster, result, now)
	if !o.NoTiming {
		r.Summary.Seconds = &times
	}
	return r, nil
}

func encode(out io.Writer, format string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if format == "yaml" {
		if text, err = yaml.JSONToYAML(text); err != nil {
			return err
		}
	} else {
		text = append(text, '\n')
	}
	_, err = out.Write(text)
	return err
}
