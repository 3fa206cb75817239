package gang

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/constraint"
)

// Planner plans compiled problems, usually with [scheduling.Problem.Solve].
type Planner interface {
	// Draft finds out quickly which pods fit. It is called for sets of groups that are only compared.
	Draft(context.Context, *scheduling.Problem) (*scheduling.Result, error)
	// Plan plans the same pods for a low price. It is called for the result.
	Plan(context.Context, *scheduling.Problem) (*scheduling.Result, error)
}

// Solve plans a snapshot so that each group has all that it needs or nothing. It returns the last problem with its result. Pods of a group
// that waits are unplaced there, with the reason that one of them meets beside the groups that are placed.
//
// It plans once if all groups fit. Otherwise it searches for the best set of groups with drafts: at most 64, fewer with many pods. A set whose
// requests exceed what limits, stock and nodes leave is never planned. Without groups it is one compilation and one plan. Errors are those of
// [scheduling.Compile] and of the planner. The groups' functions are called a few times for each pod.
func Solve(ctx context.Context, s scheduling.Snapshot, o *scheduling.Options, groups []Group, planner Planner) (*scheduling.Problem, *scheduling.Result, error) {
	a := &admission{ctx: ctx, planner: planner, snapshot: s, of: map[types.NamespacedName]int{}, needed: map[types.NamespacedName]bool{}}
	if o != nil {
		a.options = *o
	}
	a.read(s, groups)
	all := a.whole()
	problem, err := a.compile(all, noGroup, a.reasons, a.options.Together)
	if err != nil {
		return nil, nil, err
	}
	a.measure(problem)
	if a.suits(all) {
		if slices.ContainsFunc(a.groups, func(g group) bool { return g.Key != "" }) {
			if problem, err = a.compile(all, noGroup, a.reasons, a.together()); err != nil {
				return nil, nil, err
			}
		}
		at, err := a.solve(all, problem, planner.Plan)
		if err != nil {
			return nil, nil, err
		}
		if len(a.broken(at)) == 0 {
			return at.problem, at.result, nil
		}
		a.fail(all)
	}
	at, err := a.search(all)
	if err != nil {
		return nil, nil, err
	}
	return a.conclude(at)
}

// admission is a running [Solve].
type admission struct {
	ctx      context.Context
	planner  Planner
	snapshot scheduling.Snapshot
	options  scheduling.Options
	groups   []group
	of       map[types.NamespacedName]int // by pod to place, its group
	needed   map[types.NamespacedName]bool
	reasons  []*scheduling.Reason // by group, why it cannot be whole whatever is bought; nil for the others

	capacity []float64 // by resource; see measure
	kinds    int
	failed   [][]int // sets that did not fit, as counts by kind
	drafts   int     // that may still be made to find a better set
}

// group is a group and its pods.
type group struct {
	Group
	pods     []*corev1.Pod // to place
	running  int
	need     int // how many of pods must be placed together; 0 if enough run
	priority int32
	demand   []float64 // of the needed pods, by resource
	kind     int       // groups of one kind need the same
}

// read finds the pods of the groups.
func (a *admission) read(s scheduling.Snapshot, groups []Group) {
	for _, g := range groups {
		a.groups = append(a.groups, group{Group: g})
	}
	for _, pod := range s.Pods {
		at := a.groupOf(pod)
		if at < 0 || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil {
			continue
		}
		g := &a.groups[at]
		if pod.Spec.NodeName != "" {
			g.running++
			continue
		}
		a.of[nameOf(pod)] = at
		g.pods = append(g.pods, pod)
		if pod.Spec.Priority != nil {
			g.priority = max(g.priority, *pod.Spec.Priority)
		}
	}
	a.reasons = make([]*scheduling.Reason, len(a.groups))
	for i := range a.groups {
		g := &a.groups[i]
		slices.SortFunc(g.pods, func(x, y *corev1.Pod) int {
			return cmp.Or(cmp.Compare(priorityOf(y), priorityOf(x)), scheduling.ComparePods(x, y))
		})
		g.need = max(0, cmp.Or(g.Minimum, g.running+len(g.pods))-g.running)
		for _, pod := range g.pods[:min(g.need, len(g.pods))] {
			a.needed[nameOf(pod)] = true
		}
		switch {
		case g.Waits != "":
			a.reasons[i] = &scheduling.Reason{Stage: scheduling.StageGroup, Detail: fmt.Sprintf("group %s waits: %s", g.Name, g.Waits)}
		case g.need > len(g.pods):
			a.reasons[i] = &scheduling.Reason{Stage: scheduling.StageGroup, Detail: fmt.Sprintf("group %s waits: it needs %d pods, and there are %d", g.Name, g.Minimum, g.running+len(g.pods))}
		}
	}
	a.drafts = a.mostDrafts()
}

