package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxDepth is how many lists and objects may lie within each other. No Kubernetes object needs a third of it.
const MaxDepth = 100

// ParseError says where a text stops being JSON.
type ParseError struct {
	// Line is counted from 1.
	Line int
	// Detail is what is wrong there.
	Detail string
}

// Error returns the line and what is wrong on it.
func (e *ParseError) Error() string {
	return fmt.Sprintf("strictjson: line %d: %s", e.Line, e.Detail)
}

// Parse reads data as one JSON value. The error is a [*ParseError]. Duplicate keys are kept for the [Decoder] to
// report; text that is not UTF-8, nesting deeper than [MaxDepth] and anything after the value are refused.
// Time and memory are linear in the length of data.
func Parse(data []byte) (Node, error) {
	n, rest, line, err := ParsePrefix(data, 1)
	if err != nil {
		return Node{}, err
	}
	p := parser{data: rest, line: int32(line)}
	p.space()
	if p.at < len(p.data) {
		return Node{}, p.fail("unexpected %s after the value", p.here())
	}
	return n, nil
}

// ParsePrefix reads the first JSON value of data, which starts on the given line, and returns what follows it and the
// line on which that starts: the way to read a stream of values.
func ParsePrefix(data []byte, line int) (n Node, rest []byte, next int, err error) {
	p := parser{data: data, line: int32(line), seen: map[string]string{}}
	n, err = p.value(0)
	if err != nil {
		return Node{}, nil, 0, err
	}
	return n, p.data[p.at:], int(p.line), nil
}

type parser struct {
	data []byte
	at   int
	line int32
	seen map[string]string // one copy of each short text: keys and words repeat a thousand times in a manifest
}

func (p *parser) fail(format string, args ...any) error {
	return &ParseError{Line: int(p.line), Detail: fmt.Sprintf(format, args...)}
}

func (p *parser) here() string {
	if p.at >= len(p.data) {
		return "end of text"
	}
	r, _ := utf8.DecodeRune(p.data[p.at:])
	return fmt.Sprintf("%q", r)
}

func (p *parser) space() {
	for p.at < len(p.data) {
		switch p.data[p.at] {
		case '\n':
			p.line++
		case ' ', '\t', '\r':
		default:
			return
		}
		p.at++
	}
}

func (p *parser) value(depth int) (Node, error) {
	p.space()
	if depth > MaxDepth {
		return Node{}, p.fail("nested deeper than %d levels", MaxDepth)
	}
	if p.at >= len(p.data) {
		return Node{}, p.fail("the text ends where a value is expected")
	}
	switch c := p.data[p.at]; {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		line := p.line
		text, err := p.text()
		return Node{Kind: String, Line: line, Text: text}, err
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	}
	for _, word := range []struct {
		text string
		kind Kind
	}{{"true", Bool}, {"false", Bool}, {"null", Null}} {
		if bytes.HasPrefix(p.data[p.at:], []byte(word.text)) {
			p.at += len(word.text)
			n := Node{Kind: word.kind, Line: p.line}
			if word.kind == Bool {
				n.Text = word.text
			}
			return n, nil
		}
	}
	return Node{}, p.fail("unexpected %s where a value is expected", p.here())
}

func (p *parser) object(depth int) (Node, error) {
	n := Node{Kind: Object, Line: p.line}
	p.at++
	p.space()
	if p.at < len(p.data) && p.data[p.at] == '}' {
		p.at++
		return n, nil
	}
	for {
		p.space()
		if p.at >= len(p.data) || p.data[p.at] != '"' {
			return Node{}, p.fail("unexpected %s where a key is expected", p.here())
		}
		line := p.line
		key, err := p.text()
		if err != nil {
			return Node{}, err
		}
		p.space()
		if p.at >= len(p.data) || p.data[p.at] != ':' {
			return Node{}, p.fail("unexpected %s where \":\" is expected after key %q", p.here(), key)
		}
		p.at++
		v, err := p.value(depth + 1)
		if err != nil {
			return Node{}, err
		}
		n.Members = append(n.Members, Member{Key: key, Line: line, Value: v})
		more, err := p.more('}')
		if err != nil {
			return Node{}, err
		}
		if !more {
			return n, nil
		}
	}
}

func (p *parser) array(depth int) (Node, error) {
	n := Node{Kind: Array, Line: p.line}
	p.at++
	p.space()
	if p.at < len(p.data) && p.data[p.at] == ']' {
		p.at++
		return n, nil
	}
	for {
		v, err := p.value(depth + 1)
		if err != nil {
			return Node{}, err
		}
		n.Items = append(n.Items, v)
		more, err := p.more(']')
		if err != nil {
			return Node{}, err
		}
		if !more {
			return n, nil
		}
	}
}

// more reads the comma between two elements, or the end of the list or object.
func (p *parser) more(end byte) (bool, error) {
	p.space()
	if p.at < len(p.data) {
		switch p.data[p.at] {
		case ',':
			p.at++
			return true, nil
		case end:
			p.at++
			return false, nil
		}
	}
	return false, p.fail("unexpected %s where \",\" or %q is expected", p.here(), string(end))
}

func (p *parser) number() (Node, error) {
	start := p.at
	for p.at < len(p.data) && strings.IndexByte("+-.eE0123456789", p.data[p.at]) >= 0 {
		p.at++
	}
	text := p.data[start:p.at]
	if !json.Valid(text) {
		return Node{}, p.fail("%q is not a number of JSON", text)
	}
	return Node{Kind: Number, Line: p.line, Text: p.keep(text)}, nil
}

func (p *parser) text() (string, error) {
	start := p.at
	p.at++
	plain := true
	for p.at < len(p.data) {
		switch c := p.data[p.at]; {
		case c == '"':
			p.at++
			raw := p.data[start:p.at]
			if !utf8.Valid(raw) {
				return "", p.fail("a string holds bytes that are not UTF-8")
			}
			if plain {
				return p.keep(raw[1 : len(raw)-1]), nil
			}
			var s string
			if err := json.Unmarshal(raw, &s); err != nil {
				return "", p.fail("a string has an escape that JSON does not know")
			}
			return s, nil
		case c == '\\':
			plain = false
			p.at++
		case c < ' ':
			return "", p.fail("a string holds the control character %q unescaped", c)
		}
		p.at++
	}
	return "", p.fail("a string is not closed")
}

func (p *parser) keep(text []byte) string {
	const short = 64
	if len(text) > short {
		return string(text)
	}
	if s, ok := p.seen[string(text)]; ok {
		return s
	}
	s := string(text)
	p.seen[s] = s
	return s
}
