// Package interpod evaluates constraints between pods as kube-scheduler's plugins PodTopologySpread
// and InterPodAffinity do.
//
// An [Index] reads the constraints of pods, and numbers their label keys, groups of pods and node
// filters. A [State] counts pods by group and label value, and says whether one more pod may be at
// a place. In the assignment of domains a place is a combination of label values. For questions
// about a snapshot, and for the verification of a plan, it is a node.
package interpod

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/joinery-sdk/joinery/internal/selector"
	"github.com/joinery-sdk/joinery/requirements"
)

// Group is a set of pods that a constraint counts, and the label key by whose values it counts
// them.
type Group struct {
	// Key is an index into the keys of the index.
	Key int32
	// Filter is the node filter of a spread; -1 for all nodes with the key.
	Filter int32
	// Spread is set for groups of topology spread constraints. These and ratios do not count
	// terminating pods; affinity does.
	Spread bool
	// Ratio is the annotation of a ratio's pods; empty for other groups.
	Ratio string
	// What describes the pods, and Text identifies the group.
	What, Text string

	all    []*selection // a pod is a member if it matches all of them
	domain int32        // index into Index.domains; of spreads only
}

// Filter is the nodes on which a topology spread constraint counts pods.
type Filter struct {
	// Asked is the node affinity of the constraint's owner, or anything if nodeAffinityPolicy is
	// Ignore.
	Asked requirements.Alternatives
	// Tolerations are those of the owner. HonorTaints excludes nodes with taints that they do not
	// cover.
	Tolerations []corev1.Toleration
	HonorTaints bool
	// Keys are label keys that a node must have: those of the owner's other hard spreads.
	Keys []int32
}

// Spread is a topology spread constraint.
type Spread struct {
	Group               int32
	MaxSkew, MinDomains int32
	Self                bool // the owner counts itself
	Hard                bool // whenUnsatisfiable is DoNotSchedule
	// Sold are the values of the key that nodes to buy for the owner would have; see
	// [State.CountSold].
	Sold []int32
}

// Term is a term of pod affinity or anti-affinity.
type Term struct {
	Group  int32
	Anti   bool
	Self   bool // the owner is a member of the group
	Hard   bool
	Weight int32 // of a preferred term
}

// Constraints are the constraints of pods on other pods, and the groups that count the pods. All
// listed constraints are enforced, even preferred ones.
type Constraints struct {
	Spreads  []Spread
	Terms    []Term
	Ratios   []int32 // groups that the pods are divided in
	MemberOf []int32 // ascending
}

// selection is the pods of some namespaces that a selector matches. The text identifies it.
type selection struct {
	namespaces map[string]bool
	selector   labels.Selector
	text       string
}

// nothing selects no pods.
var nothing = &selection{selector: labels.Nothing(), text: "nothing"}

func (s *selection) matches(namespace string, set map[string]string) bool {
	return s.namespaces[namespace] && s.selector.Matches(labels.Set(set))
}

// Index numbers the keys, groups and filters of constraints. It grows while pods are read, and must
// not be read concurrently before that is finished.
type Index struct {
	aliases    requirements.Aliases
	namespaces map[string]map[string]string
	hostless   bool

	keys       numbered[string, string]
	groups     numbered[groupKey, Group]
	filters    numbered[string, Filter]
	domains    numbered[domainKey, domainKey]
	selections map[string]*selection // by namespaces and selector
	ratios     map[string]*ratio     // by namespace and annotation

	lookup *lookup
	raw    []byte // reused
}

// groupKey identifies a group. The text is that of its selections. The text of a custom group
// begins with a bracket.
type groupKey struct {
	key, filter int32
	spread      bool
	text        string
}

// domainKey is a key and a node filter. Spreads with the same domainKey count the same nodes.
type domainKey struct{ key, filter int32 }

// numbered numbers distinct keys and keeps a value for each. The zero value has none.
type numbered[K comparable, V any] struct {
	at   map[K]int32
	list []V
}

