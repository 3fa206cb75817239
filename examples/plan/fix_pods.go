package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// relaxations are changes of the refused pods' own constraints about other pods: one at a time no longer required, but
// preferred. Where none of theirs is in the way, it is those of pods that keep away from them.
func (p *Plan) relaxations(class int) []change {
	c := p.Problem.Classes[class]
	out := softer(c, "its ")
	for i, other := range p.Problem.Classes {
		if i == class {
			continue
		}
		for k, t := range antiTerms(other.Template) {
			if selects(t, other.Template.Namespace, c.Template) {
				out = append(out, preferAnti(other, k, other.Name()+"'s ", t.TopologyKey))
			}
		}
	}
	return out
}

// softer has one change for every hard constraint about other pods.
func softer(c *scheduling.Class, whose string) []change {
	var out []change
	for i, sp := range c.Template.Spec.TopologySpreadConstraints {
		if sp.WhenUnsatisfiable == corev1.ScheduleAnyway {
			continue
		}
		out = append(out, change{
			of:   Fix{Kind: PreferOnly, Key: sp.TopologyKey},
			text: fmt.Sprintf("would fit if %sspread over %s were ScheduleAnyway", whose, sp.TopologyKey),
			apply: func(s scheduling.Snapshot) scheduling.Snapshot {
				return edit(s, c, func(pod *corev1.Pod) { pod.Spec.TopologySpreadConstraints[i].WhenUnsatisfiable = corev1.ScheduleAnyway })
			},
		})
	}
	for i, t := range antiTerms(c.Template) {
		out = append(out, preferAnti(c, i, whose, t.TopologyKey))
	}
	if a := c.Template.Spec.Affinity; a != nil && a.PodAffinity != nil {
		for i, t := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			out = append(out, change{
				of:   Fix{Kind: PreferOnly, Key: t.TopologyKey},
				text: fmt.Sprintf("would fit if %saffinity to %s by %s were preferred", whose, metav1.FormatLabelSelector(t.LabelSelector), t.TopologyKey),
				apply: func(s scheduling.Snapshot) scheduling.Snapshot {
					return edit(s, c, func(pod *corev1.Pod) {
						near := pod.Spec.Affinity.PodAffinity
						near.RequiredDuringSchedulingIgnoredDuringExecution, near.PreferredDuringSchedulingIgnoredDuringExecution = preferred(
							near.RequiredDuringSchedulingIgnoredDuringExecution, near.PreferredDuringSchedulingIgnoredDuringExecution, i)
					})
				},
			})
		}
	}
	return out
}

func preferAnti(c *scheduling.Class, i int, whose, key string) change {
	return change{
		of:   Fix{Kind: PreferOnly, Key: key},
		text: fmt.Sprintf("would fit if %santi-affinity by %s were preferred", whose, key),
		apply: func(s scheduling.Snapshot) scheduling.Snapshot {
			return edit(s, c, func(pod *corev1.Pod) {
				away := pod.Spec.Affinity.PodAntiAffinity
				away.RequiredDuringSchedulingIgnoredDuringExecution, away.PreferredDuringSchedulingIgnoredDuringExecution = preferred(
					away.RequiredDuringSchedulingIgnoredDuringExecution, away.PreferredDuringSchedulingIgnoredDuringExecution, i)
			})
		},
	}
}

// preferred moves a required term to the preferred ones.
func preferred(hard []corev1.PodAffinityTerm, soft []corev1.WeightedPodAffinityTerm, i int) ([]corev1.PodAffinityTerm, []corev1.WeightedPodAffinityTerm) {
	return slices.Delete(slices.Clone(hard), i, i+1), append(slices.Clone(soft), corev1.WeightedPodAffinityTerm{Weight: 100, PodAffinityTerm: hard[i]})
}

func antiTerms(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		return a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

// selects reports whether a term of a pod in the namespace looks at the other pod, namespace selectors left aside: a
// change is tried before it is offered, so guessing too little is no harm.
func selects(t corev1.PodAffinityTerm, namespace string, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
	if err != nil || !selector.Matches(labels.Set(pod.Labels)) {
		return false
	}
	return len(t.Namespaces) == 0 && namespace == pod.Namespace || slices.Contains(t.Namespaces, pod.Namespace)
}

// suit makes pool and pods agree on the label that the pool's reason names: the pool gets it, if it is one that users set
// and the pool has none, or the pods stop asking for it. Keys with a space are of no label: the name of a node, and features of kubelets.
func suit(c *scheduling.Class, pool *scheduling.PoolState, key string) []change {
	if key == "" || strings.Contains(key, " ") {
		return nil
	}
	var out []change
	for set := range c.Required.All() {
		if values, ok := set.Get(key).Values(); ok && len(values) > 0 && set.Has(key) && ownLabel(key) && !pool.Set.Has(key) {
			out = append(out, change{
				of:   Fix{Kind: LabelPool, Pool: pool.Name, Key: key, Value: values[0]},
				text: fmt.Sprintf("would fit if pool %q had the label %s=%s", pool.Name, key, values[0]),
				apply: func(s scheduling.Snapshot) scheduling.Snapshot {
					return editPool(s, pool, func(p *scheduling.Pool) {
						p.Labels = maps.Clone(p.Labels)
						if p.Labels == nil {
							p.Labels = map[string]string{}
						}
						p.Labels[key] = values[0]
						if set, err := p.Requirements.Without(requirements.KeysOf(key)).Intersect(requirements.FromLabels(map[string]string{key: values[0]})); err == nil {
							p.Requirements = set
						}
					})
				},
			})
		}
	}
	return append(out, change{
		of:   Fix{Kind: DropSelector, Pool: pool.Name, Key: key},
		text: fmt.Sprintf("would fit if it did not ask for %s", key),
		apply: func(s scheduling.Snapshot) scheduling.Snapshot {
			return edit(s, c, func(pod *corev1.Pod) { forget(&pod.Spec, key) })
		},
	})
}

// ownLabel reports whether users set the label themselves, so that a pool may: no agent of a node, cloud or driver does. A pool that said
// what an agent says of each node would lie of most of them.
func ownLabel(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	agents := []string{
		"kubernetes.io", "k8s.io", "k8s.aws", "karpenter.sh", "amazonaws.com", "azure.com", "gke.io", "google.com", "alibabacloud.com", "oraclecloud.com", "nvidia.com",
	}
	return !ok || requirements.AgentAliases().Key(key) == key && !strings.HasPrefix(domain, "topology.") && !strings.Contains(domain, "csi.") &&
		!slices.ContainsFunc(agents, func(theirs string) bool { return domain == theirs || strings.HasSuffix(domain, "."+theirs) })
}

// forget takes the label out of what the pod asks of nodes.
func forget(spec *corev1.PodSpec, key string) {
	is := func(k string) bool { return requirements.AgentAliases().Key(k) == key }
	maps.DeleteFunc(spec.NodeSelector, func(k, _ string) bool { return is(k) })
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return
	}
	terms := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	for i := range terms.NodeSelectorTerms {
		t := &terms.NodeSelectorTerms[i]
		t.MatchExpressions = slices.DeleteFunc(t.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool { return is(e.Key) })
		if len(t.MatchExpressions)+len(t.MatchFields) == 0 { // an empty term matches nothing, and the others would be all there is
			spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
			return
		}
	}
}
