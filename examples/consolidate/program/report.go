package program

import (
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/protection"
)

type nodeObject = *corev1.Node

// report is the answer as scripts read it; its keys are an interface.
type report struct {
	Summary  summary   `json:"summary"`
	Commands []change  `json:"commands"`
	Verdicts []verdict `json:"verdicts"`
	Frontier []point   `json:"frontier"`
	// RulesCost is only there if it was asked for.
	RulesCost *protection.Report `json:"rulesCost,omitempty"`

	market *pipeline.Market
	pools  int
	sample string // says that the built-in sample was planned; empty for other input
	now    time.Time
}

// point is a change that could be made: what it would save for how many evictions.
type point struct {
	SavingsPerHour float64 `json:"savingsPerHour"`
	Evictions      int     `json:"evictions"`
	Nodes          int     `json:"nodes"`
}

type summary struct {
	Nodes              int      `json:"nodes"`
	NodesAfter         int      `json:"nodesAfter"`
	Unpriced           int      `json:"unpriced,omitempty"`
	PricePerHour       float64  `json:"pricePerHour"`
	PricePerHourAfter  float64  `json:"pricePerHourAfter"`
	Evictions          int      `json:"evictions"`
	Stranded           int      `json:"stranded,omitempty"` // pods that lose their places
	EvictionsPerDollar float64  `json:"evictionsPerDollar,omitempty"`
	Questions          int      `json:"questions"`
	Avoided            int      `json:"avoided"`
	Prices             prices   `json:"prices"`
	Seconds            *seconds `json:"seconds,omitempty"`
}

type prices struct {
	List string `json:"list"`
	Date string `json:"date,omitempty"`
}

type seconds struct {
	Read    float64 `json:"read"`
	Compile float64 `json:"compile"`
	Rank    float64 `json:"rank"`
	Plan    float64 `json:"plan"`
}

type change struct {
	Method         string            `json:"method"`
	Kind           string            `json:"kind"`
	Nodes          []string          `json:"nodes"`
	Replacements   []replacement     `json:"replacements"`
	Placements     map[string]string `json:"placements"`
	SavingsPerHour float64           `json:"savingsPerHour"`
	DisruptionCost float64           `json:"disruptionCost"`
	Pods           []string          `json:"pods"`
	Stranded       []string          `json:"stranded,omitempty"` // pods that have no other place
	AtOnce         bool              `json:"atOnce,omitempty"`
	TerminateFirst bool              `json:"terminateFirst,omitempty"` // the node goes before its replacement is bought
	Waves          [][]string        `json:"waves,omitempty"`
	Why            string            `json:"why"`
	Unpriced       bool              `json:"unpriced,omitempty"` // the savings leave out nodes whose price is not known
}

type replacement struct {
	Name         string        `json:"name"`
	Provisioner  string        `json:"provisioner"`
	NodePool     string        `json:"nodePool"`
	InstanceType string        `json:"instanceType"`
	Zone         string        `json:"zone"`
	CapacityType string        `json:"capacityType"`
	PricePerHour float64       `json:"pricePerHour"`
	Pods         []string      `json:"pods"`
	Alternatives []alternative `json:"alternatives"`
}

type alternative struct {
	InstanceType string  `json:"instanceType"`
	PricePerHour float64 `json:"pricePerHour"`
}

type verdict struct {
	Node           string   `json:"node"`
	Verdict        string   `json:"verdict"`
	Method         string   `json:"method,omitempty"`
	Detail         string   `json:"detail"`
	DisruptionCost float64  `json:"disruptionCost"`
	PricePerHour   float64  `json:"pricePerHour"`
	BestPrice      float64  `json:"bestPricePerHour,omitempty"`
	BoundPrice     float64  `json:"boundPerHour,omitempty"`
	Score          float64  `json:"score,omitempty"`
	Threshold      float64  `json:"threshold,omitempty"`
	By             []string `json:"by"`
	Notes          []string `json:"notes,omitempty"`
}

