package regret

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
)

// bounds computes lower bounds of the cost of sets of pods.
//
// At any moment, the nodes that a policy pays for hold the pods that it runs. So it pays at least
// the least price of nodes that hold them, by requests, node affinity, tolerations, volumes, host
// ports and anti-affinity by hostname. These constraints hold whatever was decided before.
// [plan.Bound] is at most that price. No node is free: the bound has no existing nodes.
//
// A bill is the sum of the prices of all moments. So the sum of the bound over time is at most the
// bill of any policy that runs the same pods at the same time. The bound allows free moves at any
// moment and nodes that start at once, so knowing the future does not help. A policy that knows the
// future can pay less only by letting pods wait.
//
// That is the difference between the two bounds. If pods waited in the history because the buyer
// was late, no policy could have served them earlier. A policy that knows only the present cannot
// know that capacity will soon be free. It buys for a pod when the pod exists, and from then on
// pays at least for all existing pods. A policy that knows the future may let them wait, as the
// history did.
type bounds struct {
	sale    *scheduling.Snapshot
	classes *classes
	known   map[string]bounded // by classes and their counts
}

type bounded struct {
	price    deprovision.Price
	unplaced int // pods that no pool can hold alone; they count nothing
	notOurs  notOurs
}

// notOurs are pods that are not planned, such as those of another scheduler, by their number. They
// count nothing in a bound. first is one of them, and why.
type notOurs struct {
	pods  int
	first string
}

// add counts a pod.
func (n notOurs) add(pod *corev1.Pod, why string) notOurs {
	return notOurs{n.pods + 1, cmp.Or(n.first, eviction.Name(pod)+": "+why)}
}

// orMore returns the larger of both.
func (n notOurs) orMore(o notOurs) notOurs {
	if o.pods > n.pods {
		return o
	}
	return n
}

func newBounds(sale scheduling.Snapshot) *bounds {
	return &bounds{sale: &sale, classes: newClasses(), known: map[string]bounded{}}
}

// of returns the bound of the pods. It is computed once for each multiset of classes.
func (b *bounds) of(ctx context.Context, pods []*corev1.Pod) (bounded, error) {
	counts := make([]int, len(b.classes.members))
	for _, p := range pods {
		c := b.classes.of(p)
		for c >= len(counts) {
			counts = append(counts, 0)
		}
		counts[c]++
	}
	var there []int
	for c, n := range counts {
		if n > 0 {
			there = append(there, c)
		}
	}
	slices.SortFunc(there, func(x, y int) int { return strings.Compare(b.classes.texts[x], b.classes.texts[y]) }) // the plan does not depend on what was seen before
	var key strings.Builder
	var list []*corev1.Pod
	like := map[*corev1.Pod]*corev1.Pod{}
	for rank, c := range there {
		fmt.Fprintf(&key, "%d:%d ", c, counts[c])
		for i := range counts[c] {
			q := *b.classes.members[c]
			q.Name, q.Spec.NodeName, q.Status = fmt.Sprintf("%d-%d", rank, i), "", corev1.PodStatus{}
			list = append(list, &q)
			like[&q] = b.classes.members[c]
		}
	}
	if known, ok := b.known[key.String()]; ok || len(list) == 0 {
		return known, nil
	}
	s := *b.sale
	s.Nodes, s.NodeClaims, s.Pods, s.Quotas = nil, nil, list, nil
	s.Pools = slices.Clone(s.Pools)
	for i := range s.Pools { // what a plan leaves out because of limits would be missing from its bound
		s.Pools[i].Limits, s.Pools[i].MinValues, s.Pools[i].Weight, s.Pools[i].Replicas = nil, nil, 0, nil
	}
	p, err := plan.Make(ctx, s, &plan.Options{Packing: &binpack.Options{Effort: binpack.EffortDefault}}) // EffortFast leaves twice the gap
	if err != nil {
		return bounded{}, err
	}
	out := bounded{price: deprovision.Price(p.Bound.Price)}
	for _, u := range p.Unplaced() {
		out.unplaced += len(u.Pods)
	}
	for _, i := range p.Ignored() {
		out.notOurs = out.notOurs.add(like[i.Pod], i.Why)
	}
	b.known[key.String()] = out
	return out, nil
}
