package plan

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Objective is what a plan should optimize beyond the price list: what counts as the cost of a node
// when plans are compared, and how large and how many nodes may be. Displayed prices do not change.
// nil and the zero Objective mean the price alone.
//
// By price alone, older families win, because a core costs less but is slower. A factor on them
// says how much slower.
type Objective struct {
	// Factors multiply the price of the offerings that they match. The first that matches counts.
	Factors []Factor
	// PerNode is added for each node, in dollars an hour, for example for a licence, an agent or an
	// address.
	PerNode float64
	// Interruption is a fraction of the spot price that is added to it as the cost of being
	// interrupted. It is used if Interruptions has no rate.
	Interruption float64
	// Interruptions says how often spot capacity is interrupted and what that costs. nil says
	// nothing.
	Interruptions *Interruptions
	// Prices are layers over the price list, lowest first, such as discounts and savings plans.
	Prices []instancetypes.PriceSource
	// Spread keeps workloads from depending on few spot pools.
	Spread Spread
	// MostCPU limits the vCPUs of a node; 0 means no limit.
	MostCPU int64
	// MostNodes limits the nodes of each pool, including existing nodes; 0 means no limit.
	MostNodes int64
	// Flags says that these settings come from the flags of the programs. Reasons, fixes and notes
	// then name the flags.
	Flags bool
}

// called returns the name of a setting in reasons, fixes and notes.
func (o *Objective) called(field, flag string) string {
	if o.Flags {
		return flag
	}
	return "Objective." + field
}

// Factor multiplies the price of the offerings that it matches by Times, such as 1.2 for 20% more.
type Factor struct {
	// Match is compared with the labels of the node that the offering gives.
	Match requirements.Set
	Times float64
}

// Interruptions gives the expected cost of interruptions of a spot node: their rate times the cost
// of each.
type Interruptions struct {
	// Cost is the cost of one interruption in dollars: lost work and capacity that is idle until it
	// is replaced.
	Cost float64
	// PerHour returns how often per hour a spot node of the type in the zone is interrupted. known
	// is false if there is no rate.
	PerHour func(instanceType, zone string) (rate float64, known bool)
}

// countsMore reports whether a node costs more than its price.
func (o *Objective) countsMore() bool {
	return o != nil && (len(o.Factors) > 0 || o.PerNode > 0 || o.Interruption > 0 || o.Interruptions != nil)
}

// check reports every invalid setting: negative numbers, numbers that are too large, and NaN.
func (o *Objective) check() error {
	if o == nil {
		return nil
	}
	var errs []error
	number := func(what string, v, most float64) {
		if !(v >= 0 && v <= most) { // this is also true of NaN
			errs = append(errs, fmt.Errorf("plan: objective: %s is %v, want 0 to %v", what, v, most))
		}
	}
	for i, f := range o.Factors {
		number(fmt.Sprintf("factor %d", i), f.Times, maxDollars)
	}
	number("the price of each node", o.PerNode, maxDollars)
	number("the part for interruptions", o.Interruption, maxDollars)
	if o.Interruptions != nil {
		number("the cost of an interruption", o.Interruptions.Cost, maxDollars)
	}
	number("the part of a workload in a spot pool", o.Spread.Workload, 1)
	number("the part of the plan in a spot pool", o.Spread.Plan, 1)
	number("the most vCPUs of a node", float64(o.MostCPU), math.MaxInt64)
	number("the most nodes of a pool", float64(o.MostNodes), math.MaxInt64)
	return errors.Join(errs...)
}

// idle returns a note for each factor that matches nothing for sale because nothing has a label that
// it requires. Its key may be misspelt.
func (o *Objective) idle(p *scheduling.Problem) []string {
	if o == nil || len(o.Factors) == 0 {
		return nil
	}
	matched, keys := make([]bool, len(o.Factors)), map[string]bool{}
	for i := range p.Shapes {
		for j := range p.Shapes[i].Offerings {
			labels, err := p.NodeLabels(i, j)
			if err != nil {
				continue
			}
			for r := range labels.All() {
				keys[r.Key()] = true
			}
			for k, f := range o.Factors {
				matched[k] = matched[k] || f.Match.Compatible(labels, requirements.Keys{})
			}
		}
	}
	var out []string
	for k, f := range o.Factors {
		for r := range f.Match.All() {
			if matched[k] || len(keys) == 0 || keys[r.Key()] || r.AllowsAbsent() {
				continue
			}
			hint := ""
			if near, ok := requirements.Nearest(r.Key(), slices.Sorted(maps.Keys(keys))); ok {
				hint = fmt.Sprintf(" (did you mean %q?)", near)
			}
			out = append(out, fmt.Sprintf("factor %d of the objective changes no price: nothing for sale has the label %s%s", k, r.Key(), hint))
		}
	}
	return out
}

