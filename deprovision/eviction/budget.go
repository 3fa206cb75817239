package eviction

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Budgets are the PodDisruptionBudgets of a cluster, found by pod. The zero value allows everything.
type Budgets struct {
	byNamespace map[string][]budget
}

type budget struct {
	name     string
	selector labels.Selector
	object   *policyv1.PodDisruptionBudget
}

// Refusal is why a pod cannot be evicted now. The zero value is no refusal.
type Refusal struct {
	// Budgets are the PodDisruptionBudgets that speak, as namespace/name, sorted.
	Budgets []string
	// Always is set where no eviction will ever be allowed: more than one budget selects the pod, or the budget spares
	// nobody. Where it is not set, waiting may help.
	Always bool
	// Text says it in words.
	Text string
}

// NewBudgets indexes the objects. A selector that does not parse selects nothing, an empty one all pods of the namespace.
func NewBudgets(list []*policyv1.PodDisruptionBudget) Budgets {
	out := Budgets{byNamespace: map[string][]budget{}}
	for _, o := range list {
		sel, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
		if err != nil {
			sel = labels.Nothing()
		}
		out.byNamespace[o.Namespace] = append(out.byNamespace[o.Namespace], budget{o.Namespace + "/" + o.Name, sel, o})
	}
	for _, l := range out.byNamespace {
		slices.SortFunc(l, func(a, b budget) int { return cmp.Compare(a.name, b.name) })
	}
	return out
}

// Of are the names of the budgets that select the pod, sorted.
func (b Budgets) Of(p *corev1.Pod) []string {
	var out []string
	for _, x := range b.selecting(p) {
		out = append(out, x.name)
	}
	return out
}

func (b Budgets) selecting(p *corev1.Pod) []*budget {
	list := b.byNamespace[p.Namespace]
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

// Check says what keeps the eviction API from evicting the pod now; the zero value if nothing does.
//
// A pod that several budgets select is never evicted. One that is not ready may be where its budget says AlwaysAllow, or
// where those that are healthy are as many as wanted. Every other one needs a disruption that its budget still allows.
func (b Budgets) Check(p *corev1.Pod) Refusal {
	found := b.selecting(p)
	switch len(found) {
	case 0:
		return Refusal{}
	case 1:
	default:
		names := b.Of(p)
		return Refusal{names, true, fmt.Sprintf("%d PodDisruptionBudgets select it (%s), and then nothing may evict it", len(names), strings.Join(names, ", "))}
	}
	x := found[0]
	if !ready(p) && x.sparesUnready() {
		return Refusal{}
	}
	if x.object.Status.DisruptionsAllowed > 0 {
		return Refusal{}
	}
	return Refusal{[]string{x.name}, x.blocksAlways(), fmt.Sprintf("PodDisruptionBudget %s allows 0 disruptions", x.name)}
}

// Allowed is how many pods of a budget, by namespace/name, may be evicted now; 0 if there is no such budget.
func (b Budgets) Allowed(name string) int {
	namespace, _, _ := strings.Cut(name, "/")
	for _, x := range b.byNamespace[namespace] {
		if x.name == name {
			return int(max(0, x.object.Status.DisruptionsAllowed))
		}
	}
	return 0
}

// Free reports whether evicting the pod takes nothing from a budget: none selects it, or it is not ready and its budget
// lets such pods go.
func (b Budgets) Free(p *corev1.Pod) bool {
	found := b.selecting(p)
	return len(found) == 0 || len(found) == 1 && !ready(p) && found[0].sparesUnready()
}

// sparesUnready reports whether pods that are not ready may be evicted whatever is allowed.
func (x *budget) sparesUnready() bool {
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

// ready reports whether the pod serves. A pod that says nothing of it counts as ready, so that manifests without status
// are not taken for broken.
func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return true
}
