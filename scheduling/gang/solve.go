package gang

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/constraint"
)

// Bounds of the plans that are made to find a place for groups that are left out: their number, and the pods of all of them.
const (
	mostTries = 64
	triedPods = 15_000
)

// Solve plans a snapshot so that each group has all that it needs or nothing. It compiles the snapshot, has solve plan it, usually with
// [scheduling.Problem.Solve], and returns the last problem with its result. Pods of a group that waits are unplaced there, with the reason
// that one of them met when the group was tried.
//
// It plans once if all groups are whole at first, and otherwise once more without those that are not. Then each of these is tried beside the
// others, and in the place of each other one, as long as that is better: at most 64 times, and fewer with many pods. Without groups it is
// one compilation and one plan. Errors are those of [scheduling.Compile] and of solve.
// The groups' functions are called twice for each pod.
func Solve(
	ctx context.Context, s scheduling.Snapshot, o *scheduling.Options, groups []Group,
	solve func(context.Context, *scheduling.Problem) (*scheduling.Result, error),
) (*scheduling.Problem, *scheduling.Result, error) {
	a := &admission{ctx: ctx, solve: solve, of: map[types.NamespacedName]int{}, needed: map[types.NamespacedName]bool{}}
	if o != nil {
		a.options = *o
	}
	a.read(s, groups)
	a.snapshot = s
	at, err := a.plan(a.waiting())
	if err != nil {
		return nil, nil, err
	}
	var left []int // groups that are left out because they were not whole
	for {
		broken := a.broken(at)
		if len(broken) == 0 {
			break
		}
		refused := slices.Clone(at.refused)
		for _, g := range broken {
			refused[g] = a.reason(g, at)
		}
		left = append(left, broken...)
		if at, err = a.plan(refused); err != nil {
			return nil, nil, err
		}
	}
	return a.improve(at, left)
}

// admission is a running [Solve].
type admission struct {
	ctx      context.Context
	snapshot scheduling.Snapshot
	options  scheduling.Options
	solve    func(context.Context, *scheduling.Problem) (*scheduling.Result, error)
	groups   []group
	of       map[types.NamespacedName]int // by pod to place, its group
	needed   map[types.NamespacedName]bool
}

// group is a group and its pods.
type group struct {
	Group
	pods     []*corev1.Pod // to place
	running  int
	need     int // how many of pods must be placed together; 0 if enough run
	priority int32
}

// improve looks for a better plan with other groups: with each that is left out, beside the others or in the place of one of no higher priority.
func (a *admission) improve(at *attempt, left []int) (*scheduling.Problem, *scheduling.Result, error) {
	most := mostTries
	if pods := len(a.of); pods > 0 {
		most = min(most, triedPods/pods)
	}
	told := false           // reasons were found that the plan does not have
	alone := len(left) == 1 // then it was tried beside the others
	for changed := len(left) > 0; changed; {
		changed = false
		slices.SortStableFunc(left, func(x, y int) int {
			return cmp.Or(cmp.Compare(a.groups[y].priority, a.groups[x].priority), cmp.Compare(x, y))
		})
		for _, g := range left {
			for _, out := range a.instead(g, at) {
				if out < 0 && alone {
					continue
				}
				if most--; most < 0 || a.ctx.Err() != nil {
					break
				}
				refused := slices.Clone(at.refused)
				if refused[g] = nil; out >= 0 {
					refused[out] = &scheduling.Reason{Stage: scheduling.StageGroup, Detail: fmt.Sprintf("group %s needs %d pods at once; group %s has their place", a.groups[out].Name, a.groups[out].need, a.groups[g].Name)}
				}
				next, err := a.plan(refused)
				if err != nil {
					return nil, nil, err
				}
				broken := a.broken(next)
				if len(broken) == 0 && a.better(next, at) {
					at, changed, told, alone = next, true, false, false
					if left = slices.DeleteFunc(left, func(x int) bool { return x == g }); out >= 0 {
						left = append(left, out)
					}
					break
				}
				if out < 0 && slices.Contains(broken, g) {
					at.refused[g], told = a.reason(g, next), true
				}
			}
			if changed {
				break
			}
		}
	}
	if !told {
		return at.problem, at.result, nil
	}
	last, err := a.plan(at.refused)
	if err != nil {
		return nil, nil, err
	}
	return last.problem, last.result, nil
}