// maxDollars is far above the price of any node, and small enough that sums fit into integers.
const maxDollars = 1e6

// Narrow returns the snapshot with the objective's prices applied, with a limit on the number of
// nodes of each pool, and with types that are too large withheld. The argument is not changed.
func (o *Objective) Narrow(s scheduling.Snapshot) scheduling.Snapshot {
	if o == nil || o.MostCPU <= 0 && o.MostNodes <= 0 && len(o.Prices) == 0 {
		return s
	}
	s.Pools = slices.Clone(s.Pools)
	for i := range s.Pools {
		p := &s.Pools[i]
		if len(o.Prices) > 0 {
			p.Types = instancetypes.Reprice(p.Types, o.Prices...)
		}
		if o.MostCPU > 0 {
			p.Types = o.withhold(p.Types)
		}
		if o.MostNodes > 0 {
			p.MaxNodes, p.MaxNodesBy = o.MostNodes, o.called("MostNodes", "--max-nodes")
		}
	}
	return s
}

// withhold marks the offerings of types with more than MostCPU vCPUs.
func (o *Objective) withhold(types []instancetypes.InstanceType) []instancetypes.InstanceType {
	types = slices.Clone(types)
	for i := range types {
		t := &types[i]
		if t.Capacity.Cpu().Value() <= o.MostCPU {
			continue
		}
		t.Offerings = slices.Clone(t.Offerings)
		for j := range t.Offerings {
			if offer := &t.Offerings[j]; offer.Available {
				offer.Available, offer.Withheld = false, fmt.Sprintf("%s %d", o.called("MostCPU", "--max-node-cpu"), o.MostCPU)
			}
		}
	}
	return types
}

// Cost returns the cost in the objective of a node with these labels and this price in dollars an
// hour.
func (o *Objective) Cost(labels requirements.Set, price float64) binpack.Price {
	if o == nil {
		return Price(price)
	}
	cost := price
	if i := slices.IndexFunc(o.Factors, func(f Factor) bool { return f.Match.Compatible(labels, requirements.Keys{}) }); i >= 0 {
		cost *= o.Factors[i].Times
	}
	if capacityType, _ := labels.Get(instancetypes.LabelCapacityType).Single(); capacityType == instancetypes.CapacityTypeSpot {
		cost += o.trouble(labels, price)
	}
	return Price(cost + o.PerNode)
}

// CostFunc returns Cost as [scheduling.Options] want it, or nil if nodes count as their price.
func (o *Objective) CostFunc() func(labels requirements.Set, pricePerHour float64) float64 {
	if !o.countsMore() {
		return nil
	}
	return func(labels requirements.Set, price float64) float64 { return o.Cost(labels, price).Dollars() }
}

// trouble returns the expected cost of interruptions, in dollars an hour, of a spot node with these
// labels.
func (o *Objective) trouble(labels requirements.Set, price float64) float64 {
	if x := o.Interruptions; x != nil {
		typ, _ := labels.Get(corev1.LabelInstanceTypeStable).Single()
		zone, _ := labels.Get(corev1.LabelTopologyZone).Single()
		if rate, known := x.PerHour(typ, zone); known {
			return rate * x.Cost
		}
	}
	return o.Interruption * price
}

// Spread limits how many pods are lost at once when a cloud takes back a spot pool: the spot
// capacity of an instance type in a zone. Running pods count too. One pod is always allowed. Pods
// that have no place within the limit are placed beyond it, and [Plan.Notes] says so.
// kube-scheduler does not know this limit, so it holds only for the plan. The zero value limits
// nothing.
type Spread struct {
	// Workload limits the fraction of the pods of each workload that one spot pool may hold. Plan
	// limits it for all pods together. They are at most 1; 0 means no limit.
	Workload, Plan float64
}

// Scheduling returns the options that a snapshot must be compiled with for the objective: nodes
// count as [Objective.Cost] says. If Spread has a limit, it replaces [scheduling.Options.Apart], so
// new nodes stay as packed. If Spread limits each workload, each workload has classes of its own.
// nil means defaults.
func (o *Objective) Scheduling(opts *scheduling.Options) *scheduling.Options {
	if !o.countsMore() && (o == nil || o.Spread == (Spread{})) {
		return opts
	}
	var out scheduling.Options
	if opts != nil {
		out = *opts
	}
	if out.Cost = o.CostFunc(); o.Spread == (Spread{}) {
		return &out
	}
	out.Apart = func(*corev1.Pod) string { return "" }
	if o.Spread.Workload > 0 {
		out.Apart = WorkloadOf
	}
	return &out
}

