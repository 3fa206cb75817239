package survive

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/joinery-sdk/joinery/scheduling"
)

// lowerBound is what any headroom costs at least. Outside of each failure must be room for what that failure displaces, and in each zone for
// what any failure forces there. If every node is in one of k domains of a kind and headroom T costs c(f) in domain f, T - c(f) is at least the
// bound of f for each of them, so that T (k - 1) is at least the sum of all bounds.
func lowerBound(s *scheduling.Snapshot, kinds []Kind, all []Outcome, zoned map[string]float64) float64 {
	lower := 0.0
	for _, zone := range slices.Sorted(maps.Keys(zoned)) { // no node is in two zones
		lower += zoned[zone]
	}
	for _, k := range kinds {
		names, whole := sold(s, k)
		sum := 0.0
		for i := range all {
			o := &all[i]
			if o.Kind != k {
				continue
			}
			beside := 0.0
			if k == Zone {
				beside = zoned[o.Name] // which is not outside of the zone
			}
			if lower = max(lower, o.lower+beside); slices.Contains(names, o.Name) {
				sum += o.lower
			}
		}
		if whole && len(names) > 1 {
			lower = max(lower, sum/float64(len(names)-1))
		}
	}
	return lower
}

// zoned is what the part of any headroom costs at least that is in a zone, by zone.
func (r *rehearsal) zoned(ctx context.Context, short []Outcome) (map[string]float64, error) {
	out := map[string]float64{}
	for i := range short {
		s, displaced := short[i].after(r.snapshot)
		zones, _ := sold(&s, Zone)
		lost := map[string]bool{}
		for _, p := range short[i].Lost {
			lost[p.Namespace+"/"+p.Name] = true
		}
		for zone, pods := range forced(&s, displaced, lost, zones) {
			lower, err := r.boundIn(ctx, s, zone, pods)
			if err != nil {
				return nil, err
			}
			out[zone] = max(out[zone], lower)
		}
	}
	return out, nil
}

// boundIn is what room for the pods in a zone costs at least, beside what is free there.
func (r *rehearsal) boundIn(ctx context.Context, s scheduling.Snapshot, zone string, pods []*corev1.Pod) (float64, error) {
	there := map[string]bool{}
	s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n *corev1.Node) bool {
		there[n.Name] = n.Labels[corev1.LabelTopologyZone] == zone
		return !there[n.Name]
	})
	s.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p *corev1.Pod) bool { return !there[p.Spec.NodeName] })
	for _, p := range pods {
		q := *p
		q.Spec.TopologySpreadConstraints = nil // what they force is said by the zone
		q.Spec.NodeSelector = map[string]string{}
		maps.Copy(q.Spec.NodeSelector, p.Spec.NodeSelector)
		q.Spec.NodeSelector[corev1.LabelTopologyZone] = zone
		s.Pods = append(s.Pods, &q)
	}
	p, err := r.plan(ctx, s)
	if err != nil {
		return 0, err
	}
	return p.Totals().LowerBoundPerHour, nil
}

// forced are the displaced pods that can only be in one zone, by zone: those that select it, and those that a hard spread forces there.
func forced(s *scheduling.Snapshot, displaced []*corev1.Pod, lost map[string]bool, sold []string) map[string][]*corev1.Pod {
	out := map[string][]*corev1.Pod{}
	for _, pods := range alike(displaced) {
		if slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return lost[p.Namespace+"/"+p.Name] }) {
			continue
		}
		if zone := pods[0].Spec.NodeSelector[corev1.LabelTopologyZone]; zone != "" {
			out[zone] = append(out[zone], pods...)
			continue
		}
		for zone, n := range spreadForces(s, displaced, pods, sold) {
			out[zone] = append(out[zone], pods[:n]...)
		}
	}
	return out
}

// alike are the pods in groups that are equal in all but the name.
func alike(pods []*corev1.Pod) [][]*corev1.Pod {
	var out [][]*corev1.Pod
	at := map[string]int{}
	for _, p := range pods {
		text, err := p.Spec.Marshal()
		if err != nil {
			continue
		}
		key := fmt.Sprint(p.Namespace, p.Labels, string(text))
		k, known := at[key]
		if !known {
			k, out = len(out), append(out, nil)
			at[key] = k
		}
		out[k] = append(out[k], p)
	}
	return out
}

// spreadForces is how many of the pods, which are alike, a hard spread over zones forces into each zone. If a zone with n pods is a domain, no
// pod goes to another one that has n and the skew already. So if the zone takes too few, the others cannot take the rest.
func spreadForces(s *scheduling.Snapshot, displaced, pods []*corev1.Pod, sold []string) map[string]int {
	pod := pods[0]
	c, selector := zoneSpread(pod)
	if selector == nil {
		return nil
	}
	matches := func(p *corev1.Pod) bool {
		return p.Namespace == pod.Namespace && p.DeletionTimestamp == nil && selector.Matches(labels.Set(p.Labels))
	}
	waiting := 0
	for _, p := range displaced {
		if matches(p) {
			waiting++
		}
	}
	if !matches(pod) || waiting != len(pods) {
		return nil
	}
	count := map[string]int{} // by zone, of all that may be domains
	for _, zone := range sold {
		count[zone] = 0
	}
	zoneOf, domains := map[string]string{}, map[string]bool{}
	for _, n := range s.Nodes {
		if zone := n.Labels[corev1.LabelTopologyZone]; zone != "" && labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(n.Labels)) {
			zoneOf[n.Name], domains[zone] = zone, true
			count[zone] += 0
		}
	}
	total := len(pods)
	for _, p := range s.Pods {
		if zone := zoneOf[p.Spec.NodeName]; zone != "" && matches(p) {
			count[zone]++
			total++
		}
	}
	out := map[string]int{}
	for zone := range domains {
		for n := 0; n <= len(pods); n++ {
			room := count[zone] + n
			for other, there := range count {
				if other != zone {
					room += max(there, count[zone]+n+int(c.MaxSkew))
				}
			}
			if room >= total {
				out[zone] = n
				break
			}
		}
	}
	maps.DeleteFunc(out, func(_ string, n int) bool { return n == 0 })
	return out
}

// zoneSpread is the pod's hard spread over zones with its selector; nil if it has none, or one of which it is not known what it forces.
func zoneSpread(p *corev1.Pod) (*corev1.TopologySpreadConstraint, labels.Selector) {
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		return nil, nil
	}
	for i := range p.Spec.TopologySpreadConstraints {
		c := &p.Spec.TopologySpreadConstraints[i]
		if c.TopologyKey != corev1.LabelTopologyZone || c.WhenUnsatisfiable != corev1.DoNotSchedule || c.MinDomains != nil || len(c.MatchLabelKeys) > 0 ||
			c.NodeAffinityPolicy != nil && *c.NodeAffinityPolicy != corev1.NodeInclusionPolicyHonor || c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy != corev1.NodeInclusionPolicyIgnore {
			continue
		}
		if selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector); err == nil {
			return c, selector
		}
	}
	return nil, nil
}
