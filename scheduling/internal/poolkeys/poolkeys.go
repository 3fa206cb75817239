// Package poolkeys compares the labels that a pool asks of its nodes with those that its instance
// types have.
package poolkeys

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/spelling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Misspelt is a label that a pool asks of its nodes and that none of its instance types has.
type Misspelt struct {
	Text string
	// Refused makes it an error; otherwise it is a note.
	Refused bool
}

// Unknown finds labels that are probably misspelt. A pool may add its own labels, also in a
// domain that its types use, so a label that no type has excludes no type. It is noted if it is
// nearly that of a type, or in the group of the node class, which is a cloud's domain or the
// company's own. It is an error in a domain such as karpenter.k8s.aws, where only the cloud sets
// labels, and a requirement in the group of the node class is one if it is nearly that of a type.
func Unknown(p *nodepool.NodePool, types []instancetypes.InstanceType) []Misspelt {
	var out []Misspelt
	var known []string // computed when first needed
	for r := range p.NodeRequirements().All() {
		key := r.Key()
		domain, _, _ := strings.Cut(key, "/")
		switch {
		case len(types) == 0 || key == nodepool.LabelKey || Known(types, key) || requirements.AgentAliases().Key(key) != key:
			continue
		case p.NodeClass.Group == domain && strings.EqualFold(key, domain+"/"+p.NodeClass.Kind): // it names the class
			continue
		}
		if known == nil {
			known = slices.Collect(keysOf(types).All())
		}
		public := domain == key || strings.HasSuffix(domain, "kubernetes.io") || strings.HasSuffix(domain, "k8s.io") || domain == "karpenter.sh"
		owned := !public && slices.ContainsFunc(known, func(k string) bool { return strings.HasPrefix(k, domain+"/") })
		_, own := p.Labels[key] // a company may have its own labels beside those of its types
		class, cloud := domain == p.NodeClass.Group && !own, strings.HasPrefix(domain, "karpenter.")
		near, ok := spelling.Likely(key, known, class || cloud)
		u := Misspelt{Text: fmt.Sprintf("no instance type has the label %q", key), Refused: owned && (cloud || class && ok) && !r.AllowsAbsent()}
		switch {
		case !u.Refused:
			u.Text += ", so it rules none out"
		case !ok:
			u.Text += fmt.Sprintf(", and only instance types have labels of %s; use a label that a type has, or one of another domain", domain)
		}
		if ok {
			u.Text += fmt.Sprintf("; did you mean %q?", near)
		}
		if u.Refused || ok || owned && class && !r.AllowsAbsent() {
			out = append(out, u)
		}
	}
	return out
}

// Known reports whether a type or an offering has the label.
func Known(types []instancetypes.InstanceType, key string) bool {
	return slices.ContainsFunc(types, func(t instancetypes.InstanceType) bool {
		return t.Requirements.Has(key) || slices.ContainsFunc(t.Offerings, func(o instancetypes.Offering) bool { return o.Requirements.Has(key) })
	})
}

// keysOf returns the label keys of types and offerings, and the well-known ones.
func keysOf(types []instancetypes.InstanceType) requirements.Keys {
	keys := instancetypes.WellKnown()
	for i := range types {
		keys = keys.Union(types[i].Requirements.Keys())
		for _, o := range types[i].Offerings {
			keys = keys.Union(o.Requirements.Keys())
		}
	}
	return keys
}