// of returns the number of the key. A new key gets a new number and the value that make returns.
func (n *numbered[K, V]) of(key K, make func() V) int32 {
	id, ok := n.at[key]
	if !ok {
		if n.at == nil {
			n.at = map[K]int32{}
		}
		id = int32(len(n.list))
		n.at[key] = id
		n.list = append(n.list, make())
	}
	return id
}

// Namespaces returns, by name, the labels of the listed namespaces and of those of pods and
// DaemonSets. Each has the label kubernetes.io/metadata.name, which the API server sets.
func Namespaces(pods []*corev1.Pod, daemons []*appsv1.DaemonSet, namespaces []*corev1.Namespace) map[string]map[string]string {
	out := map[string]map[string]string{}
	add := func(name string) {
		name = cmp.Or(name, corev1.NamespaceDefault)
		if _, ok := out[name]; !ok {
			out[name] = map[string]string{corev1.LabelMetadataName: name}
		}
	}
	for _, p := range pods {
		add(p.Namespace)
	}
	for _, d := range daemons {
		add(d.Namespace)
	}
	for _, n := range namespaces {
		set := map[string]string{corev1.LabelMetadataName: n.Name}
		maps.Copy(set, n.Labels)
		out[n.Name] = set
	}
	return out
}

// NewIndex returns an index without constraints. aliases rename deprecated topology keys.
// namespaces are the labels of all namespaces, by name. hostless says that some node lacks the
// hostname label; if none does, node filters do not require it.
func NewIndex(aliases requirements.Aliases, namespaces map[string]map[string]string, hostless bool) *Index {
	return &Index{aliases: aliases, namespaces: namespaces, hostless: hostless, selections: map[string]*selection{}, ratios: map[string]*ratio{}}
}

// Keys returns the label keys by number. They must not be modified.
func (x *Index) Keys() []string { return x.keys.list }

// Groups returns the groups by number. They must not be modified.
func (x *Index) Groups() []Group { return x.groups.list }

// Filters returns the node filters by number. They must not be modified.
func (x *Index) Filters() []Filter { return x.filters.list }

// Key returns the number of a label key, a new one if it is not known.
func (x *Index) Key(name string) int32 {
	name = x.aliases.Key(name)
	return x.keys.of(name, func() string { return name })
}

// Custom adds a group without a selector, whose members the caller adds to MemberOf.
func (x *Index) Custom(key, what, text string) int32 {
	id := x.Key(key)
	return x.groups.of(groupKey{key: id, filter: -1, text: "(" + text}, func() Group {
		return Group{Key: id, Filter: -1, What: what, Text: text, all: []*selection{nothing}}
	})
}

// Read reads the constraints of a pod as an API server stored it. They come in the order of the
// manifest: spreads, then terms of affinity, then of anti-affinity, required terms before preferred
// ones. [Index.Join] completes them. asked is the pod's node selector and affinity, for the node
// filters of its spreads.
func (x *Index) Read(pod *corev1.Pod, asked requirements.Alternatives) (Constraints, error) {
	var out Constraints
	for i := range pod.Spec.TopologySpreadConstraints {
		s, err := x.spread(pod, asked, &pod.Spec.TopologySpreadConstraints[i])
		if err != nil {
			return out, fmt.Errorf("spec.topologySpreadConstraints[%d].%w", i, err)
		}
		out.Spreads = append(out.Spreads, s)
	}
	g, ok, err := x.readRatio(pod)
	if err != nil {
		return out, err
	}
	if ok {
		out.Ratios = []int32{g}
	}
	a := pod.Spec.Affinity
	if a == nil {
		return out, nil
	}
	if out.Terms, err = x.terms(pod.Namespace, a.PodAffinity, false, out.Terms); err != nil {
		return out, fmt.Errorf("spec.affinity.podAffinity.%w", err)
	}
	if out.Terms, err = x.terms(pod.Namespace, (*corev1.PodAffinity)(a.PodAntiAffinity), true, out.Terms); err != nil { // the type has the same fields
		return out, fmt.Errorf("spec.affinity.podAntiAffinity.%w", err)
	}
	return out, nil
}

