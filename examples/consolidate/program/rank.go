package program

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/joinery-sdk/joinery/deprovision"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/examples/plan"
)

// candidates is the ranking as scripts read it; its keys are an interface.
type candidates struct {
	HorizonHours float64     `json:"horizonHours"` // of mostSavings
	Candidates   []candidate `json:"candidates"`
}

type candidate struct {
	Node           string   `json:"node"`
	NodePool       string   `json:"nodePool"`
	InstanceType   string   `json:"instanceType"`
	PricePerHour   float64  `json:"pricePerHour"`
	Score          float64  `json:"score"`
	MostSavings    float64  `json:"mostSavings"`
	DisruptionCost float64  `json:"disruptionCost"`
	Parts          parts    `json:"parts"`
	Lifetime       float64  `json:"lifetimeLeft"`
	Blockers       []string `json:"by"`
}

type parts struct {
	Node          float64 `json:"node"`
	Pods          float64 `json:"pods"`
	Priorities    float64 `json:"priorities"`
	DeletionCosts float64 `json:"deletionCosts"`
	Bounds        float64 `json:"bounds"`
	DoNotDisrupt  int     `json:"doNotDisruptPods"`
}

// ranking prints every node in the order in which it should be given back.
func (o *options) ranking(cmd *cobra.Command, out io.Writer, stdin io.Reader, settings giveback.Options, beyond *plan.Objective, now time.Time) error {
	in, err := o.Read(sample, stdin, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	cluster := simulate.Counted(simulate.Cluster(in.Manifests, in.Snapshot, nil, now), beyond)
	horizon := cmp.Or(settings.Objective.Horizon, 24*time.Hour)
	list, err := deprovision.Rank(cluster, &deprovision.RankOptions{Ranker: settings.Ranker, Rules: settings.Rules, Horizon: horizon})
	if err != nil {
		return err
	}
	r := candidates{HorizonHours: horizon.Hours(), Candidates: []candidate{}}
	for _, c := range list {
		p := c.Parts
		x := candidate{
			Node: c.Name, NodePool: c.Pool, InstanceType: c.InstanceType, PricePerHour: c.PricePerHour.Dollars(), Score: exact(c.Score), MostSavings: c.MostSavings.Dollars(),
			DisruptionCost: exact(c.Disruption), Lifetime: exact(c.Lifetime), Blockers: []string{},
			Parts: parts{p.Node, p.Pods, exact(p.Priorities), exact(p.DeletionCosts), exact(p.Bounds), p.DoNotDisrupt},
		}
		for _, b := range c.Blockers {
			x.Blockers = append(x.Blockers, b.String())
		}
		r.Candidates = append(r.Candidates, x)
	}
	if o.Output == "json" || o.Output == "yaml" {
		return inputs.Encode(out, o.Output, r)
	}
	style := terminal.StyleOf(cmd.OutOrStdout())
	writeSample(out, style, o.Sample())
	return r.write(out, style)
}

func (r *candidates) write(w io.Writer, s terminal.Style) error {
	t := terminal.NewTable(s, "NODE", ">PRICE/H", fmt.Sprintf(">SAVES/%gH, AT MOST", r.HorizonHours), ">COST", ">PODS", ">PRIORITY", ">DELETION", ">LIFE LEFT", ">KEPT PODS", ">SCORE", "BLOCKED BY")
	for _, c := range r.Candidates {
		by := c.Blockers
		if len(by) == 0 {
			by = []string{s.Dim("nothing")}
		}
		price := "?"
		if c.PricePerHour > 0 {
			price = terminal.Dollars(c.PricePerHour)
		}
		for i, why := range by {
			if i > 0 {
				t.Row("", "", "", "", "", "", "", "", "", "", why)
				continue
			}
			t.Row(c.Node, price, terminal.Dollars(c.MostSavings), fmt.Sprintf("%.1f", c.DisruptionCost), fmt.Sprint(c.Parts.Pods), signed(c.Parts.Priorities),
				signed(c.Parts.DeletionCosts), fmt.Sprintf("%.0f%%", 100*c.Lifetime), fmt.Sprint(c.Parts.DoNotDisrupt), fmt.Sprintf("%.3f", c.Score), why)
		}
	}
	return t.Write(w)
}

// signed is a part of the cost that may go either way.
func signed(v float64) string {
	if math.Abs(v) < 0.05 {
		return "0"
	}
	return fmt.Sprintf("%+.1f", v)
}
