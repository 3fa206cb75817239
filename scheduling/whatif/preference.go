package whatif

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
)

// softly is the preferences of a class. They keep no pod from a node. A pod goes to a node with the
// highest score; of equal nodes, to the fullest.
type softly struct {
	interpod.Constraints
	nodes []requirements.Preference
	fine  bool // some of them are about a fine key
}

const (
	// evenness is the weight of a preferred spread: that of the heaviest affinity.
	evenness = 100
	// looks limits how many nodes of a bucket are compared if their scores may differ.
	looks = 8
)

// score returns the total weight of the preferences that a node meets.
func (e *engine) score(s *softly, n *node) int32 {
	sum := int32(0)
	for _, p := range s.nodes {
		if p.Nodes.Matches(e.cluster.Labels(n.LabelClass)) {
			sum += p.Weight
		}
	}
	for i := range s.Terms {
		t := &s.Terms[i]
		if v := n.Values[e.index.Groups()[t.Group].Key]; v >= 0 && e.cluster.State.Members(t.Group, v) > 0 {
			if t.Anti {
				sum -= t.Weight
			} else {
				sum += t.Weight
			}
		}
	}
	for i := range s.Spreads {
		if !e.cluster.State.Even(&s.Spreads[i], n.Values, nil) {
			sum -= evenness
		}
	}
	return sum
}

// prefer returns the accepting node from lo to hi with the highest score; hi if none accepts a pod
// of the class.
func (e *engine) prefer(c *class, lo, hi int) int {
	best, most := int32(hi), int32(0)
	for i := range e.buckets {
		s := &e.buckets[i]
		if len(s.nodes) == 0 || s.nodes[len(s.nodes)-1] < int32(lo) || !s.mixed && (!e.cluster.Suits(&c.Class, s.labelClass) || !e.allowed(c, s.values, e.fineGroups)) {
			continue
		}
		from := int32(lo)
		for range looks {
			at := e.search(c, s, from, int32(hi))
			if at == int32(hi) {
				break
			}
			n := &e.nodes[at]
			if got := e.score(c.soft, n); best == int32(hi) || got > most || got == most && at < best {
				best, most = at, got
			}
			if from = at + 1; !s.mixed && !c.soft.fine {
				break // the others of the bucket have the same score
			}
		}
	}
	return int(best)
}

// met returns how many preferences a pod of the class has met on the node. The counts must not
// include the pod itself.
func (e *engine) met(c *class, n *node) int {
	sum := 0
	if e.softTaints && !e.cluster.Tainted(&c.Class, n.LabelClass) {
		sum++
	}
	if c.soft == nil {
		return sum
	}
	for _, p := range c.soft.nodes {
		if p.Nodes.Matches(e.cluster.Labels(n.LabelClass)) {
			sum++
		}
	}
	for i := range c.soft.Terms {
		t := &c.soft.Terms[i]
		v := n.Values[e.index.Groups()[t.Group].Key]
		if there := v >= 0 && e.cluster.State.Members(t.Group, v) > 0; there != t.Anti {
			sum++
		}
	}
	for i := range c.soft.Spreads {
		if e.cluster.State.Even(&c.soft.Spreads[i], n.Values, nil) {
			sum++
		}
	}
	return sum
}

// has is met for a pod that is already counted on the node.
func (e *engine) has(p int32, n *node) int {
	e.count(p, n, -1)
	defer e.count(p, n, 1)
	return e.met(e.classOf(p), n)
}

// given returns how many preferences running pods have met where they are. Pods that are not
// running have none.
func (e *engine) given(pods []*corev1.Pod) map[int32]int {
	out := map[int32]int{}
	for _, p := range pods {
		i, ok := e.podAt[p]
		if !ok || !e.prefers(e.classOf(i)) || e.preferencePrice == 0 {
			continue
		}
		if n := e.runsOn(i); n != nil {
			out[i] = e.has(i, n)
		}
	}
	return out
}

// prefers reports whether a pod of the class has preferences that nodes of the cluster may not
// meet.
func (e *engine) prefers(c *class) bool { return c.movable && (c.soft != nil || e.softTaints) }

// forgone returns the price of the preferences that pods have lost, less those that they gained.
func (e *engine) forgone(moved []int32, given map[int32]int) Price {
	sum := 0.0
	for _, p := range moved {
		before, ok := given[p]
		if !ok {
			continue
		}
		if lost := before - e.has(p, &e.nodes[e.pods[p].node]); lost != 0 { // avoids infinite times zero
			sum += float64(lost) * e.preferencePrice * e.problem.PodPrice(e.classOf(p).problem)
		}
	}
	return Price(math.Round(min(max(0, sum), mostPrice) * 1e9))
}

// preferencePriceOf returns the price of a preference by the options.
func preferencePriceOf(o *Options) float64 {
	return (&scheduling.Options{PreferencePrice: o.PreferencePrice}).PreferenceShare()
}

// shun finds out whether some node, existing or to buy, has a PreferNoSchedule taint.
func (e *engine) shun() {
	soft := func(list []corev1.Taint) bool {
		return slices.ContainsFunc(list, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectPreferNoSchedule })
	}
	e.softTaints = slices.ContainsFunc(e.nodes, func(n node) bool { return soft(n.object.Spec.Taints) }) ||
		slices.ContainsFunc(e.problem.Pools, func(p scheduling.PoolState) bool { return soft(p.Taints) })
}
