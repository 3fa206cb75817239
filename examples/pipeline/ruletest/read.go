package ruletest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/internal/strictjson"
)

// Limits of a file of rules, far above what a person writes.
const (
	maxBytes = 4 << 20
	maxRules = 10_000
)

// ReadFile reads the rules of a file; see [Parse].
func ReadFile(name string) ([]Rule, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("ruletest: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("ruletest: %w", err)
	}
	return Parse(manifests.File{Name: name, Data: data})
}

// Parse reads rules from YAML or JSON, in the format of the package documentation. It is strict:
// the error joins a [*manifests.Problem] for every mistake, with its line, its field and the word
// that was probably meant.
func Parse(file manifests.File) ([]Rule, error) {
	r := reader{file: file.Name}
	if len(file.Data) > maxBytes {
		return nil, r.one(0, "", "the file is larger than %d MB", maxBytes>>20)
	}
	list, err := r.document(file.Data)
	if err != nil {
		return nil, err
	}
	if list.Kind != strictjson.Array {
		return nil, r.one(int(list.Line), "rules", "want a list of rules, got %s", list.Kind)
	}
	if len(list.Items) == 0 || len(list.Items) > maxRules {
		return nil, r.one(int(list.Line), "rules", "%d rules: want 1 to %d", len(list.Items), maxRules)
	}
	decoder := &strictjson.Decoder{Hints: map[string]string{
		"name": `did you mean "rule"?`, "landOn": `did you mean "landsOn"?`, "selector": `did you mean "labels"?`, "key": `did you mean "by"?`,
		"pool": `write landsOn: {pool: ...}`, "zone": `write landsOn: {zone: ...}`, "cost": `did you mean "atMostPerHour"?`, "rulesCost.max": `did you mean "atMostPerMonth"?`,
	}}
	rules := make([]Rule, 0, len(list.Items))
	for i := range list.Items {
		rules = append(rules, r.rule(decoder, &list.Items[i], i))
	}
	if len(r.problems) > 0 {
		slices.SortStableFunc(r.problems, func(a, b *manifests.Problem) int { return cmp.Compare(a.Position.Line, b.Position.Line) })
		var errs []error
		for _, p := range r.problems {
			errs = append(errs, p)
		}
		return nil, errors.Join(errs...)
	}
	return rules, nil
}

type reader struct {
	file     string
	problems []*manifests.Problem
}

func (r *reader) fail(line int, path, format string, args ...any) {
	r.problems = append(r.problems, r.one(line, path, format, args...))
}

func (r *reader) one(line int, path, format string, args ...any) *manifests.Problem {
	return &manifests.Problem{Position: manifests.Position{File: r.file, Line: line}, Path: path, Detail: fmt.Sprintf(format, args...)}
}

// document returns the list of rules of a file: the document itself, or its field "rules".
func (r *reader) document(data []byte) (list strictjson.Node, err error) {
	defer func() { // A panic of the external YAML package must not end the program.
		if recover() != nil {
			err = r.one(0, "", "unreadable YAML")
		}
	}()
	if bytes.IndexByte(data, 0) >= 0 {
		return list, r.one(0, "", "the file contains NUL bytes; it is not UTF-8 text")
	}
	var doc, more yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(data))
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return list, r.one(0, "rules", "the file is empty")
	case err != nil:
		return list, r.syntax(err)
	}
	if err := d.Decode(&more); err == nil {
		return list, r.one(more.Line, "", "a file of rules is one document; a second one starts here")
	}
	var root strictjson.Node
	if err := r.convert(&doc, &root, 0); err != nil {
		return list, err
	}
	if root.Kind != strictjson.Object {
		return root, nil
	}
	for _, m := range root.Members {
		if m.Key != "rules" {
			return list, r.one(int(m.Line), m.Key, "unknown field; a file of rules is a list, or an object with the field \"rules\"%s", hint(m.Key, []string{"rules"}))
		}
		list = m.Value
	}
	if len(root.Members) != 1 {
		return list, r.one(int(root.Line), "rules", "want it once")
	}
	return list, nil
}

// syntax moves the line from the YAML package's message to where all problems have theirs.
func (r *reader) syntax(err error) error {
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), 0
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		number, detail, _ := strings.Cut(rest, ": ")
		if n, err := strconv.Atoi(number); err == nil {
			text, line = detail, n
		}
	}
	return r.one(line, "", "not YAML: %s", text)
}

