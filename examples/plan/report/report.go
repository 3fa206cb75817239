// Package report is the form of a plan that scripts read. Its JSON keys, those of `provision -o
// json`, are an interface.
package report

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Report is a plan. Pods are named as namespace/name.
type Report struct {
	Summary       Summary         `json:"summary"`
	NewNodes      []Node          `json:"newNodes"`
	ExistingNodes []ExistingNode  `json:"existingNodes"`
	Unschedulable []Unschedulable `json:"unschedulable"`
	Ignored       []Ignored       `json:"ignored"`
	// Fixes are the fixes of Unschedulable, each once and with the pods to change. [Of] leaves them
	// out.
	Fixes []Fix `json:"fixes,omitempty"`
	// Gangs are the groups of pods that run only together.
	Gangs []Gang `json:"gangs,omitempty"`
	// BindingOrder lists the pods in the order in which they have to be bound.
	BindingOrder []string `json:"bindingOrder"`
	// After lists, for each pod that has to wait, the leaving nodes that must be gone first, see
	// [scheduling.Binding.After].
	After map[string][]string `json:"after,omitempty"`
}

// Summary has the summary figures of a plan. Prices, costs and bounds are in dollars an hour.
// ObjectivePerHour is the cost in the objective; it is omitted if it equals the price.
type Summary struct {
	Pods             int     `json:"pods"`
	Scheduled        int     `json:"scheduled"`
	Unschedulable    int     `json:"unschedulable"`
	Ignored          int     `json:"ignored"`
	NewNodes         int     `json:"newNodes"`
	PricePerHour     float64 `json:"pricePerHour"`
	ObjectivePerHour float64 `json:"objectivePerHour,omitempty"`
	// LowerBoundPerHour is a lower bound of the cost of the same pods. ChoiceLowerBoundPerHour is
	// one for the zones, pools and preferences that the plan chose; it is omitted if it is not
	// higher.
	LowerBoundPerHour       float64 `json:"lowerBoundPerHour"`
	ChoiceLowerBoundPerHour float64 `json:"choiceLowerBoundPerHour,omitempty"`
	// WeightsPerHour is what the weights of pools cost, see [plan.Plan.WeightsCost].
	WeightsPerHour float64  `json:"weightsPerHour,omitempty"`
	GapPercent     float64  `json:"gapPercent"`
	BoundKind      string   `json:"boundKind"`
	Proof          string   `json:"proof"` // certificate or exhausted
	Strategy       string   `json:"strategy"`
	Rounds         int      `json:"rounds"`
	Plans          int      `json:"plans,omitempty"` // how many plans were made, if nodes were bought
	Prices         Prices   `json:"prices"`
	Notes          []string `json:"notes,omitempty"`
	Seconds        *Seconds `json:"seconds,omitempty"`
}

// Prices names a price list and its date.
type Prices struct {
	List string `json:"list"`
	Date string `json:"date,omitempty"`
}

// Seconds is how long each step took, in seconds.
type Seconds struct {
	Read    float64 `json:"read"`
	Compile float64 `json:"compile"`
	Solve   float64 `json:"solve"`
}

// Node is a node to buy. PricePerHour is in dollars. Provisioner and NodePool are both the name of
// the pool. Requests is the sum of the requests of Pods, and DaemonSets the sum of those of
// daemons, by resource.
type Node struct {
	Name         string            `json:"name"`
	Provisioner  string            `json:"provisioner"`
	NodePool     string            `json:"nodePool"`
	InstanceType string            `json:"instanceType"`
	Zone         string            `json:"zone"`
	CapacityType string            `json:"capacityType"`
	PricePerHour float64           `json:"pricePerHour"`
	Labels       map[string]string `json:"labels"`
	Taints       []corev1.Taint    `json:"taints"`
	Requests     map[string]string `json:"requests"`
	DaemonSets   map[string]string `json:"daemonSets"`
	Allocatable  map[string]string `json:"allocatable"`
	Alternatives []Alternative     `json:"alternatives"`
	Pods         []string          `json:"pods"`
}

// Alternative is another way to buy a node.
type Alternative struct {
	InstanceType string  `json:"instanceType"`
	Zone         string  `json:"zone"`
	CapacityType string  `json:"capacityType"`
	PricePerHour float64 `json:"pricePerHour"`
}

// ExistingNode is an existing node on which the plan places pods.
type ExistingNode struct {
	Name string   `json:"name"`
	Pods []string `json:"pods"`
}

// Unschedulable is a pod without a place. Message is the first of its reasons.
type Unschedulable struct {
	Pod     string   `json:"pod"`
	Message string   `json:"message"`
	Reasons []Reason `json:"reasons"`
	Fix     *Fix     `json:"fix,omitempty"`
	// Untried is how many changes that might help were not tried.
	Untried int `json:"untriedFixes,omitempty"`
	// Class distinguishes pods with the same reasons that belong to different classes.
	Class int `json:"-"`
}

