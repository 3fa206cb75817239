package interpod_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
)

var anything = requirements.AnyOf(requirements.Set{})

func pod(set map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: set}, Spec: corev1.PodSpec{Affinity: &corev1.Affinity{
		PodAffinity: &corev1.PodAffinity{}, PodAntiAffinity: &corev1.PodAntiAffinity{},
	}}}
}

func app(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
}

func near(p *corev1.Pod, key string, sel *metav1.LabelSelector) *corev1.Pod {
	a := p.Spec.Affinity.PodAffinity
	a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution, corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: sel})
	return p
}

func away(p *corev1.Pod, key string, sel *metav1.LabelSelector) *corev1.Pod {
	a := p.Spec.Affinity.PodAntiAffinity
	a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution, corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: sel})
	return p
}

func spread(p *corev1.Pod, key string, skew, domains int32, sel *metav1.LabelSelector) *corev1.Pod {
	p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
		TopologyKey: key, MaxSkew: skew, MinDomains: &domains, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: sel,
	})
	return p
}

// world is pods on nodes.
type world struct {
	index  *interpod.Index
	values *interpod.Values
	state  *interpod.State
	read   []interpod.Constraints
}

// passes returns which filters a node passes. These pods only ask for the keys of their spreads.
func (w *world) passes(node map[string]string) func(int32) bool {
	return func(filter int32) bool {
		for _, k := range w.index.Filters()[filter].Keys {
			if _, ok := node[w.index.Keys()[k]]; !ok {
				return false
			}
		}
		return true
	}
}

func newWorld(t *testing.T, nodes []map[string]string, pods ...*corev1.Pod) *world {
	t.Helper()
	w := &world{index: interpod.NewIndex(requirements.KubernetesAliases(), map[string]map[string]string{"shop": {}}, false), values: &interpod.Values{}}
	for _, p := range pods {
		c, err := w.index.Read(p, anything)
		require.NoError(t, err)
		w.read = append(w.read, c)
	}
	for i, p := range pods {
		w.index.Join(&w.read[i], p)
	}
	w.state = interpod.NewState(w.index, w.values)
	for _, n := range nodes {
		w.state.AddNode(w.values.At(w.index, n), w.passes(n), 1)
	}
	return w
}

func (w *world) fits(pod int, node map[string]string) bool {
	return w.state.Check(&w.read[pod], w.values.At(w.index, node), nil, nil).OK()
}

func (w *world) bind(pod int, node map[string]string, terminating bool) {
	w.state.Add(&w.read[pod], w.values.At(w.index, node), w.passes(node), terminating, 1)
}

// Two terms of affinity ask for one pod that matches both, not for one pod each.
func TestSeveralTermsOfAffinityAskForOnePod(t *testing.T) {
	a, b := map[string]string{"zone": "a"}, map[string]string{"zone": "b"}
	follower := near(near(pod(map[string]string{"app": "web"}), "zone", app("x")), "zone", &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "y"}})
	w := newWorld(t, []map[string]string{a, b}, follower, pod(map[string]string{"app": "x"}), pod(map[string]string{"tier": "y"}), pod(map[string]string{"app": "x", "tier": "y"}))
	w.bind(1, a, false)
	w.bind(2, a, false)
	assert.False(t, w.fits(0, a), "two pods that are one of each")
	w.bind(3, b, false)
	assert.True(t, w.fits(0, b))

	// A pod that meets all of its own terms may be the first one. A pod that meets only one may not.
	both := near(near(pod(map[string]string{"app": "x", "tier": "y"}), "zone", app("x")), "zone", &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "y"}})
	half := near(near(pod(map[string]string{"app": "x"}), "zone", app("x")), "zone", &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "y"}})
	w = newWorld(t, []map[string]string{a}, both, half)
	assert.True(t, w.fits(0, a))
	assert.False(t, w.fits(1, a))
}

// Terminating pods count for affinity and anti-affinity, in both directions, until they are gone.
// Spreads do not count them.
func TestTerminatingPods(t *testing.T) {
	a := map[string]string{"zone": "a"}
	w := newWorld(t, []map[string]string{a, {"zone": "b"}},
		near(pod(nil), "zone", app("x")), away(pod(nil), "zone", app("x")), spread(pod(nil), "zone", 1, 1, app("x")), away(pod(map[string]string{"app": "x"}), "zone", app("z")), pod(map[string]string{"app": "z"}))
	for range 3 {
		w.bind(3, a, true)
	}
	assert.True(t, w.fits(0, a))
	assert.False(t, w.fits(1, a))
	assert.True(t, w.fits(2, a))
	assert.False(t, w.fits(4, a), "a terminating pod still keeps others away")
	for range 2 {
		w.bind(3, a, false)
	}
	assert.False(t, w.fits(2, a))
}