// convert makes the JSON data model from YAML. Rules need no anchors, so there is nothing to
// expand.
func (r *reader) convert(y *yaml.Node, n *strictjson.Node, depth int) error {
	if depth > strictjson.MaxDepth {
		return r.one(y.Line, "", "nested deeper than %d levels", strictjson.MaxDepth)
	}
	n.Line = int32(y.Line)
	switch y.Kind {
	case yaml.DocumentNode:
		return r.convert(y.Content[0], n, depth)
	case yaml.SequenceNode:
		n.Kind = strictjson.Array
		n.Items = make([]strictjson.Node, len(y.Content))
		for i, item := range y.Content {
			if err := r.convert(item, &n.Items[i], depth+1); err != nil {
				return err
			}
		}
	case yaml.MappingNode:
		n.Kind = strictjson.Object
		n.Members = make([]strictjson.Member, len(y.Content)/2)
		for i := range n.Members {
			key := y.Content[2*i]
			if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
				return r.one(key.Line, "", "a key must be a word")
			}
			n.Members[i].Key, n.Members[i].Line = key.Value, int32(key.Line)
			if err := r.convert(y.Content[2*i+1], &n.Members[i].Value, depth+1); err != nil {
				return err
			}
		}
	case yaml.ScalarNode:
		return r.scalar(y, n)
	default:
		return r.one(y.Line, "", "rules do not use anchors and aliases")
	}
	return nil
}

func (r *reader) scalar(y *yaml.Node, n *strictjson.Node) error {
	n.Text = y.Value
	switch y.ShortTag() {
	case "!!null":
		n.Kind, n.Text = strictjson.Null, ""
	case "!!bool":
		n.Kind, n.Text = strictjson.Bool, strings.ToLower(y.Value)
	case "!!int", "!!float":
		n.Kind = strictjson.Number
		if number, err := strictjson.Parse([]byte(y.Value)); err != nil || number.Kind != strictjson.Number {
			return r.one(y.Line, "", "%s: write the number in decimal, as 0.25", strictjson.Quote(y.Value))
		}
	default:
		n.Kind = strictjson.String
		if truth, ok := strictjson.OldBool(y.Value); ok && y.Style == 0 && y.ShortTag() == "!!str" {
			n.Kind, n.Text = strictjson.Bool, truth
		}
	}
	return nil
}

// rule decodes one rule whose short forms have been expanded.
func (r *reader) rule(decoder *strictjson.Decoder, n *strictjson.Node, index int) Rule {
	at := fmt.Sprintf("rules[%d]", index)
	out := Rule{Position: manifests.Position{File: r.file, Line: int(n.Line)}}
	if n.Kind != strictjson.Object {
		r.fail(int(n.Line), at, "want a rule, got %s", n.Kind)
		return out
	}
	for i := range n.Members {
		writeOut(n.Members[i].Key, &n.Members[i].Value)
	}
	found := decoder.Decode(n, &out)
	for _, p := range found {
		r.fail(p.Line, below(at, p.Path), "%s", p.Detail)
	}
	if len(found) > 0 {
		return out
	}
	for _, f := range out.faults() {
		r.fail(n.At(f.path), below(at, f.path), "%s", f.detail)
	}
	return out
}

func below(parent, path string) string {
	if path == "" {
		return parent
	}
	return parent + "." + path
}

// writeOut expands short forms:
//
//   - A place that is a string becomes labels, and a single place becomes a list.
//   - Company that is a string becomes a key.
//   - A spread that is a string becomes an even one over two values or more.
//   - A refusal that is a string becomes a part of the explanation.
func writeOut(key string, n *strictjson.Node) {
	as := func(field string, n *strictjson.Node) {
		if n.Kind == strictjson.String {
			*n = strictjson.Node{Kind: strictjson.Object, Line: n.Line, Members: []strictjson.Member{{Key: field, Line: n.Line, Value: *n}}}
		}
	}
	switch key {
	case "landsOn", "neverOn":
		if n.Kind == strictjson.String || n.Kind == strictjson.Object {
			*n = strictjson.Node{Kind: strictjson.Array, Line: n.Line, Items: []strictjson.Node{*n}}
		}
		n.Items = slices.Clone(n.Items)
		for i := range n.Items {
			as("labels", &n.Items[i])
		}
	case "together", "apart":
		as("by", n)
	case "spread":
		if n.Kind == strictjson.String {
			as("by", n)
			for _, m := range []strictjson.Member{{Key: "atLeast", Value: strictjson.Node{Text: "2"}}, {Key: "skew", Value: strictjson.Node{Text: "1"}}} {
				m.Line, m.Value.Line, m.Value.Kind = n.Line, n.Line, strictjson.Number
				n.Members = append(n.Members, m)
			}
		}
	case "refused":
		as("text", n)
	}
}
