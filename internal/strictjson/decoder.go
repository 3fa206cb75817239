package strictjson

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/requirements"
)

// MaxProblems limits how many problems of one value are collected. Further ones are seldom of a new
// kind.
const MaxProblems = 100

// Problem is one mismatch between a document and the Go type.
type Problem struct {
	// Path is the path from the value to the field, such as "spec.containers[0].image". Keys of
	// maps that are not plain words are quoted, as in `metadata.labels["app.kubernetes.io/name"]`.
	// It is empty for the value itself.
	Path string
	// Line is the line of the field, from 1; 0 means unknown.
	Line int
	// Detail says what is wrong and, if known, how to fix it.
	Detail string
	// Unknown is the path without list indexes if the type does not have the field, and otherwise
	// empty.
	Unknown string
}

// Decoder fills Go values from nodes. The zero value is ready to use and strict. A Decoder caches
// what it finds out about types, so one for many values is faster than many. It is safe for
// concurrent use, and must not be copied.
type Decoder struct {
	// Live accepts what a cluster adds to objects, and what later versions of Kubernetes may add.
	// It ignores fields of status that the type does not have, and a status if it has none, and
	// leaves out managed fields.
	Live bool
	// Hints says what to write instead of an unknown field, by its path without list indexes. A
	// hint takes precedence over a guess.
	Hints map[string]string

	shapes  sync.Map // reflect.Type -> *shape
	setters sync.Map // reflect.Type -> setter
	found   sync.Map // lookup -> string
}

// Decode fills into, which must be a pointer to a struct, from n. It returns what does not fit, in
// the order of the document. A field with a problem keeps its value. null leaves the zero value, as
// everywhere in the Kubernetes API. The cost is linear in the size of n.
//
// It supports structs with json tags (names are case-sensitive), maps with keys of a string kind,
// slices, pointers, strings, booleans, signed integers, floating-point numbers, json.RawMessage,
// and types with an UnmarshalJSON method. It panics on other types, such as interfaces and
// functions.
func (d *Decoder) Decode(n *Node, into any) []Problem {
	r := run{Decoder: d, root: reflect.TypeOf(into).Elem()}
	r.value(n, reflect.ValueOf(into).Elem())
	return r.problems
}

type segment struct {
	key   string
	index int // used if key is empty
	quote bool
}

type run struct {
	*Decoder
	root     reflect.Type
	path     []segment
	lax      bool
	problems []Problem
}

func (r *run) push(s segment) { r.path = append(r.path, s) }
func (r *run) pop()           { r.path = r.path[:len(r.path)-1] }

// where returns the path, with or without list indexes. Hints are looked up without them.
func (r *run) where(indexes bool) string {
	var b strings.Builder
	for _, s := range r.path {
		switch {
		case s.key == "" && !s.quote:
			if indexes {
				b.WriteString("[" + strconv.Itoa(s.index) + "]")
			}
		case s.quote && !isWord(s.key):
			b.WriteString("[" + strconv.Quote(s.key) + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.key)
		}
	}
	return b.String()
}

// MapKey returns the key of a map as it appears in a [Problem.Path]: ".cpu", `["nvidia.com/gpu"]`.
func MapKey(key string) string {
	if isWord(key) {
		return "." + key
	}
	return "[" + strconv.Quote(key) + "]"
}

func isWord(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return s != "" && len(s) < 256
}

func (r *run) report(line int32, format string, args ...any) {
	if len(r.problems) < MaxProblems {
		r.problems = append(r.problems, Problem{Path: r.where(true), Line: int(line), Detail: fmt.Sprintf(format, args...)})
	}
}

func (r *run) mismatch(n *Node, want string) {
	switch n.Kind {
	case Bool, Number:
		hint := ""
		if want == "a string" { // the original text may be unknown: YAML reads yes as true, and 0123 as 83
			hint = " (put the text in quotes)"
		}
		r.report(n.Line, "want %s, got %s %s%s", want, n.Kind, n.Text, hint)
	case String:
		r.report(n.Line, "want %s, got the string %s", want, Quote(n.Text))
	default:
		r.report(n.Line, "want %s, got %s", want, n.Kind)
	}
}

