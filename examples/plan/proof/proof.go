// Package proof writes a plan as a document that anybody can check without trusting the planner.
// The document has all pods, nodes and prices that matter, the placements, and the bound with its
// certificate. examples/check reads it and says what is checked and what is not; that program
// imports no other code of this project.
package proof

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
)

// Document is a plan with its proof, to be encoded as JSON. Amounts of money are in billionths of a
// dollar an hour. The zero value is not a document.
type Document struct {
	// Format names the format and its version.
	Format string `json:"format"`
	// Resources names the entries of the vectors of requests and free capacity.
	Resources []string `json:"resources"`
	Pods      []Pods   `json:"pods"`
	// Apart has, for each group of pods that keep apart, how many of them may share a node.
	Apart map[string]int64 `json:"apart"`
	// Nodes are the existing nodes, NewNodes the nodes to buy.
	Nodes    []Node `json:"nodes"`
	NewNodes []Node `json:"newNodes"`
	Pools    []Pool `json:"pools"`
	Types    []Type `json:"types"`
	// Stock is what is left of each reservation and of each resource of a CapacityQuota.
	Stock    map[string]int64 `json:"stock"`
	Unplaced []string         `json:"unplaced"`
	// PricePerHour is the price of the new nodes, CostPerHour their cost in the objective.
	PricePerHour int64 `json:"pricePerHour"`
	CostPerHour  int64 `json:"costPerHour"`
	Bound        Bound `json:"bound"`
}

// Pods are pods with the same properties. Requests are in the order of Document.Resources. The
// labels of their node must satisfy all expressions of at least one list of Requires. Apart is a
// key of Document.Apart, or empty.
type Pods struct {
	Pods        []string                           `json:"pods"`
	Requests    []int64                            `json:"requests"`
	Requires    [][]corev1.NodeSelectorRequirement `json:"requires"`
	Tolerations []Taint                            `json:"tolerations,omitempty"`
	Apart       string                             `json:"apart,omitempty"`
}

// Taint is a taint or a toleration. Only a toleration has an operator.
type Taint struct {
	Key      string `json:"key,omitempty"`
	Operator string `json:"operator,omitempty"`
	Value    string `json:"value,omitempty"`
	Effect   string `json:"effect,omitempty"`
}

// Labels are the values that a node may have, by key. nil means any value. A missing key is absent
// on the node.
type Labels map[string][]string

// Node is a node and the pods that the plan puts on it. An existing node has Free, its free
// capacity. A new one has Type and Offering: indexes into Document.Types and its Offerings.
type Node struct {
	Name     string   `json:"name"`
	Type     int      `json:"type,omitempty"`
	Offering int      `json:"offering,omitempty"`
	Free     []int64  `json:"free,omitempty"`
	Labels   Labels   `json:"labels"`
	Taints   []Taint  `json:"taints,omitempty"`
	Pods     []string `json:"pods"`
	// Alternatives are pairs of Type and Offering that the node may become, too. Only nodes of pools
	// with MinValues have them. Limits hold even if each such node becomes the largest.
	Alternatives [][2]int `json:"alternatives,omitempty"`
}

// Pool is what one pool may still buy. Limits bound the sum of [Type.Usage] over its new nodes, and
// MaxNodes their number; nil means no limit. MinValues says how many values of a label each new
// node and its alternatives have together.
type Pool struct {
	Name      string         `json:"name"`
	Limits    []int64        `json:"limits"`
	MaxNodes  *int64         `json:"maxNodes,omitempty"`
	MinValues map[string]int `json:"minValues,omitempty"`
	Taints    []Taint        `json:"taints,omitempty"`
}

// Type is an instance type of a pool. Pool is an index into Document.Pools. Free is the capacity
// for pods, without what daemons take.
type Type struct {
	Name      string     `json:"name"`
	Pool      int        `json:"pool"`
	Free      []int64    `json:"free"`
	Usage     []int64    `json:"usage"`
	Offerings []Offering `json:"offerings"`
}

// Offering is one way to buy a type, with the labels that the node gets. Cost is its price in the
// objective. Stock is a key of Document.Stock, or empty, and Takes is how much of it a node uses.
type Offering struct {
	Labels Labels `json:"labels"`
	Price  int64  `json:"price"`
	Cost   int64  `json:"cost"`
	Stock  string `json:"stock,omitempty"`
	Takes  int64  `json:"takes,omitempty"`
	// Uses is how much a node counts towards each CapacityQuota, whose remainder is also a Stock.
	// nil means nothing.
	Uses map[string]int64 `json:"uses,omitempty"`
}

