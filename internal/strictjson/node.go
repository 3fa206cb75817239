package strictjson

import (
	"encoding/json"
	"strconv"
)

// Kind is one of the six kinds of value of the JSON data model. The zero value is Null.
type Kind uint8

// The kinds of value.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// String returns the kind with its article, for messages: "a number", "an object".
func (k Kind) String() string {
	switch k {
	case Null:
		return "null"
	case Bool:
		return "a boolean"
	case Number:
		return "a number"
	case String:
		return "a string"
	case Array:
		return "a list"
	case Object:
		return "an object"
	}
	return "kind " + strconv.Itoa(int(k))
}

// Node is one value of a document, with the line on which it starts. The zero value is null on an
// unknown line.
//
// Nodes are held by value in their parents, so that a document of n values costs about as many
// allocations as it has lists and objects.
type Node struct {
	Kind Kind
	// Line counts from 1; 0 means unknown.
	Line int32
	// Text is the value of a scalar: "true" or "false", a number as JSON writes it, or the content
	// of a string.
	Text string
	// Items are the elements of an Array, in order.
	Items []Node
	// Members are the members of an Object, in the order of the document. A key may occur twice.
	Members []Member
}

// Member is one key of an object, the line of the key, and its value.
type Member struct {
	Key   string
	Line  int32
	Value Node
}

// Get returns the value of the first member with the key, or nil if there is none. It returns nil
// for a nil node, so calls can be chained. It costs one pass over the members.
func (n *Node) Get(key string) *Node {
	if n == nil {
		return nil
	}
	for i := range n.Members {
		if n.Members[i].Key == key {
			return &n.Members[i].Value
		}
	}
	return nil
}

// Again returns the line of the first repetition of one of the keys; 0 if none is repeated.
func (n *Node) Again(keys ...string) int {
	seen := map[string]bool{}
	for i := range n.Members {
		m := &n.Members[i]
		for _, key := range keys {
			if m.Key == key && seen[key] {
				return int(m.Line)
			}
			seen[m.Key] = seen[m.Key] || m.Key == key
		}
	}
	return 0
}

// At returns the line of the value at path, in the form of [Problem.Path]. If there is no such
// value, it returns the line of the deepest part of the path that exists. The empty path is n
// itself.
func (n *Node) At(path string) int {
	line := n.Line
	for path != "" {
		var key string
		var index int
		key, index, path = nextSegment(path)
		switch {
		case index >= 0:
			if n.Kind != Array || index >= len(n.Items) {
				return int(line)
			}
			n = &n.Items[index]
			line = n.Line
		default:
			m := n.member(key)
			if m == nil {
				return int(line)
			}
			line, n = m.Line, &m.Value
		}
	}
	return int(line)
}

func (n *Node) member(key string) *Member {
	for i := range n.Members {
		if n.Members[i].Key == key {
			return &n.Members[i]
		}
	}
	return nil
}

// nextSegment takes one step off a path: a field name, a list index (key "" and index >= 0) or a
// quoted map key.
func nextSegment(path string) (key string, index int, rest string) {
	if path[0] == '.' {
		path = path[1:]
	}
	if path == "" {
		return "", -1, ""
	}
	if path[0] != '[' {
		end := len(path)
		for i := range len(path) {
			if path[i] == '.' || path[i] == '[' {
				end = i
				break
			}
		}
		return path[:end], -1, path[end:]
	}
	if quoted, err := strconv.QuotedPrefix(path[1:]); err == nil {
		text, _ := strconv.Unquote(quoted)
		rest := path[1+len(quoted):]
		if rest != "" {
			rest = rest[1:]
		}
		return text, -1, rest
	}
	end := 1
	for end < len(path) && path[end] != ']' {
		end++
	}
	index, err := strconv.Atoi(path[1:end])
	if err != nil || index < 0 {
		return path, -1, ""
	}
	return "", index, path[min(end+1, len(path)):]
}

// Raw returns the value as compact JSON, with members in their order.
func (n *Node) Raw() json.RawMessage { return n.append(nil) }

func (n *Node) append(b []byte) []byte {
	switch n.Kind {
	case Bool, Number:
		return append(b, n.Text...)
	case String:
		return appendString(b, n.Text)
	case Array:
		b = append(b, '[')
		for i := range n.Items {
			if i > 0 {
				b = append(b, ',')
			}
			b = n.Items[i].append(b)
		}
		return append(b, ']')
	case Object:
		b = append(b, '{')
		for i := range n.Members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, n.Members[i].Key), ':')
			b = n.Members[i].Value.append(b)
		}
		return append(b, '}')
	default:
		return append(b, "null"...)
	}
}

func appendString(b []byte, s string) []byte {
	text, err := json.Marshal(s)
	if err != nil { // A string always has a JSON form; invalid UTF-8 is replaced.
		return append(b, `""`...)
	}
	return append(b, text...)
}
