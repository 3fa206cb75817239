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
	// Search takes more time than Draft to find a place for all pods. It is called for a few pods, for which no draft did.
	Search(context.Context, *scheduling.Problem) (*scheduling.Result, error)
	// Plan plans the same pods for a low price. It is called for the result.
	Plan(context.Context, *scheduling.Problem) (*scheduling.Result, error)
}

// Solution is what [Solve] found.
type Solution struct {
	// Problem is the last problem that was planned, and Result its plan.
	Problem *scheduling.Problem
	Result  *scheduling.Result
	// Complete says that each better set of groups was refuted: limits, stock and nodes do not suffice for it, or the planner found no place for it
	// in any choice of domains. Otherwise there were more sets or choices than drafts.
	Complete bool
}

// Solve plans a snapshot so that each group has all that it needs or nothing. Pods of a group that waits are unplaced, with the reason that one of
// them meets beside the groups that are placed.
//
// It plans once if all groups fit. Otherwise it searches for the best set of groups with drafts, and for domains that hold a set where the planner's
// own do not: at most 64 drafts of sets and 512 of domains, fewer with many pods. Of up to 64 pods it also searches more thoroughly for places, at most
// 32 times. What exceeds limits, stock and nodes, of all domains or of one, is
// never planned. Without groups it is one compilation and one plan. Errors are those of [scheduling.Compile] and of the planner. The groups'
// functions are called a few times for each pod.
func Solve(ctx context.Context, s scheduling.Snapshot, o *scheduling.Options, groups []Group, planner Planner) (*Solution, error) {
	a := &admission{ctx: ctx, planner: planner, snapshot: s, of: map[types.NamespacedName]int{}, needed: map[types.NamespacedName]bool{}, complete: true, rooms: map[string]*rooms{}}
	if o != nil {
		a.options = *o
	}
	var err error
	if a.base, err = scheduling.Compile(s, &a.options); err != nil {
		return nil, err
	}
	a.read(groups)
	all := a.whole()
	a.measure(a.base)
	if a.suits(all) {
		problem := a.base
		if len(groups) > 0 {
			if problem, err = a.compile(all, noGroup, a.reasons, nil, everyone); err != nil {
				return nil, err
			}
		}
		at, err := a.solve(all, nil, problem, byPlan)
		if err != nil {
			return nil, err
		}
		if a.holds(at) {
			return &Solution{at.problem, at.result, true}, nil
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
	of       map[types.NamespacedName]int // by pod to place, its group
	needed   map[types.NamespacedName]bool
	reasons  []*scheduling.Reason // by group, why it cannot be whole whatever is bought; nil for the others

	capacity []float64         // by resource; see measure
	existing []float64         // of it what nodes have free
	rooms    map[string]*rooms // by label; see roomsOf
	kinds    int
	failed   [][]int // sets that did not fit, as counts by kind
	drafts   int     // that may still be made to find a better set
	trials   [2]int  // that may still be made to find domains for a set, by method
	complete bool    // nothing was left out for want of drafts
}

// attempt is a plan with a set of groups.
type attempt struct {
	set     []bool // by group
	in      domains
	by      method // that found it
	who     crowd
	problem *scheduling.Problem
	result  *scheduling.Result
	placed  []int         // by group
	pods    map[int32]int // placed, by priority
	price   float64       // of its new nodes, in dollars an hour
	work    int           // the pods that were planned, each counted once a round
}

// together are the sets of pods that must share a value of a label: the groups in one domain each, of which none was chosen, and those of the
// options; nil for none.
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

// compile compiles the snapshot with the pods of other groups than those of the set refused, by their reasons where they have one, and the groups
// of the set in the domains that were chosen. Of the set one group may come last.
func (a *admission) compile(set []bool, last int, reasons []*scheduling.Reason, in domains, who crowd) (*scheduling.Problem, error) {
	o := a.options
	if o.Together = a.together(in); len(a.groups) > 0 {
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
		if who == needed {
			o.Attempts = 1
		}
		narrow := func(pod *corev1.Pod, required requirements.Alternatives) (requirements.Alternatives, *scheduling.Reason) {
			g, ok := a.of[nameOf(pod)]
			switch {
			case who == needed && !a.needed[nameOf(pod)]:
				return required, leftOut
			case !ok:
				return required, nil
			case !set[g]:
				return required, cmp.Or(reasons[g], leftOut)
			case who == noSpares && !a.needed[nameOf(pod)] && a.groups[g].need > 0:
				return required, &scheduling.Reason{Stage: scheduling.StageGroup, Detail: fmt.Sprintf("group %s has the pods that it needs, and beside this one they would not all have a place", a.groups[g].Name)}
			case a.groups[g].Values > 1 && a.groups[g].Key != corev1.LabelHostname:
				return required.Intersect(requirements.AnyOf(requirements.MustOf(requirements.Exists(a.groups[g].Key)))), nil
			}
			return required, nil
		}
		o.Constraints = append(slices.Clip(o.Constraints), constraint.Func(narrow))
	}
	if in != nil {
		o.Within = a.within(in)
	}
	return scheduling.Compile(a.snapshot, &o)
}

// leftOut is the reason of groups that are not in the set of a draft. It is never shown.
var leftOut = &scheduling.Reason{Stage: scheduling.StageGroup, Detail: "it is left out"}

// method is one of the planner's.
type method int

const (
	byDraft method = iota
	bySearch
	byPlan
)

// draft plans a set of groups in some domains, of which one may come last, only to see what fits.
func (a *admission) draft(set []bool, last int, in domains, by method) (*attempt, error) {
	problem, err := a.compile(set, last, a.reasons, in, everyone)
	if err != nil {
		return nil, err
	}
	return a.solve(set, in, problem, by)
}

// crowd is the pods that an attempt plans.
type crowd int

const (
	everyone crowd = iota
	noSpares       // without those that groups of the set can do without
	needed         // those that groups of the set need, for one attempt
)

// search searches for places of a set in some domains.
func (a *admission) search(set []bool, in domains, who crowd) (*attempt, error) {
	problem, err := a.compile(set, noGroup, a.reasons, in, who)
	if err != nil {
		return nil, err
	}
	out, err := a.solve(set, in, problem, bySearch)
	if err == nil {
		out.who = who
	}
	return out, err
}

func (a *admission) solve(set []bool, in domains, p *scheduling.Problem, by method) (*attempt, error) {
	out := &attempt{set: set, in: in, by: by, problem: p, placed: make([]int, len(a.groups)), pods: map[int32]int{}}
	plan := []func(context.Context, *scheduling.Problem) (*scheduling.Result, error){byDraft: a.planner.Draft, bySearch: a.planner.Search, byPlan: a.planner.Plan}[by]
	var err error
	if out.result, err = plan(a.ctx, p); err != nil {
		return nil, err
	}
	for _, c := range p.Classes {
		if c.Refusal == nil {
			out.work += len(c.Pods) * out.result.Rounds
		}
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

// broken are the groups of the set that have fewer pods than they need, or more values of their key than they may.
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

// conclude plans the set of a draft, with the reasons of the groups that wait. A plan that places less than the draft is made again: in the
// domains of the draft at first, as the draft was made then, and without the groups that are not whole in the end, as it may be where the context
// has ended meanwhile.
func (a *admission) conclude(draft *attempt) (*attempt, error) {
	draft, reasons, err := a.explain(draft)
	if err != nil {
		return nil, err
	}
	in, by, who := draft.in, byPlan, draft.who
	for set := draft.set; ; {
		p, err := a.compile(set, noGroup, reasons, in, who)
		if err != nil {
			return nil, err
		}
		at, err := a.solve(set, in, p, by)
		if err != nil {
			return nil, err
		}
		broken := a.broken(at)
		if len(broken) == 0 {
			return at, nil
		}
		if in == nil {
			in = a.domainsOf(draft)
			continue
		}
		if by != bySearch && draft.by == bySearch {
			by = bySearch
			continue
		}
		set = without(set, broken)
		for _, g := range broken {
			reasons[g] = a.reason(g, g, at)
		}
	}
}
