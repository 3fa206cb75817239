package nodeclass

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/requirements"
)

// maxDepth is far deeper than any node class, and small enough for every stack.
const maxDepth = 64

// strict fills v, a pointer to a struct with json tags, from raw. It reports everything that does
// not fit with its path. Names are case-sensitive. It walks structs and leaves everything else to
// encoding/json.
func (r *report) strict(path string, raw json.RawMessage, v any) {
	r.value(path, raw, reflect.ValueOf(v).Elem(), 0)
}

func (r *report) value(path string, raw json.RawMessage, v reflect.Value, depth int) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" || depth > maxDepth {
		return
	}
	switch {
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes(slices.Clone(raw))
	case v.Type() == reflect.TypeFor[quantity]():
		r.scalar(path, raw, v, "a quantity such as 500m or 8Gi")
	case v.Kind() == reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		r.value(path, raw, p.Elem(), depth)
		v.Set(p)
	case v.Kind() == reflect.Struct:
		r.structure(path, raw, v, depth)
	case v.Kind() == reflect.Slice:
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			r.bad(path, "want a list, got %s", shorten(raw))
			return
		}
		list := reflect.MakeSlice(v.Type(), len(items), len(items))
		for i, item := range items {
			r.value(fmt.Sprintf("%s[%d]", path, i), item, list.Index(i), depth+1)
		}
		v.Set(list)
	case v.Kind() == reflect.Map:
		var items map[string]json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			r.bad(path, "want an object, got %s", shorten(raw))
			return
		}
		out := reflect.MakeMapWithSize(v.Type(), len(items))
		for _, key := range slices.Sorted(maps.Keys(items)) {
			item := reflect.New(v.Type().Elem()).Elem()
			r.value(fmt.Sprintf("%s[%q]", path, key), items[key], item, depth+1)
			out.SetMapIndex(reflect.ValueOf(key), item)
		}
		v.Set(out)
	default:
		r.scalar(path, raw, v, map[reflect.Kind]string{reflect.String: "a string", reflect.Bool: "true or false"}[v.Kind()])
	}
}

func (r *report) scalar(path string, raw json.RawMessage, v reflect.Value, want string) {
	if want == "" {
		want = "a whole number"
	}
	if json.Unmarshal(raw, v.Addr().Interface()) != nil {
		r.bad(path, "want %s, got %s", want, shorten(raw))
	}
}

func (r *report) structure(path string, raw json.RawMessage, v reflect.Value, depth int) {
	var have map[string]json.RawMessage
	if json.Unmarshal(raw, &have) != nil {
		r.bad(path, "want an object, got %s", shorten(raw))
		return
	}
	fields := map[string]int{}
	for i := range v.NumField() {
		if name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); name != "" {
			fields[name] = i
		}
	}
	names := slices.Sorted(maps.Keys(fields))
	candidates, open := names, openObject(nil)
	if o, ok := reflect.TypeAssert[openObject](v.Addr()); ok {
		candidates, open = slices.Concat(names, o.accepts()), o
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		at := strings.TrimPrefix(path+"."+name, ".")
		if i, ok := fields[name]; ok {
			r.value(at, have[name], v.Field(i), depth+1)
			continue
		}
		if open != nil && slices.Contains(candidates, name) {
			open.keep(name, have[name])
			continue
		}
		if near, ok := requirements.Nearest(name, candidates); ok {
			r.bad(at, "no such field (did you mean %q?)", near)
		} else {
			r.bad(at, "no such field: want one of %s", strings.Join(names, ", "))
		}
	}
}

func shorten(raw json.RawMessage) string {
	switch {
	case len(raw) > 0 && raw[0] == '{':
		return "an object"
	case len(raw) > 0 && raw[0] == '[':
		return "a list"
	case len(raw) > 40:
		return string(raw[:40]) + "..."
	}
	return string(raw)
}
