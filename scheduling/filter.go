package scheduling

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
)

// nodeFilter says on which nodes a spread counts pods: those its owner could use, as far as its policies honour that.
// Pods of other classes may be on such a node or not, so being inside or outside of the filter is settled like being in a
// zone: it is a key of their domains with two values.
type nodeFilter struct {
	key             string // the pseudo-key
	inside, outside requirements.Alternatives
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
func (p *Problem) filterOf(c *Class, t *corev1.TopologySpreadConstraint) *nodeFilter {
	inside := requirements.AnyOf(requirements.Set{})
	if t.NodeAffinityPolicy == nil || *t.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor {
		inside = c.asked
	}
	if t.NodeTaintsPolicy != nil && *t.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor {
		var values []string
		for i, taints := range p.taints.sets {
			if _, bad := untolerated(taints, c.Template.Spec.Tolerations, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute); !bad {
				values = append(values, taintValue(i))
			}
		}
		if len(values) < len(p.taints.sets) {
			inside = inside.Intersect(requirements.AnyOf(requirements.MustOf(allowedTaints(values))))
		}
	}
	inside = inside.Intersect(requirements.AnyOf(p.otherKeys(c, t)))
	if inside.Len() == 1 && inside.At(0).IsAnything() {
		return nil
	}
	key := fmt.Sprintf("filter(%s)", inside)
	if f := p.filters[key]; f != nil {
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
	f := &nodeFilter{key: key, inside: inside, outside: outside}
	p.filters[key] = f
	return f
}

// otherKeys asks that a node has the keys of all hard spreads of the class: kube-scheduler counts no pods on others. The
// constraint's own key goes without saying, and every node has a hostname.
func (p *Problem) otherKeys(c *Class, t *corev1.TopologySpreadConstraint) requirements.Set {
	var b requirements.Builder
	for _, other := range c.Template.Spec.TopologySpreadConstraints {
		key := p.aliases.Key(other.TopologyKey)
		if other.WhenUnsatisfiable != corev1.ScheduleAnyway && key != p.aliases.Key(t.TopologyKey) && key != corev1.LabelHostname {
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
func (p *Problem) pin(keys []string, d *domain) requirements.Alternatives {
	var b requirements.Builder
	out := requirements.AnyOf(requirements.Set{})
	for i, k := range keys {
		f := p.filters[k]
		switch {
		case f == nil:
			b.Add(requirements.In(k, d.values[i]))
		case d.values[i] == filterIn:
			out = out.Intersect(f.inside)
		default:
			out = out.Intersect(f.outside)
		}
	}
	set, err := b.Set()
	if err != nil { // the keys are distinct
		panic(fmt.Sprintf("scheduling: %v", err))
	}
	return out.Intersect(requirements.AnyOf(set))
}
