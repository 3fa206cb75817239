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

// MaxDepth is how many lists and objects may lie within each other. No Kubernetes object needs a third of it.
const MaxDepth = 100

// ParseError says where a text stops being JSON.
type ParseError struct {
	// Line is counted from 1.
	Line int
	// Detail is what is wrong there, mostly in the words of encoding/json.
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
	if text := bytes.TrimLeft(rest, " \t\r\n"); len(text) > 0 {
		r, _ := utf8.DecodeRune(text)
		return Node{}, &ParseError{line + bytes.Count(rest[:len(rest)-len(text)], []byte("\n")), fmt.Sprintf("invalid character %q after the value", r)}
	}
	return n, nil
}

// ParsePrefix reads the first JSON value of data, which starts on the given line, and returns what follows it and the
// line on which that starts: the way to read a stream of values.
func ParsePrefix(data []byte, line int) (n Node, rest []byte, next int, err error) {
	p := parser{data: data, line: line, tokens: json.NewDecoder(bytes.NewReader(data))}
	p.tokens.UseNumber()
	if n, err = p.value(0); err != nil {
		return Node{}, nil, 0, err
	}
	for text := range bytes.Lines(data[:p.at]) {
		if !utf8.Valid(text) {
			return Node{}, nil, 0, &ParseError{line, "a string holds bytes that are not UTF-8"}
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
	line   int // where that is
}

// to counts lines up to the offset.
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
		return nil, &ParseError{p.line, "the text ends within a value or before it"}
	}
	if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
		p.to(int(bad.Offset) - strings.Count(bad.Error(), `'\n'`)) // a line that ends too early is where it does
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

// elements reads those of a list or an object, and its end.
func (p *parser) elements(n *Node, depth int) error {
	for p.tokens.More() {
		m := Member{}
		if n.Kind == Object {
			key, err := p.token()
			if err != nil {
				return err
			}
			m.Key, m.Line = key.(string), int32(p.line) // nothing else is a key
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
