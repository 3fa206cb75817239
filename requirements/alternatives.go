package requirements

import (
	"encoding/binary"
	"iter"
	"slices"
	"strings"
)

// Alternatives is a union of sets: the nodes that satisfy at least one of them, like the OR-terms
// of a node selector. The order of the sets is kept, because a scheduler tries them in that order.
// The zero value has no set and therefore no node. It is an immutable value, safe for concurrent
// use.
type Alternatives struct {
	sets []Set
}

// AnyOf returns the union of sets. Impossible sets and duplicates are left out.
func AnyOf(sets ...Set) Alternatives {
	out := []Set{} // not nil, which is the zero value
	for _, s := range sets {
		if !s.impossible && !slices.ContainsFunc(out, s.Equal) {
			out = append(out, s)
		}
	}
	return Alternatives{out}
}

// All yields the sets in order.
func (a Alternatives) All() iter.Seq[Set] { return slices.Values(a.sets) }

// Len returns the number of sets.
func (a Alternatives) Len() int { return len(a.sets) }

// At returns the i-th set. It panics if there is none.
func (a Alternatives) At(i int) Set { return a.sets[i] }

// Keys returns the keys that some set constrains.
func (a Alternatives) Keys() Keys {
	var out Keys
	for _, s := range a.sets {
		out = out.Union(s.Keys())
	}
	return out
}

// IsZero reports whether a is the zero value. No function of this package makes the zero value out
// of other values; [AnyOf] without sets returns another one. So a caller can use the zero value for
// "nothing was asked", distinct from "no node satisfies it".
func (a Alternatives) IsZero() bool { return a.sets == nil }

// IsImpossible reports whether no node satisfies any of the sets.
func (a Alternatives) IsImpossible() bool { return len(a.sets) == 0 }

// Matches reports whether a node with exactly these labels satisfies one of the sets. It allocates
// nothing.
func (a Alternatives) Matches(labels map[string]string) bool {
	for _, s := range a.sets {
		if s.Matches(labels) {
			return true
		}
	}
	return false
}

// Compatible reports whether a node described by node may satisfy one of the sets; see
// [Set.Compatible].
func (a Alternatives) Compatible(node Set, open Keys) bool {
	for _, s := range a.sets {
		if s.Compatible(node, open) {
			return true
		}
	}
	return false
}

// Conflicts explains why [Alternatives.Compatible] is false: it returns the result of
// [Set.Conflicts] for each set, in order. It is nil if one of the sets is compatible, and empty if
// there are no sets.
func (a Alternatives) Conflicts(node Set, open Keys) [][]*ConflictError {
	if a.Compatible(node, open) {
		return nil
	}
	out := make([][]*ConflictError, len(a.sets))
	for i, s := range a.sets {
		out[i] = s.Conflicts(node, open)
	}
	return out
}

// Intersect returns the nodes that satisfy both sides: every set of a intersected with every set of
// b. First come the intersections of the first set of a with the sets of b in order, then those of
// the second set of a, and so on.
func (a Alternatives) Intersect(b Alternatives) Alternatives {
	switch {
	case len(b.sets) == 1 && b.sets[0].IsAnything():
		return a
	case len(a.sets) == 1 && a.sets[0].IsAnything():
		return b
	case len(a.sets) == 1 && len(b.sets) == 1 && a.sets[0].Overlaps(b.sets[0]):
		both, _ := a.sets[0].Intersect(b.sets[0])
		return Alternatives{[]Set{both}}
	}
	var out []Set
	for _, s := range a.sets {
		for _, t := range b.sets {
			if s.Overlaps(t) {
				both, _ := s.Intersect(t) // cannot conflict, they overlap
				out = append(out, both)
			}
		}
	}
	return AnyOf(out...)
}

// Subset reports whether every node of a is a node of b. It is exact even where no single set of b
// covers a set of a. In the worst case the cost grows exponentially with the number of sets of b;
// pods have only a few.
func (a Alternatives) Subset(b Alternatives) bool {
	for _, s := range a.sets {
		if !covered(s, b.sets) {
			return false
		}
	}
	return true
}

// covered reports whether by covers s. It subtracts the first set from s, which leaves at most one
// disjoint piece for each key, and asks whether the remaining sets cover each piece.
func covered(s Set, by []Set) bool {
	if s.impossible {
		return true
	}
	if len(by) == 0 {
		return false
	}
	for _, r := range by[0].reqs {
		outside := Set{reqs: []Requirement{r.Complement()}}
		if s.Overlaps(outside) {
			piece, _ := s.Intersect(outside)
			if !covered(piece, by[1:]) {
				return false
			}
		}
		inside := Set{reqs: []Requirement{r}}
		if !s.Overlaps(inside) {
			return true // nothing of s is left that by[0] could cover
		}
		s, _ = s.Intersect(inside)
	}
	return true
}

// Equal reports whether both hold the same sets in the same order.
func (a Alternatives) Equal(b Alternatives) bool { return slices.EqualFunc(a.sets, b.sets, Set.Equal) }

// AppendKey appends bytes that are the same for equal alternatives and differ for others; see
// [Set.AppendKey].
func (a Alternatives) AppendKey(to []byte) []byte {
	to = binary.AppendUvarint(to, uint64(len(a.sets)))
	for i := range a.sets {
		to = a.sets[i].AppendKey(to)
	}
	return to
}

// String returns the texts of the sets joined with " or ".
func (a Alternatives) String() string {
	if len(a.sets) == 0 {
		return impossibleText
	}
	texts := make([]string, len(a.sets))
	for i, s := range a.sets {
		texts[i] = s.String()
		if s.IsAnything() {
			texts[i] = "anything"
		}
	}
	return strings.Join(texts, " or ")
}