// Keeps reads the required anti-affinity of a running pod. Its other constraints do not affect
// other pods. Invalid terms are left out.
func (x *Index) Keeps(pod *corev1.Pod) Constraints {
	var out Constraints
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		for i := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			t := &a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i]
			if s, err := x.selectionOf(pod.Namespace, t); err == nil {
				out.Terms = append(out.Terms, Term{Group: x.counted(t.TopologyKey, s), Anti: true, Hard: true})
			}
		}
	}
	return out
}

// terms reads terms of affinity or of anti-affinity. A pod counts for a required term of affinity
// only if it meets all required terms of the owner (podMatchesAllAffinityTerms in kube-scheduler).
// Each other term counts by itself.
func (x *Index) terms(namespace string, a *corev1.PodAffinity, anti bool, out []Term) ([]Term, error) {
	if a == nil {
		return out, nil
	}
	required, preferred := a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution
	own := make([]*selection, len(required))
	for i := range required {
		var err error
		if own[i], err = x.selectionOf(namespace, &required[i]); err != nil {
			return nil, fmt.Errorf("requiredDuringSchedulingIgnoredDuringExecution[%d].%w", i, err)
		}
	}
	all := slices.SortedFunc(slices.Values(own), func(a, b *selection) int { return strings.Compare(a.text, b.text) })
	all = slices.CompactFunc(all, func(a, b *selection) bool { return a.text == b.text })
	for i := range required {
		counts := all
		if anti {
			counts = own[i : i+1]
		}
		out = append(out, Term{Group: x.counted(required[i].TopologyKey, counts...), Anti: anti, Hard: true})
	}
	for i := range preferred {
		s, err := x.selectionOf(namespace, &preferred[i].PodAffinityTerm)
		if err != nil {
			return nil, fmt.Errorf("preferredDuringSchedulingIgnoredDuringExecution[%d].podAffinityTerm.%w", i, err)
		}
		out = append(out, Term{Group: x.counted(preferred[i].PodAffinityTerm.TopologyKey, s), Anti: anti, Weight: preferred[i].Weight})
	}
	return out, nil
}

// counted returns the group of the pods that match all selections, by the values of a key.
func (x *Index) counted(key string, all ...*selection) int32 {
	id, text := x.Key(key), all[0].text
	for _, s := range all[1:] {
		text += "|" + s.text
	}
	return x.groups.of(groupKey{key: id, filter: -1, text: text}, func() Group {
		return Group{Key: id, Filter: -1, Text: x.keys.list[id] + "|" + text, What: words(all), all: slices.Clone(all)}
	})
}

func words(all []*selection) string {
	words := make([]string, len(all))
	for i, s := range all {
		words[i] = selector.Text(s.selector)
	}
	return strings.Join(words, " and ")
}

// spread reads a topology spread constraint. kube-scheduler counts no pods for an empty selector;
// the constraint then asks only for the key.
func (x *Index) spread(pod *corev1.Pod, asked requirements.Alternatives, t *corev1.TopologySpreadConstraint) (Spread, error) {
	s, err := x.selected(t.LabelSelector, []string{cmp.Or(pod.Namespace, corev1.NamespaceDefault)})
	if err != nil {
		return Spread{}, fmt.Errorf("labelSelector: %w", err)
	}
	if s.selector.Empty() {
		s = nothing
	}
	key, filter := x.Key(t.TopologyKey), x.filterOf(pod, asked, t)
	group := x.groups.of(groupKey{key: key, filter: filter, text: s.text, spread: true}, func() Group {
		d := domainKey{key, filter}
		return Group{
			Key: key, Filter: filter, Spread: true, Text: fmt.Sprintf("spread %s|%s|filter %d", x.keys.list[key], s.text, filter), What: words([]*selection{s}),
			all: []*selection{s}, domain: x.domains.of(d, func() domainKey { return d }),
		}
	})
	out := Spread{Group: group, MaxSkew: t.MaxSkew, MinDomains: 1, Hard: t.WhenUnsatisfiable != corev1.ScheduleAnyway}
	if t.MinDomains != nil {
		out.MinDomains = *t.MinDomains
	}
	return out, nil
}

