package awstest

import (
	"encoding/xml"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest/internal/model"
)

// params is a request of the query protocol as a tree: "Filter.1.Name" is Filter, 1, Name.
type params struct {
	value string
	sub   map[string]*params
}

func parseParams(form url.Values) *params {
	root := &params{}
	for name, values := range form {
		at := root
		for step := range strings.SplitSeq(name, ".") {
			if at.sub == nil {
				at.sub = map[string]*params{}
			}
			next, ok := at.sub[step]
			if !ok {
				next = &params{}
				at.sub[step] = next
			}
			at = next
		}
		at.value = values[0]
	}
	return root
}

// node returns the tree in the form of package model. Numbered children are a list, and so are what
// IAM calls members.
func (p *params) node() model.Node {
	if len(p.sub) == 0 {
		return model.Node{Text: p.value}
	}
	if inner, ok := p.sub["member"]; ok && len(p.sub) == 1 {
		return inner.node()
	}
	if list := p.list(); len(list) == len(p.sub) {
		var n model.Node
		for _, inner := range list {
			n.List = append(n.List, inner.node())
		}
		return n
	}
	n := model.Node{Members: map[string]model.Node{}}
	for name, inner := range p.sub {
		n.Members[name] = inner.node()
	}
	return n
}

// get follows a path. A missing element is an empty tree.
func (p *params) get(path ...string) *params {
	for _, step := range path {
		next, ok := p.sub[step]
		if !ok {
			return &params{}
		}
		p = next
	}
	return p
}

func (p *params) str(path ...string) string { return p.get(path...).value }

func (p *params) has(path ...string) bool {
	at := p.get(path...)
	return at.value != "" || len(at.sub) > 0
}

func (p *params) num(path ...string) int {
	n, _ := strconv.Atoi(p.str(path...))
	return n
}

// list returns the numbered children in order.
func (p *params) list(path ...string) []*params {
	at := p.get(path...)
	var indices []int
	for step := range at.sub {
		if n, err := strconv.Atoi(step); err == nil {
			indices = append(indices, n)
		}
	}
	slices.Sort(indices)
	var out []*params
	for _, n := range indices {
		out = append(out, at.sub[strconv.Itoa(n)])
	}
	return out
}

func (p *params) strs(path ...string) []string {
	var out []string
	for _, item := range p.list(path...) {
		out = append(out, item.value)
	}
	return out
}

// tags reads Tag.1.Key and Tag.1.Value.
func (p *params) tags(path ...string) map[string]string {
	out := map[string]string{}
	for _, t := range p.list(path...) {
		out[t.str("Key")] = t.str("Value")
	}
	return out
}

// el is an element of an answer.
type el struct {
	name string
	text string
	kids []el
}

// e makes an element from a scalar or from other elements.
func e(name string, content ...any) el {
	out := el{name: name}
	for _, c := range content {
		switch c := c.(type) {
		case el:
			out.kids = append(out.kids, c)
		case []el:
			out.kids = append(out.kids, c...)
		case time.Time:
			out.text = c.UTC().Format("2006-01-02T15:04:05.000Z")
		default:
			out.text = fmt.Sprint(c)
		}
	}
	return out
}

// items is a set of elements called item.
func items[T any](name string, of []T, make func(T) []el) el {
	out := el{name: name}
	for _, t := range of {
		out.kids = append(out.kids, el{name: "item", kids: make(t)})
	}
	return out
}

// texts is a set of items that are texts.
func texts(name string, of []string) el {
	out := el{name: name}
	for _, t := range of {
		out.kids = append(out.kids, e("item", t))
	}
	return out
}

func tagSet(tags map[string]string) el {
	return items("tagSet", sortedKeys(tags), func(k string) []el { return []el{e("key", k), e("value", tags[k])} })
}

func (x el) write(b *strings.Builder) {
	b.WriteString("<" + x.name + ">")
	if x.text != "" {
		_ = xml.EscapeText(b, []byte(x.text)) // a builder does not fail
	}
	for _, k := range x.kids {
		k.write(b)
	}
	b.WriteString("</" + x.name + ">")
}
