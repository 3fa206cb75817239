package topology

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
)

// nodeFilter says on which nodes a spread counts pods: those its owner could use, as far as its policies honour that.
// Pods of other classes may be on such a node or not, so being inside or outside of the filter is settled like being in a
// zone: it is a key of their domains with two values.
type nodeFilter struct {
	key             string // the pseudo-key
	inside, outside requirements.Alternatives
	// asked is the part of inside that Karpenter knows: it does not ask for the keys of other spreads. tainted is the part of
	// that which is about taints.
	asked, tainted requirements.Alternatives
}

// The values of a filter's pseudo-key.
const (
	filterIn  = "in"
	filterOut = "out"
)

// passes reports whether a node with these labels, or one that may get them, counts.
func (f *nodeFilter) passes(labels requirements.Set) bool {
	return f == nil || f.inside.Compatible(labels, requirements.Keys{})
}

// filterOf is the node filter of one of the class's spreads; nil if it passes every node.
func (r *reader) filterOf(c *class, t *corev1.TopologySpreadConstraint) *nodeFilter {
	inside := c.Asked
	if t.NodeAffinityPolicy != nil && *t.NodeAffinityPolicy != corev1.NodeInclusionPolicyHonor {
		inside = requirements.AnyOf(requirements.Set{})
	}
	tainted := requirements.AnyOf(requirements.Set{})
	if t.NodeTaintsPolicy != nil && *t.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor && !c.Tolerated.IsAnything() {
		tainted = requirements.AnyOf(c.Tolerated)
		inside = inside.Intersect(tainted)
	}
	asked := inside
	if others := r.otherKeys(c, t); !others.IsAnything() {
		inside = inside.Intersect(requirements.AnyOf(others))
	}
	if inside.Len() == 1 && inside.At(0).IsAnything() {
		return nil
	}
	key := fmt.Sprintf("filter(%s)", inside)
	if f := r.p.filters[key]; f != nil {
		return f
	}
	outside := requirements.AnyOf(requirements.Set{})
	for set := range inside.All() {
		var pieces []requirements.Set
		for r := range set.All() {
			piece, err := requirements.Of(r.Complement())
			if err == nil {
				pieces = append(pieces, piece)
			}
		}
		outside = outside.Intersect(requirements.AnyOf(pieces...))
	}
	f := &nodeFilter{key: key, inside: inside, outside: outside, asked: asked, tainted: tainted}
	r.p.filters[key] = f
	return f
}

// otherKeys asks that a node has the keys of all hard spreads of the class: kube-scheduler counts no pods on others. The
// constraint's own key goes without saying, and every node has a hostname.
func (r *reader) otherKeys(c *class, t *corev1.TopologySpreadConstraint) requirements.Set {
	var b requirements.Builder
	for _, other := range c.Pod.Spec.TopologySpreadConstraints {
		key := r.aliases.Key(other.TopologyKey)
		if other.WhenUnsatisfiable != corev1.ScheduleAnyway && key != r.aliases.Key(t.TopologyKey) && key != corev1.LabelHostname {
			b.Add(requirements.Exists(key))
		}
	}
	set, err := b.Set()
	if err != nil { // existing is never a contradiction
		panic(err)
	}
	return set
}

// side is where a part stands to a filter: always inside, never, or free to be either.
func (f *nodeFilter) side(required requirements.Alternatives) string {
	switch {
	case required.Subset(f.inside):
		return filterIn
	case required.Intersect(f.inside).IsImpossible():
		return filterOut
	}
	return ""
}

// values are the sides of the filter on which a node with these labels can be.
func (f *nodeFilter) values(labels requirements.Set, required requirements.Alternatives) []string {
	var out []string
	if required.Intersect(f.inside).Compatible(labels, requirements.Keys{}) {
		out = append(out, filterIn)
	}
	if required.Intersect(f.outside).Compatible(labels, requirements.Keys{}) {
		out = append(out, filterOut)
	}
	return out
}

// pin is what the labels of a node in the domain must satisfy.
func (p *Problem) pin(keys []string, d *Domain) requirements.Alternatives {
	var b requirements.Builder
	out := requirements.AnyOf(requirements.Set{})
	for i, k := range keys {
		f := p.filters[k]
		switch {
		case f == nil && d.Values[i] == absent:
			b.Add(requirements.DoesNotExist(k))
		case f == nil:
			b.Add(requirements.In(k, d.Values[i]))
		case d.Values[i] == filterIn:
			out = out.Intersect(f.inside)
		default:
			out = out.Intersect(f.outside)
		}
	}
	set, err := b.Set()
	if err != nil { // the keys are distinct
		panic(fmt.Sprintf("topology: %v", err))
	}
	return out.Intersect(requirements.AnyOf(set))
}

// contains reports whether a node with these labels is in a domain of the part.
func (p *Problem) contains(pt *Part, d int, labels requirements.Set) bool {
	for k, key := range pt.keys {
		if f := p.filters[key]; f != nil {
			if !slices.Contains(f.values(labels, pt.st.required), pt.Domains[d].Values[k]) {
				return false
			}
			continue
		}
		if pt.Domains[d].Values[k] == absent {
			if labels.Has(key) {
				return false
			}
			continue
		}
		if v, ok := labels.Get(key).Single(); !ok || v != pt.Domains[d].Values[k] {
			return false
		}
	}
	return true
}
