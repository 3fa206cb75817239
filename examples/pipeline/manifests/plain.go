package manifests

import (
	"bytes"
	"strings"

	"github.com/joinery-sdk/joinery/scheduling/nodepool/strictjson"
)

// plain reads the YAML that machines write: block lists and objects, one scalar a line, nothing fancy. A hundred thousand
// pods are read several times faster so. It never guesses: at the first byte that it does not know to be plain it gives
// up, and the whole document is read by the YAML package, which also finds the words for what is wrong. A fuzz target
// holds that both make the same of what this one accepts.
type plain struct {
	data   []byte
	at     int   // where the next line starts
	number int32 // of the current line
	indent int   // of the current line, -1 behind the last one
	text   []byte
	texts  *texts
}

// texts keeps one copy of each short text: keys and words repeat a thousand times in manifests. The zero value is ready
// to use. It is not safe for concurrent use.
type texts struct{ known map[string]string }

func (t *texts) keep(text []byte) string {
	const short, bound = 64, 1 << 16
	if len(text) > short {
		return string(text)
	}
	if s, ok := t.known[string(text)]; ok {
		return s
	}
	if t.known == nil || len(t.known) >= bound {
		t.known = map[string]string{}
	}
	s := string(text)
	t.known[s] = s
	return s
}

// parsePlain returns the value of a document, and false where it is not plain.
func parsePlain(c chunk, t *texts) (strictjson.Node, bool) {
	p := plain{data: c.data, number: int32(c.position.Line) - 1, texts: t}
	if !p.next() {
		return strictjson.Node{}, false
	}
	if p.indent == 0 && string(p.text) == "---" && !p.next() {
		return strictjson.Node{}, false
	}
	if p.indent != 0 {
		return strictjson.Node{}, false
	}
	var n strictjson.Node
	ok := p.block(&n, 0)
	return n, ok && p.indent < 0
}

// next goes to the next line that is neither empty nor a comment. It is false at a byte that is not plain.
func (p *plain) next() bool {
	for p.at < len(p.data) {
		line := p.data[p.at:]
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line = line[:end]
		}
		p.at += len(line) + 1
		p.number++
		for _, c := range line {
			if c < ' ' || c > '~' {
				return false
			}
		}
		p.text = bytes.TrimLeft(line, " ")
		p.indent = len(line) - len(p.text)
		p.text = bytes.TrimRight(p.text, " ")
		if len(p.text) > 0 && p.text[0] != '#' {
			return true
		}
	}
	p.indent = -1
	return true
}

func (p *plain) entry() bool {
	return p.indent >= 0 && p.text[0] == '-' && (len(p.text) == 1 || p.text[1] == ' ')
}

// block reads the list or object that starts on the current line and has its entries at its indentation.
func (p *plain) block(n *strictjson.Node, depth int) bool {
	if depth >= strictjson.MaxDepth {
		return false
	}
	n.Line = p.number
	if p.entry() {
		return p.list(n, depth)
	}
	return p.object(n, depth)
}

func (p *plain) object(n *strictjson.Node, depth int) bool {
	n.Kind = strictjson.Object
	n.Members = make([]strictjson.Member, 0, 4)
	indent := p.indent
	for p.indent == indent && !p.entry() {
		key, value, ok := pair(p.text)
		if !ok {
			return false
		}
		n.Members = append(n.Members, strictjson.Member{Key: p.texts.keep(key), Line: p.number})
		m := &n.Members[len(n.Members)-1].Value
		m.Line = p.number
		if len(value) > 0 {
			if !p.scalar(m, value) || !p.next() || p.indent > indent {
				return false
			}
			continue
		}
		if !p.next() {
			return false
		}
		// A list may start at the indentation of the key that it belongs to.
		if p.indent > indent || p.indent == indent && p.entry() {
			if !p.block(m, depth+1) {
				return false
			}
		}
	}
	return p.indent < indent || p.entry()
}

