package ruletest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/pipeline/regret"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Plan is a finished plan for checking rules. [Scenario.Plan] and [NewPlan] make one. It is not
// safe for concurrent use.
type Plan struct {
	packed  *plan.Plan
	packing *binpack.Options
	tb      TB

	members []member // pending pods, by name
	running []member // running pods, by name
	fresh   []*site  // the nodes to buy
	spent   int      // pods planned again to find what moved a pod

	objects *simulate.Objects // nil: not known
	now     time.Time
	charges map[RulesCost][]charge // those computed so far, by demand
	past    *regret.Report
	notices []string
}

// member is a pod and its node.
type member struct {
	pod   *corev1.Pod
	name  string
	site  *site  // nil: no place
	class int    // -1: not to be planned
	why   string // why it is not to be planned
}

// notPlanned returns why the pod is not planned, for a text that says what it lacks.
func (m *member) notPlanned() string {
	if m.why == "" {
		return ""
	}
	return ": it is not ours to place: " + m.why
}

// site is a node that holds pods.
type site struct {
	name                          string
	pool, typ, zone, capacityType string
	labels                        map[string]string
	price                         float64
	bought                        bool
}

// NewPlan indexes a plan that was made with the given packing options.
func NewPlan(packed *plan.Plan, packing *binpack.Options) *Plan {
	nodes := packed.NewNodes()
	p := &Plan{packed: packed, packing: packing}
	at := map[*corev1.Pod]*site{}
	for i := range nodes {
		n := &nodes[i]
		s := &site{
			name: n.Name, pool: n.Pool.Name, typ: n.InstanceType.Name, zone: n.Zone, capacityType: n.CapacityType,
			labels: n.Node().Labels, price: n.PricePerHour, bought: true,
		}
		p.fresh = append(p.fresh, s)
		for _, pod := range n.Pods {
			at[pod] = s
		}
	}
	existing := map[string]*site{}
	for i := range packed.Problem.Existing {
		node := packed.Problem.Existing[i].Node
		existing[node.Name] = existingSite(node)
	}
	for _, b := range packed.Bindings() {
		if !b.New {
			at[b.Pod] = existing[b.Node]
		}
	}
	for i, c := range packed.Problem.Classes {
		for _, pod := range c.Pods {
			p.members = append(p.members, member{pod: pod, name: nameOf(pod), site: at[pod], class: i})
		}
	}
	for _, i := range packed.Problem.Ignored {
		p.members = append(p.members, member{pod: i.Pod, name: nameOf(i.Pod), class: -1, why: i.Why})
	}
	s := packed.Problem.Snapshot()
	for _, n := range s.Nodes { // nodes that accept no pods may hold some
		if existing[n.Name] == nil {
			existing[n.Name] = existingSite(n)
		}
	}
	for _, pod := range s.Pods {
		if node := existing[pod.Spec.NodeName]; node != nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			p.running = append(p.running, member{pod: pod, name: nameOf(pod), site: node, class: -1})
		}
	}
	byName := func(a, b member) int { return cmp.Or(strings.Compare(a.name, b.name)) }
	slices.SortFunc(p.members, byName)
	slices.SortFunc(p.running, byName)
	return p
}

// reasons says why pods of a class have no place.
func (p *Plan) reasons(class int) []scheduling.Reason {
	for _, u := range p.packed.Unplaced() {
		if u.Class == class {
			return u.Reasons()
		}
	}
	return nil
}

// withoutPlace says which pods of the rule have no place, and why, in one text for each reason. A
// rule about the past alone has no pods.
func (p *Plan) withoutPlace(r *Rule) []string {
	if r.Regret != nil && r.demands() == 1 {
		return nil
	}
	type cause struct {
		ours bool
		why  string
	}
	var order []cause
	pods, refusals := map[cause][]string{}, map[int]string{}
	for _, m := range r.choose(p.members) {
		if m.site != nil {
			continue
		}
		c := cause{m.class >= 0, m.why}
		if c.ours {
			if _, known := refusals[m.class]; !known {
				refusals[m.class] = brief(p.reasons(m.class))
			}
			c.why = refusals[m.class]
		}
		if pods[c] == nil {
			order = append(order, c)
		}
		pods[c] = append(pods[c], m.name)
	}
	var out []string
	for _, c := range order {
		text := map[bool]string{true: " is not ours to place", false: " are not ours to place"}[len(pods[c]) == 1]
		if c.ours {
			text = map[bool]string{true: " has no place", false: " have no place"}[len(pods[c]) == 1]
		}
		out = append(out, fmt.Sprintf("%s%s: %s", few(pods[c]), text, c.why))
	}
	return out
}

