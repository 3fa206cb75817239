// Package model knows which requests the AWS services accept: the names, types, enumerations,
// limits and filters of the operations that the small AWS answers, as the services describe
// themselves. The table is generated from botocore. So a name or a filter that AWS does not have is
// rejected, even if the provider and the small AWS both use it.
package model

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:generate go run ./generate -out operations.txt
//go:embed operations.txt
var table string

// Error codes of services for requests that do not have the right form.
const (
	UnknownParameter = "UnknownParameter"
	InvalidValue     = "InvalidParameterValue"
	Missing          = "MissingParameter"
)

// Fault is why a request is refused.
type Fault struct{ Code, Message string }

// Node is a parameter of a request: a text, the elements of a list in order, or members by name.
type Node struct {
	Text    string
	List    []Node
	Members map[string]Node
}

// shape is the form of a parameter.
type shape struct {
	kind     string            // structure, list, map, string, integer ...
	members  map[string]string // shapes by name
	required []string
	of       string // of elements
	enum     []string
	min, max *float64
	pattern  *regexp.Regexp
}

type operation struct {
	input   string
	filters []string
}

type tables struct {
	operations map[string]operation // by "EC2 CreateFleet"
	shapes     map[string]shape     // by "EC2 FilterList"
}

var parsed = sync.OnceValue(func() tables {
	t := tables{map[string]operation{}, map[string]shape{}}
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		switch {
		case len(words) < 4:
		case words[0] == "operation":
			t.operations[words[1]+" "+words[2]] = operation{words[3], words[4:]}
		case words[0] == "shape":
			t.shapes[words[1]+" "+words[2]] = parse(words[3], words[4:])
		}
	}
	return t
})

func parse(kind string, rest []string) shape {
	s := shape{kind: kind, members: map[string]string{}}
	for i, word := range rest {
		name, value, limit := strings.Cut(word, "=")
		switch {
		case kind == "structure":
			member, of, _ := strings.Cut(word, ":")
			s.members[member] = strings.TrimSuffix(of, "!")
			if strings.HasSuffix(of, "!") {
				s.required = append(s.required, member)
			}
		case (kind == "list" || kind == "map") && i == 0:
			s.of = word
		case limit && name == "enum":
			s.enum = strings.Split(value, "|")
		case limit && name == "pattern":
			s.pattern = regexp.MustCompile("^(?:" + value + ")$")
		case limit:
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				continue
			}
			if name == "min" {
				s.min = &n
			} else {
				s.max = &n
			}
		}
	}
	return s
}

// Check returns the first fault of a request, in the order of its parameters' names. The zero fault
// means that there is none. An operation missing from the table is a fault.
func Check(service, name string, request Node) Fault {
	op, ok := parsed().operations[service+" "+name]
	if !ok {
		return Fault{"InvalidAction", fmt.Sprintf("The action %s is not valid for this web service.", name)}
	}
	if f := check(service, op.input, "", request); f.Code != "" {
		return f
	}
	for _, f := range request.Members["Filter"].List {
		filter := f.Members["Name"].Text
		tag, _, tagged := strings.Cut(filter, ":")
		if !slices.Contains(op.filters, filter) && (!tagged || !slices.Contains(op.filters, tag+":")) {
			return Fault{InvalidValue, fmt.Sprintf("The filter '%s' is invalid", filter)}
		}
		if n := len(f.Members["Value"].List); n > 200 {
			return Fault{"FilterLimitExceeded", fmt.Sprintf("The maximum number of filter values specified on a single call is 200, and %q has %d", filter, n)}
		}
	}
	return Fault{}
}

func check(service, of, path string, n Node) Fault {
	s, ok := parsed().shapes[service+" "+of]
	if !ok {
		s = shape{kind: of}
	}
	invalid := func(why string) Fault {
		return Fault{InvalidValue, fmt.Sprintf("Value (%s) for parameter %s is invalid. %s", n.Text, path, why)}
	}
	switch s.kind {
	case "structure":
		if n.Text != "" || len(n.List) > 0 {
			return invalid("It has members.")
		}
		for _, name := range slices.Sorted(maps.Keys(n.Members)) {
			inner, known := s.members[name]
			if !known {
				return Fault{UnknownParameter, fmt.Sprintf("The parameter %s is not recognized", path+name)}
			}
			if f := check(service, inner, path+name+".", n.Members[name]); f.Code != "" {
				return f
			}
		}
		for _, name := range s.required {
			if _, given := n.Members[name]; !given {
				return Fault{Missing, fmt.Sprintf("The request must contain the parameter %s", path+name)}
			}
		}
		return Fault{}
	case "list":
		if n.Text != "" || len(n.Members) > 0 {
			return invalid("It is a list.")
		}
		if !within(s, float64(len(n.List))) {
			return invalid(fmt.Sprintf("It has %d elements.", len(n.List)))
		}
		for i, inner := range n.List {
			if f := check(service, s.of, fmt.Sprintf("%s%d.", path, i+1), inner); f.Code != "" {
				return f
			}
		}
		return Fault{}
	case "map":
		return Fault{}
	}
	if len(n.List) > 0 || len(n.Members) > 0 {
		return invalid("It is one value.")
	}
	return s.scalar(n.Text, invalid)
}

// scalar checks a value: numbers have bounds, and strings have lengths.
func (s shape) scalar(text string, invalid func(string) Fault) Fault {
	size := float64(len(text))
	switch s.kind {
	case "integer", "long", "float", "double":
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return invalid("It is not a number.")
		}
		size = n
	case "boolean":
		if text != "true" && text != "false" {
			return invalid("It is neither true nor false.")
		}
	}
	switch {
	case !within(s, size):
		return invalid("It is out of range.")
	case len(s.enum) > 0 && !slices.Contains(s.enum, text):
		return invalid("It is not one of the known values.")
	case s.pattern != nil && !s.pattern.MatchString(text):
		return invalid("It does not have the form that is asked for.")
	}
	return Fault{}
}

func within(s shape, n float64) bool {
	return (s.min == nil || n >= *s.min) && (s.max == nil || n <= *s.max)
}

// JSON returns a request of a service that accepts JSON. A null counts as missing.
func JSON(data []byte) (Node, error) {
	var v any
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return Node{}, fmt.Errorf("model: %w", err)
	}
	return of(v), nil
}

func of(v any) Node {
	switch v := v.(type) {
	case map[string]any:
		n := Node{Members: map[string]Node{}}
		for name, inner := range v {
			if inner != nil {
				n.Members[name] = of(inner)
			}
		}
		return n
	case []any:
		var n Node
		for _, inner := range v {
			n.List = append(n.List, of(inner))
		}
		return n
	default:
		return Node{Text: fmt.Sprint(v)}
	}
}