func (p *plain) list(n *strictjson.Node, depth int) bool {
	n.Kind = strictjson.Array
	n.Items = make([]strictjson.Node, 0, 2)
	indent := p.indent
	for p.indent == indent && p.entry() {
		n.Items = append(n.Items, strictjson.Node{Line: p.number})
		item := &n.Items[len(n.Items)-1]
		rest := bytes.TrimLeft(p.text[1:], " ")
		_, _, isPair := pair(rest)
		switch {
		case len(rest) == 0:
			if !p.next() || p.indent > indent && !p.block(item, depth+1) {
				return false
			}
		case isPair || rest[0] == '-': // an object or a list that starts behind the dash
			p.indent += len(p.text) - len(rest)
			p.text = rest
			if rest[0] == '-' && !p.entry() || !p.block(item, depth+1) {
				return false
			}
		default:
			if !p.scalar(item, rest) || !p.next() || p.indent > indent {
				return false
			}
		}
	}
	return p.indent <= indent
}

// pair splits "key: value" and "key:".
func pair(text []byte) (key, value []byte, ok bool) {
	end := 0
	for end < len(text) && wordByte(text[end]) {
		end++
	}
	if end == 0 || end == len(text) || text[end] != ':' || text[0] == '-' || text[0] == '.' {
		return nil, nil, false
	}
	key, value = text[:end], text[end+1:]
	if len(value) > 0 && value[0] != ' ' {
		return nil, nil, false
	}
	switch string(key) {
	case "null", "Null", "NULL":
		return nil, nil, false
	}
	return key, bytes.TrimLeft(value, " "), true
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || digit(c) || c == '_' || c == '.' || c == '/' || c == '-'
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func (p *plain) scalar(n *strictjson.Node, text []byte) bool {
	switch c := text[0]; {
	case c == '{':
		n.Kind, n.Members = strictjson.Object, []strictjson.Member{}
		return len(text) == 2 && text[1] == '}'
	case c == '[':
		n.Kind, n.Items = strictjson.Array, []strictjson.Node{}
		return len(text) == 2 && text[1] == ']'
	case c == '"' || c == '\'':
		inner := text[1:]
		if len(inner) == 0 || bytes.IndexByte(inner, c) != len(inner)-1 || c == '"' && bytes.IndexByte(inner, '\\') >= 0 {
			return false
		}
		n.Kind, n.Text = strictjson.String, p.texts.keep(inner[:len(inner)-1])
		return true
	case !wordByte(c) || c == '-' || c == '.':
		return false
	}
	if bytes.Contains(text, []byte(": ")) || bytes.Contains(text, []byte(" #")) || text[len(text)-1] == ':' {
		return false
	}
	if digit(text[0]) {
		return p.digits(n, text)
	}
	n.Kind, n.Text = strictjson.String, p.texts.keep(text)
	switch n.Text {
	case "true", "True", "TRUE", "false", "False", "FALSE":
		n.Kind, n.Text = strictjson.Bool, strings.ToLower(n.Text)
	case "null", "Null", "NULL":
		n.Kind, n.Text = strictjson.Null, ""
	default:
		if truth, ok := oldBool(n.Text); ok {
			n.Kind, n.Text = strictjson.Bool, truth
		}
	}
	return true
}

// digits reads what starts with a digit: decimal numbers, and words such as 250m, 1.2.3 and 10:30. Numbers in other
// bases and with exponents are not plain.
func (p *plain) digits(n *strictjson.Node, text []byte) bool {
	numerals, dots, others := 0, 0, 0
	for _, c := range text {
		switch {
		case digit(c):
			numerals++
		case c == '.':
			dots++
		case strings.IndexByte("abcdefABCDEFxXoO_+", c) >= 0:
			// may be part of a number
		default:
			others++ // never is, but for a minus behind an exponent
		}
	}
	n.Kind, n.Text = strictjson.String, p.texts.keep(text)
	const safe = 18 // digits that fit into 64 bits
	switch {
	case numerals == len(text) && len(text) <= safe && (text[0] != '0' || len(text) == 1),
		numerals+dots == len(text) && dots == 1 && text[len(text)-1] != '.' && (text[0] != '0' || text[1] == '.'):
		n.Kind = strictjson.Number
		return true
	case numerals+dots == len(text):
		return dots > 1
	default:
		return others > 0 && !bytes.ContainsAny(text, "eE") || others > bytes.Count(text, []byte("-"))
	}
}
