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
	// Draft finds out quickly which pods fit. It is called for sets of groups that are only
	// compared.
	Draft(context.Context, *scheduling.Problem) (*scheduling.Result, error)
	// Search takes more time than Draft to find a place for all pods. It is called for a few pods,
	// if no draft found one.
	Search(context.Context, *scheduling.Problem) (*scheduling.Result, error)
	// Plan plans the same pods for a low price. It is called for the result.
	Plan(context.Context, *scheduling.Problem) (*scheduling.Result, error)
}

// Solution is what [Solve] found.
type Solution struct {
	// Problem is the last problem that was planned, and Result its plan.
	Problem *scheduling.Problem
	Result  *scheduling.Result
	// Complete says that each better set of groups was refuted: limits, stock and nodes do not
	// suffice for it, or the planner found no place for it in any choice of domains. If it is
	// false, the limits on drafts (see [Solve]) ended the search, and a better set may exist.
	Complete bool
}

// Solve plans a snapshot so that each group has either all that it needs or nothing. Pods of a
// group that waits are unplaced. The reason given for them says why one of these pods has no place
// once the placed groups have theirs.
//
// If all groups fit, Solve plans once. Otherwise it searches with drafts for the best set of
// groups, and for domains that hold a set if the planner's own choice does not. There are at most
// 64 drafts of sets and 512 of domains, fewer with many pods. For at most 64 pods it also searches
// more thoroughly for places, at most 32 times. If pods that a placed group does not need are
// unplaced, Solve uses the remaining drafts to look for domains that hold more of them.
//
// If pods that are in no group, or that their group can do without, have no place beside groups of a
// lower priority, Solve also drafts sets without these groups.
//
// A set is never planned if it needs more than limits, stock and free nodes can give, over all
// domains or in the domain that a group needs. The pods that a set of groups needs are first
// planned without other pods. A set that has no place even then is not planned together with other
// pods.
//
// Without groups it is one compilation and one plan. Errors are those of [Validate], of
// [scheduling.Compile] and of the planner. The groups' functions are called a few times for each
// pod.
func Solve(ctx context.Context, s scheduling.Snapshot, o *scheduling.Options, groups []Group, planner Planner) (*Solution, error) {
	if err := Validate(groups); err != nil {
		return nil, err
	}
	a := &admission{ctx: ctx, planner: planner, snapshot: s, of: map[types.NamespacedName]int{}, needed: map[types.NamespacedName]bool{}, complete: true, rooms: map[string]*rooms{}, alone: map[alone]bool{}}
	if o != nil {
		a.options = *o
	}
	var err error
	if a.base, err = scheduling.Compile(s, &a.options); err != nil {
		return nil, err
	}
	if len(groups) == 0 {
		result, err := planner.Plan(ctx, a.base)
		if err != nil {
			return nil, err
		}
		return &Solution{a.base, result, true}, nil
	}
	a.read(groups)
	all := a.whole()
	a.measure(a.base)
	if a.suits(all) {
		problem, err := a.compile(trial{set: all, last: noGroup, by: byPlan}, a.reasons)
		if err != nil {
			return nil, err
		}
		at, err := a.solve(trial{set: all, last: noGroup, by: byPlan}, problem)
		if err != nil {
			return nil, err
		}
		if a.holds(at) {
			best, err := a.forgo(at)
			if err == nil && best != at {
				best, err = a.conclude(best)
			}
			if err == nil && (best == at || !a.better(best, at)) {
				best, err = a.withSpares(at, a.reasons)
			}
			if err != nil {
				return nil, err
			}
			return &Solution{best.problem, best.result, a.complete}, nil
		}
	}
	at, err := a.bestSet(all)
	if err != nil {
		return nil, err
	}
	if at, err = a.conclude(at); err != nil {
		return nil, err
	}
	return &Solution{at.problem, at.result, a.complete}, nil
}

