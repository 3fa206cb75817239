package scenario

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// selects draws which pods a spread or an affinity counts: mostly those of the same deployment,
// else those of a tier, of a revision or of another deployment, which may come before or after this
// one; now and then all or none.
func (g *generator) selects(p *corev1.Pod) *metav1.LabelSelector {
	own, other := p.Labels["app"], fmt.Sprintf("app-%d", g.r.IntN(len(g.apps)+2))
	expression := func(key string, op metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	switch g.r.IntN(24) {
	case 0:
		return matching(labelTier, pick(g, "front", "middle", "back"))
	case 1, 2:
		return matching(labelTier, p.Labels[labelTier])
	case 3:
		return matching("app", other)
	case 4, 5:
		return expression("app", metav1.LabelSelectorOpIn, own, other)
	case 6:
		return expression("app", metav1.LabelSelectorOpNotIn, other)
	case 7:
		return expression(labelTrack, pick(g, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist))
	case 8:
		both := matching("app", own)
		both.MatchLabels[pick(g, labelTier, labelVersion)] = pick(g, p.Labels[labelTier], "1")
		return both
	case 9:
		return &metav1.LabelSelector{} // all
	case 10:
		if g.chance(60) {
			return nil // none
		}
		return &metav1.LabelSelector{}
	}
	return matching("app", own)
}

// selectsItself draws a selector that matches the pod.
func (g *generator) selectsItself(p *corev1.Pod) *metav1.LabelSelector {
	switch g.r.IntN(6) {
	case 0:
		return matching(labelTier, p.Labels[labelTier])
	case 1:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}}
	case 2:
		return &metav1.LabelSelector{}
	}
	return matching("app", p.Labels["app"])
}

// keysBeside draws label keys whose values are taken from the pod itself. A server refuses keys
// without a selector to add them to, and those that the selector has already.
func (g *generator) keysBeside(s *metav1.LabelSelector) []string {
	if s == nil {
		return nil
	}
	var keys []string
	for _, key := range g.some(labelHash, labelVersion, labelTrack) {
		_, has := s.MatchLabels[key]
		if !has && !slices.ContainsFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key == key }) {
			keys = append(keys, key)
		}
	}
	return keys
}

// spreads draws topology spread constraints.
func (g *generator) spreads(p *corev1.Pod) {
	if !g.often(40) {
		return
	}
	lanes := slices.ContainsFunc(g.s.NodePools, func(p *karpv1.NodePool) bool { return p.Name == "lanes" })
	seen := map[string]bool{}
	for range g.several(2) + g.r.IntN(2) {
		c := corev1.TopologySpreadConstraint{
			MaxSkew: int32(1 + g.r.IntN(3)),
			TopologyKey: pick(g, corev1.LabelTopologyZone, corev1.LabelTopologyZone, corev1.LabelTopologyZone, corev1.LabelHostname, corev1.LabelHostname,
				karpv1.CapacityTypeLabelKey, labelLane, pick(g, corev1.LabelArchStable, LabelFamily)),
			WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector:     g.selects(p),
		}
		if c.TopologyKey == labelLane && !lanes && g.chance(90) {
			c.TopologyKey = corev1.LabelTopologyZone
		}
		if !g.options.NoPreferences && g.chance(25) {
			c.WhenUnsatisfiable = corev1.ScheduleAnyway
		} else if g.often(15) {
			n := int32(1 + g.r.IntN(4))
			c.MinDomains = &n
		}
		if g.often(20) {
			policy := pick(g, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)
			c.NodeAffinityPolicy = &policy
		}
		if g.often(20) {
			policy := pick(g, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)
			c.NodeTaintsPolicy = &policy
		}
		if g.often(15) {
			c.MatchLabelKeys = g.keysBeside(c.LabelSelector)
		}
		// A server takes each pair of key and action once.
		if pair := c.TopologyKey + string(c.WhenUnsatisfiable); !seen[pair] {
			seen[pair] = true
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
		}
	}
}

// affinities draws pod affinity and anti-affinity, several terms of a kind at once.
func (g *generator) affinities(p *corev1.Pod) {
	term := func(keys ...string) corev1.PodAffinityTerm {
		t := corev1.PodAffinityTerm{TopologyKey: pick(g, keys...), LabelSelector: g.selects(p)}
		if g.often(12) {
			t.Namespaces = pick(g, []string{p.Namespace, "shop"}, []string{"default", "batch"}, []string{p.Namespace})
		}
		if g.often(15) {
			t.NamespaceSelector = pick(g, &metav1.LabelSelector{}, &metav1.LabelSelector{}, matching(labelTeam, pick(g, "shop", "batch")),
				matching(corev1.LabelMetadataName, p.Namespace), matching(labelTeam, "nobody"))
		}
		if g.often(12) {
			t.MatchLabelKeys = g.keysBeside(t.LabelSelector)
		}
		if g.often(8) {
			t.MismatchLabelKeys = slices.DeleteFunc(g.keysBeside(t.LabelSelector), func(key string) bool { return slices.Contains(t.MatchLabelKeys, key) })
		}
		return t
	}
	zone, host := corev1.LabelTopologyZone, corev1.LabelHostname
	var near, apart []corev1.PodAffinityTerm
	var nearer, farther []corev1.WeightedPodAffinityTerm
	if g.often(13) {
		for range g.several(3) {
			t := term(zone, zone, zone, host, host, karpv1.CapacityTypeLabelKey, LabelFamily)
			// One pod has to match all terms. Where several are drawn at will there is hardly one.
			if len(near) > 0 && g.chance(75) {
				t = corev1.PodAffinityTerm{TopologyKey: t.TopologyKey, LabelSelector: g.selectsItself(p), NamespaceSelector: t.NamespaceSelector}
			}
			near = append(near, t)
		}
	}
	if g.often(18) {
		for range g.several(3) {
			t := term(host, host, host, host, host, zone, LabelFamily)
			// A pod that keeps a whole zone from all others leaves no place to test anything else
			// in.
			if t.TopologyKey != host && g.chance(80) {
				t.LabelSelector, t.MatchLabelKeys, t.MismatchLabelKeys = matching("app", p.Labels["app"]), nil, nil
			}
			apart = append(apart, t)
		}
	}
	if !g.options.NoPreferences && g.often(10) {
		for range g.several(3) {
			nearer = append(nearer, corev1.WeightedPodAffinityTerm{Weight: g.weight(), PodAffinityTerm: term(zone, host)})
		}
	}
	if !g.options.NoPreferences && g.often(10) {
		for range g.several(3) {
			farther = append(farther, corev1.WeightedPodAffinityTerm{Weight: g.weight(), PodAffinityTerm: term(zone, host)})
		}
	}
	if p.Spec.Affinity == nil && (near != nil || apart != nil || nearer != nil || farther != nil) {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	if near != nil || nearer != nil {
		p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: near, PreferredDuringSchedulingIgnoredDuringExecution: nearer,
		}
	}
	if apart != nil || farther != nil {
		p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: apart, PreferredDuringSchedulingIgnoredDuringExecution: farther,
		}
	}
}