// Reason is why a pool cannot hold a pod; see [scheduling.Reason]. An empty NodePool means no pool
// in particular.
type Reason struct {
	NodePool string   `json:"nodePool,omitempty"`
	Stage    string   `json:"stage"`
	Key      string   `json:"key,omitempty"`
	Resource string   `json:"resource,omitempty"`
	Detail   string   `json:"detail"`
	Nearest  *Nearest `json:"nearest,omitempty"`
}

// Nearest is the type that came closest to holding the pod; see [scheduling.Nearest].
type Nearest struct {
	InstanceType string            `json:"instanceType"`
	Short        map[string]string `json:"short,omitempty"`
	ShutOutBy    string            `json:"shutOutBy,omitempty"`
}

// Fix is a change that gives the pod a place, see [plan.Fix]. Verified says that it was tried in a
// plan.
type Fix struct {
	Change   string `json:"change"`
	Verified bool   `json:"verified"`
	// Placed of the Refused pods of Classes get places. If it is fewer than all, these are pods of
	// one workload, or of several that share a class; they change together.
	Placed  int `json:"placed"`
	Refused int `json:"refused"`
	// PerHour is what the change adds at most for the pods of all Classes, in dollars an hour.
	// [plan.Fix] names an exception, for large plans.
	PerHour    float64             `json:"pricePerHour,omitempty"`
	Kind       string              `json:"kind,omitempty"`
	NodePool   string              `json:"nodePool,omitempty"`
	Quota      string              `json:"quota,omitempty"`
	Key        string              `json:"key,omitempty"`
	Value      string              `json:"value,omitempty"`
	Setting    string              `json:"setting,omitempty"` // of the plan, to be raised to Value
	Allow      map[string][]string `json:"allow,omitempty"`
	Requests   map[string]string   `json:"requests,omitempty"`
	Constraint string              `json:"constraint,omitempty"`
	Index      *int                `json:"index,omitempty"` // with Constraint
	// Pods are the pods to change. They are empty in an entry of Unschedulable: [Report.Fixes] has
	// each fix once, with its pods.
	Pods []string `json:"pods,omitempty"`
	// Classes are the classes that the change was tried for.
	Classes []int `json:"-"`
}

// FixOf describes a fix. Its cost is not rounded.
func FixOf(f *plan.Fix) Fix {
	out := Fix{
		Change: f.Text, Verified: true, Placed: f.Placed, Refused: f.Refused, PerHour: f.PerHour, Kind: string(f.Kind), NodePool: f.Pool, Quota: f.Quota, Key: f.Key, Value: f.Value, Setting: f.Setting,
		Allow: f.Allow, Constraint: string(f.Constraint), Classes: f.Classes,
	}
	if len(f.Requests) > 0 {
		out.Requests = quantities(f.Requests)
	}
	if f.Constraint != "" {
		out.Index = &f.Index
	}
	if len(f.Pods) > 0 {
		out.Pods = names(f.Pods)
	}
	return out
}

// Gang is the result for a group of pods that run only together, see [plan.Gang].
type Gang struct {
	Name    string `json:"name"`
	Running int    `json:"running"`
	Placed  int    `json:"placed"`
	Waiting int    `json:"waiting"`
	// Key is the label whose value its nodes share, and Domain is that value. Values is how many
	// values they may have, separated by commas in Domain; 0 means 1.
	Key      string   `json:"key,omitempty"`
	Values   int      `json:"values,omitempty"`
	Domain   string   `json:"domain,omitempty"`
	Nodes    []string `json:"nodes"`
	NewNodes int      `json:"newNodes"`
	// PricePerHour is the price of its new nodes. LowerBoundPerHour is a lower bound of the cost of
	// nodes that hold it in no more domains than allowed. Both are in dollars.
	PricePerHour      float64 `json:"pricePerHour"`
	LowerBoundPerHour float64 `json:"lowerBoundPerHour"`
	// Why says why pods have no place, see [plan.Gang].
	Why string `json:"why,omitempty"`
}

// Ignored is a pod that is not to be planned.
type Ignored struct {
	Pod string `json:"pod"`
	Why string `json:"why"`
}

