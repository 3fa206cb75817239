// Replay simulates one day of a cluster, recorded or generated, on a cloud in memory, once for each
// consolidation policy. It prints what each policy costs, how many pods it evicts for each dollar
// that it saves, and how long pods wait. It can also draw the day.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/deprovision/policy"
	"github.com/joinery-sdk/joinery/examples/pipeline/history"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/picture"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/examples/replay/day"
)

//go:embed pool.yaml
var pool string

func main() { os.Exit(inputs.End(os.Stderr, command().Execute())) }

type options struct {
	trace, pool, svg, output string
	record, recorded         string
	seed                     uint64
	apps                     int
}

func command() *cobra.Command {
	var o options
	cmd := inputs.Command(&cobra.Command{
		Use:   "replay [--trace FILE]",
		Short: "run a day under several consolidation policies and compare them",
		Long: `Replay simulates one day of a cluster on a cloud in memory, once for each policy, and prints cost,
evictions, evictions per dollar saved and how long pods wait. The day is generated, or read from a file with one JSON
object on each line: {"at": "2026-01-15T08:00:00Z", "app": "web", "replicas": 12, "cpu": "500m", "memory": "1Gi"}.

Exit codes: 0 done, 1 failed, 2 bad usage or input, 3 some pod never had a place.`,
		Example: `  replay                          # a generated day
  replay --svg day.svg            # and a drawing of it
  replay --trace yesterday.jsonl --pool pool.yaml
  replay --record day.jsonl && regret --log day.jsonl -f pool.yaml --startup 0s`,
	}, o.run)
	f := cmd.Flags()
	f.StringVar(&o.trace, "trace", "", "`FILE` with a recorded day; without it one is generated")
	f.StringVar(&o.pool, "pool", "", "`FILE` with the manifest of the node pool; without it a built-in one")
	f.StringVar(&o.svg, "svg", "", "`FILE` to draw the day to")
	f.StringVar(&o.record, "record", "", "`FILE` to record the day to, as the audit log of an API server, which regret reads")
	f.StringVar(&o.recorded, "record-policy", "karpenter", "policy to record: none, empty, karpenter, balanced or payback (here more than five cents for each eviction, within two hours); replaced nodes are recorded as gone at once")
	f.StringVarP(&o.output, "output", "o", "table", "table, json or html")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the generated day")
	f.IntVar(&o.apps, "apps", 24, "how many deployments the generated day has")
	return cmd
}

// regimes are the options that are compared; the first gives back only nodes that have to go.
// Payback has a price of five cents for an eviction and a horizon of two hours.
func regimes() []regime {
	forced := []eligibility.Method{eligibility.Interruption, eligibility.Expiration}
	return []regime{
		{"none", giveback.Options{Methods: forced}},
		{"empty", giveback.Options{Methods: append(forced, eligibility.Emptiness)}},
		{"karpenter", giveback.Options{Objective: policy.AnySaving()}},
		{"balanced", giveback.Options{Objective: policy.Balanced(2)}},
		{"payback", giveback.Options{Objective: policy.Payback(deprovision.Dollars(0.05), 2*time.Hour)}},
	}
}

func (o *options) run(cmd *cobra.Command, out io.Writer) error {
	if err := inputs.OneOf("output", o.output, "table", "json", "html"); err != nil {
		return err
	}
	var names []string
	for _, r := range regimes() {
		names = append(names, r.name)
	}
	if err := inputs.OneOf("record-policy", o.recorded, names...); err != nil {
		return err
	}
	if err := inputs.Combined(
		cmd.Flags(),
		inputs.Combination{Flag: "trace", Does: "is a recorded day instead of a generated one", Without: []string{"apps", "seed"}},
		inputs.Combination{Flag: "record-policy", Does: "chooses what is recorded", With: []string{"record"}},
	); err != nil {
		return err
	}
	if o.apps < 1 || o.apps > 1000 {
		return inputs.Bad(fmt.Errorf("--apps %d: want 1 to 1000", o.apps))
	}
	name, manifest := "pool.yaml", []byte(pool)
	if o.pool != "" {
		var err error
		if manifest, err = os.ReadFile(o.pool); err != nil {
			return inputs.Bad(fmt.Errorf("--pool: %w", err))
		}
		name = o.pool
	}
	from, err := readPools(name, manifest)
	if err != nil {
		return inputs.Bad(err)
	}
	for _, n := range from.notes {
		fmt.Fprintln(cmd.ErrOrStderr(), "note:", n)
	}
	events := day.Generate(o.seed, o.apps)
	if o.trace != "" {
		file, err := os.Open(o.trace)
		if err != nil {
			return inputs.Bad(fmt.Errorf("--trace: %w", err))
		}
		defer file.Close()
		if events, err = day.Read(o.trace, file); err != nil {
			return inputs.Bad(err)
		}
	}
	list, err := o.play(cmd, from, events)
	if err != nil {
		return err
	}
	if o.svg != "" {
		file, err := os.Create(o.svg)
		if err != nil {
			return inputs.Bad(fmt.Errorf("--svg: %w", err))
		}
		if err := errors.Join(picture.Drawing(file, "Price and evictions over the day", charts(list)...), file.Close()); err != nil {
			return err
		}
	}
	switch o.output {
	case "json":
		err = printJSON(out, list)
	case "html":
		err = page(out, list)
	default:
		err = print(out, terminal.StyleOf(cmd.OutOrStdout()), events, list)
	}
	if err != nil {
		return err
	}
	unplaced := 0
	for _, x := range list {
		if unplaced += x.unplaced; x.unplaced > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "note: %s: %s never had a place: %s\n", x.regime, terminal.Plural(x.unplaced, "pod"), x.why)
		}
	}
	if unplaced > 0 {
		return &inputs.ExitError{Code: inputs.ExitNotAll}
	}
	return nil
}

