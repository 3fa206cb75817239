package main

import (
	"math"
	"time"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/regret"
)

// report is the answer as scripts read it; its keys are an interface. Amounts are in dollars.
type report struct {
	Summary   summary    `json:"summary"`
	Hours     []hour     `json:"hours"`
	Decisions []decision `json:"decisions"`
	// Others is what the decisions that are not listed cost more than our policy, together.
	Others float64  `json:"others"`
	Notes  []string `json:"notes"`
}

type bill struct {
	Paid         float64 `json:"paid"`
	Policy       float64 `json:"policy"`
	BoundPresent float64 `json:"boundPresent"`
	Bound        float64 `json:"bound"`
}

type summary struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	bill
	Evictions   int      `json:"evictions"`
	Launches    int      `json:"launches"`
	MostWaiting int      `json:"mostWaiting"`
	NoPods      bool     `json:"noPods,omitempty"` // only paid is known
	Unpriced    []string `json:"unpriced"`
	Prices      prices   `json:"prices"`
	Seconds     *seconds `json:"seconds,omitempty"`
}

type prices struct {
	List string `json:"list"`
	Date string `json:"date,omitempty"`
}

type seconds struct {
	Read  float64 `json:"read"`
	Audit float64 `json:"audit"`
}

type hour struct {
	From    time.Time `json:"from"`
	Seconds int64     `json:"seconds"`
	bill
}

type decision struct {
	Kind         string    `json:"kind"`
	Node         string    `json:"node,omitempty"`
	InstanceType string    `json:"instanceType,omitempty"`
	Zone         string    `json:"zone,omitempty"`
	CapacityType string    `json:"capacityType,omitempty"`
	From         time.Time `json:"from"`
	To           time.Time `json:"to"`
	Regret       float64   `json:"regret"`
	bill
	Idle        float64    `json:"idle"`
	UsedPercent float64    `json:"usedPercent"`
	Better      string     `json:"better,omitempty"`
	At          *time.Time `json:"at,omitempty"`
	SavesPerH   float64    `json:"savesPerHour,omitempty"`
	Keeps       string     `json:"keeps,omitempty"`
}

// cents cuts what is far below a cent, and with it the noise of division.
func cents(a regret.Amount) float64 { return math.Round(a.Dollars()*1e6) / 1e6 }

func billOf(b regret.Bill) bill {
	return bill{cents(b.Paid), cents(b.Policy), cents(b.Present), cents(b.Bound)}
}

// newReport lists the first decisions, and sums the others.
func newReport(r *regret.Report, market *pipeline.Market, top int, notes []string) *report {
	out := &report{
		Summary: summary{
			From: r.From.UTC(), To: r.To.UTC(), bill: billOf(r.Bill), Evictions: r.Evictions, Launches: r.Launches, MostWaiting: r.MostWaiting, NoPods: r.NoPods,
			Unpriced: append([]string{}, r.Unpriced...), Prices: prices{market.List, market.Date},
		},
		Hours: []hour{}, Decisions: []decision{}, Notes: append([]string{}, notes...),
	}
	for _, h := range r.Hours {
		out.Hours = append(out.Hours, hour{h.From.UTC(), h.Seconds, billOf(h.Bill)})
	}
	var others regret.Amount
	for i := range r.Decisions {
		d := &r.Decisions[i]
		if i >= top || d.Regret() <= 0 || r.NoPods {
			others += d.Regret()
			continue
		}
		x := decision{
			Kind: string(d.Kind), Node: d.Node, InstanceType: d.InstanceType, Zone: d.Zone, CapacityType: d.CapacityType, From: d.From.UTC(), To: d.To.UTC(),
			Regret: cents(d.Regret()), bill: billOf(d.Bill), Idle: cents(d.Idle), UsedPercent: math.Round(1000*d.Used) / 10, Better: d.Better, SavesPerH: math.Round(d.Saves*1e6) / 1e6, Keeps: d.Keeps,
		}
		if d.Better != "" {
			at := d.At.UTC()
			x.At = &at
		}
		out.Decisions = append(out.Decisions, x)
	}
	out.Others = cents(others)
	return out
}