// admission is a running [Solve].
type admission struct {
	ctx      context.Context
	planner  Planner
	snapshot scheduling.Snapshot
	options  scheduling.Options
	base     *scheduling.Problem // the snapshot without groups
	groups   []group
	of       map[types.NamespacedName]int  // by pod to place, its group
	pending  map[types.NamespacedName]bool // to place, and on no node
	needed   map[types.NamespacedName]bool
	selected map[types.NamespacedName]bool // not needed, but selected by constraints of needed pods; see selectPods
	reasons  []*scheduling.Reason          // by group, why it cannot be whole whatever is bought; else nil

	capacity []float64         // by resource; see measure
	existing []float64         // the part of capacity that nodes have free
	rooms    map[string]*rooms // by label; see roomsOf
	kinds    int
	failed   [][]int // sets that did not fit, as counts by kind
	alone    map[alone]bool
	drafts   int    // remaining, to find a better set
	trials   [2]int // remaining, to find domains for a set, by method
	complete bool   // nothing was left out because drafts ran out
}

// trial is what an attempt plans.
type trial struct {
	set  []bool // by group
	last int    // the group of the set that comes after the others; noGroup for none
	in   domains
	by   method
	who  crowd
	// spares is the priority up to which noSpares leaves pods out. Pods of a higher priority come
	// before the groups that have no place beside them.
	spares int32
}

// attempt is a plan with a set of groups.
type attempt struct {
	trial
	problem *scheduling.Problem
	result  *scheduling.Result
	placed  []int         // by group
	pods    map[int32]int // placed, by priority
	price   float64       // of its new nodes, in dollars an hour
	work    int           // the pods and offerings looked at, each counted once a round and once when compiled
}

// together returns the sets of pods that must share a value of a label; nil for none. They are the
// groups in one domain each for which none was chosen, and the sets of the options.
func (a *admission) together(in domains) func(*corev1.Pod) (set, label string) {
	others := a.options.Together
	if !slices.ContainsFunc(a.groups, func(g group) bool { return g.Key != "" }) {
		return others
	}
	return func(pod *corev1.Pod) (set, label string) {
		if g := a.groupOf(pod); g >= 0 && a.groups[g].Key != "" {
			return a.setOf(g, in.of(g), pod)
		}
		if others == nil {
			return "", ""
		}
		return others(pod)
	}
}

// noGroup is the position of no group.
const noGroup = -1

// compile compiles the snapshot for a trial. Pods of groups that are not in its set are refused, by
// their reasons if they have one. Drafts only find out what has places, so they ignore preferences,
// which refuse nothing. A search of all places for what groups need makes only one attempt.
func (a *admission) compile(t trial, reasons []*scheduling.Reason) (*scheduling.Problem, error) {
	o := a.options
	if o.Together = a.together(t.in); len(a.groups) > 0 {
		o.Rank = func(pod *corev1.Pod) int {
			switch name := nameOf(pod); {
			case !a.needed[name]:
				return 0
			case a.of[name] == t.last:
				return 1
			default:
				return 2
			}
		}
		o.IgnorePreferences = o.IgnorePreferences || t.by == byDraft || t.who == needed
		if t.by == bySearch && t.who == needed {
			o.Attempts = 1
		}
		narrow := func(pod *corev1.Pod, required requirements.Alternatives) (requirements.Alternatives, *scheduling.Reason) {
			name := nameOf(pod)
			g, ok := a.of[name]
			switch {
			case t.who == needed && !a.needed[name] && !a.selected[name]: // of a leaving node
				return required, leftOut
			case !ok:
				return required, nil
			case !t.set[g]:
				return required, cmp.Or(reasons[g], leftOut)
			case t.who == noSpares && !a.needed[name] && a.groups[g].need > 0 && priorityOf(pod) <= t.spares:
				return required, &scheduling.Reason{Stage: scheduling.StageGroup, Detail: fmt.Sprintf("group %s already has the pods that it needs; no plan was found that places its other pods, too, and keeps all groups whole", a.groups[g].Name)}
			}
			return required, nil
		}
		o.Constraints = append(slices.Clip(o.Constraints), constraint.Func(narrow), keyed{constraint.Func(a.requireKey)})
	}
	if t.in != nil {
		o.Within = a.within(t.in)
	}
	s := a.snapshot
	if t.who == needed { // leaving others out is quicker than refusing them
		s.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(pod *corev1.Pod) bool {
			name := nameOf(pod)
			return a.pending[name] && !a.needed[name] && !a.selected[name]
		})
	}
	return scheduling.Compile(s, &o)
}

