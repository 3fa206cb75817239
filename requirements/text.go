package requirements

import (
	"fmt"
	"strconv"
	"strings"
)

// String returns the canonical text in the grammar of [Parse]: equal requirements print alike. Most
// texts read like label selectors ("zone in (a,b)", "!gpu", "cpu>=5"). A set that no chain of
// operators can express prints as a union ("(cpu>=2, cpu<=9) | !cpu").
func (r Requirement) String() string {
	var b strings.Builder
	r.write(&b)
	return b.String()
}

func (r Requirement) write(b *strings.Builder) {
	if terms, ok := r.Expressions(); ok {
		writeTerms(b, terms)
		return
	}
	if r.words.but {
		// The set has all words except a few, and integers with gaps. Only its complement has
		// finitely many words.
		b.WriteString("!(")
		r.Complement().write(b)
		b.WriteString(")")
		return
	}
	// The alternatives are the spans of integers, the listed values, and absent.
	sep := ""
	piece := func(p Requirement) {
		terms, _ := p.Expressions() // a span, a list and absent can each be expressed
		b.WriteString(sep)
		if len(terms) > 1 {
			b.WriteString("(")
		}
		writeTerms(b, terms)
		if len(terms) > 1 {
			b.WriteString(")")
		}
		sep = " | "
	}
	list := Requirement{key: r.key, words: r.words}
	for _, s := range r.ints {
		if s.lo == s.hi {
			list.ints = append(list.ints, s)
		}
	}
	if tooMany(list.ints) {
		for _, s := range list.ints {
			piece(Requirement{key: r.key, ints: []span{s}})
		}
		list.ints = nil
	}
	if !list.IsImpossible() {
		piece(list)
	}
	for _, s := range r.ints {
		if s.lo != s.hi {
			piece(Requirement{key: r.key, ints: []span{s}})
		}
	}
	if r.absent {
		piece(DoesNotExist(r.key))
	}
}

// Expression is one operator with its values, like an element of matchExpressions.
type Expression struct {
	Key      string
	Operator Operator
	Values   []string
}

// Expressions returns a short chain of expressions that must all hold and that together denote r.
// The second result is false if there is no such chain, as for "absent or 5", or if it would list
// more than 64 integers. The chain may use what the Kubernetes API does not have: Gte and Lte, In
// without values for impossible, and NotIn without values for anything. For requirements that the
// API accepts, use Expressions of package requirements/kube. The caller owns the result.
func (r Requirement) Expressions() ([]Expression, bool) {
	one := func(op Operator, values ...string) []Expression { return []Expression{{r.key, op, values}} }
	if r.words.but {
		if tooMany(complementSpans(r.ints)) {
			return nil, false
		}
		out, _ := listed(complementSpans(r.ints), r.words.list)
		switch {
		case r.absent:
			return one(OpNotIn, out...), true
		case len(out) == 0:
			return one(OpExists), true
		default:
			return append(one(OpExists), one(OpNotIn, out...)...), true
		}
	}
	if r.absent {
		if len(r.ints) == 0 && len(r.words.list) == 0 {
			return one(OpDoesNotExist), true
		}
		return nil, false
	}
	// An unbroken range of integers reads better as bounds than as a list: "cpu<=16".
	if values, ok := r.Values(); ok && !r.isRow() {
		return one(OpIn, values...), true
	}
	if len(r.words.list) > 0 {
		return nil, false
	}
	lo, hi := r.ints[0].lo, r.ints[len(r.ints)-1].hi
	holes := intersectSpans(complementSpans(r.ints), []span{{lo, hi}})
	if tooMany(holes) {
		return nil, false
	}
	top := []span{{lo, hi}}
	var out []Expression
	if lo > 0 || countAbove(top) {
		out = append(out, Expression{r.key, OpGte, []string{strconv.FormatInt(lo, 10)}})
	}
	if !countAbove(top) {
		out = append(out, Expression{r.key, OpLte, []string{strconv.FormatInt(hi, 10)}})
	}
	if missing, _ := listed(holes, nil); len(missing) > 0 {
		out = append(out, Expression{r.key, OpNotIn, missing})
	}
	return out, true
}

// isRow reports whether r is one unbroken range of more than three integers and nothing else.
func (r Requirement) isRow() bool {
	return !r.absent && r.words.empty() && len(r.ints) == 1 && r.ints[0].hi-r.ints[0].lo > 2
}

// countAbove reports whether the range of integers has no upper end.
func countAbove(s []span) bool { return s[len(s)-1].hi == allInts()[0].hi }

func writeTerms(b *strings.Builder, terms []Expression) {
	for i, t := range terms {
		if i > 0 {
			b.WriteString(", ")
		}
		key := quote(t.Key)
		switch t.Operator {
		case OpExists:
			b.WriteString(key)
		case OpDoesNotExist:
			b.WriteString("!" + key)
		case OpIn, OpNotIn:
			quoted := make([]string, len(t.Values))
			for j, v := range t.Values {
				quoted[j] = quote(v)
			}
			fmt.Fprintf(b, "%s %s (%s)", key, strings.ToLower(string(t.Operator)), strings.Join(quoted, ","))
		case OpGte:
			b.WriteString(key + ">=" + t.Values[0])
		case OpLte:
			b.WriteString(key + "<=" + t.Values[0])
		default: // Expressions has no strict bounds
		}
	}
}

// quote returns s as it is if it has only characters of label keys and values, and otherwise
// quoted.
func quote(s string) string {
	if s == "" {
		return `""`
	}
	for i := range len(s) {
		if !isWordByte(s[i]) {
			return strconv.Quote(s)
		}
	}
	return s
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-' || c == '/'
}

// String returns the canonical text of the set: its requirements in the order of their keys, joined
// by ", ". Anything is the empty text, and the impossible set is "impossible()".
func (s Set) String() string {
	if s.impossible {
		return impossibleText
	}
	var b strings.Builder
	for i, r := range s.reqs {
		if i > 0 {
			b.WriteString(", ")
		}
		r.write(&b)
	}
	return b.String()
}

const impossibleText = "impossible()"

// MarshalText returns the text of [Set.String].
func (s Set) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText replaces the receiver by the set that [Parse] reads.
func (s *Set) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}
