package cloudprovider

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
)

// Candidate is one offering of one instance type.
type Candidate struct {
	// Type is the name of an instance type of the catalogue.
	Type string
	// Offering is the requirements of one of the type's offerings, as in the catalogue.
	Offering requirements.Set
}

// String returns "type (offering)".
func (c Candidate) String() string { return fmt.Sprintf("%s (%s)", c.Type, c.Offering) }

// CandidatesOf returns all available offerings that a claim with these requirements and requests
// may get, cheapest first. Equal prices are ordered by type and offering. A label that neither the
// type nor the offering mentions counts as absent, unless its key is in open: such labels may still
// be given to the node. The slice is new, or nil if there is no offering. The cost is O(n log n) in
// the offerings.
func CandidatesOf(types []instancetypes.InstanceType, ask requirements.Set, requests corev1.ResourceList, open requirements.Keys) []Candidate {
	type priced struct {
		Candidate
		price float64
		key   string
	}
	var all []priced
	for _, t := range instancetypes.Fitting(types, requests) {
		for _, o := range t.Offerings {
			if !o.Available || !ask.Compatible(nodeOf(t, o.Requirements), open) {
				continue
			}
			c := Candidate{Type: t.Name, Offering: o.Requirements}
			all = append(all, priced{c, o.Price, c.String()})
		}
	}
	slices.SortFunc(all, func(a, b priced) int {
		return cmp.Or(cmp.Compare(a.price, b.price), strings.Compare(a.key, b.key))
	})
	// Two offerings may differ only by their commitment, which is never sent to a cloud.
	seen := map[string]bool{}
	var candidates []Candidate
	for _, p := range all {
		if !seen[p.key] {
			seen[p.key] = true
			candidates = append(candidates, p.Candidate)
		}
	}
	return candidates
}

// nodeOf returns what is known of a node of the offering. The offering decides the keys that it
// mentions, the type decides all others. In a valid catalogue the two never contradict each other.
func nodeOf(t instancetypes.InstanceType, offering requirements.Set) requirements.Set {
	var keys []string
	for r := range offering.All() {
		keys = append(keys, r.Key())
	}
	node, err := t.Requirements.Without(requirements.KeysOf(keys...)).Intersect(offering)
	if err != nil {
		return requirements.Impossible()
	}
	return node
}