// Quote quotes a text from a document for a message. It cuts off what exceeds 120 bytes.
func Quote(text string) string {
	const long = 120
	if len(text) > long {
		return strconv.Quote(text[:long]) + "..."
	}
	return strconv.Quote(text)
}

func (r *run) value(n *Node, v reflect.Value) {
	if n.Kind == Null && v.Type() != rawType {
		return
	}
	if set := r.setterOf(v.Type()); set != nil {
		if err := set(n, v); err != nil {
			r.report(n.Line, "%s", err)
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		r.value(n, v.Elem())
	case reflect.Struct:
		r.structure(n, v)
	case reflect.Map:
		r.dictionary(n, v)
	case reflect.Slice:
		r.list(n, v)
	default:
		r.scalar(n, v)
	}
}

func (r *run) scalar(n *Node, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if n.Kind != String {
			r.mismatch(n, "a string")
			return
		}
		v.SetString(n.Text)
	case reflect.Bool:
		if n.Kind != Bool {
			r.mismatch(n, "true or false")
			return
		}
		v.SetBool(n.Text == "true")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		r.integer(n, v)
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(n.Text, v.Type().Bits())
		if n.Kind != Number || err != nil {
			r.mismatch(n, "a number")
			return
		}
		v.SetFloat(f)
	default:
		panic("strictjson: no way to decode into " + v.Type().String())
	}
}

func (r *run) integer(n *Node, v reflect.Value) {
	i, err := strconv.ParseInt(n.Text, 10, v.Type().Bits())
	switch {
	case n.Kind == String && err == nil:
		r.report(n.Line, "want an integer, got the string %q (write it without quotes: %d)", n.Text, i)
	case n.Kind != Number:
		r.mismatch(n, "an integer")
	case err != nil && !strings.ContainsAny(n.Text, ".eE"):
		r.report(n.Line, "%s does not fit into %d bits", Quote(n.Text), v.Type().Bits())
	case err != nil:
		r.report(n.Line, "want an integer, got the number %s", n.Text)
	default:
		v.SetInt(i)
	}
}

func (r *run) list(n *Node, v reflect.Value) {
	if n.Kind != Array {
		hint := ""
		if n.Kind == Object {
			hint = ` (start each element with "- ")`
		}
		if n.Kind == Object || n.Kind == Array {
			r.report(n.Line, "want a list, got %s%s", n.Kind, hint)
		} else {
			r.mismatch(n, "a list")
		}
		return
	}
	if v.Type() == managedType && r.Live {
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items))
	for i := range n.Items {
		r.push(segment{index: i})
		if n.Items[i].Kind == Null && !nullable(v.Type().Elem()) {
			r.report(n.Items[i].Line, "the element is empty (null)")
		}
		r.value(&n.Items[i], out.Index(i))
		r.pop()
	}
	v.Set(out)
}

func nullable(t reflect.Type) bool { return t.Kind() == reflect.Pointer || t == rawType }

func (r *run) dictionary(n *Node, v reflect.Value) {
	if n.Kind != Object {
		r.mismatch(n, "an object")
		return
	}
	if n.Members == nil {
		v.Set(reflect.MakeMap(v.Type()))
		return
	}
	out := reflect.MakeMapWithSize(v.Type(), len(n.Members))
	for i := range n.Members {
		m := &n.Members[i]
		r.push(segment{key: m.Key, quote: true})
		key := reflect.ValueOf(m.Key).Convert(v.Type().Key())
		if out.MapIndex(key).IsValid() {
			r.report(m.Line, "the key is given twice")
		}
		elem := reflect.New(v.Type().Elem()).Elem()
		before := len(r.problems)
		r.value(&m.Value, elem)
		if len(r.problems) == before {
			out.SetMapIndex(key, elem)
		}
		r.pop()
	}
	v.Set(out)
}

// shape has the fields of a struct type by their JSON names.
type shape struct {
	fields map[string]field
	names  []string // in order of declaration, for hints
}

type field struct {
	index []int
	slot  int // number of the field, to detect a repeated one
}

