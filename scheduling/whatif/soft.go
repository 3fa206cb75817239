package whatif

import (
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
)

// softly is what a class would rather have. It keeps no pod from any node; of nodes that take the pod one with the highest
// score is chosen, and of those the fullest.
type softly struct {
	interpod.Constraints
	nodes []requirements.Preference
	met   []int8 // by kind of node and term: 0 unknown, 1 yes, 2 no
	fine  bool   // some of it is about a key of many values
}

const (
	// evenness is the weight of keeping to the skew that a spread would rather have: that of the heaviest affinity.
	evenness = 100
	// looks is how many nodes of a bucket are compared where they differ in what a class would rather have.
	looks = 8
)

// score is how much of what a class would rather have nodes of a kind and with these values of the keys give.
// Groups that are left out count for nothing.
func (e *engine) score(s *softly, kind int32, values []int32, without []bool) int32 {
	sum := int32(0)
	for i := range s.nodes {
		at := int(kind)*len(s.nodes) + i
		for at >= len(s.met) {
			s.met = append(s.met, 0)
		}
		if s.met[at] == 0 {
			s.met[at] = 2
			if s.nodes[i].Nodes.Matches(e.cluster.Labels(kind)) {
				s.met[at] = 1
			}
		}
		if s.met[at] == 1 {
			sum += s.nodes[i].Weight
		}
	}
	for i := range s.Terms {
		t := &s.Terms[i]
		if without != nil && without[t.Group] {
			continue
		}
		if v := values[e.index.Groups()[t.Group].Key]; v >= 0 && e.cluster.State.Members(t.Group, v) > 0 {
			if t.Anti {
				sum -= t.Weight
			} else {
				sum += t.Weight
			}
		}
	}
	for i := range s.Spreads {
		if sp := &s.Spreads[i]; (without == nil || !without[sp.Group]) && !e.cluster.State.Even(sp, values) {
			sum -= evenness
		}
	}
	return sum
}

// prefer is the node from lo to hi that a pod of the class likes best; hi if none takes it.
func (e *engine) prefer(c *class, lo, hi int) int {
	best, most := int32(hi), int32(0)
	for i := range e.buckets {
		s := &e.buckets[i]
		if len(s.nodes) == 0 || s.nodes[len(s.nodes)-1] < int32(lo) || !s.mixed && (!e.cluster.Suits(&c.Class, s.kind) || !e.allowed(c, s.values, e.fineGroups)) {
			continue
		}
		from := int32(lo)
		for range looks {
			at := e.search(c, s, from, int32(hi))
			if at == int32(hi) {
				break
			}
			n := &e.nodes[at]
			if got := e.score(c.soft, n.Kind, n.Values, nil); best == int32(hi) || got > most || got == most && at < best {
				best, most = at, got
			}
			if from = at + 1; !s.mixed && !c.soft.fine {
				break // the others of the bucket are liked as much
			}
		}
	}
	return int(best)
}
