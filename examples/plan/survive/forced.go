package survive

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/joinery-sdk/joinery/scheduling"
)

// forced returns, by zone, the displaced pods that can only be in that zone: those that select it,
// and those that a hard spread forces there. shut has, for each pod, the zones that a hard spread
// closes to it.
func forced(s *scheduling.Snapshot, displaced []*corev1.Pod, lost map[string]bool, sold []string) (out map[string][]*corev1.Pod, shut map[*corev1.Pod][]string) {
	out, shut = map[string][]*corev1.Pod{}, map[*corev1.Pod][]string{}
	for _, pods := range alike(displaced) {
		if slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return lost[p.Namespace+"/"+p.Name] }) {
			continue
		}
		if zone := pods[0].Spec.NodeSelector[corev1.LabelTopologyZone]; zone != "" {
			out[zone] = append(out[zone], pods...)
			continue
		}
		counts, full := spreadForces(s, displaced, pods, sold)
		for _, zone := range slices.Sorted(maps.Keys(counts)) { // each pod counts for one zone only
			n := min(counts[zone], len(pods))
			out[zone], pods = append(out[zone], pods[:n]...), pods[n:]
		}
		for _, p := range pods {
			shut[p] = full
		}
	}
	return out, shut
}

// alike returns the pods in groups that are equal except for the name.
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

// spreadForces returns how many of the given equal pods a hard spread over zones forces into each
// zone. Let a zone that is a domain have n pods. Then no pod goes to another zone that has n plus
// the skew already. So if the zone takes too few pods, the others cannot take the rest. full are
// zones that can have none of the pods, because the other zones cannot be filled up to them.
func spreadForces(s *scheduling.Snapshot, displaced, pods []*corev1.Pod, sold []string) (out map[string]int, full []string) {
	pod := pods[0]
	c, selector := zoneSpread(pod)
	if selector == nil {
		return nil, nil
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
		return nil, nil
	}
	count := map[string]int{} // by zone, for all zones that may be domains
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
	out = map[string]int{}
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
	for _, zone := range slices.Sorted(maps.Keys(count)) {
		least, others := 0, 0 // pods that fill all other domains until one more pod may be in the zone
		for other := range domains {
			if other != zone {
				others++
				least += max(0, count[zone]+1-int(c.MaxSkew)-count[other])
			}
		}
		if others > 0 && least > len(pods)-1 {
			full = append(full, zone)
		}
	}
	return out, full
}

// zoneSpread returns the pod's hard spread over zones and its selector. It returns nil if there is
// none, or if its effect is not known.
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