// For a spread, an empty selector counts no pods, and neither does a missing one. For affinity, an
// empty one selects all pods of the namespace, and a missing one none.
func TestEmptySelectors(t *testing.T) {
	a := map[string]string{"zone": "a"}
	empty := &metav1.LabelSelector{}
	w := newWorld(t, []map[string]string{a, {"zone": "b"}}, spread(pod(nil), "zone", 1, 1, empty), spread(pod(nil), "zone", 1, 1, nil), away(pod(nil), "zone", empty), away(pod(nil), "zone", nil), pod(nil))
	for range 5 {
		require.True(t, w.fits(0, a))
		require.True(t, w.fits(1, a))
		w.bind(0, a, false)
	}
	assert.False(t, w.fits(0, map[string]string{"rack": "1"}), "nodes must have the key all the same")
	assert.False(t, w.fits(2, a))
	assert.True(t, w.fits(3, a))
	w.bind(2, map[string]string{"zone": "b"}, false)
	assert.False(t, w.fits(4, map[string]string{"zone": "b"}))
}

// The oracle looks at all pods and nodes for every question, by the rules of the two plugins.
func TestStateAgainstOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 0))
	pick := func(n int) int { return r.IntN(n) }
	selector := func() *metav1.LabelSelector {
		switch pick(6) {
		case 0:
			return nil
		case 1:
			return &metav1.LabelSelector{}
		case 2:
			return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpDoesNotExist}}}
		}
		return app(fmt.Sprint(pick(3)))
	}
	answers := map[bool]int{}
	for range 400 {
		var nodes []map[string]string
		for i := range 1 + pick(4) {
			n := map[string]string{"host": fmt.Sprint(i), "zone": fmt.Sprint(pick(2))}
			if pick(3) > 0 {
				n["rack"] = fmt.Sprint(pick(2))
			}
			nodes = append(nodes, n)
		}
		var pods []*corev1.Pod
		for range 6 {
			p := pod(map[string]string{"app": fmt.Sprint(pick(3))})
			if pick(2) == 0 {
				p.Labels["tier"] = "t"
			}
			key := func() string { return []string{"host", "zone", "rack"}[pick(3)] }
			for range pick(3) {
				near(p, key(), selector())
			}
			for range pick(2) {
				away(p, key(), selector())
			}
			for range pick(3) {
				spread(p, key(), int32(1+pick(2)), int32(1+pick(3)), selector())
			}
			pods = append(pods, p)
		}
		w := newWorld(t, nodes, pods...)
		o := oracle{nodes: nodes}
		for range 20 {
			p, n := pick(len(pods)), pick(len(nodes))
			want := o.fits(pods[p], n)
			require.Equal(t, want, w.fits(p, nodes[n]), "%v on %v", pods[p].Spec, nodes[n])
			answers[want]++
			if want || pick(4) == 0 {
				terminating := pick(4) == 0
				w.bind(p, nodes[n], terminating)
				o.bound = append(o.bound, boundPod{pods[p], n, terminating})
			}
		}
	}
	assert.Greater(t, answers[true], 1000)
	assert.Greater(t, answers[false], 1000)
}

type boundPod struct {
	pod         *corev1.Pod
	node        int
	terminating bool
}

type oracle struct {
	nodes []map[string]string
	bound []boundPod
}

func matches(sel *metav1.LabelSelector, p *corev1.Pod) bool {
	s, err := metav1.LabelSelectorAsSelector(sel)
	return err == nil && s.Matches(labels.Set(p.Labels))
}

func (o *oracle) fits(p *corev1.Pod, n int) bool {
	return o.affinity(p, n) && o.anti(p, n) && o.spreads(p, n)
}

func (o *oracle) affinity(p *corev1.Pod, n int) bool {
	terms := p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	meetsAll := func(q *corev1.Pod) bool {
		for _, t := range terms {
			if !matches(t.LabelSelector, q) {
				return false
			}
		}
		return true
	}
	met, anywhere := true, false
	for _, t := range terms {
		here, ok := o.nodes[n][t.TopologyKey]
		if !ok {
			return false
		}
		found := false
		for _, b := range o.bound {
			v, has := o.nodes[b.node][t.TopologyKey]
			anywhere = anywhere || has && meetsAll(b.pod)
			found = found || has && v == here && meetsAll(b.pod)
		}
		met = met && found
	}
	return met || !anywhere && meetsAll(p)
}