// groupOf is the position of the pod's group; -1 for none.
func (a *admission) groupOf(pod *corev1.Pod) int {
	return slices.IndexFunc(a.groups, func(g group) bool { return g.Member(pod) })
}

func priorityOf(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

func nameOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(pod.Namespace, corev1.NamespaceDefault), Name: pod.Name}
}

// whole is the set of all groups that do not wait for something that no purchase brings.
func (a *admission) whole() []bool {
	out := make([]bool, len(a.groups))
	for i := range out {
		out[i] = a.reasons[i] == nil
	}
	return out
}

// attempt is a plan with a set of groups.
type attempt struct {
	set     []bool // by group
	problem *scheduling.Problem
	result  *scheduling.Result
	placed  []int         // by group
	pods    map[int32]int // placed, by priority
	price   float64       // of its new nodes, in dollars an hour
}

// together are the sets of pods that must share a value of a label: the groups with a key, and those of the options; nil for none.
func (a *admission) together() func(*corev1.Pod) (set, label string) {
	others := a.options.Together
	if !slices.ContainsFunc(a.groups, func(g group) bool { return g.Key != "" }) {
		return others
	}
	return func(pod *corev1.Pod) (set, label string) {
		if g := a.groupOf(pod); g >= 0 && a.groups[g].Key != "" {
			return "group " + a.groups[g].Name, a.groups[g].Key
		}
		if others == nil {
			return "", ""
		}
		return others(pod)
	}
}

// noGroup is the position of no group.
const noGroup = -1

// compile compiles the snapshot with the pods of other groups than those of the set refused, by their reasons where they have one. Of the set
// one group may come last.
func (a *admission) compile(set []bool, last int, reasons []*scheduling.Reason, together func(*corev1.Pod) (set, label string)) (*scheduling.Problem, error) {
	o := a.options
	if o.Together = together; len(a.groups) > 0 {
		o.Rank = func(pod *corev1.Pod) int {
			switch name := nameOf(pod); {
			case !a.needed[name]:
				return 0
			case a.of[name] == last:
				return 1
			default:
				return 2
			}
		}
		narrow := func(pod *corev1.Pod, required requirements.Alternatives) (requirements.Alternatives, *scheduling.Reason) {
			g, ok := a.of[nameOf(pod)]
			if !ok || set[g] {
				return required, nil
			}
			return required, cmp.Or(reasons[g], leftOut)
		}
		o.Constraints = append(slices.Clip(o.Constraints), constraint.Func(narrow))
	}
	return scheduling.Compile(a.snapshot, &o)
}

// leftOut is the reason of groups that are not in the set of a draft. It is never shown.
var leftOut = &scheduling.Reason{Stage: scheduling.StageGroup, Detail: "it is left out"}

// draft plans a set of groups, of which one may come last, only to see what fits.
func (a *admission) draft(set []bool, last int) (*attempt, error) {
	problem, err := a.compile(set, last, a.reasons, a.together())
	if err != nil {
		return nil, err
	}
	return a.solve(set, problem, a.planner.Draft)
}

func (a *admission) solve(set []bool, p *scheduling.Problem, plan func(context.Context, *scheduling.Problem) (*scheduling.Result, error)) (*attempt, error) {
	out := &attempt{set: set, problem: p, placed: make([]int, len(a.groups)), pods: map[int32]int{}}
	var err error
	if out.result, err = plan(a.ctx, p); err != nil {
		return nil, err
	}
	for _, b := range out.result.Bindings() {
		out.pods[priorityOf(b.Pod)]++
		if g, ok := a.of[nameOf(b.Pod)]; ok {
			out.placed[g]++
		}
	}
	for _, n := range out.result.NewNodes() {
		out.price += n.PricePerHour
	}
	return out, nil
}

// broken are the groups of the set that have fewer pods than they need.
func (a *admission) broken(at *attempt) []int {
	var out []int
	for i := range a.groups {
		if at.set[i] && at.placed[i] < a.groups[i].need {
			out = append(out, i)
		}
	}
	return out
}

// conclude plans the set of a draft, with the reasons of the groups that wait. A plan that places less than the draft, as it may where the
// context has ended meanwhile, is made again without the groups that are not whole.
func (a *admission) conclude(at *attempt) (*scheduling.Problem, *scheduling.Result, error) {
	at, reasons, err := a.explain(at)
	if err != nil {
		return nil, nil, err
	}
	for set := at.set; ; {
		p, err := a.compile(set, noGroup, reasons, a.together())
		if err != nil {
			return nil, nil, err
		}
		at, err = a.solve(set, p, a.planner.Plan)
		if err != nil {
			return nil, nil, err
		}
		broken := a.broken(at)
		if len(broken) == 0 {
			return at.problem, at.result, nil
		}
		set = without(set, broken)
		for _, g := range broken {
			reasons[g] = a.reason(g, g, at)
		}
	}
}