// brief returns the first reason, and how many others there are.
func brief(reasons []scheduling.Reason) string {
	var all []string
	for _, r := range reasons {
		if text := r.String(); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	switch len(all) {
	case 0:
		return "the plan gives no reason"
	case 1:
		return all[0]
	}
	return fmt.Sprintf("%s (and %s)", all[0], plural(len(all)-1, "more reason"))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// ofThemAre is the subject and verb of a sentence about n pods.
func ofThemAre(n int) string {
	if n == 1 {
		return "1 of them is"
	}
	return fmt.Sprintf("%d of them are", n)
}

// few lists names: three at most, and how many more there are.
func few(names []string) string {
	const most = 3
	if n := len(names) - most; n > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n)
	}
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// Notes say what [Scenario.Solve] assumed or left out when it read its objects, such as a
// StorageClass that no file has.
func (p *Plan) Notes() []string { return slices.Clone(p.notices) }

// Packed returns the plan itself.
func (p *Plan) Packed() *plan.Plan { return p.packed }

func nameOf(pod *corev1.Pod) string {
	namespace := pod.Namespace
	if namespace == "" {
		namespace = "default"
	}
	return namespace + "/" + pod.Name
}

func existingSite(n *corev1.Node) *site {
	labels := requirements.KubernetesAliases().Labels(n.Labels)
	return &site{
		name: n.Name, pool: labels[nodepool.LabelKey], typ: labels[corev1.LabelInstanceTypeStable], zone: labels[corev1.LabelTopologyZone],
		capacityType: labels[instancetypes.LabelCapacityType], labels: labels,
	}
}

// String describes the node: "new node default-0 (m5.large, us-east-1a, on-demand, pool default)".
func (s *site) String() string {
	kind := "existing node "
	if s.bought {
		kind = "new node "
	}
	var parts []string
	for _, v := range []string{s.typ, s.zone, s.capacityType} {
		if v != "" {
			parts = append(parts, v)
		}
	}
	if s.pool != "" {
		parts = append(parts, "pool "+s.pool)
	}
	if len(parts) == 0 {
		return kind + s.name
	}
	return fmt.Sprintf("%s%s (%s)", kind, s.name, strings.Join(parts, ", "))
}

// field is one property of a place: the wanted value, the label that has it, and the value of a
// site.
type field struct {
	name, want, key string
	have            func(*site) string
}

func (p *Place) fields() []field {
	return []field{
		{"pool", p.Pool, nodepool.LabelKey, func(s *site) string { return s.pool }},
		{"type", p.InstanceType, corev1.LabelInstanceTypeStable, func(s *site) string { return s.typ }},
		{"zone", p.Zone, corev1.LabelTopologyZone, func(s *site) string { return s.zone }},
		{"capacity type", p.CapacityType, instancetypes.LabelCapacityType, func(s *site) string { return s.capacityType }},
		{"node", p.Node, requirements.NodeNameKey, func(s *site) string { return s.name }},
	}
}

// unmet returns the properties of the place that the site does not have, or nothing if it is such a
// place.
func (p *Place) unmet(s *site) []string {
	var out []string
	for _, f := range p.fields() {
		if have := f.have(s); f.want != "" && !matches(f.want, have) {
			out = append(out, fmt.Sprintf("its %s is %s, not %s", f.name, orNone(have), f.want))
		}
	}
	set, _ := requirements.Parse(p.Labels) // validated
	set, _ = requirements.KubernetesAliases().Set(set)
	if set.IsImpossible() {
		return append(out, "no node can have "+p.Labels)
	}
	for r := range set.All() {
		value, has := s.labels[r.Key()]
		switch {
		case !has && !r.AllowsAbsent():
			out = append(out, fmt.Sprintf("it has no label %s, want %s", r.Key(), r))
		case has && !r.Contains(value):
			out = append(out, fmt.Sprintf("its %s is %s, want %s", r.Key(), value, r))
		}
	}
	return out
}

func orNone(text string) string {
	if text == "" {
		return "not known"
	}
	return text
}

// matches reports whether the text matches one of the patterns. Commas separate them, and * stands
// for any text.
func matches(patterns, text string) bool {
	for pattern := range strings.SplitSeq(patterns, ",") {
		if glob(strings.TrimSpace(pattern), text) {
			return true
		}
	}
	return false
}

// glob matches in time linear in the product of both lengths, because each star takes as little as
// it can.
func glob(pattern, text string) bool {
	star, mark := -1, 0
	i, k := 0, 0
	for k < len(text) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, mark = i, k
			i++
		case i < len(pattern) && pattern[i] == text[k]:
			i++
			k++
		case star >= 0:
			mark++
			i, k = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}

// matchesPod is matches for names of pods, with the default namespace "default". No patterns match
// every pod.
func matchesPod(patterns, name string) bool {
	if strings.TrimSpace(patterns) == "" {
		return true
	}
	for pattern := range strings.SplitSeq(patterns, ",") {
		pattern = strings.TrimSpace(pattern)
		if !strings.Contains(pattern, "/") {
			pattern = "default/" + pattern
		}
		if glob(pattern, name) {
			return true
		}
	}
	return false
}

// choose returns the members that the rule is about.
func (r *Rule) choose(list []member) []member {
	selector, _ := labels.Parse(r.Labels) // validated
	var out []member
	for _, m := range list {
		if matchesPod(r.Pods, m.name) && (r.Labels == "" || selector.Matches(labels.Set(m.pod.Labels))) {
			out = append(out, m)
		}
	}
	return out
}

// alternatives returns places as sets of requirements. A pattern becomes the existing values that
// match it.
func (p *Plan) alternatives(places []Place) requirements.Alternatives {
	known := p.known()
	sets := make([]requirements.Set, 0, len(places))
	for i := range places {
		var b requirements.Builder
		set, _ := requirements.Parse(places[i].Labels) // validated
		set, _ = requirements.KubernetesAliases().Set(set)
		b.AddSet(set)
		for _, f := range places[i].fields() {
			if f.want == "" {
				continue
			}
			var values []string
			for _, v := range known[f.key] {
				if matches(f.want, v) {
					values = append(values, v)
				}
			}
			b.Add(requirements.In(f.key, values...))
		}
		set, err := b.Set()
		if err != nil {
			set = requirements.Impossible()
		}
		sets = append(sets, set)
	}
	return requirements.AnyOf(sets...)
}

// elsewhere returns all nodes that match none of the places.
func (p *Plan) elsewhere(places []Place) requirements.Alternatives {
	out := requirements.AnyOf(requirements.Set{})
	for _, set := range slices.Collect(p.alternatives(places).All()) {
		var sets []requirements.Set
		for r := range set.All() {
			sets = append(sets, requirements.MustOf(r.Complement()))
		}
		out = out.Intersect(requirements.AnyOf(sets...))
	}
	return out
}
