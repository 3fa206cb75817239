package kubejudge

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Judge binds the pods in the order of the plan, each once, and says which binds kube-scheduler
// refuses. A refused bind changes nothing: those after it are judged as if it had never been tried.
//
// An error means that there is nothing to judge: a binding of a pod that the scenario does not have
// or has bound already, a node that does not exist, two objects of one name, a missing
// PriorityClass, or a context that is over. All problems are reported at once. The cost is one
// PreFilter over all nodes and one Filter on one node for each binding, beside less than a
// millisecond for the plugins. It may be called concurrently.
func Judge(ctx context.Context, s Scenario, plan []Binding) (Verdict, error) {
	if err := checkPlan(&s, plan); err != nil {
		return Verdict{}, err
	}
	c, err := newCluster(ctx, &s)
	if err != nil {
		return Verdict{}, err
	}
	verdict, _, err := lap(ctx, c, plan, positions(plan))
	return verdict, errors.Join(err, c.close())
}

// JudgeAnyOrder looks for an order in which kube-scheduler accepts the plan, for planners that do
// not give one. It tries a few orders, the given one first, and in each goes round the refused
// binds until a whole lap binds nothing. The verdict with the most accepted binds is returned; its
// Accepted are in the order found, its Refused in that of the plan.
//
// It is a search with an end, not a proof: an order may exist that it does not find. Errors are
// those of [Judge]; the cost is that of Judge times the orders and laps tried, and of Judge alone
// where the first lap accepts all.
func JudgeAnyOrder(ctx context.Context, s Scenario, plan []Binding) (Verdict, error) {
	if err := checkPlan(&s, plan); err != nil {
		return Verdict{}, err
	}
	var best Verdict
	for i, order := range orders(&s, plan) {
		verdict, err := laps(ctx, &s, plan, order)
		if err != nil {
			return Verdict{}, err
		}
		if i == 0 || len(verdict.Accepted) > len(best.Accepted) {
			best = verdict
		}
		if best.Valid() {
			break
		}
	}
	return best, nil
}

func laps(ctx context.Context, s *Scenario, plan []Binding, order []int) (Verdict, error) {
	c, err := newCluster(ctx, s)
	if err != nil {
		return Verdict{}, err
	}
	var all Verdict
	for left := order; ; {
		verdict, refused, err := lap(ctx, c, plan, left)
		if err != nil {
			return Verdict{}, errors.Join(err, c.close())
		}
		all.Accepted = append(all.Accepted, verdict.Accepted...)
		all.Refused = verdict.Refused
		if len(refused) == 0 || len(verdict.Accepted) == 0 {
			slices.SortFunc(all.Refused, func(a, b Refusal) int { return a.Position - b.Position })
			return all, c.close()
		}
		left = refused
	}
}

// lap tries each of the given positions of the plan once and returns those that were refused.
func lap(ctx context.Context, c *cluster, plan []Binding, order []int) (Verdict, []int, error) {
	var v Verdict
	var refused []int
	for _, i := range order {
		b := Binding{Pod: qualified(plan[i].Pod), Node: plan[i].Node}
		status, err := c.bind(ctx, b.Pod, b.Node)
		switch {
		case err != nil:
			return Verdict{}, nil, fmt.Errorf("kubejudge: binding %s: %w", b, err)
		case status.IsSuccess():
			v.Accepted = append(v.Accepted, b)
		default:
			refused = append(refused, i)
			v.Refused = append(v.Refused, Refusal{Binding: b, Position: i, Plugin: status.Plugin(), Message: status.Message()})
		}
	}
	return v, refused, nil
}

func positions(plan []Binding) []int {
	order := make([]int, len(plan))
	for i := range order {
		order[i] = i
	}
	return order
}

// orders returns the orders that JudgeAnyOrder tries: as given, backwards, pods with the most
// constraints first and last, and three shuffles from fixed seeds, so that a verdict can be had
// again.
func orders(s *Scenario, plan []Binding) [][]int {
	given := positions(plan)
	backwards := slices.Clone(given)
	slices.Reverse(backwards)

	byName := make(map[types.NamespacedName]*corev1.Pod, len(s.Pods))
	for _, p := range s.Pods {
		byName[nameOf(p)] = p
	}
	strict := slices.Clone(given)
	slices.SortStableFunc(strict, func(a, b int) int {
		return constraints(byName[qualified(plan[b].Pod)]) - constraints(byName[qualified(plan[a].Pod)])
	})
	loose := slices.Clone(strict)
	slices.Reverse(loose)
	all := [][]int{given, backwards, strict, loose}
	for seed := range uint64(3) {
		shuffled := slices.Clone(given)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		all = append(all, shuffled)
	}
	return all
}

func constraints(p *corev1.Pod) int {
	n := len(p.Spec.TopologySpreadConstraints)
	if a := p.Spec.Affinity; a != nil {
		if a.PodAffinity != nil {
			n += len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		}
		if a.PodAntiAffinity != nil {
			n += len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		}
	}
	return n
}

// qualified puts a pod without a namespace into the one that an API server would.
func qualified(pod types.NamespacedName) types.NamespacedName {
	if pod.Namespace == "" {
		pod.Namespace = corev1.NamespaceDefault
	}
	return pod
}

func checkPlan(s *Scenario, plan []Binding) error {
	pods := make(map[types.NamespacedName]bool, len(s.Pods))
	for _, p := range s.Pods {
		pods[nameOf(p)] = true
	}
	nodes := make(map[string]bool, len(s.Nodes))
	for _, n := range s.Nodes {
		nodes[n.Name] = true
	}
	bound := make(map[types.NamespacedName]int, len(plan))
	var errs []error
	for i, b := range plan {
		b.Pod = qualified(b.Pod)
		if !pods[b.Pod] {
			errs = append(errs, fmt.Errorf("plan[%d]: no pod %q among the scenario's pods%s", i, b.Pod, near(b.Pod.String(), podNames(s.Pods))))
		}
		if first, again := bound[b.Pod]; again {
			errs = append(errs, fmt.Errorf("plan[%d]: pod %q is bound already by plan[%d]", i, b.Pod, first))
		} else {
			bound[b.Pod] = i
		}
		if !nodes[b.Node] {
			errs = append(errs, fmt.Errorf("plan[%d]: pod %q: no node %q%s", i, b.Pod, b.Node, near(b.Node, nodeNames(s.Nodes))))
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("kubejudge: %w", errors.Join(errs...))
	}
	return nil
}

func podNames(pods []*corev1.Pod) []string {
	names := make([]string, 0, len(pods))
	for _, p := range pods {
		names = append(names, nameOf(p).String())
	}
	return names
}

func nodeNames(nodes []*corev1.Node) []string {
	names := make([]string, 0, len(nodes))
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return names
}

// near offers the name that shares the longest prefix, for a plan's mistake is most often an index
// or a suffix.
func near(name string, have []string) string {
	best, length := "", 0
	for _, h := range slices.Sorted(slices.Values(have)) {
		n := 0
		for n < len(h) && n < len(name) && strings.EqualFold(h[n:n+1], name[n:n+1]) {
			n++
		}
		if n > length {
			best, length = h, n
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}