// filterOf returns the number of the node filter of a spread; -1 if it passes every node that has
// the spread's key.
func (x *Index) filterOf(pod *corev1.Pod, asked requirements.Alternatives, t *corev1.TopologySpreadConstraint) int32 {
	f := Filter{Asked: asked, HonorTaints: t.NodeTaintsPolicy != nil && *t.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor}
	if t.NodeAffinityPolicy != nil && *t.NodeAffinityPolicy != corev1.NodeInclusionPolicyHonor {
		f.Asked = requirements.AnyOf(requirements.Set{})
	}
	if f.HonorTaints {
		f.Tolerations = pod.Spec.Tolerations
	}
	own := x.Key(t.TopologyKey)
	for i := range pod.Spec.TopologySpreadConstraints {
		other := &pod.Spec.TopologySpreadConstraints[i]
		if id := x.Key(other.TopologyKey); other.WhenUnsatisfiable != corev1.ScheduleAnyway && id != own && (x.hostless || x.keys.list[id] != corev1.LabelHostname) {
			f.Keys = append(f.Keys, id)
		}
	}
	slices.Sort(f.Keys)
	f.Keys = slices.Compact(f.Keys)
	if !f.HonorTaints && len(f.Keys) == 0 && f.Asked.Len() == 1 && f.Asked.At(0).IsAnything() {
		return -1
	}
	text := string(f.Asked.AppendKey(nil)) + fmt.Sprint("|", f.Keys, f.HonorTaints, f.Tolerations)
	return x.filters.of(text, func() Filter { return f })
}

// selectionOf returns the pods that a term selects: those of its namespaces and of its
// namespaceSelector, or those of the pod's own namespace if it has neither.
func (x *Index) selectionOf(own string, t *corev1.PodAffinityTerm) (*selection, error) {
	in := t.Namespaces
	switch {
	case t.NamespaceSelector != nil:
		namespaces, err := metav1.LabelSelectorAsSelector(t.NamespaceSelector)
		if err != nil {
			return nil, fmt.Errorf("namespaceSelector: %w", err)
		}
		in = slices.Clone(in)
		for name, set := range x.namespaces {
			if namespaces.Matches(labels.Set(set)) {
				in = append(in, name)
			}
		}
	case len(in) == 0:
		in = []string{cmp.Or(own, corev1.NamespaceDefault)}
	}
	s, err := x.selected(t.LabelSelector, in)
	if err != nil {
		return nil, fmt.Errorf("labelSelector: %w", err)
	}
	return s, nil
}

// selected returns the selection of a label selector in some namespaces. A nil selector selects
// nothing, an empty one everything.
func (x *Index) selected(sel *metav1.LabelSelector, in []string) (*selection, error) {
	if sel == nil {
		return nothing, nil
	}
	if len(in) > 1 {
		in = slices.Compact(slices.Sorted(slices.Values(in)))
	}
	raw := appendTexts(x.raw[:0], in...)
	for _, k := range slices.Sorted(maps.Keys(sel.MatchLabels)) {
		raw = appendTexts(raw, k, sel.MatchLabels[k])
	}
	for _, e := range sel.MatchExpressions {
		raw = appendTexts(appendTexts(raw, e.Key, string(e.Operator), ""), e.Values...)
	}
	x.raw = raw
	if s, ok := x.selections[string(raw)]; ok {
		return s, nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(sel)
	if err != nil {
		return nil, err
	}
	out := &selection{namespaces: make(map[string]bool, len(in)), selector: parsed, text: strings.Join(in, ",") + " " + parsed.String()}
	for _, n := range in {
		out.namespaces[n] = true
	}
	x.selections[string(raw)] = out
	return out, nil
}

// appendTexts appends an unambiguous encoding of texts.
func appendTexts(to []byte, texts ...string) []byte {
	to = binary.AppendUvarint(to, uint64(len(texts)))
	for _, s := range texts {
		to = append(binary.AppendUvarint(to, uint64(len(s))), s...)
	}
	return to
}
