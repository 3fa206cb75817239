package bruteforce

import (
	"cmp"
	"maps"
	"math"
	"slices"

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
func NewSearch(s scheduling.Snapshot, counting Counting, tie Tie, most int) *Search {
	offers := Offers(s)
	x := &Search{Model: New(s.Nodes, offers, s.Pods, tie), Left: most, offers: offers, budgets: Budgets(s)}
	x.Model.Counting = counting
	keys := map[string]bool{}
	for _, p := range s.Pods {
		asked(&p.Spec, keys)
		if p.Spec.NodeName != "" {
			continue
		}
		if tie != nil {
			for key := range tie(p) {
				keys[key] = true
			}
		}
		x.pods = append(x.pods, p)
		if kind := x.Model.Kind(keyOf(p)); !slices.Contains(x.kinds, kind) {
			x.kinds = append(x.kinds, kind)
		}
	}
	delete(keys, corev1.LabelHostname) // every node has its own
	x.labels, x.all = slices.Sorted(maps.Keys(keys)), x.counts(x.pods)
	return x
}

// asked collects the node labels that a pod asks about.
func asked(spec *corev1.PodSpec, keys map[string]bool) {
	for key := range spec.NodeSelector {
		keys[key] = true
	}
	for _, c := range spec.TopologySpreadConstraints {
		keys[c.TopologyKey] = true
	}
	a := cmp.Or(spec.Affinity, &corev1.Affinity{})
	if a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, e := range t.MatchExpressions {
				keys[e.Key] = true
			}
		}
	}
	var terms []corev1.PodAffinityTerm
	if a.PodAffinity != nil {
		terms = append(terms, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
	}
	if a.PodAntiAffinity != nil {
		terms = append(terms, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
	}
	for _, t := range terms {
		keys[t.TopologyKey] = true
	}
}

// counts is the number of pods of each pending kind.
func (x *Search) counts(pods []*corev1.Pod) []int {
	out := make([]int, len(x.kinds))
	for _, p := range pods {
		out[slices.Index(x.kinds, x.Model.Kind(keyOf(p)))]++
	}
	return out
}

// Answer is nodes to buy, and pods in an order in which kube-scheduler binds them.
type Answer struct {
	Price  int64 // in billionths of a dollar an hour
	Bought []Offer
	Pods   []*corev1.Pod
	// Nodes says where each of Pods goes: to a node of the snapshot, or beyond these to one of Bought.
	Nodes []int
}

// Most returns more pods that have a place together than the given ones: more of the highest
// priority at which the two differ. It is nil if there are none. Its price is not the lowest.
func (x *Search) Most(placed []*corev1.Pod) (out *Answer) {
	best, anything := x.counts(placed), int64(math.MaxInt64)
	x.sets(x.all, false, &anything, func(bought []int, price int64) (next bool) {
		if reached, path := x.reach(bought, x.all); x.compare(reached, best) > 0 {
			best, out = reached, x.answer(bought, price, path)
		}
		return !slices.Equal(best, x.all)
	})
	return out
}

// Cheapest returns the cheapest nodes that hold the given pods. It is nil if none cost less than
// below.
func (x *Search) Cheapest(placed []*corev1.Pod, below int64) (out *Answer) {
	want := x.counts(placed)
	x.sets(want, true, &below, func(bought []int, price int64) bool {
		if !x.mayHold(bought, want) {
			return true
		}
		if reached, path := x.reach(bought, want); slices.Equal(reached, want) {
			below, out = price, x.answer(bought, price, path)
		}
		return true
	})
	return out
}

func (x *Search) answer(bought []int, price int64, path []step) *Answer {
	a := &Answer{Price: price}
	for _, o := range bought {
		a.Bought = append(a.Bought, x.offers[o])
	}
	left := slices.Clone(x.pods)
	for _, s := range path {
		i := slices.IndexFunc(left, func(p *corev1.Pod) bool { return x.Model.Kind(keyOf(p)) == s.kind })
		a.Pods, a.Nodes = append(a.Pods, left[i]), append(a.Nodes, s.node)
		left = slices.Delete(left, i, i+1)
	}
	return a
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
