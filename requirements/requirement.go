package requirements

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Operator names how a requirement's values are to be read. The spelling is that of the Kubernetes API and of
// Karpenter, case included.
type Operator string

// The operators. Gte and Lte are Karpenter's; the Kubernetes API has the first six.
const (
	OpIn           Operator = "In"
	OpNotIn        Operator = "NotIn"
	OpExists       Operator = "Exists"
	OpDoesNotExist Operator = "DoesNotExist"
	OpGt           Operator = "Gt"
	OpLt           Operator = "Lt"
	OpGte          Operator = "Gte"
	OpLte          Operator = "Lte"
)

// Operators lists every operator, in the order of their declaration.
func Operators() []Operator {
	return []Operator{OpIn, OpNotIn, OpExists, OpDoesNotExist, OpGt, OpLt, OpGte, OpLte}
}

// Requirement is the set of values that one label may have, "absent" among them.
//
// It is immutable and safe for concurrent use. The zero value is impossible: it has no key and contains nothing. Two
// requirements that denote the same set have the same representation; compare with [Requirement.Equal].
type Requirement struct {
	key    string
	absent bool
	// Values are split in two by spelling, since integer bounds then become intervals and every operation is exact:
	// canonical decimal integers, and all other words.
	ints  []span
	words words
}

// In contains the given values and nothing else. With no values it is impossible.
func In(key string, values ...string) Requirement {
	ints, list := split(values)
	return Requirement{key: key, ints: ints, words: words{false, list}}
}

// NotIn contains everything but the given values: any other value, and absent. With no values it is anything.
func NotIn(key string, values ...string) Requirement {
	ints, list := split(values)
	return Requirement{key: key, absent: true, ints: complementSpans(ints), words: words{true, list}}
}

// Exists contains every value, but not absent.
func Exists(key string) Requirement {
	return Requirement{key: key, ints: allInts(), words: words{but: true}}
}

// DoesNotExist contains absent and nothing else.
func DoesNotExist(key string) Requirement { return Requirement{key: key, absent: true} }

// Gt contains the integers greater than n.
func Gt(key string, n int64) Requirement {
	if n == math.MaxInt64 {
		return Requirement{key: key}
	}
	return Gte(key, n+1)
}

// Lt contains the integers less than n.
func Lt(key string, n int64) Requirement {
	if n == math.MinInt64 {
		return Requirement{key: key}
	}
	return Lte(key, n-1)
}

// Gte contains the integers not less than n. Label values are never negative, so a negative n bounds nothing.
func Gte(key string, n int64) Requirement {
	return Requirement{key: key, ints: []span{{max(n, 0), math.MaxInt64}}}
}

// Lte contains the integers from 0 to n. It is impossible when n is negative.
func Lte(key string, n int64) Requirement {
	if n < 0 {
		return Requirement{key: key}
	}
	return Requirement{key: key, ints: []span{{0, n}}}
}

// New builds a requirement from the operator's name and its values as texts, as manifests have them. The error is an
// [*InvalidError]; its path starts at the requirement ("operator", "values[1]").
func New(key string, op Operator, values ...string) (Requirement, error) {
	if err := validate(key, op, values); err != nil {
		return Requirement{}, err
	}
	switch op {
	case OpIn:
		return In(key, values...), nil
	case OpNotIn:
		return NotIn(key, values...), nil
	case OpExists:
		return Exists(key), nil
	case OpDoesNotExist:
		return DoesNotExist(key), nil
	default: // a bound
	}
	n, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil { // validate has parsed it already
		return Requirement{}, fmt.Errorf("requirements: %w", err)
	}
	switch op {
	case OpGt:
		return Gt(key, n), nil
	case OpLt:
		return Lt(key, n), nil
	case OpGte:
		return Gte(key, n), nil
	default:
		return Lte(key, n), nil
	}
}

func split(values []string) ([]span, []string) {
	if len(values) == 1 { // the common case, a label
		if n, ok := canonicalInt(values[0]); ok {
			return []span{{n, n}}, nil
		}
		return nil, []string{values[0]}
	}
	var ints []span
	var list []string
	for _, v := range values {
		if n, ok := canonicalInt(v); ok {
			ints = append(ints, span{n, n})
		} else {
			list = append(list, v)
		}
	}
	slices.Sort(list)
	return normalizeSpans(ints), slices.Compact(list)
}

// Key is the label key.
func (r Requirement) Key() string { return r.key }

// Contains reports whether the label may have this value. It allocates nothing and costs O(log n) in the values.
func (r Requirement) Contains(value string) bool {
	if n, ok := canonicalInt(value); ok {
		return spansContain(r.ints, n)
	}
	return r.words.contains(value)
}

// AllowsAbsent reports whether a node without the label satisfies the requirement.
func (r Requirement) AllowsAbsent() bool { return r.absent }

