package survive

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// sale is what pools with minValues sell, cheapest first, and the resources that matter.
type sale struct {
	spares []Spare
	wanted map[corev1.ResourceName]bool
}

// newSale returns what pools with minValues sell beside the nodes of a cluster.
func (r *rehearsal) newSale() (*sale, error) {
	out, s := &sale{wanted: requested(r.snapshot.Pods)}, r.snapshot
	s.Pods, s.Pools = nil, slices.DeleteFunc(slices.Clone(s.Pools), func(p scheduling.Pool) bool { return len(p.MinValues) == 0 })
	if len(s.Pools) == 0 {
		return out, nil
	}
	p, err := scheduling.Compile(s, r.by.Scheduling)
	if err != nil {
		return nil, fmt.Errorf("survive: %w", err)
	}
	for i := range p.Shapes {
		for k := range p.Shapes[i].Offerings {
			if s, ok := spareOffer(p, i, k, requirements.Set{}); ok && s.isFlexible() {
				out.spares = append(out.spares, s)
			}
		}
	}
	slices.SortStableFunc(out.spares, func(a, b Spare) int {
		return cmp.Or(cmp.Compare(a.PricePerHour, b.PricePerHour), cmp.Compare(a.InstanceType, b.InstanceType))
	})
	return out, nil
}

// isFlexible reports whether the pool of the spare has minValues, so that a pod that asks for one
// type alone may have no place.
func (s *Spare) isFlexible() bool { return len(s.bought.Pool.MinValues) > 0 }

// promised returns the spare as a node that a pod can ask for, which is the spare itself if its
// pool has no minValues. Otherwise the pod allows as many other ways to buy the node as minValues
// demand, and the node has only what all of them have. The result is the cheapest of these ways; it
// is false if the pool sells too few.
func (x *sale) promised(s Spare) (Spare, bool) {
	for s.isFlexible() {
		ways, ok := x.ways(&s)
		if !ok {
			return Spare{}, false
		}
		least := &s
		for i := range ways { // only a plan knows how many of the counted ones can be bought
			if w := &ways[i]; w.PricePerHour < least.PricePerHour && w.bought.Offering.ReservationCount == 0 {
				least = w
			}
		}
		if least == &s {
			return s.reduced(ways), true
		}
		s = *least
	}
	return s, true
}

// placeKeys are the labels by which spares differ beside their type.
var placeKeys = []string{corev1.LabelTopologyZone, instancetypes.LabelCapacityType, instancetypes.LabelReservationID}

// ways returns the spare and others that together have as many values as minValues demand, and
// whether there are enough. It prefers those with at least its capacity, cheapest first. They may
// differ in place only if minValues demand it.
func (x *sale) ways(s *Spare) ([]Spare, bool) {
	minimums := s.bought.Pool.MinValues
	var larger, others []*Spare
	for i := range x.spares {
		w := &x.spares[i]
		differs := func(key string) bool { return minimums[key] == 0 && w.node.Labels[key] != s.node.Labels[key] }
		switch {
		case w.Pool != s.Pool || w.bought.Pool.Kind != s.bought.Pool.Kind || slices.ContainsFunc(placeKeys, differs):
		case x.holds(w, s):
			larger = append(larger, w)
		default:
			others = append(others, w)
		}
	}
	far := func(w *Spare) float64 { return math.Abs(w.PricePerHour - s.PricePerHour) }
	slices.SortStableFunc(others, func(a, b *Spare) int { return cmp.Compare(far(a), far(b)) })
	missing, seen := maps.Clone(minimums), map[[2]string]bool{}
	news := func(w *Spare) (keys []string) { // those of which the spare has another value that is missing
		for key := range minimums {
			if v := w.node.Labels[key]; v != "" && missing[key] > 0 && !seen[[2]string{key, v}] {
				keys = append(keys, key)
			}
		}
		return keys
	}
	var ways []Spare
	for _, w := range slices.Concat([]*Spare{s}, larger, others) {
		keys := news(w)
		for _, key := range keys {
			seen[[2]string{key, w.node.Labels[key]}] = true
			missing[key]--
		}
		if len(keys) > 0 || w == s {
			ways = append(ways, *w)
		}
	}
	for _, n := range missing {
		if n > 0 {
			return ways, false
		}
	}
	return ways, true
}

// holds reports whether a spare has at least the room of another, of what matters.
func (x *sale) holds(s, other *Spare) bool {
	for name, q := range other.free {
		if mine, ok := s.free[name]; (!ok || mine.Cmp(q) < 0) && (x.wanted[name] || !strings.Contains(string(name), "/")) {
			return false
		}
	}
	return true
}

// reduced returns the spare with these ways to buy it, and with what all of them have.
func (s *Spare) reduced(ways []Spare) Spare {
	out := *s
	out.ways, out.node, out.free = ways, s.node.DeepCopy(), s.free.DeepCopy()
	for name, q := range s.free {
		least := q.DeepCopy()
		for i := range ways {
			if there := ways[i].free[name]; there.Cmp(least) < 0 {
				least = there.DeepCopy()
			}
		}
		lost := q.DeepCopy()
		lost.Sub(least)
		left := out.node.Status.Allocatable[name]
		left.Sub(lost)
		out.free[name], out.node.Status.Allocatable[name] = least, left
	}
	return out
}
