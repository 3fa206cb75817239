package requirements

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Set is the set of nodes that satisfy all of its requirements. It has at most one requirement for
// each key.
//
// The zero value is anything: no key is constrained. A Set is an immutable value, safe for
// concurrent use. It has one canonical form: its requirements are sorted by key, those that are
// anything are left out, and all impossible sets are one value.
type Set struct {
	reqs       []Requirement // sorted by key, none anything, none impossible
	impossible bool
}

// Impossible returns the set that no node satisfies.
func Impossible() Set { return Set{impossible: true} }

// Of returns the set of nodes that satisfy all of rs. Requirements of the same key intersect. If a
// key becomes impossible, the set is [Impossible] and the error joins a [*ConflictError] for each
// such key.
func Of(rs ...Requirement) (Set, error) {
	var b Builder
	for _, r := range rs {
		b.Add(r)
	}
	return b.Set()
}

// MustOf is [Of] for requirements that are known to agree, as in tests and tables. It panics if
// they do not.
func MustOf(rs ...Requirement) Set {
	s, err := Of(rs...)
	if err != nil {
		panic(err)
	}
	return s
}

// FromLabels returns the set of nodes that carry these labels. Without labels it is the Set that
// every node satisfies. It costs O(n log n).
func FromLabels(labels map[string]string) Set {
	if len(labels) == 0 {
		return Set{}
	}
	reqs := make([]Requirement, 0, len(labels))
	for k, v := range labels {
		reqs = append(reqs, In(k, v))
	}
	slices.SortFunc(reqs, byKey)
	return Set{reqs: reqs}
}

func byKey(a, b Requirement) int { return strings.Compare(a.key, b.key) }

// Builder collects requirements into a [Set]. The zero value is ready to use. It is not safe for
// concurrent use.
type Builder struct {
	reqs []Requirement
}

// Add narrows the set by r and returns the builder, for chains.
func (b *Builder) Add(r Requirement) *Builder {
	b.reqs = append(b.reqs, r)
	return b
}

// AddSet narrows the set by each requirement of s.
func (b *Builder) AddSet(s Set) *Builder {
	if s.impossible {
		b.reqs = append(b.reqs, Requirement{})
	}
	b.reqs = append(b.reqs, s.reqs...)
	return b
}

// Set returns the set of the requirements added so far. The builder may be used further. If
// requirements of a key contradict each other, the set is [Impossible] and the error joins a
// [*ConflictError] for each such key, in the order of the keys.
func (b *Builder) Set() (Set, error) {
	if len(b.reqs) == 0 {
		return Set{}, nil
	}
	reqs := slices.Clone(b.reqs)
	slices.SortStableFunc(reqs, byKey)
	out := reqs[:0]
	var errs []error
	failed := false
	for i := 0; i < len(reqs); {
		r, j := reqs[i], i+1
		broken := r.IsImpossible()
		if broken {
			errs = append(errs, &ConflictError{Key: r.key, Left: r, Right: r})
		}
		for ; j < len(reqs) && reqs[j].key == r.key; j++ {
			next := r.Intersect(reqs[j])
			if next.IsImpossible() && !broken {
				errs = append(errs, &ConflictError{Key: r.key, Left: r, Right: reqs[j]})
				broken = true
			}
			r = next
		}
		failed = failed || broken
		if !r.IsAnything() {
			out = append(out, r)
		}
		i = j
	}
	if failed {
		return Impossible(), errors.Join(errs...)
	}
	if len(out) == 0 {
		return Set{}, nil
	}
	return Set{reqs: slices.Clip(out)}, nil
}

// ConflictError says that Left and Right, two requirements of Key, have nothing in common. If the
// two are equal, that requirement is impossible by itself. Its text is built only when asked for.
type ConflictError struct {
	Key         string
	Left, Right Requirement
}

// Error names the key and both sides.
func (e *ConflictError) Error() string {
	if e.Left.Equal(e.Right) {
		return fmt.Sprintf("requirements: %s: nothing satisfies %q", quote(e.Key), e.Left)
	}
	return fmt.Sprintf("requirements: %s: %q and %q have nothing in common", quote(e.Key), e.Left, e.Right)
}