// instead are the groups that may be left out for another one, -1 for none.
func (a *admission) instead(g int, at *attempt) []int {
	out := []int{-1}
	for i := range a.groups {
		if o := &a.groups[i]; at.refused[i] == nil && o.need > 0 && o.priority <= a.groups[g].priority {
			out = append(out, i)
		}
	}
	return out
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
	for i := range a.groups {
		g := &a.groups[i]
		slices.SortFunc(g.pods, func(x, y *corev1.Pod) int {
			return cmp.Or(cmp.Compare(priorityOf(y), priorityOf(x)), scheduling.ComparePods(x, y))
		})
		g.need = max(0, cmp.Or(g.Minimum, g.running+len(g.pods))-g.running)
		for _, pod := range g.pods[:min(g.need, len(g.pods))] {
			a.needed[nameOf(pod)] = true
		}
	}
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

// waiting is why groups cannot be whole whatever is bought, by group; nil for the others.
func (a *admission) waiting() []*scheduling.Reason {
	out := make([]*scheduling.Reason, len(a.groups))
	for i := range a.groups {
		switch g := &a.groups[i]; {
		case g.Waits != "":
			out[i] = &scheduling.Reason{Stage: scheduling.StageGroup, Detail: fmt.Sprintf("group %s waits: %s", g.Name, g.Waits)}
		case g.need > len(g.pods):
			out[i] = &scheduling.Reason{Stage: scheduling.StageGroup, Detail: fmt.Sprintf("group %s waits: it needs %d pods, and there are %d", g.Name, g.Minimum, g.running+len(g.pods))}
		}
	}
	return out
}

// attempt is a plan without the pods of refused groups.
type attempt struct {
	refused []*scheduling.Reason // by group
	problem *scheduling.Problem
	result  *scheduling.Result
	placed  []int         // by group
	pods    map[int32]int // placed, by priority
}

func (a *admission) plan(refused []*scheduling.Reason) (*attempt, error) {
	o := a.options
	if len(a.groups) > 0 {
		before := o.Together
		o.Together = func(pod *corev1.Pod) (set, label string) {
			if g := a.groupOf(pod); g >= 0 && a.groups[g].Key != "" {
				return "group " + a.groups[g].Name, a.groups[g].Key
			}
			if before == nil {
				return "", ""
			}
			return before(pod)
		}
		o.Rank = func(pod *corev1.Pod) int {
			if a.needed[nameOf(pod)] {
				return 1
			}
			return 0
		}
		narrow := func(pod *corev1.Pod, required requirements.Alternatives) (requirements.Alternatives, *scheduling.Reason) {
			if g, ok := a.of[nameOf(pod)]; ok {
				return required, refused[g]
			}
			return required, nil
		}
		o.Constraints = append(slices.Clip(o.Constraints), constraint.Func(narrow))
	}
	p, err := scheduling.Compile(a.snapshot, &o)
	if err != nil {
		return nil, err
	}
	out := &attempt{refused: refused, problem: p, placed: make([]int, len(a.groups)), pods: map[int32]int{}}
	if out.result, err = a.solve(a.ctx, p); err != nil {
		return nil, err
	}
	for _, b := range out.result.Bindings() {
		out.pods[priorityOf(b.Pod)]++
		if g, ok := a.of[nameOf(b.Pod)]; ok {
			out.placed[g]++
		}
	}
	return out, nil
}

// broken are the groups that have fewer pods than they need and are not refused.
func (a *admission) broken(at *attempt) []int {
	var out []int
	for i := range a.groups {
		if at.refused[i] == nil && at.placed[i] < a.groups[i].need {
			out = append(out, i)
		}
	}
	return out
}

// better reports whether an attempt has more pods that groups need of the highest priority in which the two differ, or more others of that
// priority.
func (a *admission) better(next, at *attempt) bool {
	of := func(x *attempt) map[int32][2]int {
		out := map[int32][2]int{}
		for priority, n := range x.pods {
			out[priority] = [2]int{0, n}
		}
		for i := range a.groups {
			g := &a.groups[i]
			n := out[g.priority]
			out[g.priority] = [2]int{n[0] + min(g.need, x.placed[i]), n[1]}
		}
		return out
	}
	x, y := of(next), of(at)
	all := maps.Clone(x)
	maps.Copy(all, y)
	for _, priority := range slices.Backward(slices.Sorted(maps.Keys(all))) {
		more, less := x[priority], y[priority]
		if c := slices.Compare(more[:], less[:]); c != 0 {
			return c > 0
		}
	}
	return false
}

// reason says what the group lacks in a plan: the reason of the pool that comes nearest to holding one of its unplaced pods.
func (a *admission) reason(g int, at *attempt) *scheduling.Reason {
	var out scheduling.Reason
	for _, u := range at.result.Unplaced() {
		if !slices.ContainsFunc(u.Pods, func(pod *corev1.Pod) bool { i, ok := a.of[nameOf(pod)]; return ok && i == g }) {
			continue
		}
		for _, r := range u.Reasons() {
			if out.Detail == "" || r.Pool != "" && r.Stage.Depth() > out.Stage.Depth() {
				out = r
			}
		}
	}
	if out.Detail == "" {
		out = scheduling.Reason{Stage: scheduling.StageGroup, Detail: "they are not planned"}
	}
	out.Detail = fmt.Sprintf("group %s needs %d pods at once, and %d of them have a place; for the others: %s", a.groups[g].Name, a.groups[g].need, min(at.placed[g], a.groups[g].need), out.Detail)
	return &out
}
