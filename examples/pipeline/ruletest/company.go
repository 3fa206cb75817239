package ruletest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// company are the placed pods that With names, without the subject itself.
func (p *Plan) company(patterns string) []member {
	var out []member
	for _, m := range slices.Concat(p.running, p.members) {
		if m.site != nil && matchesPod(patterns, m.name) {
			out = append(out, m)
		}
	}
	return out
}

// together finds pods that are alone: without With those that are not where most of them are.
func (p *Plan) together(r *Rule, subjects []member) []Breach {
	key := topologyKey(r.Together.By)
	var out []Breach
	if r.Together.With != "" {
		others := p.company(r.Together.With)
		if len(others) == 0 {
			return []Breach{{Why: fmt.Sprintf("no pod that is meant by %q has a place", r.Together.With)}}
		}
		for _, m := range subjects {
			if m.site == nil {
				continue
			}
			beside := slices.ContainsFunc(others, func(o member) bool { return o.pod != m.pod && shares(m.site, o.site, key) })
			if !beside {
				out = append(out, Breach{m.name, fmt.Sprintf("is on %s; no pod of %s is there by %s: they are on %s", m.site, r.Together.With, r.Together.By, valuesText(others, key))})
			}
		}
		return out
	}
	count := counts(slices.Concat(r.choose(p.running), subjects), key)
	var most string
	for _, v := range slices.Sorted(maps.Keys(count)) {
		if len(count[v]) > len(count[most]) {
			most = v
		}
	}
	for _, m := range subjects {
		switch value, has := valueOf(m.site, key); {
		case m.site == nil:
		case !has:
			out = append(out, Breach{m.name, fmt.Sprintf("is on %s, which has no label %s", m.site, key)})
		case value != most:
			out = append(out, Breach{m.name, fmt.Sprintf("is on %s, but %d of them on %s %s", m.site, len(count[most]), word(key), most)})
		}
	}
	return out
}

// apart finds pods that are not alone.
func (p *Plan) apart(r *Rule, subjects []member) []Breach {
	key := topologyKey(r.Apart.By)
	var out []Breach
	if r.Apart.With != "" {
		others := p.company(r.Apart.With)
		for _, m := range subjects {
			if m.site == nil {
				continue
			}
			if i := slices.IndexFunc(others, func(o member) bool { return o.pod != m.pod && shares(m.site, o.site, key) }); i >= 0 {
				out = append(out, Breach{m.name, fmt.Sprintf("is on %s, and so by %s is %s", m.site, r.Apart.By, others[i].name)})
			}
		}
		return out
	}
	most := cmp.Or(r.Apart.Most, 1)
	count := counts(slices.Concat(r.choose(p.running), subjects), key)
	for _, value := range slices.Sorted(maps.Keys(count)) {
		members := count[value]
		if len(members) <= most {
			continue
		}
		late := members[most]
		why := fmt.Sprintf("is on %s, and so by %s is %s", late.site, r.Apart.By, members[0].name)
		if most > 1 || len(members) > 2 {
			why = fmt.Sprintf("%d of them are on %s %s, at most %d may be", len(members), word(key), value, most)
		}
		out = append(out, Breach{late.name, why})
	}
	return out
}

// spread compares how many pods are at each value.
func (p *Plan) spread(r *Rule, subjects []member) []Breach {
	key := topologyKey(r.Spread.By)
	count := counts(slices.Concat(r.choose(p.running), subjects), key)
	var texts []string
	least, most := len(subjects)+len(p.running), 0
	for _, value := range slices.Sorted(maps.Keys(count)) {
		n := len(count[value])
		texts = append(texts, fmt.Sprintf("%d on %s %s", n, word(key), value))
		least, most = min(least, n), max(most, n)
	}
	var out []Breach
	if n := r.Spread.AtLeast; len(count) < n {
		out = append(out, Breach{Why: fmt.Sprintf("they are over %s, want %d at least: %s", plural(len(count), "value"), n, strings.Join(texts, ", "))})
	}
	if s := r.Spread.Skew; s > 0 && most-least > s {
		out = append(out, Breach{Why: fmt.Sprintf("they differ by %d, at most %d is wanted: %s", most-least, s, strings.Join(texts, ", "))})
	}
	return out
}

func shares(a, b *site, key string) bool {
	x, ok := valueOf(a, key)
	y, has := valueOf(b, key)
	return ok && has && x == y
}

// valueOf is the value of a label that a site has.
func valueOf(s *site, key string) (string, bool) {
	if s == nil {
		return "", false
	}
	v, ok := s.labels[key]
	return v, ok
}

// counts is who is on each value of a key.
func counts(list []member, key string) map[string][]member {
	out := map[string][]member{}
	for _, m := range list {
		if v, ok := valueOf(m.site, key); ok {
			out[v] = append(out[v], m)
		}
	}
	return out
}

// valuesText lists where pods are.
func valuesText(list []member, key string) string {
	values := slices.Sorted(maps.Keys(counts(list, key)))
	if len(values) > 5 {
		values = append(values[:5], fmt.Sprintf("%d more", len(values)-5))
	}
	if len(values) == 0 {
		return "nodes without the label"
	}
	return strings.Join(values, ", ")
}

// word is how people call a topology key.
func word(key string) string {
	for _, short := range []string{"node", "zone"} {
		if topologyKey(short) == key {
			return short
		}
	}
	return key
}
