package bruteforce

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Filter is the name of a plugin of kube-scheduler.
type Filter string

// The filters that a model knows.
const (
	NodeAffinity      Filter = "NodeAffinity"
	TaintToleration   Filter = "TaintToleration"
	NodeResourcesFit  Filter = "NodeResourcesFit"
	NodePorts         Filter = "NodePorts"
	PodTopologySpread Filter = "PodTopologySpread"
	InterPodAffinity  Filter = "InterPodAffinity"
	// Tied is no plugin; see [Tie].
	Tied Filter = "Tied"
)

// Tie says which labels the node of a pod must have, beside what kube-scheduler looks at. An empty
// value is a label that the node must not have. A nil Tie ties no pod.
type Tie func(pod *corev1.Pod) map[string]string

// Counting says which domains a hard topology spread counts.
type Counting int

const (
	// WithNodes counts the domains of nodes, as kube-scheduler does.
	WithNodes Counting = iota
	// ForSaleButZones also counts domains that are for sale, except zones. It is how plans with
	// scheduling.Options.LeaveZones count.
	ForSaleButZones
	// ForSale also counts all domains that are for sale, as plans do by default: those of the offers
	// that are large enough for the pod and that the policies of the spread include.
	ForSale
)

// Model is what kube-scheduler's filters need to know of nodes, offers and pods. It is written from
// the documentation of Kubernetes. It does not know everything: it ignores volumes, resources other
// than cpu, memory and pods, init containers, overhead, cordons, pods that are being deleted,
// namespaceSelector, and matchLabelKeys of affinity. Selectors must be neither absent nor empty.
type Model struct {
	Counting Counting
	// Off is a filter that accepts everything, for tests.
	Off Filter

	kinds []kind
	kind  map[string]int // by namespace/name of a pod
	keys  []string       // topology keys in use
	sites []site         // nodes, then offers
	nodes int
}

// kind is what equal pods have in common.
type kind struct {
	pod            *corev1.Pod
	request        amount
	spreads        []spread
	affinity, anti []term
	conflicts      []bool // host ports, by kind
	ties           map[string]string
}

// term is a required term of pod affinity or anti-affinity.
type term struct {
	key     int
	matches []bool // by kind
}

type spread struct {
	term
	self                         int
	maxSkew, minDomains          int
	honorAffinity, ignoresTaints bool
	// forSale has the domains of the offers that the spread counts.
	forSale []int
	zones   bool
}

// site is a node or an offer.
type site struct {
	node              *corev1.Node
	offer             *Offer
	room              amount
	affine, tolerated []bool // by kind
	tied              []bool // likewise: it has the labels of the ties
	domain            []int  // by key; -1 without the label
	running           []int  // pods by kind
	hostname          int    // the key whose value each bought node has of its own; -1 for none
}

// fresh is the domain of a hostname that no node has yet.
const fresh = 1 << 16

// New returns the model of nodes, offers and pods. Pods with a node run there. tie may be nil.
func New(nodes []*corev1.Node, offers []Offer, pods []*corev1.Pod, tie Tie) *Model {
	m := &Model{kind: map[string]int{}, nodes: len(nodes)}
	ids := map[string]int{}
	add := func(p *corev1.Pod) int {
		spec := p.Spec.DeepCopy()
		spec.NodeName = ""
		var ties map[string]string
		if tie != nil {
			ties = tie(p)
		}
		text, err := json.Marshal([]any{p.Namespace, p.Labels, spec, ties})
		if err != nil {
			panic(err) // a pod is always JSON
		}
		id, known := ids[string(text)]
		if !known {
			id = len(m.kinds)
			ids[string(text)] = id
			m.kinds = append(m.kinds, kind{pod: p, request: requestOf(&p.Spec), ties: ties})
		}
		m.kind[keyOf(p)] = id
		return id
	}
	for _, p := range pods {
		add(p)
	}
	for _, o := range offers {
		for _, p := range o.Daemons {
			add(p)
		}
	}
	for i := range m.kinds {
		m.terms(&m.kinds[i])
	}
	for _, n := range nodes {
		m.sites = append(m.sites, m.site(n))
	}
	for i := range offers {
		x := m.site(offers[i].Node)
		x.offer = &offers[i]
		for _, p := range offers[i].Daemons {
			x.running[add(p)]++
		}
		m.sites = append(m.sites, x)
	}
	for _, p := range pods {
		for i := range m.sites[:m.nodes] {
			if p.Spec.NodeName != "" && m.sites[i].node.Name == p.Spec.NodeName {
				m.sites[i].running[m.kind[keyOf(p)]]++
			}
		}
	}
	m.domains()
	return m
}

