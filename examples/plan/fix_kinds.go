package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/capacityquota"
)

// relaxations returns changes that turn one required constraint about other pods into a preferred
// one. First come the refused pods' own constraints. If they have none in the way, it uses those of
// pods that keep away from them.
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

// softer returns one change for every hard constraint about other pods.
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

// preferred moves a required term to the preferred terms.
func preferred(hard []corev1.PodAffinityTerm, soft []corev1.WeightedPodAffinityTerm, i int) ([]corev1.PodAffinityTerm, []corev1.WeightedPodAffinityTerm) {
	return slices.Delete(slices.Clone(hard), i, i+1), append(slices.Clone(soft), corev1.WeightedPodAffinityTerm{Weight: 100, PodAffinityTerm: hard[i]})
}

func antiTerms(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		return a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

// selects reports whether a term of a pod in the namespace selects the other pod. It ignores
// namespace selectors: a change is tried before it is offered, so a missed match does no harm.
func selects(t corev1.PodAffinityTerm, namespace string, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
	if err != nil || !selector.Matches(labels.Set(pod.Labels)) {
		return false
	}
	return len(t.Namespaces) == 0 && namespace == pod.Namespace || slices.Contains(t.Namespaces, pod.Namespace)
}

// suit makes pool and pods agree on the label in the pool's reason. The pool gets the label, if
// users set it and the pool lacks it, or the pods stop requiring it. Keys with a space are not
// labels: they stand for the name of a node or for features of kubelets.
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
		text: fmt.Sprintf("would fit if it did not require %s", key),
		apply: func(s scheduling.Snapshot) scheduling.Snapshot {
			return edit(s, c, func(pod *corev1.Pod) { forget(&pod.Spec, key) })
		},
	})
}

// ownLabel reports whether users set the label themselves, so that a pool may set it. It is false
// for labels that agents on nodes, clouds or drivers set: a pool that claimed such a label would be
// wrong for most of its nodes.
func ownLabel(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	agents := []string{
		"kubernetes.io", "k8s.io", "k8s.aws", "karpenter.sh", "amazonaws.com", "azure.com", "gke.io", "google.com", "alibabacloud.com", "oraclecloud.com", "nvidia.com",
	}
	return !ok || requirements.AgentAliases().Key(key) == key && !strings.HasPrefix(domain, "topology.") && !strings.Contains(domain, "csi.") &&
		!slices.ContainsFunc(agents, func(theirs string) bool { return domain == theirs || strings.HasSuffix(domain, "."+theirs) })
}

// forget removes the label from the pod's requirements of nodes.
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
		if len(t.MatchExpressions)+len(t.MatchFields) == 0 { // an empty term matches nothing, so only the others would count
			spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
			return
		}
	}
}

// raise plans without the limit that was in the way and sets it to what that plan needs.
func raise(p *Plan, s scheduling.Snapshot, pool *scheduling.PoolState, r scheduling.Reason) (change, bool) {
	name := corev1.ResourceName(r.Resource)
	unlimited := maps.Clone(pool.Limits)
	delete(unlimited, name)
	with := func(limits corev1.ResourceList) func(scheduling.Snapshot) scheduling.Snapshot {
		return func(s scheduling.Snapshot) scheduling.Snapshot {
			return editPool(s, pool, func(pool *scheduling.Pool) { pool.Limits = limits })
		}
	}
	free, err := Unproved(context.Background(), with(unlimited)(s), &p.options)
	if err != nil {
		return change{}, false
	}
	need := resources.Capacity(name, pool.Limits[name]) - left(pool, name) + bought(p, pool, name) + bought(free, pool, name)
	limits := maps.Clone(pool.Limits)
	limits[name] = resources.Quantity(name, need)
	text := fmt.Sprintf("would fit if pool %q had a limit of %s %s", pool.Name, resources.Humane(name, need), name)
	of := Fix{Kind: RaiseLimit, Pool: pool.Name, Key: r.Resource, Value: resources.Humane(name, need)}
	return change{of: of, text: text, apply: with(limits)}, true
}

// bought returns what the nodes that a plan buys for a pool count against a limit.
func bought(p *Plan, pool *scheduling.PoolState, name corev1.ResourceName) int64 {
	sum := int64(0)
	for _, n := range p.Result.NewNodes() {
		switch {
		case n.Pool.Name != pool.Name:
		case name == "nodes":
			sum++
		default:
			sum += resources.Capacity(name, n.InstanceType.Capacity[name])
		}
	}
	return sum
}

// left returns what the existing nodes leave of a limit.
func left(pool *scheduling.PoolState, name corev1.ResourceName) int64 {
	if name == "nodes" {
		return int64(pool.NodesLeft)
	}
	return pool.Left[slices.Index(pool.Limited, name)]
}

// raiseQuota plans without the limit of the quota that was in the way and sets it to what that plan
// needs.
func raiseQuota(p *Plan, s scheduling.Snapshot, r scheduling.Reason) (change, bool) {
	name := corev1.ResourceName(r.Resource)
	with := func(edit func(corev1.ResourceList)) func(scheduling.Snapshot) scheduling.Snapshot {
		return func(s scheduling.Snapshot) scheduling.Snapshot {
			s.Quotas = slices.Clone(s.Quotas)
			for i := range s.Quotas {
				if q := &s.Quotas[i]; q.Name == r.Quota {
					q.Limits = maps.Clone(q.Limits)
					edit(q.Limits)
				}
			}
			return s
		}
	}
	free, err := Unproved(context.Background(), with(func(l corev1.ResourceList) { delete(l, name) })(s), &p.options)
	at := slices.IndexFunc(p.Problem.Budgets, func(b capacityquota.Budget) bool { return b.Quota == r.Quota && b.Resource == name })
	of := slices.IndexFunc(s.Quotas, func(q capacityquota.Quota) bool { return q.Name == r.Quota })
	if err != nil || at < 0 || of < 0 {
		return change{}, false
	}
	b := &p.Problem.Budgets[at]
	need := b.Max - b.Left + b.Over + counted(p, &s.Quotas[of], name) + counted(free, &s.Quotas[of], name)
	return change{
		of:    Fix{Kind: RaiseQuota, Quota: r.Quota, Key: r.Resource, Value: resources.Humane(name, need)},
		text:  fmt.Sprintf("would fit if quota %q had a limit of %s %s", r.Quota, resources.Humane(name, need), name),
		apply: with(func(l corev1.ResourceList) { l[name] = resources.Quantity(name, need) }),
	}, true
}

// counted returns what the nodes that a plan buys count towards a quota.
func counted(p *Plan, q *capacityquota.Quota, name corev1.ResourceName) int64 {
	sum := int64(0)
	for _, n := range p.Result.NewNodes() {
		if node := n.Node(); q.Matches(node.Labels) {
			sum += capacityquota.Amount(name, node.Status.Capacity)
		}
	}
	return sum
}