// IsImpossible reports whether nothing satisfies the requirement.
func (r Requirement) IsImpossible() bool { return !r.absent && len(r.ints) == 0 && r.words.empty() }

// IsAnything reports whether everything satisfies the requirement, absent included.
func (r Requirement) IsAnything() bool { return r.absent && r.words.all() && isAllInts(r.ints) }

// Equal reports whether both have the same key and denote the same set.
func (r Requirement) Equal(o Requirement) bool {
	return r.key == o.key && r.absent == o.absent && r.words.equal(o.words) && slices.Equal(r.ints, o.ints)
}

// Intersect contains what both contain. It panics if the keys differ, as do the other operations on two requirements.
func (r Requirement) Intersect(o Requirement) Requirement {
	r.mustShareKey(o)
	return Requirement{r.key, r.absent && o.absent, intersectSpans(r.ints, o.ints), r.words.intersect(o.words)}
}

// Union contains what either contains.
func (r Requirement) Union(o Requirement) Requirement {
	r.mustShareKey(o)
	return Requirement{r.key, r.absent || o.absent, unionSpans(r.ints, o.ints), r.words.union(o.words)}
}

// Complement contains what r does not.
func (r Requirement) Complement() Requirement {
	return Requirement{r.key, !r.absent, complementSpans(r.ints), r.words.complement()}
}

// Overlaps reports whether the intersection is possible. It allocates nothing.
func (r Requirement) Overlaps(o Requirement) bool {
	r.mustShareKey(o)
	return r.absent && o.absent || spansOverlap(r.ints, o.ints) || r.words.overlaps(o.words)
}

// Subset reports whether everything that r contains is contained in o.
func (r Requirement) Subset(o Requirement) bool {
	r.mustShareKey(o)
	if r.absent && !o.absent {
		return false
	}
	return !spansOverlap(r.ints, complementSpans(o.ints)) && r.words.subset(o.words)
}

// Single is the one value that the label must have, if there is exactly one and absent is not allowed.
func (r Requirement) Single() (string, bool) {
	if r.absent || r.words.but {
		return "", false
	}
	switch {
	case len(r.words.list) == 1 && len(r.ints) == 0:
		return r.words.list[0], true
	case len(r.words.list) == 0 && len(r.ints) == 1 && r.ints[0].lo == r.ints[0].hi:
		return strconv.FormatInt(r.ints[0].lo, 10), true
	}
	return "", false
}

// listLimit is how many integers are still written out one by one; larger runs are written with bounds.
const listLimit = 64

// Values lists the values that the label may have, sorted as texts; absent is not among them. The second result is
// false, and the list nil, when there are infinitely many or more than 64 integers.
func (r Requirement) Values() ([]string, bool) {
	if r.words.but {
		return nil, false
	}
	return listed(r.ints, r.words.list)
}

func listed(ints []span, list []string) ([]string, bool) {
	if tooMany(ints) {
		return nil, false
	}
	out := slices.Clone(list)
	for _, s := range ints {
		for n := s.lo; ; n++ { // not n <= s.hi: s.hi may be the largest integer
			out = append(out, strconv.FormatInt(n, 10))
			if n == s.hi {
				break
			}
		}
	}
	slices.Sort(out)
	return out, true
}

func (r Requirement) mustShareKey(o Requirement) {
	if r.key != o.key {
		panic(fmt.Sprintf("requirements: keys %q and %q differ", r.key, o.key))
	}
}

// Any is one value that the label may have, always the same: the least integer, otherwise the first listed word,
// otherwise the shortest row of the letter x that is not excluded. The second result is false if the label may have no
// value at all.
func (r Requirement) Any() (string, bool) {
	switch {
	case len(r.ints) > 0:
		return strconv.FormatInt(r.ints[0].lo, 10), true
	case !r.words.but && len(r.words.list) > 0:
		return r.words.list[0], true
	case !r.words.but:
		return "", false
	}
	for word := "x"; ; word += "x" {
		if r.words.contains(word) {
			return word, true
		}
	}
}

// appendKey appends the representation, each part after its length.
func (r *Requirement) appendKey(to []byte) []byte {
	text := func(s string) { to = append(binary.AppendUvarint(to, uint64(len(s))), s...) }
	text(r.key)
	flags := byte(0)
	if r.absent {
		flags |= 1
	}
	if r.words.but {
		flags |= 2
	}
	to = binary.AppendUvarint(append(to, flags), uint64(len(r.ints)))
	for _, s := range r.ints {
		to = binary.AppendUvarint(binary.AppendUvarint(to, uint64(s.lo)), uint64(s.hi))
	}
	to = binary.AppendUvarint(to, uint64(len(r.words.list)))
	for _, w := range r.words.list {
		text(w)
	}
	return to
}
