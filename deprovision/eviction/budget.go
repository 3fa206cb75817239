package eviction

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Budgets are the PodDisruptionBudgets of a cluster, indexed for lookups by pod. The zero value has
// none.
type Budgets struct {
	byNamespace map[string][]budget
}

type budget struct {
	name     string
	selector labels.Selector
	object   *policyv1.PodDisruptionBudget
}

// Refusal says why a pod cannot be evicted now. The zero value means that it can.
type Refusal struct {
	// Budgets are the PodDisruptionBudgets that forbid it, as namespace/name, sorted.
	Budgets []string
	// Always says that waiting does not help: several budgets select the pod, or its budget allows
	// no disruption at all.
	Always bool
	// Text is the reason in words.
	Text string
}

// NewBudgets indexes the objects. An invalid selector selects no pod, and an empty selector selects
// all pods of its namespace. A nil object is ignored.
func NewBudgets(list []*policyv1.PodDisruptionBudget) Budgets {
	out := Budgets{byNamespace: map[string][]budget{}}
	for _, o := range list {
		if o == nil {
			continue
		}
		sel, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
		if err != nil {
			sel = labels.Nothing()
		}
		in := cmp.Or(o.Namespace, corev1.NamespaceDefault) // as an API server stores it
		out.byNamespace[in] = append(out.byNamespace[in], budget{in + "/" + o.Name, sel, o})
	}
	for _, l := range out.byNamespace {
		slices.SortFunc(l, func(a, b budget) int { return cmp.Compare(a.name, b.name) })
	}
	return out
}

// Of returns the names of the budgets that select the pod, sorted.
func (b Budgets) Of(p *corev1.Pod) []string {
	var out []string
	for _, x := range b.selecting(p) {
		out = append(out, x.name)
	}
	return out
}

func (b Budgets) selecting(p *corev1.Pod) []*budget {
	list := b.byNamespace[cmp.Or(p.Namespace, corev1.NamespaceDefault)]
	if len(list) == 0 {
		return nil
	}
	var out []*budget
	for i := range list {
		if list[i].selector.Matches(labels.Set(p.Labels)) {
			out = append(out, &list[i])
		}
	}
	return out
}

// Check says why the eviction API would not evict the pod now, or returns the zero value if it
// would. The first rule that applies decides:
//
//   - A pod that has not started, has finished or is being deleted can always be evicted.
//   - A pod that several budgets select can never be evicted.
//   - An unready pod can be evicted if its budget says AlwaysAllow or has as many healthy pods as
//     it wants.
//   - Any other pod needs a disruption that its budget still allows. A budget allows none while its
//     status is of an older spec (status.observedGeneration is below metadata.generation).
func (b Budgets) Check(p *corev1.Pod) Refusal {
	found := b.selecting(p)
	if inert(p) {
		return Refusal{}
	}
	switch len(found) {
	case 0:
		return Refusal{}
	case 1:
	default:
		names := b.Of(p)
		return Refusal{names, true, fmt.Sprintf("%d PodDisruptionBudgets select it (%s), so it cannot be evicted", len(names), strings.Join(names, ", "))}
	}
	x := found[0]
	if !ready(p) && x.allowsUnready() {
		return Refusal{}
	}
	if x.allowed() > 0 {
		return Refusal{}
	}
	if !x.blocksAlways() && x.hasNoStatus() {
		return Refusal{[]string{x.name}, false, fmt.Sprintf("PodDisruptionBudget %s has no status, which counts as 0 allowed disruptions", x.name)}
	}
	if !x.blocksAlways() && x.stale() {
		return Refusal{[]string{x.name}, false, fmt.Sprintf("PodDisruptionBudget %s allows 0 disruptions until its controller has seen its latest spec (generation %d, observed %d)", x.name, x.object.Generation, x.object.Status.ObservedGeneration)}
	}
	return Refusal{[]string{x.name}, x.blocksAlways(), fmt.Sprintf("PodDisruptionBudget %s allows 0 disruptions", x.name)}
}

// Allowed returns how many pods of a budget, given as namespace/name, may be evicted now. It is 0
// if there is no such budget.
func (b Budgets) Allowed(name string) int {
	namespace, _, _ := strings.Cut(name, "/")
	for _, x := range b.byNamespace[namespace] {
		if x.name == name {
			return x.allowed()
		}
	}
	return 0
}

// Free reports whether evicting the pod counts against no budget. That is so if no budget selects
// the pod, if it does not run, or if it is unready and its only budget allows evicting unready
// pods.
func (b Budgets) Free(p *corev1.Pod) bool {
	found := b.selecting(p)
	return len(found) == 0 || inert(p) || len(found) == 1 && !ready(p) && found[0].allowsUnready()
}

// allowsUnready reports whether unready pods may be evicted without counting.
func (x *budget) allowsUnready() bool {
	if p := x.object.Spec.UnhealthyPodEvictionPolicy; p != nil && *p == policyv1.AlwaysAllow {
		return true
	}
	s := x.object.Status
	return s.DesiredHealthy > 0 && s.CurrentHealthy >= s.DesiredHealthy
}

// blocksAlways reports whether the budget can never allow a disruption.
func (x *budget) blocksAlways() bool {
	s := x.object.Spec
	if m := s.MaxUnavailable; m != nil && (m.String() == "0" || m.String() == "0%") {
		return true
	}
	return s.MinAvailable != nil && s.MinAvailable.String() == "100%"
}

// allowed returns how many disruptions the budget allows now.
func (x *budget) allowed() int {
	if x.stale() {
		return 0
	}
	return int(max(0, x.object.Status.DisruptionsAllowed))
}

// stale reports whether the status is of an older spec. The eviction API then allows nothing,
// because the new spec may be stricter. An object without a generation, as in a manifest, is not
// stale.
func (x *budget) stale() bool { return x.object.Status.ObservedGeneration < x.object.Generation }

// hasNoStatus reports whether no controller has looked at the budget yet, as in a manifest.
func (x *budget) hasNoStatus() bool {
	return apiequality.Semantic.DeepEqual(x.object.Status, policyv1.PodDisruptionBudgetStatus{})
}

// inert reports whether the pod counts as not running for the eviction API: it has not started, has
// finished, or is being deleted.
func inert(p *corev1.Pod) bool {
	phase := p.Status.Phase
	return phase == corev1.PodPending || phase == corev1.PodSucceeded || phase == corev1.PodFailed || p.DeletionTimestamp != nil
}

// ready returns the condition of that name. A pod without it, as in a manifest without status,
// counts as ready.
func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return true
}