// IsImpossible reports whether the set is the one that no node satisfies.
func (s Set) IsImpossible() bool { return s.impossible }

// IsAnything reports whether every node satisfies the set.
func (s Set) IsAnything() bool { return !s.impossible && len(s.reqs) == 0 }

// Len returns the number of constrained keys.
func (s Set) Len() int { return len(s.reqs) }

// All yields the requirements in the order of their keys.
func (s Set) All() iter.Seq[Requirement] { return slices.Values(s.reqs) }

// Keys returns the constrained keys; an impossible set has none.
func (s Set) Keys() Keys {
	keys := make([]string, len(s.reqs))
	for i := range s.reqs {
		keys[i] = s.reqs[i].key
	}
	return Keys{keys}
}

// Get returns the requirement of one key. It is anything if the set does not mention the key, and
// impossible if the set is impossible. It allocates only when the key is not mentioned.
func (s Set) Get(key string) Requirement {
	if s.impossible {
		return Requirement{key: key}
	}
	if i, ok := s.find(key); ok {
		return s.reqs[i]
	}
	return NotIn(key)
}

// Has reports whether the set constrains the key.
func (s Set) Has(key string) bool {
	_, ok := s.find(key)
	return ok
}

func (s Set) find(key string) (int, bool) {
	lo, hi := 0, len(s.reqs)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if s.reqs[mid].key < key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(s.reqs) && s.reqs[lo].key == key
}

// Equal reports whether both denote the same nodes.
func (s Set) Equal(o Set) bool {
	if len(s.reqs) > 0 && len(s.reqs) == len(o.reqs) && &s.reqs[0] == &o.reqs[0] {
		return true // one is a copy of the other
	}
	return s.impossible == o.impossible && slices.EqualFunc(s.reqs, o.reqs, Requirement.Equal)
}

// AppendKey appends bytes that are the same for equal sets and differ for others. They serve as
// keys of maps and have no other meaning. They are quicker to make than the text.
func (s Set) AppendKey(to []byte) []byte {
	if s.impossible {
		return append(to, 0)
	}
	size := binary.MaxVarintLen64
	for i := range s.reqs {
		size += s.reqs[i].keySize()
	}
	to = binary.AppendUvarint(slices.Grow(to, size), uint64(len(s.reqs))+1)
	for i := range s.reqs {
		to = s.reqs[i].AppendKey(to)
	}
	return to
}

// Intersect returns the set of nodes that satisfy both. If the two contradict each other, the set
// is [Impossible] and the error joins a [*ConflictError] for each key in which they do. If one side
// is impossible by itself, the set is [Impossible] and the error says so. It costs
// O(len(s)+len(o)).
func (s Set) Intersect(o Set) (Set, error) {
	switch {
	case s.impossible || o.impossible:
		return Impossible(), errors.New("requirements: one side is impossible by itself")
	case len(s.reqs) == 0:
		return o, nil
	case len(o.reqs) == 0:
		return s, nil
	}
	var errs []error
	out := make([]Requirement, 0, len(s.reqs)+len(o.reqs))
	i, j := 0, 0
	for i < len(s.reqs) && j < len(o.reqs) {
		a, b := s.reqs[i], o.reqs[j]
		switch c := strings.Compare(a.key, b.key); {
		case c < 0:
			out = append(out, a)
			i++
		case c > 0:
			out = append(out, b)
			j++
		default:
			r := a.Intersect(b)
			if r.IsImpossible() {
				errs = append(errs, &ConflictError{Key: a.key, Left: a, Right: b})
			}
			out = append(out, r)
			i, j = i+1, j+1
		}
	}
	out = append(append(out, s.reqs[i:]...), o.reqs[j:]...)
	if len(errs) > 0 {
		return Impossible(), errors.Join(errs...)
	}
	return Set{reqs: slices.Clip(out)}, nil
}

