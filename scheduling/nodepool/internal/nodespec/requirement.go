package nodespec

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/joinery-sdk/joinery/internal/strictjson"
	"github.com/joinery-sdk/joinery/requirements"
)

// MaxRequirements is the longest list of requirements that Karpenter's CRDs accept.
const MaxRequirements = 100

// MaxMinValues is the largest minValues that they accept.
const MaxMinValues = 50

// Requirement is one element of a list of requirements as manifests have it.
type Requirement struct {
	Key       string   `json:"key"`
	Operator  string   `json:"operator"`
	Values    []string `json:"values"`
	MinValues *int     `json:"minValues"`
}

// Rules are what a kind and its API version demand of labels and requirements.
type Rules struct {
	// OldDomains restricts all of kubernetes.io and k8s.io, as Karpenter did before v1.
	OldDomains bool
	// Pool forbids the pool label itself, which only Karpenter sets.
	Pool bool
	// NoMinValues refuses minValues, which the kind or version does not have.
	NoMinValues bool
	// Custom lets capacity types pass that resemble no known one, as a catalogue may have them.
	Custom bool
	// Restricted lets restricted labels pass, since Karpenter's own objects may have them.
	Restricted bool
}

// Requirements checks a list of requirements and intersects it, with deprecated keys renamed.
// Requirements that contradict each other are named with both sides. The set is anything if there
// is a problem.
func (r *Report) Requirements(path string, list []Requirement, rules Rules) (requirements.Set, map[string]int) {
	if len(list) > MaxRequirements {
		r.Add(path, "%d requirements: at most %d", len(list), MaxRequirements)
		return requirements.Set{}, nil
	}
	aliases := requirements.KubernetesAliases()
	type entry struct {
		at  string
		req requirements.Requirement
	}
	var minValues map[string]int
	sound := map[string]entry{} // by key
	for i, w := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		key := aliases.Key(w.Key)
		req, ok := r.requirement(at, w, rules)
		if !ok {
			continue
		}
		if w.MinValues != nil {
			if minValues == nil {
				minValues = map[string]int{}
			}
			minValues[key] = max(minValues[key], *w.MinValues)
		}
		prior, ok := sound[key]
		if !ok {
			sound[key] = entry{at, req}
			continue
		}
		both := prior.req.Intersect(req)
		if both.IsImpossible() {
			r.Add(at, "%s contradicts %s (%s): no node can satisfy both", req, prior.req, prior.at)
			continue
		}
		sound[key] = entry{prior.at, both}
	}
	var b requirements.Builder
	for _, e := range sound { // the builder sorts
		b.Add(e.req)
	}
	set, err := b.Set()
	if err != nil { // cannot happen: each step was checked above
		r.Add(path, "%s", err)
	}
	return set, minValues
}

// requirement checks one element and converts it, with its key renamed; false if there is a problem.
func (r *Report) requirement(at string, w Requirement, rules Rules) (requirements.Requirement, bool) {
	before := len(r.Problems)
	if w.Key == "" {
		r.Add(at+".key", "the requirement needs a key")
	} else {
		r.key(at+".key", w.Key, rules)
	}
	op, values := meaning(w)
	req, err := requirements.New(requirements.KubernetesAliases().Key(w.Key), op, values...)
	r.invalid(at, err, w.Key == "")
	r.capacityTypes(at, w, rules)
	r.minValues(at, w, rules)
	return req, len(r.Problems) == before
}

// Set checks requirements and minValues that were made in Go, as [Report.Requirements] checks a
// list. A set that no node meets is no problem: it excludes all types.
func (r *Report) Set(path string, set requirements.Set, minValues map[string]int, rules Rules) {
	if set.Len() > MaxRequirements {
		r.Add(path, "%d requirements: at most %d", set.Len(), MaxRequirements)
		return
	}
	rules.Custom = true
	all := map[string]Requirement{}
	for q := range set.All() {
		words := requirements.Gte(q.Key(), 0).Complement() // integers are always valid values
		all[q.Key()] = Requirement{Key: q.Key(), Operator: string(requirements.OpExists)}
		if values, ok := q.Values(); ok && len(values) > 0 {
			all[q.Key()] = Requirement{Key: q.Key(), Operator: string(requirements.OpIn), Values: values}
		} else if values, ok := q.Complement().Intersect(words).Values(); ok && len(values) > 0 {
			all[q.Key()] = Requirement{Key: q.Key(), Operator: string(requirements.OpNotIn), Values: values}
		}
	}
	for key, least := range minValues {
		if least == 0 { // as good as missing
			continue
		}
		w, ok := all[key]
		if !ok {
			w = Requirement{Key: key, Operator: string(requirements.OpExists)}
		}
		w.MinValues = &least
		all[key] = w
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		r.requirement(path+strictjson.MapKey(key), all[key], rules)
	}
}

// meaning returns an element as Karpenter reads it: Exists and DoesNotExist ignore values, and
// NotIn without values is Exists.
func meaning(w Requirement) (requirements.Operator, []string) {
	switch op := requirements.Operator(w.Operator); {
	case op == requirements.OpExists || op == requirements.OpDoesNotExist:
		return op, nil
	case op == requirements.OpNotIn && len(w.Values) == 0:
		return requirements.OpExists, nil
	default:
		return op, w.Values
	}
}

