package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// MaxDepth limits how deep lists and objects may be nested. Kubernetes objects need less than a
// third of it.
const MaxDepth = 100

// ParseError says why a text is not JSON, and where.
type ParseError struct {
	// Line counts from 1.
	Line int
	// Detail says what is wrong there, mostly in the words of encoding/json.
	Detail string
}

// Error returns the line and the detail.
func (e *ParseError) Error() string {
	return fmt.Sprintf("line %d: %s", e.Line, e.Detail)
}

// Parse reads data as one JSON value. The error is a [*ParseError]. Text that is not UTF-8, nesting
// deeper than [MaxDepth], and anything after the value are errors. Repeated keys are not: the
// [Decoder] reports them. Time and memory are linear in the length of data.
func Parse(data []byte) (Node, error) {
	n, rest, line, err := ParsePrefix(data, 1)
	if err != nil {
		return Node{}, err
	}
	if text := bytes.TrimLeft(rest, " \t\r\n"); len(text) > 0 {
		r, _ := utf8.DecodeRune(text)
		return Node{}, &ParseError{line + bytes.Count(rest[:len(rest)-len(text)], []byte("\n")), fmt.Sprintf("invalid character %q after the value", r)}
	}
	return n, nil
}

// ParsePrefix reads the first JSON value of data, which starts on the given line. It returns the
// rest of data and the line on which the rest starts. Use it to read a stream of values.
func ParsePrefix(data []byte, line int) (n Node, rest []byte, next int, err error) {
	p := parser{data: data, line: line, tokens: json.NewDecoder(bytes.NewReader(data))}
	p.tokens.UseNumber()
	if n, err = p.value(0); err != nil {
		return Node{}, nil, 0, err
	}
	for text := range bytes.Lines(data[:p.at]) {
		if !utf8.Valid(text) {
			return Node{}, nil, 0, &ParseError{line, "a string contains bytes that are not UTF-8"}
		}
		line++
	}
	return n, data[p.at:], p.line, nil
}

// parser adds lines to the tokens of encoding/json.
type parser struct {
	data   []byte
	tokens *json.Decoder
	at     int // the end of the last token
	line   int // the line of at
}

// to advances to the offset and counts lines.
func (p *parser) to(offset int) {
	offset = max(min(offset, len(p.data)), p.at)
	p.line += bytes.Count(p.data[p.at:offset], []byte("\n"))
	p.at = offset
}

func (p *parser) token() (json.Token, error) {
	t, err := p.tokens.Token()
	if err == nil {
		p.to(int(p.tokens.InputOffset()))
		return t, nil
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		p.to(len(p.data))
		return nil, &ParseError{p.line, "the text ends before or within a value"}
	}
	if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
		p.to(int(bad.Offset) - strings.Count(bad.Error(), `'\n'`)) // a misplaced newline belongs to the line that it ends
	}
	return nil, &ParseError{p.line, err.Error()}
}

func (p *parser) value(depth int) (Node, error) {
	t, err := p.token()
	if err != nil {
		return Node{}, err
	}
	if depth > MaxDepth {
		return Node{}, &ParseError{p.line, fmt.Sprintf("nested deeper than %d levels", MaxDepth)}
	}
	n := Node{Line: int32(p.line)}
	switch t := t.(type) {
	case bool:
		n.Kind, n.Text = Bool, fmt.Sprint(t)
	case json.Number:
		n.Kind, n.Text = Number, t.String()
	case string:
		n.Kind, n.Text = String, t
	case json.Delim:
		if n.Kind = Array; t == '{' {
			n.Kind = Object
		}
		err = p.elements(&n, depth)
	}
	return n, err
}

// elements reads the elements of a list, or the members of an object, and its end.
func (p *parser) elements(n *Node, depth int) error {
	for p.tokens.More() {
		m := Member{}
		if n.Kind == Object {
			key, err := p.token()
			if err != nil {
				return err
			}
			m.Key, m.Line = key.(string), int32(p.line) // a key is always a string
		}
		var err error
		if m.Value, err = p.value(depth + 1); err != nil {
			return err
		}
		if n.Kind == Object {
			n.Members = append(n.Members, m)
		} else {
			n.Items = append(n.Items, m.Value)
		}
	}
	_, err := p.token()
	return err
}