// Bound is a lower bound of the cost of any plan of the same pods, with its certificate.
//
// Each pod of a class has a value, and each type has a price of each resource. With these prices,
// the pods on a node are worth at most the sum of two amounts. The first is the price of the free
// resources of the node. For the second, take each pod that fits on the node, and add up how much
// its value exceeds the price of its requests.
//
// Subtract from the value of the placed pods what the existing nodes can hold. No set of whole
// nodes that costs less than the bound holds the rest.
type Bound struct {
	CostPerHour int64 `json:"costPerHour"`
	// Values are the values of the pods, in the order of Document.Pods.
	Values []int64 `json:"values"`
	// Types and Nodes are the prices of each resource, in units of 2^-Shift, in the order of
	// Document.Types and Document.Nodes.
	Shift uint         `json:"shift"`
	Types [][]*big.Int `json:"types"`
	Nodes [][]*big.Int `json:"nodes"`
}

const format = "joinery-proof/1"

// Of writes the plan as a document. The error names a requirement that cannot be written as
// expressions. For each instance type and existing node it solves a linear programme with a row for
// each resource.
func Of(p *plan.Plan) (*Document, error) {
	w := &writer{plan: p, problem: p.Instance.Problem()}
	w.out = Document{Format: format, Resources: w.problem.Resources, Apart: map[string]int64{}, Stock: map[string]int64{}, Unplaced: []string{}}
	if err := w.pods(); err != nil {
		return nil, err
	}
	w.nodes()
	w.catalogue()
	w.newNodes()
	w.out.Bound = w.prove(p.Duals())
	return &w.out, nil
}

type writer struct {
	plan    *plan.Plan
	problem *binpack.Problem // the final round
	asked   requirements.Keys
	sets    [][]requirements.Set // by class, the source of Requires
	out     Document
}

// pods writes the classes with the requests and requirements that do not depend on where other pods
// are.
func (w *writer) pods() error {
	p := w.plan.Problem
	items, _ := w.plan.Relaxed()
	relaxed := plan.Items(items)
	of := map[int]int{} // by class, its item
	for i, it := range items {
		of[it.Pods[0].Class] = i
	}
	apart := map[string]int64{}
	for _, it := range relaxed {
		for _, l := range it.Limits {
			if slices.Contains(it.Tags, l.Tag) {
				apart[l.Tag] = max(apart[l.Tag], int64(l.Max))
			}
		}
	}
	for k, c := range p.Classes {
		one := Pods{Requests: w.vector(c.Requests), Requires: [][]corev1.NodeSelectorRequirement{}, Tolerations: tolerations(c.Template)}
		required, sets := c.Required, []requirements.Set(nil)
		if i, placed := of[k]; placed {
			one.Requests, required = relaxed[i].Size, relaxed[i].Requires
			for _, l := range relaxed[i].Limits {
				if slices.Contains(relaxed[i].Tags, l.Tag) && (one.Apart == "" || apart[l.Tag] < apart[one.Apart]) {
					one.Apart, w.out.Apart[l.Tag] = l.Tag, apart[l.Tag]
				}
			}
		}
		for set := range required.All() {
			set = labelsOnly(set)
			exprs, ok := kube.Expressions(set)
			if !ok {
				return fmt.Errorf("proof: pod %s: %s cannot be written as expressions", c.Name(), set)
			}
			one.Requires = append(one.Requires, append([]corev1.NodeSelectorRequirement{}, exprs...))
			w.asked = w.asked.Union(set.Keys())
			sets = append(sets, set)
		}
		w.sets = append(w.sets, sets)
		for _, pod := range c.Pods {
			one.Pods = append(one.Pods, nameOf(pod))
		}
		w.out.Pods = append(w.out.Pods, one)
	}
	for _, u := range w.plan.Unplaced() {
		for _, pod := range u.Pods {
			w.out.Unplaced = append(w.out.Unplaced, nameOf(pod))
		}
	}
	return nil
}

func (w *writer) nodes() {
	bound := map[string][]string{}
	for _, b := range w.plan.Bindings() {
		if !b.New {
			bound[b.Node] = append(bound[b.Node], nameOf(b.Pod))
		}
	}
	for i := range w.plan.Problem.Existing {
		x := &w.plan.Problem.Existing[i]
		n := Node{Name: x.Node.Name, Labels: Labels{}, Taints: taints(x.Taints), Pods: named(bound[x.Node.Name])}
		for key := range w.asked.All() {
			if value, ok := x.Labels.Get(key).Single(); ok && x.Labels.Has(key) {
				n.Labels[key] = []string{value}
			}
		}
		for _, free := range x.Free {
			n.Free = append(n.Free, max(free, 0))
		}
		w.out.Nodes = append(w.out.Nodes, n)
	}
}