func (d *Decoder) shapeOf(t reflect.Type) *shape {
	if s, ok := d.shapes.Load(t); ok {
		return s.(*shape)
	}
	s := &shape{fields: map[string]field{}}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" || !f.IsExported() || name == "-" || options == "inline" {
			continue
		}
		name = cmp.Or(name, f.Name)
		if _, hidden := s.fields[name]; !hidden {
			s.fields[name] = field{index: f.Index, slot: len(s.names)}
			s.names = append(s.names, name)
		}
	}
	kept, _ := d.shapes.LoadOrStore(t, s)
	return kept.(*shape)
}

func (r *run) structure(n *Node, v reflect.Value) {
	if n.Kind != Object {
		r.mismatch(n, "an object")
		return
	}
	s := r.shapeOf(v.Type())
	var few [64]int32
	lines := few[:]
	if len(s.names) > len(few) {
		lines = make([]int32, len(s.names))
	}
	for i := range n.Members {
		m := &n.Members[i]
		f, ok := s.fields[m.Key]
		r.push(segment{key: m.Key})
		status := r.Live && len(r.path) == 1 && m.Key == "status"
		switch {
		case !ok && (r.lax || status):
		case !ok:
			r.unknown(m, s)
		case lines[f.slot] != 0:
			r.report(m.Line, "the field is given twice, first on line %d", lines[f.slot])
		default:
			lines[f.slot] = max(m.Line, 1)
			was := r.lax
			r.lax = was || status
			r.value(&m.Value, fieldOf(v, f.index))
			r.lax = was
		}
		r.pop()
	}
}

func fieldOf(v reflect.Value, index []int) reflect.Value {
	for i, x := range index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(x)
	}
	return v
}

func (r *run) unknown(m *Member, s *shape) {
	if len(r.problems) >= MaxProblems { // a hint that is never shown costs as much as any other
		return
	}
	hint := r.Hints[r.where(false)]
	if hint == "" {
		if near, ok := requirements.Nearest(m.Key, s.names); ok {
			hint = fmt.Sprintf("did you mean %q?", near)
		} else if path := r.elsewhere(m.Key); path != "" {
			hint = fmt.Sprintf("did you mean %q?", path)
		}
	}
	if hint != "" {
		hint = ": " + hint
	}
	r.report(m.Line, "unknown field %s%s", Quote(m.Key), hint)
	r.problems[len(r.problems)-1].Unknown = r.where(false)
}

type lookup struct {
	root reflect.Type
	name string
}

// elsewhere returns the shortest path that ends in name, in the type of the whole document; empty
// if there is none. Fields are often written one level too high or too low.
func (r *run) elsewhere(name string) string {
	key := lookup{r.root, name}
	if path, ok := r.found.Load(key); ok {
		return path.(string)
	}
	path := r.search(name)
	if len(name) < 64 { // Names from a hostile document are not worth remembering.
		r.found.Store(key, path)
	}
	return path
}

func (r *run) search(name string) string {
	type place struct {
		t    reflect.Type
		path string
	}
	const deep = 8
	seen := map[reflect.Type]bool{r.root: true}
	level := []place{{r.root, ""}}
	for range deep {
		var next []place
		for _, p := range level {
			s := r.shapeOf(p.t)
			for _, n := range s.names {
				path := strings.TrimPrefix(p.path+"."+n, ".")
				if n == name {
					return path
				}
				t := p.t.FieldByIndex(s.fields[n].index).Type
				for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
					if t.Kind() == reflect.Slice {
						path += "[]"
					}
					t = t.Elem()
				}
				if t.Kind() == reflect.Struct && r.setterOf(t) == nil && n != "status" && !seen[t] {
					seen[t] = true
					next = append(next, place{t, path})
				}
			}
		}
		level = next
	}
	return ""
}

var (
	rawType     = reflect.TypeFor[json.RawMessage]()
	managedType = reflect.TypeFor[[]metav1.ManagedFieldsEntry]()
)

// OldBool returns "true" or "false" for the words that YAML 1.1, and so kubectl, reads as booleans,
// but YAML 1.2 does not. The second result is false for other words.
func OldBool(text string) (string, bool) {
	switch text {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
		return "true", true
	case "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return "false", true
	}
	return "", false
}
