package requirements

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Operator says how the values of a requirement are read. It is spelled as in the Kubernetes API
// and in Karpenter, case included.
type Operator string

// The operators. The first six are in the Kubernetes API; Gte and Lte are Karpenter's.
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

// Operators returns every operator, in the order of declaration.
func Operators() []Operator {
	return []Operator{OpIn, OpNotIn, OpExists, OpDoesNotExist, OpGt, OpLt, OpGte, OpLte}
}

// Requirement is the set of values that one label may have. "Absent" can be one of them.
//
// It is immutable and safe for concurrent use. The zero value is impossible: it has no key and
// contains nothing. Two requirements that denote the same set have the same representation; compare
// them with [Requirement.Equal].
type Requirement struct {
	key    string
	absent bool
	// Values are split by spelling into canonical decimal integers and all other words. So integer
	// bounds become intervals, and every operation is exact.
	ints  []span
	words words
}

// In returns the requirement that contains the given values and nothing else. With no values it is
// impossible.
func In(key string, values ...string) Requirement {
	ints, list := split(values)
	return Requirement{key: key, ints: ints, words: words{false, list}}
}

// NotIn returns the requirement that contains everything but the given values: any other value, and
// absent. With no values it is anything.
func NotIn(key string, values ...string) Requirement {
	ints, list := split(values)
	return Requirement{key: key, absent: true, ints: complementSpans(ints), words: words{true, list}}
}

// Exists returns the requirement that contains every value, but not absent.
func Exists(key string) Requirement {
	return Requirement{key: key, ints: allInts(), words: words{but: true}}
}

// DoesNotExist returns the requirement that contains absent and nothing else.
func DoesNotExist(key string) Requirement { return Requirement{key: key, absent: true} }

// Gt returns the requirement that contains the integers greater than n.
func Gt(key string, n int64) Requirement {
	if n == math.MaxInt64 {
		return Requirement{key: key}
	}
	return Gte(key, n+1)
}

// Lt returns the requirement that contains the integers less than n.
func Lt(key string, n int64) Requirement {
	if n == math.MinInt64 {
		return Requirement{key: key}
	}
	return Lte(key, n-1)
}

// Gte returns the requirement that contains the integers not less than n. Label values are never
// negative, so with a negative n it contains all integers.
func Gte(key string, n int64) Requirement {
	return Requirement{key: key, ints: []span{{max(n, 0), math.MaxInt64}}}
}

// Lte returns the requirement that contains the integers from 0 to n. It is impossible when n is
// negative.
func Lte(key string, n int64) Requirement {
	if n < 0 {
		return Requirement{key: key}
	}
	return Requirement{key: key, ints: []span{{0, n}}}
}

// New builds a requirement from an operator's name and values as texts, as in manifests. The error
// joins one [*InvalidError] for each fault; the paths start at the requirement ("operator",
// "values[1]").
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

// Key returns the label key.
func (r Requirement) Key() string { return r.key }

// Contains reports whether the label may have this value. It allocates nothing and costs O(log n)
// in the number of values.
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

// Intersect returns what both contain. Like the other operations on two requirements, except Equal,
// it panics if the keys differ.
func (r Requirement) Intersect(o Requirement) Requirement {
	r.mustShareKey(o)
	return Requirement{r.key, r.absent && o.absent, intersectSpans(r.ints, o.ints), r.words.intersect(o.words)}
}

// Union returns what either contains.
func (r Requirement) Union(o Requirement) Requirement {
	r.mustShareKey(o)
	return Requirement{r.key, r.absent || o.absent, unionSpans(r.ints, o.ints), r.words.union(o.words)}
}

// Complement returns what r does not contain.
func (r Requirement) Complement() Requirement {
	return Requirement{r.key, !r.absent, complementSpans(r.ints), r.words.complement()}
}

// Overlaps reports whether the two have anything in common. It allocates nothing.
func (r Requirement) Overlaps(o Requirement) bool {
	r.mustShareKey(o)
	return r.absent && o.absent || spansOverlap(r.ints, o.ints) || r.words.overlaps(o.words)
}

// Subset reports whether o contains everything that r contains.
func (r Requirement) Subset(o Requirement) bool {
	r.mustShareKey(o)
	if r.absent && !o.absent {
		return false
	}
	return !spansOverlap(r.ints, complementSpans(o.ints)) && r.words.subset(o.words)
}

// Single returns the one value that the label must have. The second result is false unless there is
// exactly one value and absent is not allowed.
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

// listLimit is the maximum number of integers that are written one by one. More are written with
// bounds.
const listLimit = 64

// Values returns the values that the label may have, sorted as texts; absent is not among them. If
// there are infinitely many, or more than 64 integers, the list is nil and the second result is
// false.
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

// Any returns one value that the label may have, and always the same one: the least integer,
// otherwise the first listed word, otherwise the shortest string of the letter x that is not
// excluded. The second result is false if the label may have no value at all.
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

// AppendKey appends bytes that are the same for equal requirements and differ for others; see
// [Set.AppendKey].
func (r Requirement) AppendKey(to []byte) []byte { // each part after its length
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

// keySize returns about how many bytes AppendKey appends.
func (r Requirement) keySize() int {
	size := len(r.key) + 8 + 2*binary.MaxVarintLen64*len(r.ints)
	for _, w := range r.words.list {
		size += len(w) + 2
	}
	return size
}
