// Package protection says what it costs to keep pods where they are. It computes how much more
// consolidation would save, in dollars an hour, without one PodDisruptionBudget, without the
// annotations of one workload, or without the annotation of one node.
//
// Package rulecost has the costs of rules that restrict where pods may go. The rules here do not:
// they only keep nodes from being given back.
package protection

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Kind is the kind of a rule.
type Kind string

// The kinds of rules.
const (
	Budget   Kind = "pod-disruption-budget"
	Workload Kind = "workload" // do-not-disrupt on its pods
	Node     Kind = "node"     // do-not-disrupt on the node
)

// Rule is one rule that keeps pods where they are. Owner is the object that has it, such as
// "PodDisruptionBudget shop/web", "Deployment shop/web" or "Node ip-10-0-0-7". The zero value is
// not a rule.
type Rule struct {
	Kind  Kind   `json:"kind"`
	Owner string `json:"owner"`
}

// String returns the rule in one line.
func (r Rule) String() string {
	if r.Kind == Budget {
		return r.Owner
	}
	return r.Owner + ": do-not-disrupt"
}

// Cost is what a rule costs in dollars an hour.
type Cost struct {
	Rule
	// Verified says that consolidation was planned again without the rule, or that the rule keeps
	// nothing that has a cost. Otherwise PerHour is 0.
	Verified bool `json:"verified"`
	// PerHour is how much less the cluster would cost without the rule, by a plan that can be
	// carried out. It is 0 if it would not become cheaper.
	PerHour float64 `json:"perHour"`
	// HighPerHour is an upper bound of the rule's cost if both plans are optimal: the price of the
	// nodes with its pods. A plan with the rule could keep all of these nodes, and otherwise do the
	// same as the plan without the rule. If the plan with the rule is not optimal, PerHour may
	// exceed that price. Then HighPerHour is PerHour.
	HighPerHour float64 `json:"highPerHour"`
	// Nodes is how many nodes have its pods.
	Nodes int `json:"nodes"`
}

// Report is what the rules of a cluster cost, dearest first, then by owner.
type Report struct {
	// PerHour is the cost of the cluster after consolidation with all rules.
	PerHour float64 `json:"perHour"`
	Rules   []Cost  `json:"rules"`
	// Stopped says that the context ended before the work was done.
	Stopped bool `json:"stopped,omitempty"`
}

// Cluster is what to consolidate. Snapshot and Objects are those of package simulate. By has the
// objective and the groups; nil means that nodes cost their price, and no groups.
type Cluster struct {
	Snapshot      scheduling.Snapshot
	Objects       simulate.Objects
	By            *plan.Options
	Interruptions []deprovision.Interruption
	Now           time.Time
	// Only selects the rules to verify. nil means all.
	Only func(Rule) bool
}

// Usual is how many rules are verified by default.
const Usual = 20

// Of returns what the rules of a cluster cost. It ranks all rules by their upper bound and plans
// consolidation again without each of the first ones, at most verify of them; 0 means [Usual]. A
// plan costs as much as [giveback.Make]. When ctx ends, the report has what is known until then. No
// argument is modified.
func Of(ctx context.Context, c Cluster, settings *giveback.Options, verify int) (*Report, error) {
	with, err := c.after(ctx, settings)
	if err != nil {
		return nil, err
	}
	out := &Report{PerHour: with, Rules: c.rules()}
	for i := range out.Rules[:min(cmp.Or(verify, Usual), len(out.Rules))] {
		r := &out.Rules[i]
		if c.Only != nil && !c.Only(r.Rule) {
			continue
		}
		if r.HighPerHour == 0 {
			r.Verified = true // it keeps nothing that has a cost
			continue
		}
		without, err := c.without(r.Rule).after(ctx, settings)
		if ctx.Err() != nil {
			out.Stopped = true
			break
		}
		if err != nil {
			return nil, err
		}
		r.Verified, r.PerHour = true, max(0, with-without)
		r.HighPerHour = max(r.HighPerHour, r.PerHour)
	}
	slices.SortStableFunc(out.Rules, func(a, b Cost) int { return cmp.Compare(b.PerHour, a.PerHour) })
	return out, nil
}