// spotPool returns the name of the spot pool of a node with these labels, or an empty string if it
// is not spot.
func spotPool(labels requirements.Set) string {
	if capacityType, _ := labels.Get(instancetypes.LabelCapacityType).Single(); capacityType != instancetypes.CapacityTypeSpot {
		return ""
	}
	typ, _ := labels.Get(corev1.LabelInstanceTypeStable).Single()
	zone, _ := labels.Get(corev1.LabelTopologyZone).Single()
	return typ + " in " + zone
}

// spreading is a Spread applied to the pods of a problem.
type spreading struct {
	nodes []string // the spot pool of each existing node
	of    [][]int  // the limits that each class counts for
	bound []binpack.Diversity
	names []string // the workload of each limit, empty for that of the plan
	pods  []int    // how many pods each limit counts
}

func (o *Objective) spreadFor(p *scheduling.Problem) *spreading {
	if o == nil || o.Spread == (Spread{}) {
		return nil
	}
	out := &spreading{of: make([][]int, len(p.Classes))}
	pools := map[string]string{} // by node
	for i := range p.Existing {
		pool := spotPool(p.Existing[i].Labels)
		out.nodes = append(out.nodes, pool)
		pools[p.Existing[i].Node.Name] = pool
	}
	number := map[string]int{}
	count := func(name string, n int) int {
		at, ok := number[name]
		if !ok {
			at = len(out.bound)
			number[name] = at
			out.bound = append(out.bound, binpack.Diversity{Placed: map[string]int{}})
			out.names, out.pods = append(out.names, name), append(out.pods, 0)
		}
		out.pods[at] += n
		return at
	}
	for i, c := range p.Classes {
		if o.Spread.Plan > 0 {
			out.of[i] = append(out.of[i], count("", len(c.Pods)))
		}
		if o.Spread.Workload > 0 {
			out.of[i] = append(out.of[i], count(WorkloadOf(c.Pods[0]), len(c.Pods)))
		}
	}
	for _, pod := range p.Snapshot().Pods {
		if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, name := range []string{"", WorkloadOf(pod)} {
			if at, ok := number[name]; ok {
				out.pods[at]++
				if pool := pools[pod.Spec.NodeName]; pool != "" {
					out.bound[at].Placed[pool]++
				}
			}
		}
	}
	for at, name := range out.names {
		part := o.Spread.Workload
		if name == "" {
			part = o.Spread.Plan
		}
		out.bound[at].Max = max(int(part*float64(out.pods[at])+1e-9), 1)
	}
	return out
}

// exceeded returns a note for each limit that the plan does not keep.
func (o *Objective) exceeded(p *Plan) []string {
	s := o.spreadFor(p.Problem)
	if s == nil {
		return nil
	}
	class := map[*corev1.Pod]int{}
	for i, c := range p.Problem.Classes {
		for _, pod := range c.Pods {
			class[pod] = i
		}
	}
	pools := map[string]string{} // by node
	for i, pool := range s.nodes {
		pools[p.Problem.Existing[i].Node.Name] = pool
	}
	for _, n := range p.NewNodes() {
		pools[n.Name] = spotPool(requirements.FromLabels(n.Labels))
	}
	for _, b := range p.Bindings() {
		for _, at := range s.of[class[b.Pod]] {
			if pool := pools[b.Node]; pool != "" {
				s.bound[at].Placed[pool]++
			}
		}
	}
	var out []string
	for at, limit := range s.bound {
		setting, whose := fmt.Sprintf("%s %v", o.called("Spread.Workload", "--max-workload-in-spot-pool"), o.Spread.Workload), " of "+s.names[at]
		if s.names[at] == "" {
			setting, whose = fmt.Sprintf("%s %v", o.called("Spread.Plan", "--max-plan-in-spot-pool"), o.Spread.Plan), ""
		}
		for _, pool := range slices.Sorted(maps.Keys(limit.Placed)) {
			if n := limit.Placed[pool]; n > limit.Max {
				out = append(out, fmt.Sprintf("%s is not kept: %d of %d pods%s are on spot capacity of %s", setting, n, s.pods[at], whose, pool))
			}
		}
	}
	return out
}

// poolOf returns the spot pool of an existing node.
func (s *spreading) poolOf(node int) string {
	if s == nil {
		return ""
	}
	return s.nodes[node]
}

// limits returns the limits for the items of a round.
func (s *spreading) limits(items []scheduling.Item) []binpack.Diversity {
	if s == nil {
		return nil
	}
	out := slices.Clone(s.bound)
	for i := range items {
		for _, of := range items[i].Pods {
			for _, at := range s.of[of.Class] {
				out[at].Items = append(out[at].Items, binpack.Share{Item: i, Count: of.Count})
			}
		}
	}
	return out
}