func podName(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

// exact cuts the noise of adding floating-point prices.
func exact(v float64) float64 { return math.Round(v*1e9) / 1e9 }

func newReport(market *pipeline.Market, c deprovision.Cluster, r giveback.Result, frontier []giveback.Point, now time.Time) *report {
	out := &report{
		Summary: summary{
			Nodes: len(c.Nodes), NodesAfter: len(c.Nodes), PricePerHour: r.PricePerHour.Dollars(), PricePerHourAfter: r.PricePerHourAfter.Dollars(),
			Evictions: r.Evictions, Questions: r.Questions, Avoided: r.Avoided, Prices: prices{market.List, market.Date},
		},
		Commands: []change{}, Verdicts: []verdict{}, Frontier: []point{}, market: market, pools: len(c.Pools), now: now,
	}
	if saved := r.PricePerHour - r.PricePerHourAfter; saved > 0 {
		out.Summary.EvictionsPerDollar = math.Round(float64(r.Evictions)/saved.Dollars()*100) / 100
	}
	unpriced := map[string]bool{}
	for i := range c.Nodes {
		if !c.Nodes[i].Priced {
			unpriced[c.Nodes[i].Name()] = true
		}
	}
	out.Summary.Unpriced = len(unpriced)
	for i := range r.Commands {
		cmd := describe(&r.Commands[i])
		cmd.Unpriced = slices.ContainsFunc(cmd.Nodes, func(name string) bool { return unpriced[name] })
		out.Summary.NodesAfter += len(cmd.Replacements) - len(cmd.Nodes)
		out.Summary.Stranded += len(cmd.Stranded)
		out.Commands = append(out.Commands, cmd)
	}
	for _, x := range frontier {
		out.Frontier = append(out.Frontier, point{x.SavingsPerHour.Dollars(), x.Evictions, x.Nodes})
	}
	for _, v := range r.Verdicts {
		out.Verdicts = append(out.Verdicts, judge(v))
	}
	return out
}

func describe(c *giveback.Command) change {
	out := change{
		Method: string(c.Method), Kind: string(c.Kind), Replacements: []replacement{}, Placements: map[string]string{},
		SavingsPerHour: c.SavingsPerHour.Dollars(), DisruptionCost: exact(c.Disruption), Pods: []string{}, AtOnce: c.AtOnce, TerminateFirst: c.TerminateFirst, Waves: c.Waves, Why: c.Why,
	}
	for _, n := range c.Nodes {
		out.Nodes = append(out.Nodes, n.Name)
	}
	fresh := map[string]bool{}
	for _, n := range c.NewNodes {
		fresh[n.Name] = true
		x := replacement{
			Name: n.Name, Provisioner: n.Pool, NodePool: n.Pool, InstanceType: n.InstanceType, Zone: n.Zone, CapacityType: n.CapacityType,
			PricePerHour: n.PricePerHour.Dollars(), Pods: []string{}, Alternatives: []alternative{},
		}
		for _, p := range n.Pods {
			x.Pods = append(x.Pods, podName(p))
		}
		for _, a := range n.Alternatives {
			x.Alternatives = append(x.Alternatives, alternative{a.InstanceType, a.PricePerHour.Dollars()})
		}
		out.Replacements = append(out.Replacements, x)
	}
	for _, p := range c.Placements {
		out.Pods = append(out.Pods, podName(p.Pod))
		if !fresh[p.Node] {
			out.Placements[podName(p.Pod)] = p.Node
		}
	}
	for _, p := range c.Stranded {
		out.Stranded = append(out.Stranded, podName(p))
	}
	return out
}

func judge(v giveback.Verdict) verdict {
	out := verdict{
		Node: v.Node, Verdict: string(v.Outcome), Method: string(v.Method), Detail: v.Detail, DisruptionCost: exact(v.Disruption),
		PricePerHour: v.PricePerHour.Dollars(), BestPrice: v.BestPricePerHour.Dollars(), BoundPrice: v.BoundPerHour.Dollars(), By: []string{}, Notes: v.Notes,
	}
	out.Score, out.Threshold = v.Earned.Dollars(), v.Cost.Dollars()
	for _, b := range v.By {
		out.By = append(out.By, b.String())
	}
	return out
}
