package manifests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/joinery-sdk/joinery/internal/strictjson"
)

// aliasValues limits how many values aliases may add to a document. Ten nested anchors of ten would
// make ten billion.
const aliasValues = 100_000

// syntaxError says where and why a document cannot be read. Line is relative to the file; 0 means
// unknown.
type syntaxError struct {
	line   int
	detail string
}

func (e *syntaxError) Error() string { return e.detail }

// parse reads the values of one chunk: one value of YAML, or any number of JSON values, one after
// the other.
func parse(c chunk) ([]strictjson.Node, error) {
	if err := legible(c); err != nil {
		return nil, err
	}
	body, line := c.data, c.position.Line
	if marker(body, "---") {
		body = body[3:]
	}
	if trimmed := skip(body); len(trimmed) > 0 && trimmed[0] == '{' {
		line += bytes.Count(body[:len(body)-len(trimmed)], []byte("\n"))
		values, err := parseJSON(trimmed, line)
		if err == nil {
			return values, nil
		}
		// A brace may also start a YAML flow mapping, if it is short. If the text is neither, it
		// was probably meant to be JSON.
		const long = 16 << 20
		if len(trimmed) > long {
			return values, err
		}
		if n, yamlErr := parseYAML(c); yamlErr == nil {
			return []strictjson.Node{n}, nil
		}
		return values, err
	}
	n, err := parseYAML(c)
	if err != nil {
		return nil, err
	}
	return []strictjson.Node{n}, nil
}

// render says what to do with files that are not manifests yet.
const render = "render charts with helm template, kustomizations with kubectl kustomize"

// patch ends the problems of objects that are patches of others.
const patch = "; a patch is not a manifest: " + render

// placeholder matches a line that begins with a placeholder of a template, or whose value begins
// with one.
var placeholder = regexp.MustCompile(`(?m)^[ \t]*(- )?([\w./"-]+:[ \t]+)?\{\{`)

// legible rejects input that is not text.
func legible(c chunk) error {
	if i := bytes.IndexByte(c.data, 0); i >= 0 {
		return &syntaxError{c.position.Line + bytes.Count(c.data[:i], []byte("\n")), "the file contains NUL bytes; it is not UTF-8 text"}
	}
	if utf8.Valid(c.data) {
		return nil
	}
	line := c.position.Line
	for text := range bytes.Lines(c.data) {
		if !utf8.Valid(text) {
			break
		}
		line++
	}
	return &syntaxError{line, "the line contains bytes that are not UTF-8"}
}

// skip skips white space and the comments that people write around JSON in a YAML file.
func skip(data []byte) []byte {
	for {
		data = bytes.TrimLeft(data, " \t\r\n")
		if len(data) == 0 || data[0] != '#' {
			return data
		}
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
}

func parseJSON(data []byte, line int) ([]strictjson.Node, error) {
	var values []strictjson.Node
	for {
		n, rest, next, err := strictjson.ParsePrefix(data, line)
		if err != nil {
			if bad, ok := errors.AsType[*strictjson.ParseError](err); ok {
				detail := "not JSON: " + bad.Detail
				if bytes.HasPrefix(skip(data), []byte("{{")) {
					detail = "{{ is a placeholder of a template: " + render
				}
				return values, &syntaxError{bad.Line, detail}
			}
			return values, err
		}
		values = append(values, n)
		data = skip(rest)
		line = next + bytes.Count(rest[:len(rest)-len(data)], []byte("\n"))
		if len(data) == 0 {
			return values, nil
		}
	}
}

func parseYAML(c chunk) (n strictjson.Node, err error) {
	defer func() { // A panic of the external YAML package must not end the program.
		if r := recover(); r != nil {
			err = &syntaxError{c.position.Line, "unreadable YAML"}
		}
		if bad, ok := errors.AsType[*syntaxError](err); ok {
			if open := placeholder.FindIndex(c.data); open != nil {
				bad.line = c.position.Line + bytes.Count(c.data[:open[0]], []byte("\n"))
				bad.detail += "; {{ is a placeholder of a template: " + render
			}
		}
	}()
	doc, err := oneDocument(c.data)
	if err != nil {
		return strictjson.Node{}, yamlError(c, err)
	}
	v := conversion{offset: c.position.Line - 1}
	if doc.Kind == 0 {
		return strictjson.Node{Line: int32(c.position.Line)}, nil
	}
	err = v.node(&doc, &n, 0)
	return n, err
}

// oneDocument reads the only document of data. Nothing may follow it.
func oneDocument(data []byte) (yaml.Node, error) {
	var doc, more yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return doc, err
	}
	if err := d.Decode(&more); err == nil {
		return doc, errors.New("yaml: there is text after the end of the object")
	} else if !errors.Is(err, io.EOF) {
		return doc, err
	}
	return doc, nil
}

// yamlError says what is wrong and where. The YAML package at most reports the line where the
// surrounding list or object begins. So the line is found by search: it is the first line after
// which the same error occurs.
func yamlError(c chunk, err error) error {
	detail := yamlDetail(err)
	out := &syntaxError{0, "not YAML: " + detail}
	const large = 1 << 20
	if len(c.data) > large {
		return out
	}
	lines := bytes.SplitAfter(c.data, []byte("\n"))
	ends := make([]int, len(lines))
	end := 0
	for i, line := range lines {
		end += len(line)
		ends[i] = end
	}
	first, _ := slices.BinarySearchFunc(ends[:len(ends)-1], 0, func(end, _ int) int {
		if _, err := oneDocument(c.data[:end]); err != nil && yamlDetail(err) == detail {
			return 0
		}
		return -1
	})
	out.line = c.position.Line + first
	if tabbed(lines[first]) {
		out.detail += " (YAML is indented with spaces, not with tabs)"
	}
	return out
}

