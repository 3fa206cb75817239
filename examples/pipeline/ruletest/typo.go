package ruletest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/joinery-sdk/joinery/requirements"
)

// slips returns what the rule says about pods and places that do not exist. Such a rule probably
// has a typo.
func (p *Plan) slips(r *Rule) []Breach {
	subjects, wide := r.choose(p.members), r.AtMostPerHour != nil || r.RulesCost != nil || r.Regret != nil
	if r.Survives != "" { // it is also about running pods
		subjects = append(subjects, r.choose(p.running)...)
	}
	if len(subjects) == 0 && (r.Pods != "" || r.Labels != "" || !wide) {
		return []Breach{{Why: "it matches no pending pod" + p.nearestPod(r.Pods)}}
	}
	out := slices.Concat(p.strangePods(r.Pods), p.strangeSelector(r, false))
	for _, c := range []*Company{r.Together, r.Apart} {
		if c != nil {
			out = append(out, p.strangePods(c.With)...)
		}
	}
	return append(out, p.strangers(r)...)
}

// strangePods returns the patterns of a list that match no pending or running pod. The other
// patterns of the list would otherwise hide a typo.
func (p *Plan) strangePods(patterns string) []Breach {
	var out []Breach
	for pattern := range strings.SplitSeq(patterns, ",") {
		pattern = strings.TrimSpace(pattern)
		there := func(m member) bool { return matchesPod(pattern, m.name) }
		if pattern != "" && !slices.ContainsFunc(p.members, there) && !slices.ContainsFunc(p.running, there) {
			out = append(out, Breach{Why: fmt.Sprintf("%q matches no pending or running pod%s", pattern, p.nearestPod(pattern))})
		}
	}
	return out
}

// notes returns what a rule that holds may have missed. Labels that it forbids are no breaches,
// because it may be there to keep them away.
func (p *Plan) notes(r *Rule) []string {
	out := p.withoutPlace(r)
	for _, b := range p.strangeSelector(r, true) {
		out = append(out, b.Why)
	}
	var known map[string]bool // computed when first needed
	for _, place := range slices.Concat(r.LandsOn, r.NeverOn) {
		set, _ := requirements.Parse(place.Labels) // Validate has checked it
		for req := range set.All() {
			if !isAbsence(req) {
				continue
			}
			if known == nil {
				known = p.knownKeys()
			}
			if !known[requirements.KubernetesAliases().Key(req.Key())] {
				out = append(out, noLabel(req.Key(), known))
			}
		}
	}
	return out
}

// isAbsence reports whether the requirement only forbids its label.
func isAbsence(r requirements.Requirement) bool { return r.AllowsAbsent() && len(namedBy(r)) == 0 }

func noLabel(key string, known map[string]bool) string {
	return fmt.Sprintf("there is no label %s here%s", key, hint(key, append(slices.Sorted(maps.Keys(known)), "node", "zone")))
}

// strangeSelector returns the values that the rule's selector lists, or those that it excludes, and
// that no pod has.
func (p *Plan) strangeSelector(r *Rule, excluded bool) []Breach {
	selector, _ := labels.Parse(r.Labels) // validated
	asked, _ := selector.Requirements()
	var out []Breach
	for _, req := range asked {
		switch req.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			if excluded {
				continue
			}
		case selection.NotIn, selection.NotEquals, selection.DoesNotExist:
			if !excluded {
				continue
			}
		default: // labels that must exist
			continue
		}
		have := map[string]bool{}
		for _, m := range slices.Concat(p.members, p.running) {
			if v, ok := m.pod.Labels[req.Key()]; ok {
				have[v] = true
			}
		}
		if excluded && len(have) == 0 {
			out = append(out, Breach{Why: fmt.Sprintf("no pending or running pod has the label %s%s", req.Key(), hint(req.Key(), p.podLabels()))})
			continue
		}
		for _, v := range slices.Sorted(maps.Keys(req.Values())) {
			if !have[v] {
				out = append(out, Breach{Why: fmt.Sprintf("no pending or running pod has the label %s=%s%s", req.Key(), v, hint(v, slices.Sorted(maps.Keys(have))))})
			}
		}
	}
	return out
}