// Of describes a plan. It leaves out what only the program knows: the price list, timings and
// fixes.
func Of(p *plan.Plan) Report {
	bindings := p.Bindings()
	order, on := make([]*corev1.Pod, len(bindings)), map[string][]*corev1.Pod{}
	var after map[string][]string
	for i, b := range bindings {
		order[i], on[b.Node] = b.Pod, append(on[b.Node], b.Pod)
		if len(b.After) > 0 {
			if after == nil {
				after = map[string][]string{}
			}
			after[b.Pod.Namespace+"/"+b.Pod.Name] = slices.Sorted(slices.Values(b.After))
		}
	}
	nodes := p.NewNodes()
	r := Report{NewNodes: make([]Node, 0, len(nodes)), ExistingNodes: []ExistingNode{}, Unschedulable: []Unschedulable{}, Ignored: []Ignored{}, BindingOrder: names(order), After: after}
	for i := range nodes {
		r.NewNodes = append(r.NewNodes, NodeOf(&nodes[i]))
	}
	for i := range p.Problem.Existing {
		name := p.Problem.Existing[i].Node.Name
		if pods := on[name]; len(pods) > 0 {
			slices.SortFunc(pods, scheduling.ComparePods)
			r.ExistingNodes = append(r.ExistingNodes, ExistingNode{name, names(pods)})
		}
	}
	for _, u := range p.Unplaced() {
		one := Unschedulable{Reasons: []Reason{}}
		for _, reason := range u.Reasons() {
			one.Reasons = append(one.Reasons, ReasonOf(reason))
		}
		one.Message = one.Reasons[0].Detail
		for _, pod := range u.Pods {
			one.Pod = pod.Namespace + "/" + pod.Name
			r.Unschedulable = append(r.Unschedulable, one)
		}
	}
	for _, i := range p.Problem.Ignored {
		r.Ignored = append(r.Ignored, Ignored{i.Pod.Namespace + "/" + i.Pod.Name, i.Why})
	}
	for _, g := range p.Gangs() {
		if g.Values == 1 {
			g.Values = 0
		}
		r.Gangs = append(r.Gangs, Gang{
			Name: g.Name, Running: g.Running, Placed: g.Placed, Waiting: g.Waiting, Key: g.Key, Values: g.Values, Domain: g.Domain, Nodes: append([]string{}, g.Nodes...),
			NewNodes: g.New, PricePerHour: g.PricePerHour, LowerBoundPerHour: g.LowerBoundPerHour, Why: g.Why,
		})
	}
	bound := p.Bound
	r.Summary = Summary{
		Scheduled: len(order), Unschedulable: len(r.Unschedulable), Ignored: len(r.Ignored), NewNodes: len(nodes),
		PricePerHour: p.Cost().Dollars(), LowerBoundPerHour: bound.Price.Dollars(), GapPercent: rounded(bound.GapPercent),
		BoundKind: string(bound.Kind), Proof: Proof(bound.Kind), Strategy: p.Packing.Strategy, Rounds: p.Rounds, Notes: p.Notes(),
	}
	if bound.Choice > bound.Price {
		r.Summary.ChoiceLowerBoundPerHour = bound.Choice.Dollars()
	}
	if counted := p.ObjectiveValue(); counted != p.Cost() {
		r.Summary.ObjectivePerHour = counted.Dollars()
	}
	r.Summary.Pods = r.Summary.Scheduled + r.Summary.Unschedulable + r.Summary.Ignored
	return r
}

// rounded rounds to two decimal places.
func rounded(v float64) float64 { return float64(int64(v*100+0.5)) / 100 }

// Proof says how a bound of this kind is proved: "certificate", or "exhausted" for a search.
func Proof(k binpack.BoundKind) string {
	if k.Certificate() {
		return "certificate"
	}
	return "exhausted"
}

// NodeOf describes a node to buy.
func NodeOf(n *plan.NewNode) Node {
	out := Node{
		Name: n.Name, Provisioner: n.Pool.Name, NodePool: n.Pool.Name, InstanceType: n.InstanceType.Name, Zone: n.Zone,
		CapacityType: n.CapacityType, PricePerHour: n.PricePerHour, Labels: n.Labels, Taints: append([]corev1.Taint{}, n.Pool.Taints...),
		Requests: quantities(n.Requests), DaemonSets: quantities(n.DaemonRequests), Allocatable: quantities(n.InstanceType.Allocatable()),
		Alternatives: []Alternative{}, Pods: names(n.Pods),
	}
	for _, a := range n.Alternatives {
		out.Alternatives = append(out.Alternatives, Alternative{a.InstanceType, a.Zone, a.CapacityType, a.PricePerHour})
	}
	return out
}

// ReasonOf describes why pods have no place.
func ReasonOf(r scheduling.Reason) Reason {
	out := Reason{NodePool: r.Pool, Stage: string(r.Stage), Key: r.Key, Resource: r.Resource, Detail: r.Detail}
	if n := r.Nearest; n != nil && n.Type != "" {
		out.Nearest = &Nearest{InstanceType: n.Type, ShutOutBy: n.ShutOutBy}
		for _, name := range slices.Sorted(maps.Keys(n.Short)) {
			if out.Nearest.Short == nil {
				out.Nearest.Short = map[string]string{}
			}
			out.Nearest.Short[name] = resources.Humane(corev1.ResourceName(name), n.Short[name])
		}
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

func names(pods []*corev1.Pod) []string {
	out := make([]string, 0, len(pods))
	for _, p := range pods {
		out = append(out, p.Namespace+"/"+p.Name)
	}
	return out
}
