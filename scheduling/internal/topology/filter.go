package topology

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
)

// nodeFilter is the nodes on which a spread counts pods: those that its owner could use, if its
// policies honour node affinity and taints. Pods of other classes may or may not be on such nodes.
// So the side of the filter is a key of their domains, with the values in and out.
//
// Nodes have the side as a pseudo-label; see [Problem.Sides]. So a filter is evaluated once for
// each distinct set of node labels. It is never complemented, which would take L^K alternatives for
// K terms of L labels. Only nodes with open labels, such as those of a pool that allows several
// values of a label, can be on both sides. For them the labels themselves are required.
type nodeFilter struct {
	key     string // the pseudo-label
	inside  requirements.Alternatives
	outside requirements.Alternatives // a part of the complement; see newFilter
	split   bool                      // a class that it counts may be on both sides, so nodes have the pseudo-label
	open    bool                      // a node to buy may be on both sides
}

// The values of a filter's pseudo-label.
const (
	filterIn  = "in"
	filterOut = "out"
)

// How pseudo-labels begin: those of filters, and those of groups with pods of DaemonSets. A bracket
// is not allowed in a label key.
const (
	pseudoPrefix = "filter("
	daemonPrefix = "daemons("
)

// IsPseudo reports whether a label key is a pseudo-label of [Problem.Sides].
func IsPseudo(key string) bool {
	return strings.HasPrefix(key, pseudoPrefix) || strings.HasPrefix(key, daemonPrefix)
}

// newFilter reads a filter of the index; tolerated is the nodes that its owner tolerates. Outside
// has one alternative for each label. In it, the label contradicts every term that has it, and each
// other term is contradicted by its first label.
func newFilter(number int, f *interpod.Filter, keys []string, tolerated requirements.Set) nodeFilter {
	inside := f.Asked
	if f.HonorTaints {
		inside = inside.Intersect(requirements.AnyOf(tolerated))
	}
	for _, k := range f.Keys {
		if keys[k] != corev1.LabelHostname { // every node to buy has one; the verifier checks existing ones
			inside = inside.Intersect(requirements.AnyOf(requirements.MustOf(requirements.Exists(keys[k]))))
		}
	}
	var outside []requirements.Set
	for key := range inside.Keys().All() {
		var b requirements.Builder
		for set := range inside.All() {
			for r := range set.All() {
				if !set.Has(key) || r.Key() == key {
					b.Add(r.Complement())
					break
				}
			}
		}
		if set, err := b.Set(); err == nil {
			outside = append(outside, set)
		}
	}
	return nodeFilter{key: fmt.Sprintf("%s%d)", pseudoPrefix, number), inside: inside, outside: requirements.AnyOf(outside...)}
}

// passes reports whether a node with these labels, or one that may get them, counts.
func (f *nodeFilter) passes(labels requirements.Set) bool {
	return f.inside.Compatible(labels, requirements.Keys{})
}

// passes reports whether a node with these labels, or one that may get them, counts for a group.
func (p *Problem) passes(g *group, labels requirements.Set) bool {
	return g.filter < 0 || p.filters[g.filter].passes(labels)
}

// Sides returns the pseudo-labels of a node with these labels and daemons, by position in
// [Input.Daemons]. They are its side of each filter that splits a class, and whether it meets
// affinity to a group that DaemonSets are in. A node that may be on both sides of a filter has no
// such label. It costs O(terms of these filters + daemons of these groups).
func (p *Problem) Sides(labels requirements.Set, daemons []int) requirements.Set {
	var sides []requirements.Requirement
	for i := range p.filters {
		switch f := &p.filters[i]; {
		case !f.split:
		case !f.passes(labels):
			sides = append(sides, requirements.In(f.key, filterOut))
		case covered(labels, f.inside):
			sides = append(sides, requirements.In(f.key, filterIn))
		}
	}
	for g := range p.groups {
		if key := p.groups[g].daemons; key != "" && p.meets(int32(g), labels, daemons) {
			sides = append(sides, requirements.In(key, filterIn))
		}
	}
	return requirements.MustOf(sides...)
}

