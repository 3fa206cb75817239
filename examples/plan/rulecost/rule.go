package rulecost

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Kind is the kind of a rule.
type Kind string

// The kinds of rules. Requirements, limits and minValues belong to a pool, weights to all pools,
// quotas to the cluster, and the others to workloads.
const (
	Requirement  Kind = "requirement"   // of a pool, by label key
	Limit        Kind = "limit"         // of a pool, by resource
	Quota        Kind = "quota"         // a CapacityQuota, by resource
	MinValues    Kind = "min-values"    // of a pool, by label key
	Weights      Kind = "weights"       // of all pools
	Selector     Kind = "selector"      // a node selector or required node affinity, by label key
	Spread       Kind = "spread"        // a hard topology spread, by topology key
	AntiAffinity Kind = "anti-affinity" // required, by topology key
	Affinity     Kind = "affinity"      // required, by topology key
	Preference   Kind = "preference"    // all preferences of a workload together
)

// Rule is one rule that restricts where pods may go. Owner and Key identify it, such as "NodePool
// general" and "kubernetes.io/arch". Text is what it asks for. The zero value is not a rule.
type Rule struct {
	Kind  Kind   `json:"kind"`
	Owner string `json:"owner"`
	Key   string `json:"key,omitempty"`
	Text  string `json:"text"`
}

// String returns the rule in one line.
func (r Rule) String() string { return r.Owner + ": " + r.Text }

// rules returns the rules of the quotas, the pools and the pods of a plan, by owner, kind and key.
// It omits the operating system, because no user chooses it.
func rules(p *plan.Plan, pools []scheduling.Pool) []Rule {
	var out []Rule
	for _, q := range p.Problem.Snapshot().Quotas {
		for name, limit := range q.Limits {
			out = append(out, Rule{Quota, "CapacityQuota " + q.Name, string(name), fmt.Sprintf("at most %s %s", limit.String(), name)})
		}
	}
	for i := range pools {
		pool, owner := &pools[i], poolName(&pools[i])
		for r := range pool.Requirements.All() {
			if r.Key() != corev1.LabelOSStable {
				out = append(out, Rule{Requirement, owner, r.Key(), r.String()})
			}
		}
		for name, q := range pool.Limits {
			out = append(out, Rule{Limit, owner, string(name), fmt.Sprintf("at most %s %s", q.String(), name)})
		}
		for key, n := range pool.MinValues {
			out = append(out, Rule{MinValues, owner, key, fmt.Sprintf("at least %d values of %s", n, key)})
		}
		if pool.Weight != pools[0].Weight && !slices.ContainsFunc(out, func(r Rule) bool { return r.Kind == Weights }) {
			out = append(out, Rule{Kind: Weights, Owner: "all pools", Text: "heavier pools come first"})
		}
	}
	for _, c := range p.Problem.Classes {
		out = append(out, ofPod(c.Template, plan.WorkloadOf(c.Pods[0]))...)
	}
	slices.SortFunc(out, func(a, b Rule) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Text, b.Text))
	})
	return slices.CompactFunc(out, func(a, b Rule) bool { return a.Owner == b.Owner && a.Kind == b.Kind && a.Key == b.Key })
}

func ofPod(pod *corev1.Pod, owner string) []Rule {
	var out []Rule
	spec, soft := &pod.Spec, false
	for _, key := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		out = append(out, Rule{Selector, owner, key, fmt.Sprintf("%s=%s", key, spec.NodeSelector[key])})
	}
	for _, s := range spec.TopologySpreadConstraints {
		if s.WhenUnsatisfiable == corev1.ScheduleAnyway {
			soft = true
		} else {
			out = append(out, Rule{Spread, owner, s.TopologyKey, "spread over " + s.TopologyKey})
		}
	}
	if a := spec.Affinity; a != nil {
		if n := a.NodeAffinity; n != nil {
			soft = soft || len(n.PreferredDuringSchedulingIgnoredDuringExecution) > 0
			if n.RequiredDuringSchedulingIgnoredDuringExecution != nil {
				for _, t := range n.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
					for _, e := range t.MatchExpressions {
						out = append(out, Rule{Selector, owner, e.Key, fmt.Sprintf("%s %s %v", e.Key, e.Operator, e.Values)})
					}
				}
			}
		}
		if a.PodAffinity != nil {
			soft = soft || len(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0
			for _, t := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				out = append(out, Rule{Affinity, owner, t.TopologyKey, "affinity by " + t.TopologyKey})
			}
		}
		if a.PodAntiAffinity != nil {
			soft = soft || len(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0
			for _, t := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				out = append(out, Rule{AntiAffinity, owner, t.TopologyKey, "anti-affinity by " + t.TopologyKey})
			}
		}
	}
	if soft {
		out = append(out, Rule{Kind: Preference, Owner: owner, Text: "its preferences"})
	}
	return out
}

// bearsOnBound reports whether plan.Bound.Price may change without the rule. That bound ignores
// where other pods are and what is only preferred.
func (r Rule) bearsOnBound() bool {
	return !slices.Contains([]Kind{Weights, Spread, Affinity, Preference}, r.Kind)
}

func poolName(p *scheduling.Pool) string { return cmp.Or(p.Kind, "NodePool") + " " + p.Name }

