package topology

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
)

// PreferenceKind is the type of a soft constraint.
type PreferenceKind string

// The types of soft constraints, in the order in which they are given up.
const (
	PreferSpread  PreferenceKind = "ScheduleAnyway spread"
	PreferPods    PreferenceKind = "preferred pod (anti-)affinity"
	PreferNodes   PreferenceKind = "preferred node affinity"
	PreferNoTaint PreferenceKind = "PreferNoSchedule taint"
)

func (k PreferenceKind) rank() int {
	return slices.Index([]PreferenceKind{PreferSpread, PreferPods, PreferNodes, PreferNoTaint}, k)
}

// After reports whether preferences of the kind are given up after those of the other kind.
func (k PreferenceKind) After(other PreferenceKind) bool { return k.rank() > other.rank() }

// Preference is a soft constraint of a class. Preferences are tried as hard constraints. Pods that
// cannot be placed give them up one at a time: first spreads, then pod affinity, then node
// affinity, then PreferNoSchedule taints. Within each of these the lightest goes first; of equal
// weights, the last in the manifest.
type Preference struct {
	Kind PreferenceKind
	// Weight is that of the manifest; 0 if it has none.
	Weight int32
	// Text describes the constraint.
	Text string

	index int // into Class.Preferred or the constraints of the class
}

// comparePreferences orders soft constraints by what is given up first.
func comparePreferences(a, b Preference) int {
	return cmp.Or(cmp.Compare(a.Kind.rank(), b.Kind.rank()), cmp.Compare(a.Weight, b.Weight), cmp.Compare(b.index, a.index))
}

// Preferences returns the soft constraints of a class in the order in which they are given up.
func (p *Problem) Preferences(class int) []Preference { return slices.Clone(p.classes[class].soft) }

// EveryPreference returns how many preferences each class has, for [Choice.GivenUp].
func (p *Problem) EveryPreference() []int {
	out := make([]int, len(p.classes))
	for i := range out {
		out[i] = len(p.classes[i].soft)
	}
	return out
}

// Lost returns how many preferences a pod of the class gives up at a place: all up to the last one
// that does not hold there. allows says whether constraints between pods let one more pod in, and
// tainted whether the node has a soft taint that the pod does not tolerate.
func (p *Problem) Lost(class int, labels map[string]string, tainted bool, allows func(*interpod.Constraints) bool) int {
	c := &p.classes[class]
	holds := func(s Preference) bool {
		x := c.all
		x.Spreads, x.Terms = nil, nil
		switch s.Kind {
		case PreferSpread:
			x.Spreads = c.all.Spreads[s.index : s.index+1]
		case PreferPods:
			x.Terms = c.all.Terms[s.index : s.index+1]
		case PreferNodes:
			return c.Preferred[s.index].Nodes.Matches(labels)
		case PreferNoTaint:
			return !tainted
		}
		return allows(&x)
	}
	for n := len(c.soft); n > 0; n-- {
		if !holds(c.soft[n-1]) {
			return n
		}
	}
	return 0
}

// Escapes reports whether a pod of the class that moves between nodes with these labels would leave a
// constraint that kube-scheduler looks at only on nodes that are there or have a label. Spreads count
// what is for sale, so the pod stays in its domain, and so does one that other pods count; only zones
// may be left if spreads need not count them. If counted, the caller sees to hard spreads of the
// class itself. Pods stay on nodes with the labels by which they, or others, keep apart, and where
// others prefer them to be.
func (p *Problem) Escapes(class int, from, to map[string]string, zones, counted bool) bool {
	c := &p.classes[class]
	own := func(group int32) bool {
		return slices.ContainsFunc(c.all.Spreads, func(sp interpod.Spread) bool { return sp.Group == group && sp.Hard })
	}
	leaves := func(group int32) bool {
		g := &p.groups[group]
		old, labelled := from[g.key]
		now, still := to[g.key]
		switch {
		case p.preferred(group):
			return g.hostname || old != now
		case g.hostname:
			return false
		case counted && own(group):
			return labelled && !still
		case g.spread && (!zones || g.key != corev1.LabelTopologyZone):
			return old != now
		default:
			return labelled && !still
		}
	}
	return slices.ContainsFunc(c.all.MemberOf, leaves) || slices.ContainsFunc(c.all.Terms, func(t interpod.Term) bool { return leaves(t.Group) })
}

