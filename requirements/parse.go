package requirements

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseError says why a text is not a set of requirements, and where.
type ParseError struct {
	input, reason, rest string
}

// Error names the input, the reason and the text that was still to be read.
func (e *ParseError) Error() string {
	at := ""
	if e.rest != "" {
		at = fmt.Sprintf(" (at %q)", e.rest)
	}
	return fmt.Sprintf("requirements.Parse(%q): %s%s", e.input, e.reason, at)
}

// maxNesting limits how deep parentheses nest, so that hostile text cannot exhaust the stack.
const maxNesting = 32

// Parse reads a set from text. The grammar is that of Kubernetes label selectors, except that an
// empty value must be quoted (a=""). >= and <= and unions of requirements of one key are added, so
// that every set has a text:
//
//	set     = [ union { "," union } ] | "impossible()"
//	union   = piece { "|" piece }                        all of one key
//	piece   = key                                        the label exists
//	        | "!" key                                    it does not
//	        | key ("=" | "==" | "!=") value
//	        | key ("in" | "notin") "(" [ value { "," value } ] ")"
//	        | key (">" | "<" | ">=" | "<=") integer
//	        | [ "!" ] "(" union { "," union } ")"        all of one key; "!" takes the complement
//
// Keys and values may be double-quoted as in Go. They must be quoted if they are empty or have
// characters that labels do not allow. Requirements of one key that contradict each other make the
// impossible set; that is no error. The error is a [*ParseError]. Parse(s.String()) equals s for
// every set s that Parse returns.
func Parse(text string) (Set, error) {
	p := &parser{input: text, rest: text}
	s, reason := p.set()
	if reason != "" {
		return Set{}, &ParseError{text, reason, strings.TrimSpace(p.rest)}
	}
	return s, nil
}

// MustParse is [Parse] for texts that are known to be valid, as in tests and tables. It panics if
// the text is not valid.
func MustParse(text string) Set {
	s, err := Parse(text)
	if err != nil {
		panic(err)
	}
	return s
}

type parser struct {
	input, rest string
	depth       int
}

func (p *parser) skip() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

func (p *parser) accept(token string) bool {
	p.skip()
	if rest, ok := strings.CutPrefix(p.rest, token); ok {
		p.rest = rest
		return true
	}
	return false
}

func (p *parser) set() (Set, string) {
	p.skip()
	if p.rest == "" {
		return Set{}, ""
	}
	if strings.TrimSpace(p.rest) == impossibleText {
		return Impossible(), ""
	}
	var b Builder
	for {
		r, reason := p.union()
		if reason != "" {
			return Set{}, reason
		}
		b.Add(r)
		if p.accept(",") {
			continue
		}
		p.skip()
		if p.rest != "" {
			return Set{}, `want "," or the end`
		}
		s, _ := b.Set() // a contradiction is a value here, not an error
		return s, ""
	}
}

func (p *parser) union() (Requirement, string) {
	r, reason := p.piece()
	for reason == "" && p.accept("|") {
		var next Requirement
		if next, reason = p.piece(); reason == "" {
			if next.key != r.key {
				return r, fmt.Sprintf("%q and %q: a union must be of one key", r.key, next.key)
			}
			r = r.Union(next)
		}
	}
	return r, reason
}

func (p *parser) piece() (Requirement, string) {
	not := p.accept("!")
	if p.accept("(") {
		r, reason := p.group()
		if not && reason == "" {
			r = r.Complement()
		}
		return r, reason
	}
	key, reason := p.word("a key")
	if reason != "" {
		return Requirement{}, reason
	}
	if key == "" {
		return Requirement{}, "a key must not be empty"
	}
	if not {
		return DoesNotExist(key), ""
	}
	return p.constraint(key)
}

func (p *parser) group() (Requirement, string) {
	if p.depth++; p.depth > maxNesting {
		return Requirement{}, "parentheses are nested too deeply"
	}
	r, reason := p.union()
	for reason == "" && p.accept(",") {
		var next Requirement
		if next, reason = p.union(); reason == "" {
			if next.key != r.key {
				return r, fmt.Sprintf("%q and %q: parentheses must hold one key", r.key, next.key)
			}
			r = r.Intersect(next)
		}
	}
	if reason == "" && !p.accept(")") {
		reason = `missing ")"`
	}
	p.depth--
	return r, reason
}

func (p *parser) constraint(key string) (Requirement, string) {
	for _, op := range []string{">=", "<=", ">", "<"} {
		if p.accept(op) {
			return p.bound(key, op)
		}
	}
	switch {
	case p.accept("!="):
		v, reason := p.word("a value")
		return NotIn(key, v), reason
	case p.accept("=="), p.accept("="):
		v, reason := p.word("a value")
		return In(key, v), reason
	}
	p.skip()
	if p.rest == "" || strings.ContainsRune(",|)", rune(p.rest[0])) {
		return Exists(key), ""
	}
	before := p.rest
	op, reason := p.word("an operator")
	if reason != "" {
		return Requirement{}, reason
	}
	if op != "in" && op != "notin" {
		p.rest = before
		want := "want in, notin, =, !=, >, <, >= or <="
		if near, ok := Nearest(op, []string{"in", "notin"}); ok {
			want += fmt.Sprintf(" (did you mean %q?)", near)
		}
		return Requirement{}, fmt.Sprintf("unknown operator %q: %s", op, want)
	}
	values, reason := p.list()
	if op == "in" {
		return In(key, values...), reason
	}
	return NotIn(key, values...), reason
}

func (p *parser) bound(key, op string) (Requirement, string) {
	before := p.rest
	text, reason := p.word("an integer")
	if reason != "" {
		return Requirement{}, reason
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		p.rest = before
		return Requirement{}, fmt.Sprintf("want an integer after %q, not %q", op, text)
	}
	switch op {
	case ">":
		return Gt(key, n), ""
	case "<":
		return Lt(key, n), ""
	case ">=":
		return Gte(key, n), ""
	default:
		return Lte(key, n), ""
	}
}

func (p *parser) list() ([]string, string) {
	if !p.accept("(") {
		return nil, `missing "("`
	}
	var values []string
	if p.accept(")") {
		return values, ""
	}
	for {
		if p.skip(); p.rest == "" {
			return nil, `missing ")"`
		}
		v, reason := p.word("a value")
		if reason != "" {
			return nil, reason
		}
		values = append(values, v)
		if p.accept(")") {
			return values, ""
		}
		if !p.accept(",") {
			return nil, `missing ")"`
		}
	}
}

func (p *parser) word(what string) (string, string) {
	p.skip()
	if strings.HasPrefix(p.rest, `"`) {
		quoted, err := strconv.QuotedPrefix(p.rest)
		if err != nil {
			return "", "a quoted string is malformed or not closed"
		}
		p.rest = p.rest[len(quoted):]
		s, err := strconv.Unquote(quoted)
		if err != nil {
			return "", "a quoted string is malformed or not closed"
		}
		return s, ""
	}
	n := 0
	for n < len(p.rest) && isWordByte(p.rest[n]) {
		n++
	}
	if n == 0 {
		return "", "want " + what
	}
	s := p.rest[:n]
	p.rest = p.rest[n:]
	return s, ""
}