func (r *Report) invalid(at string, err error, noKey bool) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return
	}
	for _, e := range joined.Unwrap() {
		var bad *requirements.InvalidError
		switch {
		case !errors.As(e, &bad):
			r.Add(at, "%s", e)
		case bad.Path == "key" && noKey: // said already
		default:
			r.Add(at+"."+bad.Path, "%s", bad.Detail)
		}
	}
}

// capacityTypes checks what Karpenter demands of the values of capacity types beyond the algebra.
func (r *Report) capacityTypes(at string, w Requirement, rules Rules) {
	if w.Operator != "In" || w.Key != "karpenter.sh/capacity-type" || len(w.Values) == 0 {
		return
	}
	known := []string{"on-demand", "spot", "reserved"}
	count := 0
	for _, v := range known {
		if slices.Contains(w.Values, v) {
			count++
		}
	}
	if count == 0 && rules.Custom && DidYouMean(w.Values[0], known...) == "" {
		return
	}
	if count == 0 {
		r.Add(at+".values", "%q: want at least one of %s%s", w.Values, strings.Join(known, ", "), DidYouMean(w.Values[0], known...))
	} else if w.MinValues != nil && *w.MinValues > count && *w.MinValues <= len(w.Values) {
		r.Add(at+".minValues", "%d: only %d of the values are capacity types", *w.MinValues, count)
	}
}

func (r *Report) minValues(at string, w Requirement, rules Rules) {
	switch at += ".minValues"; {
	case w.MinValues == nil:
	case rules.NoMinValues:
		r.Add(at, "unknown field \"minValues\": only pools and claims since karpenter.sh/v1beta1 have it")
	case *w.MinValues < 1 || *w.MinValues > MaxMinValues:
		r.Add(at, "%d: want 1 to %d", *w.MinValues, MaxMinValues)
	case w.Operator == "In" && *w.MinValues > len(w.Values):
		r.Add(at, "%d: more than the number of values, which is %d", *w.MinValues, len(w.Values))
	}
}

// key checks that users may set a label key. Its form is checked elsewhere.
func (r *Report) key(at, key string, rules Rules) {
	if rules.Pool && (key == "karpenter.sh/nodepool" || key == "karpenter.sh/provisioner-name") {
		r.Add(at, "%q is set by the pool's own name and must not be listed", key)
		return
	}
	if rules.Restricted {
		return
	}
	key = requirements.KubernetesAliases().Key(key)
	switch key {
	case "karpenter.sh/nodepool", "karpenter.sh/capacity-type", "topology.kubernetes.io/zone",
		"topology.kubernetes.io/region", "node.kubernetes.io/instance-type", "node.kubernetes.io/windows-build",
		"kubernetes.io/arch", "kubernetes.io/os":
		return
	case "kubernetes.io/hostname":
		r.Add(at, "%q is restricted: it differs from node to node", key)
		return
	}
	domain, _, found := strings.Cut(key, "/")
	if !found {
		return
	}
	if inDomain(domain, "karpenter.sh") {
		r.Add(at, "%q is restricted: the domain karpenter.sh is Karpenter's own%s", key,
			DidYouMean(key, "karpenter.sh/capacity-type", "karpenter.sh/nodepool"))
	}
	if !rules.OldDomains {
		return
	}
	free := []string{"kops.k8s.io", "node.kubernetes.io", "node-restriction.kubernetes.io"}
	if slices.ContainsFunc(free, func(parent string) bool { return inDomain(domain, parent) }) {
		return
	}
	for _, kept := range []string{"kubernetes.io", "k8s.io"} {
		if inDomain(domain, kept) {
			r.Add(at, "%q is restricted: before karpenter.sh/v1 the domain %s is reserved for Kubernetes%s", key, kept,
				DidYouMean(key, "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "kubernetes.io/arch", "kubernetes.io/os",
					"node.kubernetes.io/instance-type"))
		}
	}
}

func inDomain(domain, parent string) bool {
	return domain == parent || strings.HasSuffix(domain, "."+parent)
}

// Labels checks the labels that a pool puts on its nodes.
func (r *Report) Labels(path string, labels map[string]string, rules Rules) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		at := path + strictjson.MapKey(key)
		before := len(r.Problems)
		for _, msg := range validation.IsQualifiedName(key) {
			r.Add(at, "key %s: %s", strictjson.Quote(key), msg)
		}
		for _, msg := range validation.IsValidLabelValue(labels[key]) {
			r.Add(at, "%s: %s", strictjson.Quote(labels[key]), msg)
		}
		if len(r.Problems) == before {
			r.key(at, key, rules)
		}
	}
}

// Consistent checks that no label contradicts the requirements. Faulty labels are ignored.
func (r *Report) Consistent(path string, labels map[string]string, set requirements.Set, rules Rules) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		var faults Report
		faults.Labels("", map[string]string{key: labels[key]}, rules)
		if req := set.Get(requirements.KubernetesAliases().Key(key)); len(faults.Problems) == 0 && !req.Contains(labels[key]) {
			r.Add(path+strictjson.MapKey(key), "%q contradicts the requirement %s: no node can have both", labels[key], req)
		}
	}
}

// Annotations checks the keys of annotations.
func (r *Report) Annotations(path string, annotations map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		for _, msg := range validation.IsQualifiedName(strings.ToLower(key)) {
			r.Add(path+strictjson.MapKey(key), "key %s: %s", strictjson.Quote(key), msg)
		}
	}
}
