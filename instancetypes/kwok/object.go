package kwok

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/requirements"
)

// FieldError is a fault in a catalogue file. Path leads to the fault: "[3].offerings[0].Price".
type FieldError struct {
	Path   string
	Type   string // the instance type's name, if it is known
	Detail string
}

// Error returns "kwok: path (type): detail".
func (e *FieldError) Error() string {
	where := e.Path
	if e.Type != "" {
		where += fmt.Sprintf(" (%s)", e.Type)
	}
	return strings.TrimSpace(fmt.Sprintf("kwok: %s: %s", where, e.Detail))
}

// reader collects faults while it reads JSON values.
type reader struct {
	at   string // name of the instance type
	name string
	errs []error
}

func (r *reader) bad(path, format string, args ...any) {
	r.errs = append(r.errs, &FieldError{Path: r.at + path, Type: r.name, Detail: fmt.Sprintf(format, args...)})
}

// object splits a JSON object into its fields. Names match without regard to case, as in Go
// programs that read such files. A name that is not in fields is a fault. A null counts as missing.
func (r *reader) object(path string, raw json.RawMessage, fields ...string) map[string]json.RawMessage {
	have, ok := r.members(path, raw)
	if !ok {
		r.bad(path, "want an object, got %s", kind(raw))
		return nil
	}
	out := make(map[string]json.RawMessage, len(have))
	for _, name := range slices.Sorted(maps.Keys(have)) {
		i := slices.IndexFunc(fields, func(f string) bool { return strings.EqualFold(f, name) })
		if i < 0 {
			hint := ": want one of " + strings.Join(fields, ", ")
			if near, ok := requirements.Nearest(name, fields); ok {
				hint = fmt.Sprintf(" (did you mean %q?)", near)
			}
			r.bad(join(path, name), "no such field%s", hint)
			continue
		}
		if _, twice := out[fields[i]]; twice {
			r.bad(join(path, name), "given twice, in different spelling")
			continue
		}
		if kind(have[name]) != "null" {
			out[fields[i]] = have[name]
		}
	}
	return out
}

// members returns the members of a JSON object; false for another value. A name that is given twice
// is a fault, because readers of JSON disagree about which one counts.
func (r *reader) members(path string, raw json.RawMessage) (map[string]json.RawMessage, bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil, false
	}
	out := map[string]json.RawMessage{}
	for dec.More() {
		token, err := dec.Token()
		name, ok := token.(string)
		var value json.RawMessage
		if err != nil || !ok || dec.Decode(&value) != nil {
			return nil, false
		}
		if _, twice := out[name]; twice {
			r.bad(join(path, name), "given twice")
		}
		out[name] = value
	}
	return out, true
}

// value decodes a field into v, if it exists. A null in a list of strings is no string.
func (r *reader) value(path string, raw json.RawMessage, v any, want string) bool {
	if raw == nil {
		return false
	}
	var elements []*string
	_, list := v.(*[]string)
	if err := json.Unmarshal(raw, v); err != nil || list && json.Unmarshal(raw, &elements) == nil && slices.Contains(elements, nil) {
		r.bad(path, "want %s, got %s", want, kind(raw))
		return false
	}
	return true
}

func join(path, name string) string {
	if path == "" {
		return "." + name
	}
	return path + "." + name
}

// kind describes a JSON value in words, shortened.
func kind(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	}
	if len(raw) > 40 {
		return string(raw[:40]) + "..."
	}
	return string(raw)
}
