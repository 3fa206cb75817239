// Package deletioncost says which pods should go first when workloads are scaled down, so that
// nodes become empty and can be given back without an eviction.
//
// The controller of a ReplicaSet deletes pods of a lower controller.kubernetes.io/pod-deletion-cost
// first. [Of] computes this annotation for all pods of a cluster. Karpenter v1.15 also writes it if
// its feature gate PodDeletionCostManagement is on.
package deletioncost

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/budget"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Cost is the deletion cost that a pod should have.
type Cost struct {
	Pod *corev1.Pod
	// Node is the name of the node that it runs on.
	Node string
	// Value is the cost. 0 means that the pod should not have the annotation.
	Value int32
}

// Annotation returns the value of the annotation [eviction.DeletionCost]. It is empty if the pod
// should not have the annotation.
func (c Cost) Annotation() string {
	if c.Value == 0 {
		return ""
	}
	return strconv.Itoa(int(c.Value))
}

// Options are the choices of the caller. nil and the zero value mean defaults.
type Options struct {
	// Ranker orders the nodes; nil is [deprovision.PriceRanker].
	Ranker deprovision.Ranker
	// Rules are further rules of eligibility.
	Rules eligibility.Rules
	// Planned are the names of nodes that a plan gives back, in its order. They come before other
	// nodes.
	Planned []string
}

// Of returns the deletion cost of each pod that a ReplicaSet controls and that runs on a node of a
// pool, ordered by namespace and name. The cost depends on the node:
//
//   - A node that is leaving has the lowest possible cost.
//   - Then come the n nodes that should become empty, with the costs -n, -n+1 and so on. They are
//     the planned nodes, then drifted nodes, then nodes that may be consolidated. Drifted nodes and
//     nodes that may be consolidated are in the order of the ranker, and only as many are included
//     as the budgets of their pools allow.
//   - All other nodes have cost 0, such as nodes that must stay, and nodes that scaling down does
//     not empty.
//
// Scaling down can empty a node only if both of these hold:
//   - every pod that needs a new place is controlled by a ReplicaSet or a Job, or is in the
//     namespace kube-system
//   - at least one running pod is controlled by a ReplicaSet
//
// Existing deletion costs of the pods are ignored. Otherwise the costs of one call would change the
// ranks of the next. See [Without].
//
// The error is that of [deprovision.Cluster.Validate]. The cluster is only read, and calls may run
// concurrently. It takes about as long as [deprovision.Rank].
func Of(c deprovision.Cluster, opts *Options) ([]Cost, error) {
	var o Options
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if opts != nil {
		o = *opts
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	neutral := c
	neutral.Nodes = slices.Clone(c.Nodes)
	for i := range neutral.Nodes {
		n := &neutral.Nodes[i]
		n.Pods = slices.Clone(n.Pods)
		for k, pod := range n.Pods {
			n.Pods[k] = Without(pod)
		}
	}
	ranked, err := deprovision.Rank(neutral, &deprovision.RankOptions{Ranker: o.Ranker, Rules: o.Rules})
	if err != nil {
		return nil, err
	}
	values := valuesOf(order(neutral, ranked, o))
	var out []Cost
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if n.Pool == nil {
			continue
		}
		value := values[n.Name()]
		if n.Leaving() {
			value = math.MinInt32
		}
		for _, pod := range n.Pods {
			if sheds(pod) {
				out = append(out, Cost{pod, n.Name(), value})
			}
		}
	}
	slices.SortFunc(out, func(a, b Cost) int {
		return cmp.Or(strings.Compare(a.Pod.Namespace, b.Pod.Namespace), strings.Compare(a.Pod.Name, b.Pod.Name), strings.Compare(a.Node, b.Node))
	})
	return out, nil
}

// order returns the names of the nodes that should become empty, the first one first.
func order(c deprovision.Cluster, ranked []deprovision.Candidate, o Options) []string {
	known := make(map[string]*deprovision.Candidate, len(ranked))
	for i := range ranked {
		known[ranked[i].Name] = &ranked[i]
	}
	budgets, ledger := eviction.NewBudgets(c.PodDisruptionBudgets), budget.New(c.Pools, budget.Count(c.Nodes), c.Now)
	var out []string
	chosen := map[string]bool{}
	add := func(x *deprovision.Candidate) {
		out, chosen[x.Name], ledger = append(out, x.Name), true, ledger.Take(x.Pool, 1)
	}
	for _, name := range o.Planned {
		if x := known[name]; x != nil && !chosen[name] && empties(x.Node) {
			add(x)
		}
	}
	byRank := slices.Clone(ranked)
	slices.SortStableFunc(byRank, func(a, b deprovision.Candidate) int { return cmp.Compare(b.Score, a.Score) })
	for _, reason := range []nodepool.Reason{nodepool.Drifted, nodepool.Underutilized} {
		for i := range byRank {
			x := &byRank[i]
			blockers := x.Blockers
			if reason == nodepool.Drifted {
				if len(x.Node.Drifted) == 0 {
					continue
				}
				blockers = eligibility.Blockers(x.Node, eligibility.Drift, budgets, c.Now, o.Rules)
			}
			if !chosen[x.Name] && len(blockers) == 0 && empties(x.Node) && ledger.Left(x.Pool, reason) > 0 {
				add(x)
			}
		}
	}
	return out
}

// valuesOf numbers the nodes: -n for the first one, -1 for the last one.
func valuesOf(order []string) map[string]int32 {
	out := make(map[string]int32, len(order))
	for i, name := range order {
		out[name] = int32(i - len(order))
	}
	return out
}

// sheds reports whether the pod goes when its workload is scaled down.
func sheds(pod *corev1.Pod) bool {
	return controlledBy(pod, "ReplicaSet") && !eviction.Ended(pod) && pod.DeletionTimestamp == nil
}

// empties reports whether scaling workloads down can empty the node, and some pod is there to go.
func empties(n *eligibility.Node) bool {
	some := false
	for _, pod := range n.Pods {
		switch {
		case sheds(pod):
			some = true
		case eviction.Reschedulable(pod) && pod.Namespace != "kube-system" && !controlledBy(pod, "ReplicaSet") && !controlledBy(pod, "Job"):
			return false
		}
	}
	return some
}

func controlledBy(pod *corev1.Pod, kind string) bool {
	return slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == kind && o.Controller != nil && *o.Controller })
}

// Without returns a copy of the pod without a deletion cost. A pod that has none is returned
// itself, not a copy. If the annotations on the pods come from [Of], remove them with Without
// before you plan: they say which pods should go first, and nothing about the cost of an eviction.
func Without(pod *corev1.Pod) *corev1.Pod {
	if _, has := pod.Annotations[eviction.DeletionCost]; !has {
		return pod
	}
	out := *pod
	out.Annotations = maps.Clone(pod.Annotations)
	delete(out.Annotations, eviction.DeletionCost)
	return &out
}