// play runs the day under every regime, and says which one it is at.
func (o *options) play(cmd *cobra.Command, from *beginning, events []day.Event) ([]outcome, error) {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	var list []outcome
	for i, r := range regimes() {
		w, err := newWorld(from, r.name, o.seed, events[0].At)
		if err != nil {
			return nil, inputs.Bad(err)
		}
		var file *os.File
		if o.record != "" && o.recorded == r.name {
			if file, err = os.Create(o.record); err != nil {
				return nil, inputs.Bad(fmt.Errorf("--record: %w", err))
			}
			w.recorder = history.NewWriter(file)
		}
		done := terminal.Progress(cmd.ErrOrStderr(), fmt.Sprintf("a day under %s, %d of %d", r.name, i+1, len(regimes())))
		x, err := w.run(ctx, events, r)
		done()
		if file != nil {
			err = errors.Join(err, file.Close())
		}
		if err != nil {
			return nil, fmt.Errorf("replay: %s: %w", r.name, err)
		}
		list = append(list, x)
	}
	return list, nil
}

func print(out io.Writer, s terminal.Style, events []day.Event, list []outcome) error {
	fmt.Fprintf(out, "%s from %s to %s, with %s arriving\n\n", terminal.Plural(len(events), "event"), events[0].At.UTC().Format("2006-01-02 15:04"),
		events[len(events)-1].At.UTC().Format("2006-01-02 15:04"), terminal.Plural(list[0].arrivals, "pod"))
	t := terminal.NewTable(s, "POLICY", ">COST", ">SAVED", ">EVICTIONS", ">PER $ SAVED", ">LAUNCHES", ">TAKEN BY THE CLOUD", ">WAIT PER POD")
	for _, o := range list {
		saved := list[0].cost - o.cost
		share, per := "", ""
		if saved > 0.005 {
			share, per = fmt.Sprintf("%.1f%%", 100*saved/list[0].cost), fmt.Sprintf("%.2f", float64(o.evictions)/saved)
		}
		t.Row(o.regime, terminal.Dollars(o.cost), share, terminal.Count(o.evictions), per, terminal.Count(o.launches), terminal.Count(o.interrupted), terminal.Duration(o.perArrival()))
	}
	return t.Write(out)
}

func printJSON(out io.Writer, list []outcome) error {
	type row struct {
		Policy             string  `json:"policy"`
		Cost               float64 `json:"cost"`
		Evictions          int     `json:"evictions"`
		EvictionsPerDollar float64 `json:"evictionsPerDollarSaved,omitempty"`
		Launches           int     `json:"launches"`
		Interrupted        int     `json:"interrupted"`
		WaitSecondsPerPod  float64 `json:"waitSecondsPerPod"`
		Unplaced           int     `json:"unplaced,omitempty"`
	}
	var rows []row
	for _, o := range list {
		r := row{Policy: o.regime, Cost: o.cost, Evictions: o.evictions, Launches: o.launches, Interrupted: o.interrupted, WaitSecondsPerPod: o.perArrival().Seconds(), Unplaced: o.unplaced}
		if saved := list[0].cost - o.cost; saved > 0.005 {
			r.EvictionsPerDollar = float64(o.evictions) / saved
		}
		rows = append(rows, r)
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(rows)
}