func (o *oracle) anti(p *corev1.Pod, n int) bool {
	clash := func(owner *corev1.Pod, at int, other *corev1.Pod, there int) bool {
		for _, t := range owner.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			x, hasX := o.nodes[at][t.TopologyKey]
			y, hasY := o.nodes[there][t.TopologyKey]
			if hasX && hasY && x == y && matches(t.LabelSelector, other) {
				return true
			}
		}
		return false
	}
	for _, b := range o.bound {
		if clash(p, n, b.pod, b.node) || clash(b.pod, b.node, p, n) {
			return false
		}
	}
	return true
}

func (o *oracle) spreads(p *corev1.Pod, n int) bool {
	for _, t := range p.Spec.TopologySpreadConstraints {
		counts := map[string]int{}
		for _, node := range o.nodes {
			eligible := true
			for _, other := range p.Spec.TopologySpreadConstraints {
				_, has := node[other.TopologyKey]
				eligible = eligible && has
			}
			if eligible {
				counts[node[t.TopologyKey]] += 0
			}
		}
		empty := t.LabelSelector == nil || len(t.LabelSelector.MatchLabels)+len(t.LabelSelector.MatchExpressions) == 0
		for _, b := range o.bound {
			v, counted := counts[o.nodes[b.node][t.TopologyKey]]
			for _, other := range p.Spec.TopologySpreadConstraints {
				_, has := o.nodes[b.node][other.TopologyKey]
				counted = counted && has
			}
			if counted && !empty && !b.terminating && matches(t.LabelSelector, b.pod) {
				counts[o.nodes[b.node][t.TopologyKey]] = v + 1
			}
		}
		here, ok := o.nodes[n][t.TopologyKey]
		if !ok {
			return false
		}
		least := 1 << 30
		for _, c := range counts {
			least = min(least, c)
		}
		if len(counts) < int(*t.MinDomains) || len(counts) == 0 {
			least = 0
		}
		self := 0
		if !empty && matches(t.LabelSelector, p) {
			self = 1
		}
		if counts[here]+self-least > int(t.MaxSkew) {
			return false
		}
	}
	return true
}

// Terms that differ in anything that selects pods have different groups; equal terms share one.
func TestGroupsAreToldApart(t *testing.T) {
	term := func(change ...func(*corev1.PodAffinityTerm)) corev1.PodAffinityTerm {
		out := corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{
			MatchLabels:      map[string]string{"app": "web", "tier": "front"},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "size", Operator: metav1.LabelSelectorOpIn, Values: []string{"s", "m"}}},
		}}
		for _, c := range change {
			c(&out)
		}
		return out
	}
	expression := func(e metav1.LabelSelectorRequirement) func(*corev1.PodAffinityTerm) {
		return func(t *corev1.PodAffinityTerm) {
			t.LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{e}
		}
	}
	p := pod(map[string]string{"app": "web", "tier": "front", "size": "s"})
	terms := []corev1.PodAffinityTerm{
		term(),
		term(func(t *corev1.PodAffinityTerm) { t.TopologyKey = "rack" }),
		term(func(t *corev1.PodAffinityTerm) { t.Namespaces = []string{"other"} }),
		term(func(t *corev1.PodAffinityTerm) { t.Namespaces = []string{"other", "shop"} }),
		term(func(t *corev1.PodAffinityTerm) { t.LabelSelector.MatchLabels["app"] = "db" }),
		term(func(t *corev1.PodAffinityTerm) { delete(t.LabelSelector.MatchLabels, "tier") }),
		term(expression(metav1.LabelSelectorRequirement{Key: "size", Operator: metav1.LabelSelectorOpIn, Values: []string{"s"}})),
		term(expression(metav1.LabelSelectorRequirement{Key: "size", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"s", "m"}})),
		term(func(t *corev1.PodAffinityTerm) { t.LabelSelector = &metav1.LabelSelector{} }),
		term(func(t *corev1.PodAffinityTerm) { t.LabelSelector = nil }),
		term(), term(func(t *corev1.PodAffinityTerm) { t.Namespaces = []string{"shop", "shop"} }),
	}
	p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = terms
	x := interpod.NewIndex(requirements.Aliases{}, nil, false)
	c, err := x.Read(p, anything)
	require.NoError(t, err)
	seen := map[int32]bool{}
	for _, term := range c.Terms[:len(terms)-2] {
		assert.False(t, seen[term.Group], x.Groups()[term.Group].Text)
		seen[term.Group] = true
	}
	assert.Equal(t, c.Terms[0], c.Terms[len(terms)-2])
	assert.Equal(t, c.Terms[0], c.Terms[len(terms)-1], "a namespace named twice")
	x.Join(&c, p)
	var self []bool
	for _, term := range c.Terms[:len(terms)-2] {
		self = append(self, term.Self)
	}
	assert.Equal(t, []bool{true, true, false, true, false, true, true, false, true, false}, self, "each by itself")
}