// Lift returns the snapshot without the rule. The argument is not changed.
func (r Rule) Lift(s scheduling.Snapshot) scheduling.Snapshot {
	switch r.Kind {
	case Requirement, Limit, MinValues, Weights:
		s.Pools = slices.Clone(s.Pools)
		for i := range s.Pools {
			r.liftPool(&s.Pools[i])
		}
	case Quota:
		s.Quotas = slices.Clone(s.Quotas)
		for i := range s.Quotas {
			if q := &s.Quotas[i]; "CapacityQuota "+q.Name == r.Owner {
				q.Limits = maps.Clone(q.Limits)
				delete(q.Limits, corev1.ResourceName(r.Key))
			}
		}
	case Selector, Spread, AntiAffinity, Affinity, Preference:
		s.Pods = slices.Clone(s.Pods)
		e := edits{spreads: map[*corev1.TopologySpreadConstraint][]corev1.TopologySpreadConstraint{}, affinities: map[*corev1.Affinity]*corev1.Affinity{}}
		for i, pod := range s.Pods {
			if pod.Spec.NodeName == "" && plan.WorkloadOf(pod) == r.Owner {
				changed := *pod
				e.lift(r, &changed.Spec)
				s.Pods[i] = &changed
			}
		}
	}
	return s
}

func (r Rule) liftPool(p *scheduling.Pool) {
	if r.Kind == Weights {
		p.Weight = 0
	}
	if poolName(p) != r.Owner {
		return
	}
	if r.Kind == Requirement {
		p.Requirements = p.Requirements.Without(requirements.KeysOf(r.Key))
	}
	if r.Kind == Limit {
		p.Limits = maps.Clone(p.Limits)
		delete(p.Limits, corev1.ResourceName(r.Key))
	}
	if r.Kind == MinValues {
		p.MinValues = maps.Clone(p.MinValues)
		delete(p.MinValues, r.Key)
	}
}

// edits records the edited copies of shared parts of specs, so that pods of one template keep
// sharing them.
type edits struct {
	spreads    map[*corev1.TopologySpreadConstraint][]corev1.TopologySpreadConstraint
	affinities map[*corev1.Affinity]*corev1.Affinity
}

func (e *edits) lift(r Rule, spec *corev1.PodSpec) {
	if r.Kind == Selector && spec.NodeSelector != nil {
		spec.NodeSelector = maps.Clone(spec.NodeSelector)
		delete(spec.NodeSelector, r.Key)
	}
	if len(spec.TopologySpreadConstraints) > 0 && (r.Kind == Spread || r.Kind == Preference) {
		of := &spec.TopologySpreadConstraints[0]
		if _, known := e.spreads[of]; !known {
			e.spreads[of] = slices.DeleteFunc(slices.Clone(spec.TopologySpreadConstraints), func(s corev1.TopologySpreadConstraint) bool {
				isSoft := s.WhenUnsatisfiable == corev1.ScheduleAnyway
				return isSoft && r.Kind == Preference || !isSoft && r.Kind == Spread && s.TopologyKey == r.Key
			})
		}
		spec.TopologySpreadConstraints = e.spreads[of]
	}
	if of := spec.Affinity; of != nil && r.Kind != Spread {
		if e.affinities[of] == nil {
			e.affinities[of] = of.DeepCopy()
			liftAffinity(r, e.affinities[of])
		}
		spec.Affinity = e.affinities[of]
	}
}

func liftAffinity(r Rule, a *corev1.Affinity) {
	is := func(t corev1.PodAffinityTerm) bool { return t.TopologyKey == r.Key }
	if n := a.NodeAffinity; n != nil {
		if required := n.RequiredDuringSchedulingIgnoredDuringExecution; required != nil && r.Kind == Selector {
			for i := range required.NodeSelectorTerms {
				t := &required.NodeSelectorTerms[i]
				had := len(t.MatchExpressions)
				t.MatchExpressions = slices.DeleteFunc(t.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool { return e.Key == r.Key })
				// Without its last expression the alternative allows every node, and so do all terms
				// together. As written, an empty term would match none.
				if had > 0 && len(t.MatchExpressions)+len(t.MatchFields) == 0 {
					n.RequiredDuringSchedulingIgnoredDuringExecution = nil
					break
				}
			}
		}
		if r.Kind == Preference {
			n.PreferredDuringSchedulingIgnoredDuringExecution = nil
		}
	}
	if p := a.PodAffinity; p != nil {
		if r.Kind == Affinity {
			p.RequiredDuringSchedulingIgnoredDuringExecution = slices.DeleteFunc(p.RequiredDuringSchedulingIgnoredDuringExecution, is)
		}
		if r.Kind == Preference {
			p.PreferredDuringSchedulingIgnoredDuringExecution = nil
		}
	}
	if p := a.PodAntiAffinity; p != nil {
		if r.Kind == AntiAffinity {
			p.RequiredDuringSchedulingIgnoredDuringExecution = slices.DeleteFunc(p.RequiredDuringSchedulingIgnoredDuringExecution, is)
		}
		if r.Kind == Preference {
			p.PreferredDuringSchedulingIgnoredDuringExecution = nil
		}
	}
}