// meets reports whether a pod of the group runs on the node as one of its daemons, or already runs
// in its domain.
func (p *Problem) meets(g int32, labels requirements.Set, daemons []int) bool {
	if v, ok := labels.Get(p.groups[g].key).Single(); ok {
		if at := p.values.Find(p.groups[g].keyID, v); at != interpod.Absent && p.running.Members(g, at) > 0 {
			return true
		}
	}
	return slices.ContainsFunc(daemons, func(d int) bool { return slices.Contains(p.daemons[d].MemberOf, g) })
}

// Splits reports whether nodes have pseudo-labels.
func (p *Problem) Splits() bool {
	return slices.ContainsFunc(p.filters, func(f nodeFilter) bool { return f.split }) ||
		slices.ContainsFunc(p.groups, func(g group) bool { return g.daemons != "" })
}

// covered reports whether every node with these labels meets some alternative.
func covered(labels requirements.Set, by requirements.Alternatives) bool {
next:
	for alt := range by.All() {
		for r := range alt.All() {
			have := requirements.DoesNotExist(r.Key()) // a node has no label that its set does not mention
			if labels.Has(r.Key()) {
				have = labels.Get(r.Key())
			}
			if !have.Subset(r) {
				continue next
			}
		}
		return true
	}
	return false
}

// side returns filterIn if all nodes of the class pass the filter, filterOut if none does, and else
// the empty text.
func (f *nodeFilter) side(required requirements.Alternatives) string {
	switch {
	case required.Subset(f.inside):
		return filterIn
	case required.Intersect(f.inside).IsImpossible():
		return filterOut
	}
	return ""
}

// values returns the possible sides of a node with these labels that meets the requirements.
func (f *nodeFilter) values(labels requirements.Set, required requirements.Alternatives) []string {
	if labels.Has(f.key) {
		if v, ok := labels.Get(f.key).Single(); ok {
			return []string{v}
		}
	}
	var out []string
	if required.Intersect(f.inside).Compatible(labels, requirements.Keys{}) {
		out = append(out, filterIn)
	}
	if required.Intersect(f.outside).Compatible(labels, requirements.Keys{}) {
		out = append(out, filterOut)
	}
	return out
}

// on returns what the labels of a node on the side must satisfy.
func (f *nodeFilter) on(side string) requirements.Alternatives {
	unsaid := f.inside
	if side == filterOut {
		unsaid = f.outside
	}
	if !f.split {
		return unsaid
	}
	out := requirements.AnyOf(requirements.MustOf(requirements.In(f.key, side)))
	if !f.open {
		return out
	}
	unsaid = unsaid.Intersect(requirements.AnyOf(requirements.MustOf(requirements.DoesNotExist(f.key))))
	return either(out, unsaid)
}

// either returns the alternatives of both.
func either(a, b requirements.Alternatives) requirements.Alternatives {
	return requirements.AnyOf(slices.AppendSeq(slices.Collect(a.All()), b.All())...)
}

// pin returns what the labels of a node in the domain must satisfy, by the keys that matter; nil
// means all keys.
func (p *Problem) pin(keys []key, d *Domain, matter []bool) requirements.Alternatives {
	var labels []requirements.Requirement
	out := requirements.AnyOf(requirements.Set{})
	for i, k := range keys {
		switch {
		case matter != nil && !matter[i]:
		case k.filter >= 0:
			out = out.Intersect(p.filters[k.filter].on(d.Values[i]))
		case d.Values[i] == absent:
			labels = append(labels, requirements.DoesNotExist(k.name))
		default:
			labels = append(labels, requirements.In(k.name, d.Values[i]))
		}
	}
	return out.Intersect(requirements.AnyOf(requirements.MustOf(labels...)))
}