// catalogue writes what can be bought and what is left of limits and reservations.
func (w *writer) catalogue() {
	for k := range w.plan.Problem.Pools {
		pool := &w.problem.Pools[k]
		one := Pool{Name: pool.Name, Limits: append([]int64{}, pool.Limits...), MinValues: w.plan.Problem.Pools[k].MinValues, Taints: taints(w.plan.Problem.Pools[k].Taints)}
		if pool.MaxNodes != nil {
			one.MaxNodes = new(int64(*pool.MaxNodes))
		}
		w.out.Pools = append(w.out.Pools, one)
	}
	for i, t := range w.problem.Types {
		one := Type{Name: t.Name, Pool: t.Pool, Usage: append([]int64{}, t.Usage...), Offerings: []Offering{}}
		for _, free := range t.Capacity {
			one.Free = append(one.Free, max(free, 0))
		}
		for j, o := range t.Offerings {
			cost := o.Objective
			if cost == 0 {
				cost = o.Price
			}
			next := Offering{Price: int64(o.Price), Cost: int64(cost)}
			labels, err := t.Provides.Intersect(o.Provides)
			count := int64(o.Count)
			if err != nil {
				count, o.Counted, o.Reservation = 0, true, "" // it cannot be bought
			}
			if next.Labels = w.labels(labels, i, j); o.Counted {
				next.Takes, next.Stock = int64(max(o.Takes, 1)), o.Reservation
				if next.Stock == "" {
					next.Stock = fmt.Sprintf("type %d offering %d", i, j)
				}
				if before, known := w.out.Stock[next.Stock]; !known || count < before {
					w.out.Stock[next.Stock] = count
				}
			}
			for k, used := range o.Usage {
				if used > 0 {
					if next.Uses == nil {
						next.Uses = map[string]int64{}
					}
					b := &w.plan.Problem.Budgets[k]
					name := fmt.Sprintf("quota %q: %s", b.Quota, b.Resource)
					next.Uses[name], w.out.Stock[name] = used, b.Left
				}
			}
			one.Offerings = append(one.Offerings, next)
		}
		w.out.Types = append(w.out.Types, one)
	}
}

// labels returns the labels of a type and offering that some pod refers to, plus zone and capacity
// type for readers.
func (w *writer) labels(set requirements.Set, typ, offering int) Labels {
	out := Labels{}
	sold := w.plan.Problem.InstanceType(typ).Offerings[w.plan.Problem.Shapes[typ].Offerings[offering].Index].Requirements
	for _, key := range []string{corev1.LabelTopologyZone, instancetypes.LabelCapacityType} {
		if value, ok := sold.Get(key).Single(); ok {
			out[key] = []string{value}
		}
	}
	for r := range labelsOnly(set).All() {
		values, finite := r.Values()
		if out[r.Key()] = values; !finite || r.AllowsAbsent() {
			out[r.Key()] = nil
		}
	}
	return out
}

func (w *writer) newNodes() {
	for _, x := range w.plan.NewNodes() {
		o := &w.out.Types[x.Shape].Offerings[x.ShapeOffering]
		has := x.Pool.Registered(requirements.FromLabels(x.Labels))
		n := Node{Name: x.Name, Type: x.Shape, Offering: x.ShapeOffering, Labels: Labels{}}
		for key, values := range o.Labels {
			if value, ok := has.Get(key).Single(); ok && has.Has(key) {
				n.Labels[key] = []string{value}
			} else if len(values) == 1 {
				n.Labels[key] = values
			}
		}
		for _, pod := range x.Pods {
			n.Pods = append(n.Pods, nameOf(pod))
		}
		if len(x.Pool.MinValues) > 0 {
			for _, a := range x.Alternatives {
				n.Alternatives = append(n.Alternatives, [2]int{a.Shape, a.ShapeOffering})
			}
		}
		w.out.NewNodes = append(w.out.NewNodes, n)
		w.out.PricePerHour += o.Price
		w.out.CostPerHour += o.Cost
	}
}

// vector returns a resource list in the order of the problem's resources.
func (w *writer) vector(list corev1.ResourceList) []int64 {
	out := make([]int64, len(w.problem.Resources))
	for r, name := range w.problem.Resources {
		out[r] = resources.Request(corev1.ResourceName(name), list[corev1.ResourceName(name)])
	}
	return out
}

// labelsOnly returns the set without entries that are not labels: taints, which are written
// separately, and what only the planner needs.
func labelsOnly(set requirements.Set) requirements.Set {
	var pseudo []string
	for key := range set.Keys().All() {
		if strings.ContainsAny(key, "()") {
			pseudo = append(pseudo, key)
		}
	}
	return set.Without(requirements.KeysOf(pseudo...))
}

func nameOf(pod *corev1.Pod) string {
	return cmp.Or(pod.Namespace, corev1.NamespaceDefault) + "/" + pod.Name
}

func named(names []string) []string { return append([]string{}, names...) }

func taints(in []corev1.Taint) (out []Taint) {
	for _, t := range in {
		out = append(out, Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	return out
}

func tolerations(pod *corev1.Pod) (out []Taint) {
	for _, t := range pod.Spec.Tolerations {
		out = append(out, Taint{Key: t.Key, Operator: string(t.Operator), Value: t.Value, Effect: string(t.Effect)})
	}
	return out
}