func keyOf(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

func (m *Model) key(name string) int {
	if i := slices.Index(m.keys, name); i >= 0 {
		return i
	}
	m.keys = append(m.keys, name)
	return len(m.keys) - 1
}

// terms reads what a kind asks of other pods.
func (m *Model) terms(k *kind) {
	for i := range m.kinds {
		k.conflicts = append(k.conflicts, portsConflict(&k.pod.Spec, &m.kinds[i].pod.Spec))
	}
	for _, c := range k.pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		more := map[string]string{} // matchLabelKeys adds the pod's own values
		for _, key := range c.MatchLabelKeys {
			if value, has := k.pod.Labels[key]; has {
				more[key] = value
			}
		}
		s := spread{term: m.term(c.TopologyKey, c.LabelSelector, more, []string{k.pod.Namespace}), maxSkew: int(c.MaxSkew), minDomains: 1}
		if s.matches[m.kind[keyOf(k.pod)]] {
			s.self = 1
		}
		if c.MinDomains != nil {
			s.minDomains = int(*c.MinDomains)
		}
		s.honorAffinity = c.NodeAffinityPolicy == nil || *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor
		s.ignoresTaints = c.NodeTaintsPolicy == nil || *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyIgnore
		s.zones = c.TopologyKey == corev1.LabelTopologyZone
		k.spreads = append(k.spreads, s)
	}
	read := func(list []corev1.PodAffinityTerm) (out []term) {
		for _, t := range list {
			namespaces := t.Namespaces
			if len(namespaces) == 0 {
				namespaces = []string{k.pod.Namespace}
			}
			out = append(out, m.term(t.TopologyKey, t.LabelSelector, nil, namespaces))
		}
		return out
	}
	if a := k.pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
		k.affinity = read(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	if a := k.pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		k.anti = read(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
}

func (m *Model) term(key string, by *metav1.LabelSelector, more map[string]string, namespaces []string) term {
	t := term{key: m.key(key)}
	selector, err := metav1.LabelSelectorAsSelector(by)
	if err != nil {
		panic(err) // an API server refuses the pod
	}
	for i := range m.kinds {
		p := m.kinds[i].pod
		t.matches = append(t.matches, slices.Contains(namespaces, p.Namespace) && selector.Matches(labels.Set(p.Labels)) && labels.SelectorFromSet(more).Matches(labels.Set(p.Labels)))
	}
	return t
}

func (m *Model) site(n *corev1.Node) site {
	x := site{node: n, room: amountOf(n.Status.Allocatable), running: make([]int, len(m.kinds)), hostname: -1}
	for i := range m.kinds {
		tied := true
		for key, value := range m.kinds[i].ties {
			tied = tied && n.Labels[key] == value
		}
		x.tied = append(x.tied, tied)
		x.affine = append(x.affine, matchesNode(&m.kinds[i].pod.Spec, n))
		x.tolerated = append(x.tolerated, toleratesAll(m.kinds[i].pod.Spec.Tolerations, n.Spec.Taints))
	}
	return x
}

// domains numbers the values of the topology keys, and says which of them are for sale.
func (m *Model) domains() {
	ids := make([]map[string]int, len(m.keys))
	for i := range m.sites {
		x := &m.sites[i]
		for key, name := range m.keys {
			if x.offer != nil && name == corev1.LabelHostname {
				x.domain, x.hostname = append(x.domain, fresh), key
				continue
			}
			value, has := x.node.Labels[name]
			if !has {
				x.domain = append(x.domain, -1)
				continue
			}
			if ids[key] == nil {
				ids[key] = map[string]int{}
			}
			id, known := ids[key][value]
			if !known {
				id = len(ids[key])
				ids[key][value] = id
			}
			x.domain = append(x.domain, id)
		}
	}
	for k := range m.kinds {
		for c := range m.kinds[k].spreads {
			s := &m.kinds[k].spreads[c]
			for i := m.nodes; i < len(m.sites); i++ {
				x := &m.sites[i]
				if d := x.domain[s.key]; m.counts(k, c, x) && m.holds(x, k) && !slices.Contains(s.forSale, d) {
					s.forSale = append(s.forSale, d)
				}
			}
		}
	}
}

// counts reports whether constraint c of kind k counts a node: the node has the keys of all
// constraints, and the policies include it.
func (m *Model) counts(k, c int, x *site) bool {
	for _, s := range m.kinds[k].spreads {
		if x.domain[s.key] < 0 {
			return false
		}
	}
	s := &m.kinds[k].spreads[c]
	return (!s.honorAffinity || x.affine[k]) && (s.ignoresTaints || x.tolerated[k])
}

// holds reports whether a pod of the kind fits beside what already runs at the site.
func (m *Model) holds(x *site, k int) bool { return m.fits(x, x.running, k) }

// fits is NodeResourcesFit: each request must be left, unless it is zero.
func (m *Model) fits(x *site, pods []int, k int) bool {
	left := m.leftBy(x, pods)
	for i, request := range m.kinds[k].request {
		if request > 0 && request > left[i] {
			return false
		}
	}
	return true
}

// leftBy is what pods, by kind, leave of a site.
func (m *Model) leftBy(x *site, pods []int) amount {
	left := x.room
	for k, n := range pods {
		if n > 0 {
			left = left.minus(m.kinds[k].request, n)
		}
	}
	return left
}

func (a amount) minus(b amount, times int) amount {
	for i := range a {
		a[i] -= b[i] * int64(times)
	}
	return a
}
