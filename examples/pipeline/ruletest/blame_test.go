package ruletest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline/ruletest"
)

// stated is one constraint in the manifest of a pool or a workload.
type stated struct {
	text string // what MovedBy calls it
	of   string // the pool, or the workload
	pool func(ruletest.NodePool) ruletest.NodePool
	spec func(*corev1.PodSpec)
}

// blamed is a scenario whose constraints can be left out one by one.
type blamed struct {
	objects []ruletest.Object // types and nodes
	pools   []string
	pods    map[string]int // by workload
	stated  []stated
}

const zoneKey = "topology.kubernetes.io/zone"

// scenario builds all but the constraints for which without is true.
func (b *blamed) scenario(without func(stated) bool) ruletest.Scenario {
	s := ruletest.Scenario{}.Add(b.objects...)
	for _, name := range b.pools {
		p := ruletest.Pool(name)
		for _, c := range b.stated {
			if c.of == name && !without(c) {
				p = c.pool(p)
			}
		}
		s = s.Add(p)
	}
	for _, name := range []string{"web-a", "web-b", "db"} {
		if b.pods[name] == 0 {
			continue
		}
		w := ruletest.Deployment(name, b.pods[name]).Requests("cpu", "1")
		for _, c := range b.stated {
			if c.of == name && !without(c) {
				w = w.Edit(c.spec)
			}
		}
		s = s.Add(w)
	}
	return s
}

func drawBlamed(r *rand.Rand) blamed {
	price := func() float64 { return float64(1+r.IntN(9)) / 10 }
	small := ruletest.Type("small", "cpu", "2", "memory", "64Gi").Label("acme.io/size", "2")
	large := ruletest.Type("large", "cpu", "8", "memory", "64Gi").Label("acme.io/size", "8").Label("acme.io/disk", "ssd")
	arm := ruletest.Type("arm", "cpu", "4", "memory", "64Gi").Label("acme.io/size", "4").Label("kubernetes.io/arch", "arm64")
	for _, z := range []string{"a", "b", "c"} {
		small, large, arm = small.Offer(z, "on-demand", price()), large.Offer(z, "on-demand", price()), arm.Offer(z, "spot", price())
	}
	b := blamed{objects: []ruletest.Object{small, large, arm}, pools: []string{"p"}, pods: map[string]int{"web-a": 1 + r.IntN(4)}}
	if r.IntN(3) == 0 {
		b.pools = append(b.pools, "q")
	}
	for _, other := range []string{"web-b", "db"} {
		if r.IntN(3) == 0 {
			b.pods[other] = 1 + r.IntN(2)
		}
	}
	for _, pool := range b.pools {
		for _, i := range r.Perm(6)[:r.IntN(4)] {
			only := []string{
				zoneKey + " in (a,b)", zoneKey + " in (c)", "acme.io/size>=4", "acme.io/disk in (ssd)", "kubernetes.io/arch in (amd64)", "karpenter.sh/capacity-type in (on-demand)",
			}[i]
			if i == 1 && slices.ContainsFunc(b.stated, func(c stated) bool { return c.of == pool && strings.Contains(c.text, zoneKey) }) {
				continue
			}
			if i == 0 && slices.ContainsFunc(b.stated, func(c stated) bool { return c.of == pool && strings.Contains(c.text, zoneKey) }) {
				continue
			}
			b.stated = append(b.stated, stated{text: fmt.Sprintf("requirement %s of pool %q", only, pool), of: pool, pool: func(p ruletest.NodePool) ruletest.NodePool { return p.Only(only) }})
		}
		if r.IntN(3) == 0 {
			taint := "team-" + pool + ":NoSchedule"
			b.stated = append(b.stated, stated{text: fmt.Sprintf("taint %s of pool %q", taint, pool), of: pool, pool: func(p ruletest.NodePool) ruletest.NodePool { return p.Taint(taint) }})
		}
	}
	for _, name := range []string{"web-a", "web-b", "db"} {
		if b.pods[name] > 0 {
			b.drawOf(r, name)
		}
	}
	return b
}

// drawOf draws the constraints of one workload. Its own texts differ from those of the others.
func (b *blamed) drawOf(r *rand.Rand, name string) {
	suffix := ""
	if name == "db" {
		suffix = " of default/db-0"
	}
	own := &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	for _, i := range r.Perm(6)[:r.IntN(3)] {
		add := func(text string, spec func(*corev1.PodSpec)) {
			b.stated = append(b.stated, stated{text: text + suffix, of: name, spec: spec})
		}
		switch i {
		case 0, 1:
			key, value := "kubernetes.io/arch", []string{"amd64", "arm64"}[r.IntN(2)]
			if i == 1 {
				key, value = zoneKey, []string{"a", "b", "c"}[r.IntN(3)]
			}
			add(fmt.Sprintf("node selector %s=%s", key, value), func(s *corev1.PodSpec) {
				if s.NodeSelector == nil {
					s.NodeSelector = map[string]string{}
				}
				s.NodeSelector[key] = value
			})
		case 2:
			add("required node affinity acme.io/size>=4", func(s *corev1.PodSpec) {
				affinity(s).NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "acme.io/size", Operator: corev1.NodeSelectorOpGt, Values: []string{"3"}}},
				}}}}
			})
		case 3:
			text, least := fmt.Sprintf("topology spread of app=%s by %s with skew 1", name, zoneKey), (*int32)(nil)
			if r.IntN(2) == 0 {
				text, least = text+" and minDomains 3", new(int32(3))
			}
			add(text, func(s *corev1.PodSpec) {
				s.TopologySpreadConstraints = append(s.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
					MaxSkew: 1, MinDomains: least, TopologyKey: zoneKey, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: own,
				})
			})
		case 4:
			key := []string{zoneKey, corev1.LabelHostname}[r.IntN(2)]
			add(fmt.Sprintf("pod anti-affinity to app=%s by %s", name, key), func(s *corev1.PodSpec) {
				affinity(s).PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: key, LabelSelector: own}}}
			})
		case 5:
			other := "web-a"
			if name == "web-a" && b.pods["db"] > 0 {
				other = "db"
			}
			add(fmt.Sprintf("pod affinity to app=%s by %s", other, zoneKey), func(s *corev1.PodSpec) {
				affinity(s).PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
					{TopologyKey: zoneKey, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": other}}},
				}}
			})
		}
	}
}

