package whatif

import (
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
)

// join finds the groups that each class and DaemonSet is in.
func (e *engine) join() {
	for _, d := range e.daemons {
		e.index.Join(&d.Constraints, d.pod.Namespace, d.pod.Labels)
	}
	for i := range e.classes {
		c := &e.classes[i]
		e.index.Join(&c.Constraints, c.template.Namespace, c.template.Labels)
		if c.soft != nil {
			e.index.Join(&c.soft.Constraints, c.template.Namespace, c.template.Labels)
		}
	}
}

// allowed reports whether the constraints between pods let a pod of the class onto a node with these values of the keys.
// Groups that are left out are skipped; a refusal without them stands.
func (e *engine) allowed(c *class, values []int32, without []bool) bool {
	return e.cluster.Between(&c.Constraints, values, without).OK()
}

// keyOf is the name of the label by whose values a group is counted.
func (e *engine) keyOf(group int32) string { return e.index.Keys()[e.index.Groups()[group].Key] }

// narrow is the set narrowed by the first alternative that suits it.
func narrow(set requirements.Set, asked requirements.Alternatives) (requirements.Set, bool) {
	for a := range asked.All() {
		if !a.Compatible(set, requirements.Keys{}) {
			continue
		}
		if a.IsAnything() {
			return set, true
		}
		if out, err := set.Intersect(a.Restrict(set.Keys())); err == nil {
			return out, true
		}
	}
	return set, false
}

// softly is the preferences of a class. They keep no pod from a node; a pod goes to a node with the highest score, of equal ones to
// the fullest.
type softly struct {
	interpod.Constraints
	nodes []requirements.Preference
	fine  bool // some of them are about a fine key
}

const (
	// evenness is the weight of a preferred spread: that of the heaviest affinity.
	evenness = 100
	// looks bounds how many nodes of a bucket are compared if their scores may differ.
	looks = 8
)

// score is the total weight of the preferences that a node meets.
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

// prefer is the accepting node from lo to hi with the highest score; hi if none accepts a pod of the class.
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
