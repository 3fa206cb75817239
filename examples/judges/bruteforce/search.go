package bruteforce

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/scheduling"
)

// Search tries everything: all sets of nodes to buy, and all orders and places of binds.
type Search struct {
	Model *Model
	// Left is how many more binds may be tried. If it is negative, an answer is incomplete.
	Left int

	pods    []*corev1.Pod // pending
	kinds   []int         // of the pending pods, without repetition
	all     []int         // pending pods of each
	offers  []Offer
	budgets []Budget
	labels  []string // that matter to a pod
}

// NewSearch returns the search for places of the snapshot's pending pods. It tries at most so many
// binds.
func NewSearch(s scheduling.Snapshot, counting Counting, most int) *Search {
	offers := Offers(s)
	x := &Search{Model: New(s.Nodes, offers, s.Pods), Left: most, offers: offers, budgets: Budgets(s), labels: labelsOf(s.Pods)}
	x.Model.Counting = counting
	for _, p := range s.Pods {
		if p.Spec.NodeName != "" {
			continue
		}
		x.pods = append(x.pods, p)
		if kind := x.Model.Kind(keyOf(p)); !slices.Contains(x.kinds, kind) {
			x.kinds = append(x.kinds, kind)
		}
	}
	x.all = x.counts(x.pods)
	return x
}

// labelsOf are the node labels that pods ask about.
func labelsOf(pods []*corev1.Pod) []string {
	keys := map[string]bool{}
	for _, p := range pods {
		for key := range p.Spec.NodeSelector {
			keys[key] = true
		}
		for _, c := range p.Spec.TopologySpreadConstraints {
			keys[c.TopologyKey] = true
		}
		a := cmp.Or(p.Spec.Affinity, &corev1.Affinity{})
		if a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
				for _, e := range t.MatchExpressions {
					keys[e.Key] = true
				}
			}
		}
		if a.PodAffinity != nil {
			for _, t := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				keys[t.TopologyKey] = true
			}
		}
		if a.PodAntiAffinity != nil {
			for _, t := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				keys[t.TopologyKey] = true
			}
		}
	}
	delete(keys, corev1.LabelHostname) // every node has its own
	return slices.Sorted(maps.Keys(keys))
}

// counts is the number of pods of each pending kind.
func (x *Search) counts(pods []*corev1.Pod) []int {
	out := make([]int, len(x.kinds))
	for _, p := range pods {
		out[slices.Index(x.kinds, x.Model.Kind(keyOf(p)))]++
	}
	return out
}

// Most returns more pods that have a place together than the given ones, if there are such: more of
// the highest priority at which the two differ. The result is by kind, see [Search.Describe]; nil
// means that nobody places more.
func (x *Search) Most(placed []*corev1.Pod) []int {
	best, found := x.counts(placed), false
	anything := int64(math.MaxInt64)
	x.sets(x.all, false, &anything, func(bought []int, _ int64) (next bool) {
		reached := x.reach(bought, x.all)
		if x.compare(reached, best) > 0 {
			best, found = reached, true
		}
		return !slices.Equal(best, x.all)
	})
	if !found {
		return nil
	}
	return best
}

// Cheapest returns the least cost of nodes that hold the given pods, and the offers to buy. It looks
// for what costs less than a price only; ok is false if there is nothing.
func (x *Search) Cheapest(placed []*corev1.Pod, below int64) (cost int64, bought []Offer, ok bool) {
	want := x.counts(placed)
	cost = below
	x.sets(want, true, &cost, func(set []int, price int64) bool {
		if x.mayHold(set, want) && slices.Equal(x.reach(set, want), want) {
			cost, bought, ok = price, nil, true
			for _, o := range set {
				bought = append(bought, x.offers[o])
			}
		}
		return true
	})
	return cost, bought, ok
}

// compare compares what is placed, by priority from the highest.
func (x *Search) compare(a, b []int) int {
	more := map[int32]int{}
	for i, kind := range x.kinds {
		more[priorityOf(x.Model.kinds[kind].pod)] += a[i] - b[i]
	}
	for _, p := range slices.Backward(slices.Sorted(maps.Keys(more))) {
		if more[p] != 0 {
			return more[p]
		}
	}
	return 0
}

func priorityOf(p *corev1.Pod) int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

// Describe names the pods of a result of [Search.Most], as counts by workload.
func (x *Search) Describe(counts []int) string {
	var out []string
	for i, n := range counts {
		out = append(out, fmt.Sprintf("%d of %d like %s", n, x.all[i], x.Model.kinds[x.kinds[i]].pod.Name))
	}
	return strings.Join(out, ", ")
}