// requireKey narrows pods of groups to the nodes that have the key of their group. No others hold
// them. Nodes have their hostname when they join.
func (a *admission) requireKey(pod *corev1.Pod, required requirements.Alternatives) (requirements.Alternatives, *scheduling.Reason) {
	if g, ok := a.of[nameOf(pod)]; ok && a.groups[g].Key != "" && a.groups[g].Key != corev1.LabelHostname {
		required = required.Intersect(requirements.AnyOf(requirements.MustOf(requirements.Exists(a.groups[g].Key))))
	}
	return required, nil
}

// keyed is a constraint that comes from the pod's group.
type keyed struct{ constraint.Func }

// String names it in reasons.
func (keyed) String() string { return "its group" }

// leftOut is the reason of groups that are not in the set of a draft. It is never shown.
var leftOut = &scheduling.Reason{Stage: scheduling.StageGroup, Detail: "it is left out"}

// method is one of the planner's.
type method int

const (
	byDraft method = iota
	bySearch
	byPlan
)

// crowd says which pods an attempt plans.
type crowd int

const (
	everyone crowd = iota
	noSpares       // without those that groups of the set can do without, up to a priority
	needed         // those that groups of the set need, and those that their constraints select
)

// attempt makes a trial.
func (a *admission) attempt(t trial) (*attempt, error) {
	problem, err := a.compile(t, a.reasons)
	if err != nil {
		return nil, err
	}
	return a.solve(t, problem)
}

func (a *admission) solve(t trial, p *scheduling.Problem) (*attempt, error) {
	out := &attempt{trial: t, problem: p, placed: make([]int, len(a.groups)), pods: map[int32]int{}}
	plan := []func(context.Context, *scheduling.Problem) (*scheduling.Result, error){byDraft: a.planner.Draft, bySearch: a.planner.Search, byPlan: a.planner.Plan}[t.by]
	var err error
	if out.result, err = plan(a.ctx, p); err != nil {
		return nil, err
	}
	looked := 0
	for _, c := range p.Classes {
		if c.Refusal == nil {
			looked += len(c.Pods)
		}
	}
	for i := range p.Shapes {
		looked += len(p.Shapes[i].Offerings)
	}
	out.work = looked * (1 + out.result.Rounds)
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

// broken returns the groups of the set that have fewer pods than they need, or more values of their
// key than they may.
func (a *admission) broken(at *attempt) []int {
	var out []int
	for i := range a.groups {
		if at.set[i] && (at.placed[i] < a.groups[i].need || a.isSpread(i, at)) {
			out = append(out, i)
		}
	}
	return out
}

// holds reports whether all groups of the set are whole.
func (a *admission) holds(at *attempt) bool { return len(a.broken(at)) == 0 }

// conclude plans the set of a draft, with the reasons of the groups that wait. If the plan places
// less than the draft, it is made again: first in the domains of the draft, then by the draft's
// method, and finally without the groups that are not whole. The last can happen if the context
// ends meanwhile.
func (a *admission) conclude(draft *attempt) (*attempt, error) {
	draft, reasons, err := a.explain(draft)
	if err != nil {
		return nil, err
	}
	t := draft.trial
	t.last, t.by = noGroup, byPlan
	for {
		p, err := a.compile(t, reasons)
		if err != nil {
			return nil, err
		}
		at, err := a.solve(t, p)
		if err != nil {
			return nil, err
		}
		broken := a.broken(at)
		if len(broken) == 0 {
			return a.withSpares(at, reasons)
		}
		if t.in == nil {
			t.in = a.domainsOf(draft)
			continue
		}
		if t.by != bySearch && draft.by == bySearch {
			t.by = bySearch
			continue
		}
		t.set = without(t.set, broken)
		for _, g := range broken {
			reasons[g] = a.reason(g, g, at)
		}
	}
}