func affinity(s *corev1.PodSpec) *corev1.Affinity {
	if s.Affinity == nil {
		s.Affinity = &corev1.Affinity{}
	}
	return s.Affinity
}

func drawDemand(r *rand.Rand) ruletest.Rule {
	rule := ruletest.Rule{Pods: "web-*"}
	place := func() []ruletest.Place {
		return []ruletest.Place{{
			Labels: []string{"acme.io/size>3", "acme.io/size<4", "acme.io/disk", "!acme.io/disk", "kubernetes.io/arch=arm64", zoneKey + " in (b,c)", "karpenter.sh/capacity-type=spot", "acme.io/size>3, " + zoneKey + "=a"}[r.IntN(8)],
		}}
	}
	switch r.IntN(8) {
	case 0, 1:
		rule.LandsOn = place()
	case 2, 3:
		rule.NeverOn = place()
	case 4:
		rule.Spread = &ruletest.Spread{By: "zone", AtLeast: 1 + r.IntN(3), Skew: r.IntN(2)}
	case 5:
		rule.Apart = &ruletest.Company{By: []string{"zone", "node"}[r.IntN(2)]}
	case 6:
		rule.Together = &ruletest.Company{By: []string{"zone", "node"}[r.IntN(2)]}
	case 7:
		rule.AtMostPerHour = new(float64(1+r.IntN(20)) / 10)
	}
	if r.IntN(4) == 0 {
		rule.Placed = true
	}
	return rule
}

// placed returns the pods of the rule that have a node.
func placed(p *ruletest.Plan, b *blamed) []string {
	var out []string
	for _, name := range []string{"web-a", "web-b"} {
		for i := range b.pods[name] {
			if _, ok := p.NodeOf(fmt.Sprintf("default/%s-%d", name, i)); ok {
				out = append(out, fmt.Sprint(name, i))
			}
		}
	}
	return out
}

// If a rule is broken, each constraint in a manifest is named without which it holds, and nothing
// else is said to be such a constraint. The test leaves it out of the manifest itself.
func TestEachConstraintWithoutWhichARuleHoldsIsNamed(t *testing.T) {
	const seed, without, possible = 5, ": without it the rule holds", ": without it the rule can be kept"
	r := rand.New(rand.NewPCG(22, seed))
	nothing := func(stated) bool { return false }
	broken, named, n := 0, map[string]int{}, 300
	if testing.Short() {
		n = 100
	}
	for i := range n {
		b, rule := drawBlamed(r), drawDemand(r)
		p, err := b.scenario(nothing).Solve()
		require.NoError(t, err)
		res := p.Check(rule)[0]
		if res.Holds() || strings.Contains(res.String(), "no pod") {
			continue
		}
		broken++
		have := placed(p, &b)
		told := map[string]bool{}
		for _, c := range b.stated {
			if told[c.text] {
				continue
			}
			told[c.text] = true
			after, err := b.scenario(func(o stated) bool { return o.text == c.text }).Solve()
			require.NoError(t, err)
			kept := placed(after, &b)
			lost := slices.ContainsFunc(have, func(name string) bool { return !slices.Contains(kept, name) })
			again := after.Check(rule)[0]
			holds := again.Holds() && !lost
			says := slices.ContainsFunc(res.MovedBy, func(m string) bool { return strings.HasPrefix(m, c.text+without) })
			contradicts := slices.ContainsFunc(res.MovedBy, func(m string) bool {
				return strings.HasPrefix(m, c.text+" of ") && strings.HasSuffix(m, ", which the rule contradicts")
			})
			if slices.ContainsFunc(res.MovedBy, func(m string) bool { return strings.HasPrefix(m, c.text+possible) }) {
				named[possible]++ // only of pods that have a place now, so others that gain one do not count
				assert.True(t, again.Holds() || len(kept) > len(have) || slices.ContainsFunc(again.MovedBy, func(m string) bool {
					return strings.HasPrefix(m, "nothing: the rule can be kept") || strings.HasPrefix(m, "the price: ") || strings.Contains(m, without)
				}), "%d: %q\n%s\nwithout it: %s", i, c.text, res, again)
			}
			if holds {
				named[strings.Fields(c.text)[0]]++
			}
			if !assert.Equal(t, holds, says || holds && contradicts, "%d: %q: %+v\n%s\nwithout it: %s", i, c.text, b, res, again) {
				return
			}
		}
		for _, m := range res.MovedBy {
			if text, _, ok := strings.Cut(strings.ReplaceAll(m, possible, without), without); ok {
				assert.True(t, told[text], "%d: nobody wrote %q", i, text)
			}
			assert.NotContains(t, m, "contradict each other", "%d\n%s", i, res)
			assert.NotContains(t, m, "ruletest.joinery.example", "%d\n%s", i, res)
		}
	}
	t.Log(broken, named)
	for _, what := range []string{"requirement", "taint", "node", "topology", possible} {
		assert.Positive(t, named[what], what)
	}
	for _, seldom := range []string{"required", "pod"} {
		assert.True(t, named[seldom] > 0 || testing.Short(), seldom)
	}
	assert.Greater(t, broken, n/3)
}
