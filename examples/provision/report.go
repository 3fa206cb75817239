package main

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/podclass"
)

// report is the answer as scripts read it; its keys are an interface.
type report struct {
	Summary       summary         `json:"summary"`
	NewNodes      []newNode       `json:"newNodes"`
	ExistingNodes []existingNode  `json:"existingNodes"`
	Unschedulable []unschedulable `json:"unschedulable"`
	Ignored       []ignored       `json:"ignored"`
	BindingOrder  []string        `json:"bindingOrder"`
	// Refused is what a cloud refused when the plan was bought.
	Refused []refusalJSON `json:"refused,omitempty"`
	// curve is for the wide table only.
	curve []curvePoint
}

type summary struct {
	Pods               int      `json:"pods"`
	Scheduled          int      `json:"scheduled"`
	Unschedulable      int      `json:"unschedulable"`
	Ignored            int      `json:"ignored"`
	NewNodes           int      `json:"newNodes"`
	PricePerHour       float64  `json:"pricePerHour"`
	ObjectivePerHour   float64  `json:"objectivePerHour,omitempty"`
	LowerBoundPerHour  float64  `json:"lowerBoundPerHour"`
	GapPercent         float64  `json:"gapPercent"`
	BoundKind          string   `json:"boundKind"`
	Proof              string   `json:"proof"` // certificate or exhausted
	Strategy           string   `json:"strategy"`
	Rounds             int      `json:"rounds"`
	Plans              int      `json:"plans,omitempty"` // how often was planned, when it was bought
	Prices             prices   `json:"prices"`
	Notes              []string `json:"notes,omitempty"`
	Seconds            *seconds `json:"seconds,omitempty"`
	pools, types, room int
}

type prices struct {
	List string `json:"list"`
	Date string `json:"date,omitempty"`
}

type seconds struct {
	Read    float64 `json:"read"`
	Compile float64 `json:"compile"`
	Solve   float64 `json:"solve"`
}

type newNode struct {
	Name         string                 `json:"name"`
	Provisioner  string                 `json:"provisioner"`
	NodePool     string                 `json:"nodePool"`
	InstanceType string                 `json:"instanceType"`
	Zone         string                 `json:"zone"`
	CapacityType string                 `json:"capacityType"`
	PricePerHour float64                `json:"pricePerHour"`
	Labels       map[string]string      `json:"labels"`
	Taints       []corev1.Taint         `json:"taints"`
	Requests     map[string]string      `json:"requests"`
	DaemonSets   map[string]string      `json:"daemonSets"`
	Allocatable  map[string]string      `json:"allocatable"`
	Alternatives []alternative          `json:"alternatives"`
	Pods         []string               `json:"pods"`
	use          map[string]utilisation // by resource
	daemons      []string
}

type utilisation struct{ used, total int64 }

func (u utilisation) share() float64 {
	if u.total <= 0 {
		return 0
	}
	return float64(u.used) / float64(u.total)
}

type alternative struct {
	InstanceType string  `json:"instanceType"`
	Zone         string  `json:"zone"`
	CapacityType string  `json:"capacityType"`
	PricePerHour float64 `json:"pricePerHour"`
}

type existingNode struct {
	Name string   `json:"name"`
	Pods []string `json:"pods"`
}

type unschedulable struct {
	Pod     string       `json:"pod"`
	Message string       `json:"message"`
	Reasons []reasonJSON `json:"reasons"`
	Fix     *fixJSON     `json:"fix,omitempty"`
	// Untried is how many changes that might help were not tried.
	Untried int `json:"untriedFixes,omitempty"`
}

type reasonJSON struct {
	NodePool string       `json:"nodePool,omitempty"`
	Stage    string       `json:"stage"`
	Key      string       `json:"key,omitempty"`
	Resource string       `json:"resource,omitempty"`
	Detail   string       `json:"detail"`
	Nearest  *nearestJSON `json:"nearest,omitempty"`
}

type nearestJSON struct {
	InstanceType string            `json:"instanceType"`
	Short        map[string]string `json:"short,omitempty"`
	ShutOutBy    string            `json:"shutOutBy,omitempty"`
}

// How many changes are tried for refused pods: none, as many as the budget of package pipeline allows, or all.
const (
	noFixes   = "none"
	someFixes = "some"
	allFixes  = "all"
)

type fixJSON struct {
	Change   string `json:"change"`
	Verified bool   `json:"verified"`
}

type ignored struct {
	Pod string `json:"pod"`
	Why string `json:"why"`
}

