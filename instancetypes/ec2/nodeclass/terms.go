package nodeclass

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// wireTerm has the fields of every kind of term. Which fields a kind has is checked by name.
type wireTerm struct {
	Alias                 *string           `json:"alias"`
	ID                    *string           `json:"id"`
	InstanceMatchCriteria *string           `json:"instanceMatchCriteria"`
	Name                  *string           `json:"name"`
	Owner                 *string           `json:"owner"`
	OwnerID               *string           `json:"ownerID"`
	SSMParameter          *string           `json:"ssmParameter"`
	Tags                  map[string]string `json:"tags"`
}

// given returns the fields that are set, in ascending order.
func (w wireTerm) given() []string {
	var out []string
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"alias", w.Alias != nil},
		{"id", w.ID != nil},
		{"instanceMatchCriteria", w.InstanceMatchCriteria != nil},
		{"name", w.Name != nil},
		{"owner", w.Owner != nil},
		{"ownerID", w.OwnerID != nil},
		{"ssmParameter", w.SSMParameter != nil},
		{"tags", len(w.Tags) > 0},
	} {
		if f.set {
			out = append(out, f.name)
		}
	}
	return out
}

var account = regexp.MustCompile(`^[0-9]{12}$`)

// terms reads selector terms of a kind with the given fields. Owners narrow a term but are not a
// term alone. Ids and aliases must stand alone, and so must a security group's name. For images
// there is an exception. Karpenter's schema accepts a term that breaks this rule if any other term
// keeps it, and Karpenter then uses only what should stand alone. So does this function.
func (r *report) terms(path string, wire []wireTerm, kind idKind, fields ...string) []Term {
	if len(wire) > 30 {
		r.bad(path, "%d terms: want at most 30", len(wire))
	}
	var out []Term
	var clashes, places []string
	for i, w := range wire {
		at := fmt.Sprintf("%s[%d]", path, i)
		given := w.given()
		selects := false
		for _, name := range given {
			if !slices.Contains(fields, name) {
				r.bad(at+"."+name, "no such field: want one of %s", strings.Join(fields, ", "))
			}
			selects = selects || name != "owner" && name != "ownerID"
		}
		if !selects {
			r.bad(at, "selects nothing: want one of %s", strings.Join(fields, ", "))
		}
		t := Term{Alias: value(w.Alias), SSMParameter: value(w.SSMParameter), MatchCriteria: value(w.InstanceMatchCriteria)}
		for _, one := range []struct {
			p    *string
			into *[]string
		}{{w.ID, &t.IDs}, {w.Name, &t.Names}, {w.Owner, &t.Owners}, {w.OwnerID, &t.Owners}} {
			if one.p != nil {
				*one.into = append(*one.into, *one.p)
			}
		}
		if w.ID != nil && !kind.matches(*w.ID) {
			r.bad(at+".id", "%q: want an id of a %s, %s...", *w.ID, kind.what, kind.prefix)
		}
		if w.OwnerID != nil && !account.MatchString(*w.OwnerID) {
			r.bad(at+".ownerID", "%q: want an account of twelve digits", *w.OwnerID)
		}
		if w.InstanceMatchCriteria != nil {
			r.oneOf(at+".instanceMatchCriteria", *w.InstanceMatchCriteria, "open", "targeted")
		}
		if len(w.Tags) > 20 {
			r.bad(at+".tags", "%d tags: want at most 20", len(w.Tags))
		}
		for _, key := range slices.Sorted(maps.Keys(w.Tags)) {
			if key == "" || w.Tags[key] == "" {
				r.bad(at+".tags", "%q: %q: want no empty key or value; \"*\" means any", key, w.Tags[key])
			}
			t.Tags = append(t.Tags, Tag{Key: key, Values: []string{w.Tags[key]}})
		}
		alone, others := standsAlone(given, kind)
		if alone != "" && len(others) > 0 {
			clashes = append(clashes, fmt.Sprintf("%s cannot be combined with %s", alone, strings.Join(others, ", ")))
			places = append(places, at)
		}
		switch alone {
		case "id":
			t = Term{IDs: t.IDs}
		case "name":
			t = Term{Names: t.Names}
		}
		out = append(out, t)
	}
	if kind == ami() || len(clashes) == len(wire) {
		for i, clash := range clashes {
			r.bad(places[i], "%s", clash)
		}
	}
	return out
}

// standsAlone returns the first given field that must be the only one, and those that it excludes,
// if there is one.
func standsAlone(given []string, kind idKind) (alone string, others []string) {
	for _, name := range given {
		if alone == "" && (name == "id" || name == "alias" || name == "name" && kind == group()) {
			alone = name
		} else if kind != ami() || name != "ssmParameter" { // the schema accepts that beside an id
			others = append(others, name)
		}
	}
	return alone, others
}
