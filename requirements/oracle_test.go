package requirements_test

import (
	"fmt"
	"maps"
	"math/big"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/requirements"
)

// long reports whether the property suites run at their full counts (make test-long).
func long() bool { return os.Getenv("JOINERY_LONG") == "1" }

// noLabel is the point of the universe at which a node does not carry the label. No label value starts with NUL.
const noLabel = "\x00"

// The universe is small, but no set that the tests can build is told apart by a value outside of it: every text that
// the tests mention is there, one word and one integer that they do not mention stand for all others.
const (
	otherWord = "other"
	otherInt  = "4" // more than each bound in use, less than the largest integer
	maxInt    = "9223372036854775807"
)

func universe() []string {
	return []string{noLabel, "", "a", "b", "007", "+1", "0", "1", "2", "3", otherInt, maxInt, otherWord}
}

// truth is a set of points, told one by one: the deliberately dumb counterpart of a Requirement.
type truth map[string]bool

func truthOf(holds func(point string) bool) truth {
	out := truth{}
	for _, p := range universe() {
		out[p] = holds(p)
	}
	return out
}

func (t truth) and(o truth) truth { return truthOf(func(p string) bool { return t[p] && o[p] }) }
func (t truth) or(o truth) truth  { return truthOf(func(p string) bool { return t[p] || o[p] }) }
func (t truth) not() truth        { return truthOf(func(p string) bool { return !t[p] }) }

func (t truth) any() bool {
	return slices.ContainsFunc(universe(), func(p string) bool { return t[p] })
}

func (t truth) within(o truth) bool {
	return !slices.ContainsFunc(universe(), func(p string) bool { return t[p] && !o[p] })
}

// decimal is the meaning of a canonical integer, spelt out by a regular expression rather than by arithmetic.
func decimal(s string) (*big.Int, bool) {
	if !regexp.MustCompile(`^(0|[1-9][0-9]*)$`).MatchString(s) {
		return nil, false
	}
	n, ok := new(big.Int).SetString(s, 10)
	return n, ok && n.IsInt64()
}

// meaning is what the documentation says of each operator.
func meaning(op requirements.Operator, values ...string) truth {
	bound := func(holds func(cmp int) bool) truth {
		limit, _ := new(big.Int).SetString(values[0], 10)
		return truthOf(func(p string) bool {
			n, ok := decimal(p)
			return ok && holds(n.Cmp(limit))
		})
	}
	switch op {
	case requirements.OpIn:
		return truthOf(func(p string) bool { return p != noLabel && slices.Contains(values, p) })
	case requirements.OpNotIn:
		return truthOf(func(p string) bool { return !slices.Contains(values, p) })
	case requirements.OpExists:
		return truthOf(func(p string) bool { return p != noLabel })
	case requirements.OpDoesNotExist:
		return truthOf(func(p string) bool { return p == noLabel })
	case requirements.OpGt:
		return bound(func(cmp int) bool { return cmp > 0 })
	case requirements.OpLt:
		return bound(func(cmp int) bool { return cmp < 0 })
	case requirements.OpGte:
		return bound(func(cmp int) bool { return cmp >= 0 })
	case requirements.OpLte:
		return bound(func(cmp int) bool { return cmp <= 0 })
	}
	panic("no such operator: " + string(op))
}

// pair is one set in both forms.
type pair struct {
	real requirements.Requirement
	dumb truth
}

const key = "k"

// contains asks the real side of one point.
func contains(r requirements.Requirement, point string) bool {
	if point == noLabel {
		return r.AllowsAbsent()
	}
	return r.Contains(point)
}

// agree fails the test unless both sides hold the same points.
func agree(t *testing.T, p pair, what string, args ...any) {
	t.Helper()
	for _, point := range universe() {
		if p.dumb[point] != contains(p.real, point) {
			require.Failf(t, "a point is wrong", "%s: point %q: want %t in %s", fmt.Sprintf(what, args...), point, p.dumb[point], p.real)
		}
	}
}

// basics are all operators over a few values and bounds, as constructed; the bounds reach both ends of the integers.
func basics(t *testing.T) []pair {
	t.Helper()
	var out []pair
	add := func(op requirements.Operator, values ...string) {
		out = append(out, pair{construct(t, op, values...), meaning(op, values...)})
	}
	words := []string{"", "a", "b", "007", "1", "2", maxInt}
	for _, op := range []requirements.Operator{requirements.OpIn, requirements.OpNotIn} {
		add(op)
		for i, v := range words {
			add(op, v)
			for _, w := range words[i+1:] {
				add(op, w, v) // not in order, on purpose
			}
		}
		add(op, "2", "a", "1", "a", "2")
	}
	add(requirements.OpExists)
	add(requirements.OpDoesNotExist)
	for _, op := range []requirements.Operator{requirements.OpGt, requirements.OpLt, requirements.OpGte, requirements.OpLte} {
		for _, n := range []string{"-9223372036854775808", "-1", "0", "1", "2", "3", maxInt} {
			add(op, n)
		}
	}
	return out
}

// construct calls the constructor of the operator; bounds may be negative, which New does not read.
func construct(t *testing.T, op requirements.Operator, values ...string) requirements.Requirement {
	t.Helper()
	number := func() int64 {
		n, err := strconv.ParseInt(values[0], 10, 64)
		require.NoError(t, err)
		return n
	}
	switch op {
	case requirements.OpIn:
		return requirements.In(key, values...)
	case requirements.OpNotIn:
		return requirements.NotIn(key, values...)
	case requirements.OpGt:
		return requirements.Gt(key, number())
	case requirements.OpLt:
		return requirements.Lt(key, number())
	case requirements.OpGte:
		return requirements.Gte(key, number())
	case requirements.OpLte:
		return requirements.Lte(key, number())
	default:
		r, err := requirements.New(key, op, values...)
		require.NoError(t, err)
		return r
	}
}

// compounds adds what only unions, complements and chains can express, without repeating a set.
func compounds(t *testing.T, most int) []pair {
	t.Helper()
	seen := map[string]bool{}
	var out []pair
	add := func(p pair) {
		id := fmt.Sprint(slices.Collect(func(yield func(bool) bool) {
			for _, point := range universe() {
				if !yield(p.dumb[point]) {
					return
				}
			}
		}))
		if !seen[id] && len(out) < most {
			seen[id] = true
			out = append(out, p)
		}
	}
	base := basics(t)
	for _, p := range base {
		add(p)
		add(pair{p.real.Complement(), p.dumb.not()})
	}
	for i, a := range base {
		for _, b := range base[i+1:] {
			add(pair{a.real.Union(b.real), a.dumb.or(b.dumb)})
			add(pair{a.real.Intersect(b.real), a.dumb.and(b.dumb)})
			add(pair{a.real.Intersect(b.real).Complement(), a.dumb.and(b.dumb).not()})
		}
	}
	return out
}

// assignments are all nodes over the keys: each key has each of the points.
func assignments(keys, points []string) []map[string]string {
	out := []map[string]string{{}}
	for _, k := range keys {
		var next []map[string]string
		for _, m := range out {
			for _, p := range points {
				n := maps.Clone(m)
				if p != noLabel {
					n[k] = p
				}
				next = append(next, n)
			}
		}
		out = next
	}
	return out
}

// nodeText names a node in messages.
func nodeText(labels map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, k+"="+labels[k])
	}
	return "{" + strings.Join(parts, " ") + "}"
}