func podName(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

func podNames(pods []*corev1.Pod) []string {
	out := make([]string, 0, len(pods))
	for _, p := range pods {
		out = append(out, podName(p))
	}
	return out
}

// newReport describes a plan.
func newReport(market *pipeline.Market, packed *plan.Plan, fixes string) *report {
	p, plan := packed.Problem, packed.Packing
	bindings := packed.Bindings()
	order, on := make([]*corev1.Pod, len(bindings)), map[string][]*corev1.Pod{}
	for i, b := range bindings {
		order[i], on[b.Node] = b.Pod, append(on[b.Node], b.Pod)
	}
	r := &report{
		NewNodes: []newNode{}, ExistingNodes: []existingNode{}, Unschedulable: []unschedulable{}, Ignored: []ignored{},
		BindingOrder: podNames(order),
	}
	nodes := packed.NewNodes()
	for i := range nodes {
		r.NewNodes = append(r.NewNodes, describeNode(&nodes[i]))
	}
	for i := range p.Existing {
		name := p.Existing[i].Node.Name
		if pods := on[name]; len(pods) > 0 {
			podclass.Sort(pods)
			r.ExistingNodes = append(r.ExistingNodes, existingNode{name, podNames(pods)})
		}
	}
	r.addUnschedulable(market, packed, fixes)
	for _, i := range p.Ignored {
		r.Ignored = append(r.Ignored, ignored{podName(i.Pod), i.Why})
	}
	r.Summary = summary{
		Scheduled: len(order), Unschedulable: len(r.Unschedulable), Ignored: len(r.Ignored), NewNodes: len(nodes),
		PricePerHour: packed.Cost().Dollars(), LowerBoundPerHour: plan.Bound.Price.Dollars(), GapPercent: rounded(plan.GapPercent(), 2),
		BoundKind: string(plan.Bound.Kind), Proof: proof(plan.Bound.Kind), Strategy: plan.Strategy, Rounds: packed.Rounds,
		Prices: prices{market.List, market.Date}, Notes: slices.Concat(p.Notes, market.Notes),
		pools: len(p.Pools), types: market.Len(), room: len(p.Existing),
	}
	if plan.Objective != plan.Cost {
		r.Summary.ObjectivePerHour = plan.Objective.Dollars()
	}
	r.Summary.Pods = r.Summary.Scheduled + r.Summary.Unschedulable + r.Summary.Ignored
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
	r.Summary.Seconds = &seconds{read.Seconds(), compile.Seconds(), solve.Seconds()}
}

func describeNode(n *plan.NewNode) newNode {
	requests := n.Requests
	allocatable := n.InstanceType.Allocatable()
	out := newNode{
		Name: n.Name, Provisioner: n.Pool.Name, NodePool: n.Pool.Name, InstanceType: n.InstanceType.Name, Zone: n.Zone,
		CapacityType: n.CapacityType, PricePerHour: n.PricePerHour, Labels: n.Labels, Taints: append([]corev1.Taint{}, n.Pool.Taints...),
		Requests: quantities(requests), DaemonSets: quantities(n.DaemonRequests), Allocatable: quantities(allocatable),
		Alternatives: []alternative{}, Pods: podNames(n.Pods), use: map[string]utilisation{}, daemons: n.DaemonSets,
	}
	for name, q := range allocatable {
		used := resources.Request(name, requests[name]) + resources.Request(name, n.DaemonRequests[name])
		out.use[string(name)] = utilisation{used, resources.Capacity(name, q)}
	}
	for _, a := range n.Alternatives {
		out.Alternatives = append(out.Alternatives, alternative{a.InstanceType, a.Zone, a.CapacityType, a.PricePerHour})
	}
	return out
}

func quantities(list corev1.ResourceList) map[string]string {
	out := make(map[string]string, len(list))
	for name, q := range list {
		out[string(name)] = q.String()
	}
	return out
}

func (r *report) addUnschedulable(market *pipeline.Market, packed *plan.Plan, fixes string) {
	for _, u := range packed.Unplaced() {
		reasons := u.Reasons()
		one := unschedulable{Message: message(market, packed.Problem.Classes[u.Class], reasons), Reasons: []reasonJSON{}}
		for _, reason := range reasons {
			one.Reasons = append(one.Reasons, describeReason(reason))
		}
		if fixes != noFixes {
			fix := packed.Fix(u.Class, reasons, fixes == allFixes)
			if fix.Text != "" {
				one.Fix = &fixJSON{fix.Text, true}
			}
			one.Untried = fix.Untried
		}
		for _, p := range u.Pods {
			one.Pod = podName(p)
			r.Unschedulable = append(r.Unschedulable, one)
		}
	}
}

func describeReason(r scheduling.Reason) reasonJSON {
	out := reasonJSON{NodePool: r.Pool, Stage: string(r.Stage), Key: r.Key, Resource: r.Resource, Detail: r.Detail}
	if n := r.Nearest; n != nil && n.Type != "" {
		out.Nearest = &nearestJSON{InstanceType: n.Type, ShutOutBy: n.ShutOutBy}
		for _, name := range slices.Sorted(maps.Keys(n.Short)) {
			if out.Nearest.Short == nil {
				out.Nearest.Short = map[string]string{}
			}
			out.Nearest.Short[name] = resources.Humane(corev1.ResourceName(name), n.Short[name])
		}
	}
	return out
}

// message is the one line for people: what the pod asks that decides, and the remark of the market where it has one.
func message(market *pipeline.Market, class *scheduling.Class, reasons []scheduling.Reason) string {
	for set := range class.Required.All() {
		for req := range set.All() {
			values, _ := req.Values()
			for _, v := range values {
				if text := market.Elsewhere(req.Key(), v); text != "" {
					return text
				}
			}
		}
	}
	if len(reasons) == 1 {
		return reasons[0].String()
	}
	// Where every pool fails alike, say it once.
	same := true
	for _, r := range reasons {
		same = same && r.Detail == reasons[0].Detail
	}
	if same {
		return "every pool: " + reasons[0].Detail
	}
	// The pool that came closest has the most to say.
	best := slices.MaxFunc(reasons, func(a, b scheduling.Reason) int {
		return cmp.Or(cmp.Compare(btoi(a.Pool != ""), btoi(b.Pool != "")), cmp.Compare(a.Stage.Depth(), b.Stage.Depth()))
	})
	return best.String()
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// proof is what stands behind a bound of the kind.
func proof(k binpack.BoundKind) string {
	if k.Certificate() {
		return "certificate"
	}
	return "exhausted"
}