// podLabels returns the label keys of pods.
func (p *Plan) podLabels() []string {
	keys := map[string]bool{}
	for _, m := range slices.Concat(p.members, p.running) {
		for key := range m.pod.Labels {
			keys[key] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// nearestPod returns the name that was probably meant by patterns that match no pod.
func (p *Plan) nearestPod(patterns string) string {
	names := map[string]bool{}
	for _, m := range p.members {
		names[m.name] = true
		names[strings.TrimRight(m.name, "0123456789")+"*"] = true
	}
	for _, d := range p.packed.Problem.Snapshot().DaemonSets {
		if matchesPod(patterns, d.Namespace+"/"+d.Name) {
			return fmt.Sprintf("; %s/%s belongs to a DaemonSet, whose pods run on every node that takes them: rules are not about them", d.Namespace, d.Name)
		}
	}
	for pattern := range strings.SplitSeq(patterns, ",") {
		pattern = strings.TrimSpace(pattern)
		if pattern != "" && !strings.Contains(pattern, "/") {
			if text := p.otherNamespaces(pattern); text != "" {
				return text
			}
			pattern = "default/" + pattern
		}
		if text := hint(pattern, slices.Sorted(maps.Keys(names))); text != "" {
			return text
		}
	}
	return ""
}

// otherNamespaces returns a hint if a pattern without a namespace matches names of pods in others
// than default.
func (p *Plan) otherNamespaces(pattern string) string {
	found := map[string]bool{}
	for _, m := range slices.Concat(p.members, p.running) {
		namespace, name, _ := strings.Cut(m.name, "/")
		if glob(pattern, name) {
			found[namespace] = true
		}
	}
	switch names := slices.Sorted(maps.Keys(found)); len(names) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(" (a name without a namespace is in default; did you mean %q?)", names[0]+"/"+pattern)
	default:
		return fmt.Sprintf(" (a name without a namespace is in default; did you mean %q, for the pods in %s?)", "*/"+pattern, strings.Join(names, ", "))
	}
}

// strangers returns places with names that neither the pools nor the nodes have. Otherwise a typo
// would make a rule about what must not happen always hold.
func (p *Plan) strangers(r *Rule) []Breach {
	known := p.known()
	for _, s := range p.fresh {
		known[requirements.NodeNameKey] = append(known[requirements.NodeNameKey], s.name)
	}
	var out []Breach
	places := slices.Concat(r.LandsOn, r.NeverOn)
	if r.Refused != nil {
		places = append(places, Place{Pool: r.Refused.Pool})
	}
	for _, place := range places {
		for _, f := range place.fields() {
			if f.want == "" {
				continue
			}
			for pattern := range strings.SplitSeq(f.want, ",") {
				pattern = strings.TrimSpace(pattern)
				if slices.ContainsFunc(known[f.key], func(v string) bool { return glob(pattern, v) }) {
					continue
				}
				out = append(out, Breach{Why: fmt.Sprintf("there is no %s %s here%s", f.name, pattern, hint(pattern, known[f.key]))})
			}
		}
	}
	return append(out, p.strangeLabels(r)...)
}

// strangeLabels returns labels that no node has and no pool could give one, and values that no node
// can have of the others.
func (p *Plan) strangeLabels(r *Rule) []Breach {
	var asked []string
	var named []requirements.Requirement
	for _, place := range slices.Concat(r.LandsOn, r.NeverOn) {
		set, _ := requirements.Parse(place.Labels) // Validate has checked it
		for req := range set.All() {
			if !isAbsence(req) {
				asked, named = append(asked, req.Key()), append(named, namedBy(req)...)
			}
		}
	}
	for _, c := range []*Company{r.Together, r.Apart} {
		if c != nil {
			asked = append(asked, topologyKey(c.By))
		}
	}
	if r.Spread != nil {
		asked = append(asked, topologyKey(r.Spread.By))
	}
	var known map[string]bool // computed when first needed
	var out []Breach
	strange := map[string]bool{}
	for _, key := range asked {
		if key == corev1.LabelHostname || strange[key] {
			continue
		}
		if known == nil {
			known = p.knownKeys()
		}
		if strange[key] = !known[requirements.KubernetesAliases().Key(key)]; strange[key] {
			out = append(out, Breach{Why: noLabel(key, known)})
		}
	}
	possible := map[string][]requirements.Requirement{}
	for _, value := range named {
		key := requirements.KubernetesAliases().Key(value.Key())
		if strange[value.Key()] || key == corev1.LabelHostname { // the names of nodes to buy are not known
			continue
		}
		if _, ok := possible[key]; !ok {
			possible[key] = p.valuesOf(key)
		}
		can := func(have requirements.Requirement) bool { return have.Overlaps(renamed(value, key)) }
		if !slices.ContainsFunc(possible[key], can) {
			out = append(out, Breach{Why: fmt.Sprintf("no node here can have %s%s", value, nearestValue(value, possible[key]))})
		}
	}
	return out
}

// renamed returns the same values of another key.
func renamed(r requirements.Requirement, key string) requirements.Requirement {
	set, _ := requirements.NewAliases(map[string]string{r.Key(): key}).Set(requirements.MustOf(r)) // one requirement is no conflict
	return set.Get(key)
}

// nearestValue returns a hint for a value that no node can have.
func nearestValue(value requirements.Requirement, possible []requirements.Requirement) string {
	word, ok := value.Single()
	if !ok {
		return ""
	}
	var all []string
	for _, r := range possible {
		values, _ := r.Values()
		all = append(all, values...)
	}
	slices.Sort(all)
	return hint(word, slices.Compact(all))
}

// namedBy returns the values that a requirement lists or excludes, each as a requirement of its
// own. A row of integers is one value, because "cpu>4" and "cpu<=8" name no number that must exist.
func namedBy(r requirements.Requirement) []requirements.Requirement {
	integers := requirements.Gte(r.Key(), 0)
	words, listed := r.Intersect(integers.Complement()).Values()
	if !listed { // all but some
		r = r.Complement()
		words, _ = r.Intersect(integers.Complement()).Values()
	}
	var out []requirements.Requirement
	for _, w := range words {
		out = append(out, requirements.In(r.Key(), w))
	}
	numbers := r.Intersect(integers)
	values, few := numbers.Values()
	switch {
	case numbers.IsImpossible():
		return out
	case !few:
		return append(out, numbers)
	}
	var sorted []int64
	for _, v := range values {
		n, _ := strconv.ParseInt(v, 10, 64) // it is an integer
		sorted = append(sorted, n)
	}
	slices.Sort(sorted)
	for i := 0; i < len(sorted); {
		k := i + 1
		for k < len(sorted) && sorted[k] == sorted[k-1]+1 {
			k++
		}
		out = append(out, requirements.Gte(r.Key(), sorted[i]).Intersect(requirements.Lte(r.Key(), sorted[k-1])))
		i = k
	}
	return out
}

// valuesOf returns what nodes have of a label, or can have if they are bought. It looks at pools,
// types and offerings by themselves, because a rule may forbid what a pool does not buy today.
func (p *Plan) valuesOf(key string) []requirements.Requirement {
	var out []requirements.Requirement
	seen := map[string]bool{}
	var id []byte
	see := func(s requirements.Set) bool {
		if !s.Has(key) {
			return false
		}
		r := s.Get(key)
		if id = r.AppendKey(id[:0]); !seen[string(id)] {
			seen[string(id)] = true
			out = append(out, r)
		}
		return true
	}
	for i := range p.packed.Problem.Existing {
		see(p.packed.Problem.Existing[i].Labels)
	}
	s := p.packed.Problem.Snapshot()
	for _, n := range s.Nodes { // nodes that accept no pods may hold some
		see(requirements.FromLabels(existingSite(n).labels))
	}
	for i := range s.Pools {
		sold := false // a pool chooses among the values of its types
		for k := range s.Pools[i].Types {
			t := &s.Pools[i].Types[k]
			sold = see(t.Requirements) || sold
			for _, o := range t.Offerings {
				sold = see(o.Requirements) || sold
			}
		}
		if !sold {
			see(s.Pools[i].NodeRequirements())
		}
	}
	return out
}

// knownKeys returns the labels that nodes have, or can have if they are bought.
func (p *Plan) knownKeys() map[string]bool {
	out := map[string]bool{}
	see := func(s requirements.Set) {
		for req := range s.All() {
			out[req.Key()] = true
		}
	}
	for i := range p.packed.Problem.Existing {
		see(p.packed.Problem.Existing[i].Labels)
	}
	s := p.packed.Problem.Snapshot()
	for _, n := range s.Nodes {
		see(requirements.FromLabels(existingSite(n).labels))
	}
	for i := range s.Pools {
		see(s.Pools[i].NodeRequirements())
		for k := range s.Pools[i].Types {
			see(s.Pools[i].Types[k].Requirements)
			for _, o := range s.Pools[i].Types[k].Offerings {
				see(o.Requirements)
			}
		}
	}
	return out
}

// known returns what pools can buy and nodes have, by the label keys of places.
func (p *Plan) known() map[string][]string {
	found := map[string]map[string]bool{}
	see := func(key, value string) {
		if value == "" {
			return
		}
		if found[key] == nil {
			found[key] = map[string]bool{}
		}
		found[key][value] = true
	}
	fields := (&Place{}).fields()
	s := p.packed.Problem.Snapshot()
	for i := range s.Pools {
		see(fields[0].key, s.Pools[i].Name)
		if i > 0 && len(s.Pools[i].Types) > 0 && len(s.Pools[i-1].Types) > 0 && &s.Pools[i].Types[0] == &s.Pools[i-1].Types[0] {
			continue // the same slice
		}
		for k := range s.Pools[i].Types {
			t := &s.Pools[i].Types[k]
			see(fields[1].key, t.Name)
			for _, o := range t.Offerings {
				for _, f := range fields[2:4] {
					v, _ := o.Requirements.Get(f.key).Single()
					see(f.key, v)
				}
			}
		}
	}
	for i := range p.packed.Problem.Existing {
		site := existingSite(p.packed.Problem.Existing[i].Node)
		for _, f := range fields {
			see(f.key, f.have(site))
		}
	}
	for _, n := range s.Nodes { // nodes that accept no pods may hold some
		for _, f := range fields {
			see(f.key, f.have(existingSite(n)))
		}
	}
	out := map[string][]string{}
	for key, values := range found {
		out[key] = slices.Sorted(maps.Keys(values))
	}
	return out
}