// Overlaps reports whether some node satisfies both. It allocates nothing and costs
// O(len(s)+len(o)).
func (s Set) Overlaps(o Set) bool {
	if s.impossible || o.impossible {
		return false
	}
	for i, j := 0, 0; i < len(s.reqs) && j < len(o.reqs); {
		switch c := strings.Compare(s.reqs[i].key, o.reqs[j].key); {
		case c < 0:
			i++
		case c > 0:
			j++
		default:
			if !s.reqs[i].Overlaps(o.reqs[j]) {
				return false
			}
			i, j = i+1, j+1
		}
	}
	return true
}

// Subset reports whether every node that satisfies s satisfies o.
func (s Set) Subset(o Set) bool {
	if s.impossible {
		return true
	}
	if o.impossible {
		return false
	}
	for _, r := range o.reqs {
		i, ok := s.find(r.key)
		if !ok || !s.reqs[i].Subset(r) { // o has no requirement that is anything, so an unmentioned key is too wide
			return false
		}
	}
	return true
}

// Matches reports whether a node with exactly these labels satisfies the set. It allocates nothing.
func (s Set) Matches(labels map[string]string) bool {
	if s.impossible {
		return false
	}
	for _, r := range s.reqs {
		v, ok := labels[r.key]
		if ok && !r.Contains(v) || !ok && !r.absent {
			return false
		}
	}
	return true
}

// Compatible reports whether a node described by node may satisfy s. For a key that node does not
// mention, open decides: a key in open is unknown and may still take any value, and any other key
// is known to be absent. It allocates nothing.
func (s Set) Compatible(node Set, open Keys) bool {
	if s.impossible || node.impossible {
		return false
	}
	j := 0
	for _, r := range s.reqs {
		for j < len(node.reqs) && node.reqs[j].key < r.key {
			j++
		}
		if j < len(node.reqs) && node.reqs[j].key == r.key {
			if !r.Overlaps(node.reqs[j]) {
				return false
			}
		} else if !r.absent && !open.Contains(r.key) {
			return false
		}
	}
	return true
}

// Conflicts explains why [Set.Compatible] is false: it returns one conflict for each key that
// stands in the way, in the order of the keys, with s on the left. It returns none when the two are
// compatible, and also when either is impossible by itself.
func (s Set) Conflicts(node Set, open Keys) []*ConflictError {
	if s.impossible || node.impossible {
		return nil
	}
	var out []*ConflictError
	for _, r := range s.reqs {
		other := DoesNotExist(r.key)
		if i, ok := node.find(r.key); ok {
			other = node.reqs[i]
		} else if open.Contains(r.key) {
			continue
		}
		if !r.Overlaps(other) {
			out = append(out, &ConflictError{Key: r.key, Left: r, Right: other})
		}
	}
	return out
}

// Restrict returns the set with only the requirements of the given keys.
func (s Set) Restrict(keys Keys) Set {
	return s.filter(func(r Requirement) bool { return keys.Contains(r.key) })
}

// Without returns the set without the requirements of the given keys.
func (s Set) Without(keys Keys) Set {
	return s.filter(func(r Requirement) bool { return !keys.Contains(r.key) })
}

func (s Set) filter(keep func(Requirement) bool) Set {
	gone := 0
	for _, r := range s.reqs {
		if !keep(r) {
			gone++
		}
	}
	switch {
	case gone == 0:
		return s
	case gone == len(s.reqs):
		return Set{}
	}
	out := make([]Requirement, 0, len(s.reqs)-gone)
	for _, r := range s.reqs {
		if keep(r) {
			out = append(out, r)
		}
	}
	return Set{reqs: out}
}

// Labels returns the value of each key that must have exactly one. A node described by s certainly
// carries these labels.
func (s Set) Labels() map[string]string {
	out := make(map[string]string, len(s.reqs))
	for _, r := range s.reqs {
		if v, ok := r.Single(); ok {
			out[r.key] = v
		}
	}
	return out
}
