package program

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/purchase"
	"github.com/joinery-sdk/joinery/examples/plan"
	headroomfor "github.com/joinery-sdk/joinery/examples/plan/headroom"
	lib "github.com/joinery-sdk/joinery/examples/plan/report"
	"github.com/joinery-sdk/joinery/examples/plan/rulecost"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// report is the answer as scripts read it; its keys are an interface.
type report struct {
	Summary       summary         `json:"summary"`
	NewNodes      []newNode       `json:"newNodes"`
	ExistingNodes []existingNode  `json:"existingNodes"`
	Unschedulable []unschedulable `json:"unschedulable"`
	Ignored       []ignored       `json:"ignored"`
	Fixes         []fixJSON       `json:"fixes,omitempty"` // each once, with the pods to change; those of broken rules, too
	Gangs         []lib.Gang      `json:"gangs,omitempty"`
	BindingOrder  []string        `json:"bindingOrder"`
	// After has, for each pod that has to wait, the leaving nodes that must be gone first.
	After map[string][]string `json:"after,omitempty"`
	// Refused is what a cloud refused when the plan was bought.
	Refused []purchase.Refusal `json:"refused,omitempty"`
	// Buffers are the CapacityBuffers, with the nodes that they need beside those of the plan.
	Buffers []bufferJSON `json:"buffers,omitempty"`
	// RulesCost is what each rule costs, if that was asked.
	RulesCost *rulecost.Report `json:"rulesCost,omitempty"`
	// Survival is what the plan would live through, if that was asked.
	Survival *survival `json:"survival,omitempty"`
	// curve is for the wide table and the page only, and running, what is bound already, for the
	// page.
	curve   []curvePoint
	running []*corev1.Pod
	// sample says that the built-in sample was planned, empty if files were.
	sample string
	// bought is what was bought, nil for a plan.
	bought *purchase.Report
}

type summary struct {
	lib.Summary
	pools, static, types, room int // pools are those that can grow
}

type (
	prices        = lib.Prices
	seconds       = lib.Seconds
	existingNode  = lib.ExistingNode
	unschedulable = lib.Unschedulable
	reasonJSON    = lib.Reason
	fixJSON       = lib.Fix
	ignored       = lib.Ignored
)

type bufferJSON struct {
	Buffer            string     `json:"buffer"`
	Existing          int        `json:"existing"`
	New               int        `json:"new"`
	Waiting           int        `json:"waiting"`
	Reason            string     `json:"reason"`
	Message           string     `json:"message"`
	Nodes             []lib.Node `json:"nodes"`
	PricePerHour      float64    `json:"pricePerHour"`
	LowerBoundPerHour float64    `json:"lowerBoundPerHour"`
}

// addBuffers plans the rooms of the buffers, and returns the nodes that are bought for them.
func (r *report) addBuffers(ctx context.Context, packed *plan.Plan, buffers []manifests.Buffer) (kept []*corev1.Node, err error) {
	requests := make([]headroomfor.Request, len(buffers))
	for i := range buffers {
		requests[i] = headroomfor.Request{Name: buffers[i].String(), Pods: buffers[i].Pods, Why: buffers[i].Why}
	}
	rooms, err := headroomfor.Plan(ctx, packed, requests)
	if err != nil {
		return nil, err
	}
	for i := range rooms {
		room := &rooms[i]
		c := room.Condition()
		b := bufferJSON{
			Buffer: room.Name, Existing: room.Existing, New: room.New, Waiting: room.Waiting, Reason: c.Reason, Message: c.Message, Nodes: []lib.Node{},
			PricePerHour: room.PricePerHour, LowerBoundPerHour: room.LowerBoundPerHour,
		}
		for k := range room.Nodes {
			b.Nodes = append(b.Nodes, lib.NodeOf(&room.Nodes[k]))
			kept = append(kept, room.Nodes[k].Node())
		}
		r.Buffers = append(r.Buffers, b)
	}
	return kept, nil
}