// after returns the cost of the cluster after consolidation, in dollars an hour.
func (c Cluster) after(ctx context.Context, settings *giveback.Options) (float64, error) {
	by := plan.Options{}
	if c.By != nil {
		by = *c.By
	}
	sim, nominated, err := simulate.NewFor(c.Snapshot, &by)
	if err != nil {
		return 0, err
	}
	cluster := simulate.Counted(c.Objects.Cluster(c.Snapshot, nominated, c.Now), by.Objective)
	cluster.Interruptions = c.Interruptions
	opts := giveback.Options{}
	if settings != nil {
		opts = *settings
	}
	opts.Rules.Placeable = sim.Placeable
	result, err := giveback.Make(ctx, cluster, sim, &opts)
	if err != nil {
		return 0, err
	}
	return result.PricePerHourAfter.Dollars(), nil
}

// rules returns the rules of the cluster with their upper bounds, highest first.
func (c Cluster) rules() []Cost {
	on := map[Rule]map[string]bool{} // the nodes that each rule keeps
	keep := func(r Rule, node string) {
		if on[r] == nil {
			on[r] = map[string]bool{}
		}
		if node != "" {
			on[r][node] = true
		}
	}
	for _, b := range c.Objects.PodDisruptionBudgets {
		keep(Rule{Budget, budgetName(b)}, "")
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil {
			continue
		}
		for _, p := range c.Snapshot.Pods {
			if p.Spec.NodeName != "" && namespace(p.Namespace) == namespace(b.Namespace) && eviction.Reschedulable(p) && selector.Matches(labels.Set(p.Labels)) {
				keep(Rule{Budget, budgetName(b)}, p.Spec.NodeName)
			}
		}
	}
	for _, p := range c.Snapshot.Pods {
		if p.Spec.NodeName != "" && eviction.Protected(p, c.Now) != "" {
			keep(Rule{Workload, plan.WorkloadOf(p)}, p.Spec.NodeName)
		}
	}
	for _, n := range c.Snapshot.Nodes {
		if n.Annotations[eviction.DoNotDisrupt] == "true" {
			keep(Rule{Node, "Node " + n.Name}, n.Name)
		}
	}
	prices := map[string]float64{}
	cluster := c.Objects.Cluster(c.Snapshot, nil, c.Now)
	if c.By != nil {
		cluster = simulate.Counted(cluster, c.By.Objective)
	}
	for i := range cluster.Nodes {
		n := &cluster.Nodes[i]
		prices[n.Name()] = cmp.Or(n.CostPerHour, n.PricePerHour).Dollars()
	}
	out := []Cost{}
	for _, r := range slices.SortedFunc(maps.Keys(on), func(a, b Rule) int { return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Kind, b.Kind)) }) {
		cost := Cost{Rule: r, Nodes: len(on[r])}
		for _, node := range slices.Sorted(maps.Keys(on[r])) { // in order, so that the sum is always the same
			cost.HighPerHour += prices[node]
		}
		out = append(out, cost)
	}
	slices.SortStableFunc(out, func(a, b Cost) int { return cmp.Compare(b.HighPerHour, a.HighPerHour) })
	return out
}

// without returns the cluster without a rule.
func (c Cluster) without(r Rule) Cluster {
	switch r.Kind {
	case Budget:
		c.Objects.PodDisruptionBudgets = slices.DeleteFunc(slices.Clone(c.Objects.PodDisruptionBudgets), func(b *policyv1.PodDisruptionBudget) bool { return budgetName(b) == r.Owner })
	case Workload:
		c.Snapshot.Pods = slices.Clone(c.Snapshot.Pods)
		for i, p := range c.Snapshot.Pods {
			if eviction.Protected(p, c.Now) != "" && plan.WorkloadOf(p) == r.Owner {
				free := *p
				free.Annotations = unprotected(p.Annotations)
				c.Snapshot.Pods[i] = &free
			}
		}
	case Node:
		c.Snapshot.Nodes = slices.Clone(c.Snapshot.Nodes)
		for i, n := range c.Snapshot.Nodes {
			if "Node "+n.Name == r.Owner {
				free := *n
				free.Annotations = unprotected(n.Annotations)
				c.Snapshot.Nodes[i] = &free
			}
		}
	}
	return c
}

// unprotected returns annotations without those that protect.
func unprotected(all map[string]string) map[string]string {
	out := maps.Clone(all)
	delete(out, eviction.DoNotDisrupt)
	delete(out, eviction.DoNotEvict)
	return out
}

func budgetName(b *policyv1.PodDisruptionBudget) string {
	return "PodDisruptionBudget " + namespace(b.Namespace) + "/" + b.Name
}

func namespace(name string) string { return cmp.Or(name, corev1.NamespaceDefault) }