// preferred reports whether some pods prefer to be near or away from those of the group.
func (p *Problem) preferred(group int32) bool {
	return p.memo.preferred.Of(group, func() bool {
		return slices.ContainsFunc(p.classes, func(c class) bool {
			return slices.ContainsFunc(c.all.Terms, func(t interpod.Term) bool { return t.Group == group && !binds(&t) })
		})
	})
}

// binds reports whether a term is hard or is never given up.
func binds(t *interpod.Term) bool { return t.Hard || t.Weight == always }

// collectPreferences lists the soft constraints of the class in the order of giving them up.
func (p *Problem) collectPreferences(c *class) {
	for i, s := range c.all.Spreads {
		if !s.Hard {
			c.soft = append(c.soft, Preference{PreferSpread, 0, fmt.Sprintf("spread over %s with skew %d", p.groups[s.Group].key, s.MaxSkew), i})
		}
	}
	for i := range c.all.Terms {
		t := &c.all.Terms[i]
		if binds(t) {
			continue
		}
		word := "near"
		if t.Anti {
			word = "away from"
		}
		g := &p.groups[t.Group]
		c.soft = append(c.soft, Preference{PreferPods, t.Weight, fmt.Sprintf("%s pods %s by %s", word, g.what, g.key), i})
	}
	for i, n := range c.Preferred {
		c.soft = append(c.soft, Preference{PreferNodes, n.Weight, n.Nodes.String(), i})
	}
	if !c.Untainted.Equal(c.Tolerated) {
		c.soft = append(c.soft, Preference{PreferNoTaint, 0, "nodes without soft taints", 0})
	}
	slices.SortFunc(c.soft, comparePreferences)
}

// relaxation is the constraints of a class without the preferences that are given up.
type relaxation struct {
	interpod.Constraints
	required requirements.Alternatives // including preferred nodes and taints
}

// relax gives up the first n preferences. Affinity that DaemonSets meet becomes a requirement of
// the node: it has their pods, or its domain already has such pods.
func (p *Problem) relax(c *class, n int) relaxation {
	out := c.relaxFrom(c.Required, n)
	beside := func(t interpod.Term) string {
		if !t.Hard || t.Anti || t.Self {
			return ""
		}
		return p.groups[t.Group].daemons
	}
	if slices.ContainsFunc(out.Terms, func(t interpod.Term) bool { return beside(t) != "" }) {
		for _, t := range out.Terms {
			if key := beside(t); key != "" {
				out.required = out.required.Intersect(requirements.AnyOf(requirements.MustOf(requirements.In(key, filterIn))))
			}
		}
		out.Terms = slices.DeleteFunc(slices.Clone(out.Terms), func(t interpod.Term) bool { return beside(t) != "" })
	}
	return out
}

// relaxFrom is relax with other requirements of labels.
func (c *class) relaxFrom(required requirements.Alternatives, n int) relaxation {
	keeps := func(kind PreferenceKind, index int) bool {
		return !slices.ContainsFunc(c.soft[:n], func(s Preference) bool { return s.Kind == kind && s.index == index })
	}
	out := relaxation{c.all, required}
	if n > 0 {
		out.Spreads, out.Terms = nil, nil
		for i, sp := range c.all.Spreads {
			if keeps(PreferSpread, i) {
				out.Spreads = append(out.Spreads, sp)
			}
		}
		for i, t := range c.all.Terms {
			if keeps(PreferPods, i) {
				out.Terms = append(out.Terms, t)
			}
		}
	}
	for i, preferred := range slices.Backward(c.Preferred) {
		if keeps(PreferNodes, i) {
			out.required = out.required.Intersect(requirements.AnyOf(preferred.Nodes))
		}
	}
	tolerated := c.Untainted
	if !keeps(PreferNoTaint, 0) {
		tolerated = c.Tolerated
	}
	out.required = out.required.Intersect(requirements.AnyOf(tolerated))
	return out
}