type newNode struct {
	lib.Node
	use     map[string]utilisation // by resource
	daemons []string
}

type utilisation struct{ used, total int64 }

func (u utilisation) share() float64 {
	if u.total <= 0 {
		return 0
	}
	return float64(u.used) / float64(u.total)
}

// How many changes are tried for refused pods: none, as many as the budget of package pipeline
// allows, or all.
const (
	noFixes   = "none"
	someFixes = "some"
	allFixes  = "all"
)

func podName(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

// newReport describes a plan.
func newReport(market *pipeline.Market, packed *plan.Plan, fixes string) *report {
	base := lib.Of(packed)
	r := &report{NewNodes: []newNode{}, ExistingNodes: base.ExistingNodes, Unschedulable: []unschedulable{}, Ignored: base.Ignored, Gangs: base.Gangs, BindingOrder: base.BindingOrder, After: base.After}
	for _, n := range packed.NewNodes() {
		r.NewNodes = append(r.NewNodes, describeNode(&n))
	}
	r.addUnschedulable(market, packed, fixes)
	p := packed.Problem
	r.Summary = summary{Summary: base.Summary, pools: len(p.Pools), types: market.Len(), room: len(p.Existing)}
	for _, pool := range p.Snapshot().Pools {
		if pool.IsStatic() {
			r.Summary.static++
		}
	}
	r.Summary.Prices, r.Summary.Notes = prices{List: market.List, Date: market.Date}, slices.Concat(packed.Notes(), market.Notes)
	return r
}

func rounded(v float64, digits int) float64 {
	scale := 1.0
	for range digits {
		scale *= 10
	}
	return float64(int64(v*scale+0.5)) / scale
}

// addTiming says how long it took.
func (r *report) addTiming(read, compile, solve time.Duration) {
	r.Summary.Seconds = &seconds{Read: read.Seconds(), Compile: compile.Seconds(), Solve: solve.Seconds()}
}

func describeNode(n *plan.NewNode) newNode {
	allocatable := n.InstanceType.Allocatable()
	out := newNode{Node: lib.NodeOf(n), use: map[string]utilisation{}, daemons: n.DaemonSets}
	for name, q := range allocatable {
		used := resources.Request(name, n.Requests[name]) + resources.Request(name, n.DaemonRequests[name])
		out.use[string(name)] = utilisation{used, resources.Capacity(name, q)}
	}
	return out
}

func (r *report) addUnschedulable(market *pipeline.Market, packed *plan.Plan, fixes string) {
	var found []plan.Fix
	if fixes != noFixes {
		found = packed.FirstFixes(fixes == allFixes)
	}
	for i, u := range packed.Unplaced() {
		reasons := u.Reasons()
		one := unschedulable{Message: market.Refusal(packed.Problem.Classes[u.Class], reasons), Reasons: []reasonJSON{}, Class: u.Class}
		for _, reason := range reasons {
			one.Reasons = append(one.Reasons, lib.ReasonOf(reason))
		}
		if fixes != noFixes {
			if found[i].Text != "" {
				one.Fix = r.shared(lib.FixOf(&found[i]))
			}
			one.Untried = found[i].Untried
		}
		for _, p := range u.Pods {
			one.Pod = podName(p)
			r.Unschedulable = append(r.Unschedulable, one)
		}
	}
}

// shared adds a fix to the report unless it is there, and returns it without the pods to change:
// thousands of pods may share it.
func (r *report) shared(fix fixJSON) *fixJSON {
	fix.PerHour = rounded(fix.PerHour, 6)
	known := func(f fixJSON) bool { return f.Change == fix.Change && slices.Equal(f.Classes, fix.Classes) }
	if !slices.ContainsFunc(r.Fixes, known) {
		r.Fixes = append(r.Fixes, fix)
	}
	fix.Pods = nil
	return &fix
}