// yamlDetail returns the text of an error without the line.
func yamlDetail(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if _, after, ok := strings.Cut(rest, ": "); ok {
			return after
		}
	}
	return text
}

// tabbed reports whether a tab is part of the indentation, which dashes of list items are, too.
func tabbed(line []byte) bool {
	return bytes.IndexByte(line[:len(line)-len(bytes.TrimLeft(line, " -\t"))], '\t') >= 0
}

// conversion makes the JSON data model from YAML nodes.
type conversion struct {
	offset  int
	aliased int // values created below an alias
	below   int // how many aliases the current value is below
}

func (v *conversion) fail(y *yaml.Node, format string, args ...any) error {
	return &syntaxError{y.Line + v.offset, fmt.Sprintf(format, args...)}
}

func (v *conversion) node(y *yaml.Node, n *strictjson.Node, depth int) error {
	if depth > strictjson.MaxDepth {
		return v.fail(y, "nested deeper than %d levels", strictjson.MaxDepth)
	}
	if v.below > 0 {
		if v.aliased++; v.aliased > aliasValues {
			return v.fail(y, "aliases grow the document by more than %d values", aliasValues)
		}
	}
	n.Line = int32(y.Line + v.offset)
	switch y.Kind {
	case yaml.DocumentNode:
		return v.node(y.Content[0], n, depth)
	case yaml.AliasNode:
		line := n.Line
		v.below++
		err := v.node(y.Alias, n, depth+1)
		v.below--
		n.Line = line
		return err
	case yaml.SequenceNode:
		n.Kind = strictjson.Array
		n.Items = make([]strictjson.Node, len(y.Content))
		for i, item := range y.Content {
			if err := v.node(item, &n.Items[i], depth+1); err != nil {
				return err
			}
		}
		return nil
	case yaml.MappingNode:
		return v.mapping(y, n, depth)
	default:
		return v.scalar(y, n)
	}
}

func (v *conversion) mapping(y *yaml.Node, n *strictjson.Node, depth int) error {
	n.Kind = strictjson.Object
	n.Members = make([]strictjson.Member, 0, len(y.Content)/2)
	var merged []*yaml.Node
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, value := y.Content[i], y.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return v.fail(key, "a key must be a word, not a list or an object")
		}
		if key.ShortTag() == "!!merge" {
			merged = append(merged, value)
			continue
		}
		if key.ShortTag() == "!!null" {
			return v.fail(key, "a key is missing before \":\"")
		}
		n.Members = append(n.Members, strictjson.Member{Key: key.Value, Line: int32(key.Line + v.offset)})
		if err := v.node(value, &n.Members[len(n.Members)-1].Value, depth+1); err != nil {
			return err
		}
	}
	for _, m := range merged {
		if err := v.merge(m, n, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// merge adds the members of a merge key ("<<: *base") that the object does not have itself.
func (v *conversion) merge(y *yaml.Node, n *strictjson.Node, depth int) error {
	var base strictjson.Node
	if err := v.node(y, &base, depth); err != nil {
		return err
	}
	have := make(map[string]bool, len(n.Members))
	for _, m := range n.Members {
		have[m.Key] = true
	}
	bases := []strictjson.Node{base}
	if base.Kind == strictjson.Array {
		bases = base.Items
	}
	for _, b := range bases {
		if b.Kind != strictjson.Object {
			return v.fail(y, "a merge key needs an object")
		}
		for _, m := range b.Members {
			if !have[m.Key] {
				have[m.Key] = true
				n.Members = append(n.Members, m)
			}
		}
	}
	return nil
}

func (v *conversion) scalar(y *yaml.Node, n *strictjson.Node) error {
	text := y.Value
	switch tag := y.ShortTag(); tag {
	case "!!null":
		n.Kind = strictjson.Null
	case "!!bool":
		n.Kind, n.Text = strictjson.Bool, strings.ToLower(text)
	case "!!int":
		n.Kind = strictjson.Number
		n.Text = decimal(text)
	case "!!float":
		n.Kind = strictjson.Number
		literal, ok := float(text)
		if !ok {
			return v.fail(y, "%s is not a number that JSON can hold", text)
		}
		n.Text = literal
	case "!!str", "!!timestamp", "!!binary":
		n.Kind, n.Text = strictjson.String, text
		if y.Style == 0 && tag == "!!str" { // plain, so the rules of YAML 1.1 apply
			if truth, ok := strictjson.OldBool(text); ok {
				n.Kind, n.Text = strictjson.Bool, truth
			}
		}
	default:
		return v.fail(y, "the tag %q is not supported", tag)
	}
	return nil
}

// decimal converts an integer of YAML (hexadecimal, octal, with underscores) to JSON.
func decimal(text string) string {
	plain := strings.ReplaceAll(text, "_", "")
	if i, err := strconv.ParseInt(plain, 0, 64); err == nil {
		return strconv.FormatInt(i, 10)
	}
	if u, err := strconv.ParseUint(plain, 0, 64); err == nil {
		return strconv.FormatUint(u, 10)
	}
	literal, _ := float(text)
	return literal
}

// float converts a floating-point number of YAML to JSON, as the Kubernetes project's YAML package
// does: 1e3 becomes 1000, and 3.0 becomes 3, which may be an integer.
func float(text string) (string, bool) {
	f, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return "0", false
	}
	literal, err := json.Marshal(f)
	return string(literal), err == nil
}
