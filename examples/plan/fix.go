package plan

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/gang"
)

// fixBudget limits the work of looking for fixes for all refused pods of a plan. So explaining a
// large plan stays quick, and the answer does not depend on the speed of the machine. Trying a
// change costs triedFix plus one for each pod and instance type that is read again. With 1,500 pods
// that is a fiftieth of the budget and about 25 ms of CPU. The first attempt of a plan of all pods
// also costs podAnew for each pod, and a whole search searchAnew times as much. Whole searches are
// made for the first half of the budget. A change that was begun with the last of the budget is
// tried to the end.
const (
	fixBudget  = 100_000
	triedFix   = 500
	podAnew    = 60
	searchAnew = 5
)

// Fix is a change that gives refused pods a place. Its fields say all that a program needs to make
// it; [Fix.Apply] makes it to a snapshot.
type Fix struct {
	// Kind is the kind of change. It determines which of the fields up to Requests are set. Pool is
	// the pool that is changed or that the pods would go to.
	Kind                    FixKind
	Pool, Quota, Key, Value string
	// Setting names the setting of the plan that has to be raised to Value: with [RaiseSetting]
	// instead of a limit of Pool, and with [RaiseLimit], if it is not empty, in addition.
	Setting string
	// Pods are the pods of the snapshot to change; nil if a pool or a quota changes. The pods of a
	// workload, see [WorkloadOf], share a template that the user changes. So these are all pods of a
	// workload that were planned, whether or not they are refused. A pod without a controller is
	// changed alone. Running pods are not changed: they have the old template until they are
	// replaced.
	Pods []*corev1.Pod
	// Constraint and Index are for [PreferOnly]: they name the required constraint of each of Pods
	// that becomes a preferred one. Constraint names a list of the pod's spec, and Index is a
	// position in it. For affinity and anti-affinity it is the list of required terms. For spreads
	// it is topologySpreadConstraints, which has required and preferred ones. A term that becomes
	// preferred gets the weight 100. A pod that has another topology key there, as pods of an older
	// template may, is not changed.
	Constraint PodConstraint
	Index      int
	// Allow lists values by label.
	Allow map[string][]string
	// Requests is for [RequestLess]: how much of each listed resource the pods may request at most.
	// These pods have one container.
	Requests corev1.ResourceList
	// Text describes the fix in words. It is empty if none was found.
	Text string
	// What has the same words as Text, without the price. PerHour is the larger of two amounts, in
	// dollars an hour for the pods of all Classes: what the change adds on top of this plan, and
	// what it adds in a new plan. So it never adds more, unless the budget for fixes of a large plan
	// allowed only for the first attempt of the new plan: a whole search may pay more, for
	// preferences.
	What    string
	PerHour float64
	// Classes are indexes into Problem.Classes: the refused classes that the change was tried for.
	// If it is made once, Placed of their Refused pods get places. Placed is less than Refused only
	// if pods change and no place is found for some pods of their workloads. Then Text begins with
	// both numbers.
	Classes         []int
	Placed, Refused int
	// Untried is how many changes were not tried because the budget was used up.
	Untried int
}

// Fix looks for one change that gives the refused pods of a class a place. Every offered change was
// tried twice: with the plan carried out and every other pod in its place, and in a new plan of the
// changed snapshot. Both place the refused pods, and no other pod loses its place. Fix first tries
// a change for several classes together: a limit is raised for all classes that it refuses, and any
// other change is made for all classes with the same reasons. If that does not help, Fix tries the
// change for the class alone.
//
// A change of pods is tried for whole workloads: for all classes with refused pods of the same
// controllers. If it helps some of these pods only, Fix returns it if no change helps them all.
//
// The most promising changes are tried first, that is, those for which the fewest conditions are
// unmet. If all is true, Fix tries every change; otherwise the fixes of a plan share a budget. It
// panics if there is no such class.
func (p *Plan) Fix(class int, reasons []scheduling.Reason, all bool) Fix {
	return p.trials(all).first(class, reasons)
}

// FirstFixes returns what [Plan.Fix] finds for each class of Unplaced, in their order. A change
// that several of them share is tried once.
func (p *Plan) FirstFixes(all bool) []Fix {
	t := p.trials(all)
	var out []Fix
	for _, u := range p.Unplaced() {
		out = append(out, t.first(u.Class, u.Reasons()))
	}
	return out
}

// Fixes returns all changes that give the refused pods of a class a place, cheapest first, and
// after them those that help only some pods of its workload. Each was tried as in [Plan.Fix],
// without a budget. When ctx ends, untried is how many changes were not tried.
func (p *Plan) Fixes(ctx context.Context, u scheduling.Unplaced) (fixes []Fix, untried int) {
	return p.trials(true).helpful(ctx, u.Class, u.Reasons())
}

// Refusal is the pods of one class without a place, with the reasons and the changes that would
// help.
type Refusal struct {
	scheduling.Unplaced
	// Reasons are those of [scheduling.Unplaced.Reasons].
	Reasons []scheduling.Reason
	// Fixes are the changes that help. Untried is how many changes were not tried, see
	// [Plan.Fixes].
	Fixes   []Fix
	Untried int
}

// Refusals returns the pods without a place, class by class. It looks for the fixes of a class only
// when the iteration reaches it, until ctx ends.
func (p *Plan) Refusals(ctx context.Context) iter.Seq[Refusal] {
	return func(yield func(Refusal) bool) {
		t := p.trials(true)
		for _, u := range p.Unplaced() {
			r := Refusal{Unplaced: u, Reasons: u.Reasons()}
			r.Fixes, r.Untried = t.helpful(ctx, u.Class, r.Reasons)
			if !yield(r) {
				return
			}
		}
	}
}

// Ignored returns the pods that are not to be planned, and why. They are neither placed nor
// refused.
func (p *Plan) Ignored() []scheduling.Ignored { return slices.Clone(p.Problem.Ignored) }

// IsStopped reports whether the context ended before the plan was as good as its options ask for.
func (p *Plan) IsStopped() bool { return p.Stopped || p.Packing.Stopped }

// trials tries changes for the refused pods of a plan. It keeps the answers, because classes share
// changes.
type trials struct {
	p       *Plan
	all     bool // without a budget
	refused []scheduling.Unplaced
	class   map[types.NamespacedName]int // of the pending pods
	unit    map[int][]int                // by refused class: it and others with refused pods of its workloads
	left    map[int]int                  // how many pods of each class have no place
	// leftAtFirst is the same after the first attempt of a search, at least left; nil until needed.
	leftAtFirst map[int]int
	known       map[string]Fix // by the change and the classes; without text if it does not help
	needs       map[int]needs  // by refused class; see needsOf
}

func (p *Plan) trials(all bool) *trials {
	t := &trials{p: p, all: all, refused: p.Unplaced(), class: map[types.NamespacedName]int{}, known: map[string]Fix{}, needs: map[int]needs{}}
	for i, c := range p.Problem.Classes {
		for _, pod := range c.Pods {
			t.class[nameOf(pod)] = i
		}
	}
	t.left, t.unit = t.without(p), map[int][]int{}
	of := map[string]int{} // a class of the unit, by workload
	for _, u := range t.refused {
		t.unit[u.Class] = []int{u.Class}
		for _, pod := range u.Pods {
			workload := WorkloadOf(pod)
			if other, ok := of[workload]; ok && !slices.Contains(t.unit[other], u.Class) {
				whole := slices.Sorted(slices.Values(slices.Concat(t.unit[other], t.unit[u.Class])))
				for _, class := range whole {
					t.unit[class] = whole
				}
			}
			of[workload] = u.Class
		}
	}
	return t
}

// without counts the pods without a place in another plan, by their classes in this one.
func (t *trials) without(p *Plan) map[int]int {
	out := map[int]int{}
	for _, u := range p.Unplaced() {
		for _, pod := range u.Pods {
			class, ok := t.class[nameOf(pod)]
			if !ok {
				class = -1
			}
			out[class]++
		}
	}
	return out
}

// first returns the first change that helps all pods of the workloads, or else the one that helps
// most of them.
func (t *trials) first(class int, reasons []scheduling.Reason) Fix {
	var best Fix
	changes := t.p.changes(class, reasons)
	for k, c := range changes {
		fix, known := t.offer(context.Background(), class, reasons, c)
		if !known {
			best.Untried = len(changes) - k
			return best
		}
		if fix.Placed > best.Placed || fix.isWhole() {
			best = fix
		}
		if best.isWhole() {
			return best
		}
	}
	return best
}

// isWhole reports whether it helps all pods that it was tried for.
func (f *Fix) isWhole() bool { return f.Text != "" && f.Placed == f.Refused }

// helpful returns all changes that help, and how many were not tried.
func (t *trials) helpful(ctx context.Context, class int, reasons []scheduling.Reason) (fixes []Fix, untried int) {
	changes := t.p.changes(class, reasons)
	for k, c := range changes {
		fix, known := t.offer(ctx, class, reasons, c)
		if !known {
			untried = len(changes) - k
			break
		}
		if fix.Text != "" {
			fixes = append(fixes, fix)
		}
	}
	slices.SortStableFunc(fixes, func(a, b Fix) int {
		return cmp.Or(cmp.Compare(a.Refused-a.Placed, b.Refused-b.Placed), cmp.Compare(a.PerHour, b.PerHour))
	})
	return fixes, untried
}

// offer returns the fix, without a text if the change does not help the class. It is not known if
// the budget is used up or ctx has ended.
func (t *trials) offer(ctx context.Context, class int, reasons []scheduling.Reason, c change) (fix Fix, known bool) {
	if classes := t.joint(class, reasons, c); len(classes) > 1 {
		if fix, known = t.try(ctx, c, classes); !known || fix.isWhole() && slices.Contains(fix.Classes, class) {
			return fix, known
		}
	}
	if c.of.Kind.changesPods() {
		return t.try(ctx, c, t.unit[class])
	}
	return t.try(ctx, c, []int{class})
}

// joint returns all classes that may need the change: those that the same limit refuses, or those
// that are refused for the same reasons, and for a change of pods their whole workloads.
func (t *trials) joint(class int, reasons []scheduling.Reason, c change) []int {
	need, id, why := map[int]bool{}, c.id(), textOf(reasons)
	for _, u := range t.refused {
		if u.Class != class {
			if theirs := t.needsOf(u); c.prepare == nil && why != theirs.why || !theirs.changes[id] {
				continue
			}
		}
		if need[u.Class] = true; c.of.Kind.changesPods() {
			for _, other := range t.unit[u.Class] {
				need[other] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(need))
}

// try tries the change for the refused pods of the classes.
func (t *trials) try(ctx context.Context, c change, classes []int) (fix Fix, known bool) {
	key := c.id() + fmt.Sprint(classes)
	if fix, known = t.known[key]; known {
		return fix, true
	}
	if ctx.Err() != nil || t.p.spent > fixBudget && !t.all {
		return Fix{}, false
	}
	waiting := t.waiting(classes)
	switch {
	case c.prepare != nil:
		fix = t.raised(ctx, c, waiting, classes)
	case !c.of.Kind.changesPods():
		fix, _ = t.verify(ctx, c, waiting, classes)
	default:
		narrow := t.edit(c, classes, false)
		fix, _ = t.verify(ctx, narrow, waiting, classes)
		if wide := t.edit(c, classes, true); !fix.isWhole() && wide.text != narrow.text {
			if more, _ := t.verify(ctx, wide, waiting, classes); more.Placed > fix.Placed {
				fix = more
			}
		}
	}
	if ctx.Err() != nil {
		return Fix{}, false
	}
	t.known[key] = fix
	return fix, true
}

// raised tries the limit that the waiting pods need beside what the plan buys. If that helps but is
// too low for a new plan, which buys other nodes, it tries the limit that a new plan needs.
func (t *trials) raised(ctx context.Context, c change, waiting scheduling.Snapshot, classes []int) Fix {
	t.spend(waiting, 0)
	ready, ok := c.prepare(waiting, t.p)
	if !ok {
		return Fix{}
	}
	fix, helps := t.verify(ctx, ready, waiting, classes)
	if fix.Text != "" || !helps {
		return fix
	}
	t.spend(t.p.Problem.Snapshot(), searchAnew)
	if ready, ok = c.prepare(t.p.Problem.Snapshot(), nil); ok {
		fix, _ = t.verify(ctx, ready, waiting, classes)
	}
	return fix
}

// verify plans the waiting pods with the change. If that helps, it plans anew what the user has
// after making the change, because other pods then choose again, too. The fix costs what the dearer
// of the two adds, and places as many pods as both do. It has no text if a new plan does not help.
func (t *trials) verify(ctx context.Context, c change, waiting scheduling.Snapshot, classes []int) (fix Fix, helps bool) {
	t.spend(waiting, 0)
	fix = c.of
	fix.Classes = classes
	after, _ := t.plan(ctx, c.of.Apply(waiting), &t.p.options, t.left, &fix)
	if after == nil {
		return Fix{}, false
	}
	more, ok := t.anew(ctx, c, &fix, after.Cost())
	if !ok {
		return Fix{}, true
	}
	fix.Text = c.text
	if fix.Placed < fix.Refused {
		fix.Text = fmt.Sprintf("%d of %d pods%s %s", fix.Placed, fix.Refused, t.ofWorkload(fix.Classes), c.text)
	}
	fix.What, fix.PerHour = fix.Text, more.Dollars()
	if more > 0 {
		fix.Text += fmt.Sprintf(", for at most %s/h more", more)
	}
	return fix, true
}

// ofWorkload names the controller of the refused pods of the classes, if they have one.
func (t *trials) ofWorkload(classes []int) string {
	names := map[string]bool{}
	for _, u := range t.refused {
		if slices.Contains(classes, u.Class) {
			for _, pod := range u.Pods {
				names[WorkloadOf(pod)] = true
			}
		}
	}
	if len(names) > 1 {
		return ""
	}
	return " of " + strings.Join(slices.Collect(maps.Keys(names)), "")
}

// anew plans the whole changed snapshot like plan, and returns what that adds to the cost, at least
// more. If a whole search would take more than half of the budget, its first attempt is enough if
// it adds no more and decides who has a place.
func (t *trials) anew(ctx context.Context, c change, fix *Fix, more binpack.Price) (binpack.Price, bool) {
	s := c.of.Apply(t.p.Problem.Snapshot())
	if !t.all && t.p.spent+podAnew*searchAnew*len(t.class) > fixBudget/2 {
		if decided, harms := t.atFirst(ctx, s, *fix, more); decided || harms {
			return more, decided
		}
	}
	t.spend(s, searchAnew)
	after, _ := t.plan(ctx, s, &t.p.options, t.left, fix)
	if after == nil {
		return 0, false
	}
	return max(more, after.Cost()-t.p.Cost()), true
}

// atFirst compares the first attempt of a search with that of the unchanged snapshot. It tells what
// the change does to other pods in a fraction of the time. It is decided if it keeps what the fix
// says for no more cost, leaves out no pod that has a place in the plan of the unchanged snapshot,
// and is complete: a search that could place others as well may give them the places of some pods.
func (t *trials) atFirst(ctx context.Context, s scheduling.Snapshot, fix Fix, more binpack.Price) (decided, harms bool) {
	quick := t.p.options
	once := *quick.Scheduling
	once.Attempts, quick.Scheduling = 1, &once
	if t.leftAtFirst == nil {
		t.spend(s, 1)
		p, err := Unproved(ctx, t.p.Problem.Snapshot(), &quick)
		if err != nil {
			return false, true
		}
		t.leftAtFirst = t.without(p)
		for class, n := range t.left {
			t.leftAtFirst[class] = max(n, t.leftAtFirst[class])
		}
	}
	t.spend(s, 1)
	tried := fix
	after, harms := t.plan(ctx, s, &quick, t.leftAtFirst, &tried)
	if after == nil || tried.Placed < fix.Placed || after.Cost()-t.p.Cost() > more {
		return false, harms
	}
	for class, n := range t.without(after) {
		if n > t.left[class] {
			return false, false
		}
	}
	return after.IsComplete(), false
}

// plan plans a changed snapshot and sets what that does for the classes of the fix. A change of
// pods helps if it gives any of their refused pods a place. Of another change, only those classes
// remain whose pods all have a place. The plan is nil if the change does not help, or if it harms:
// if more pods of some class have no place than are left.
func (t *trials) plan(ctx context.Context, s scheduling.Snapshot, opts *Options, left map[int]int, fix *Fix) (p *Plan, harms bool) {
	p, err := Unproved(ctx, s, opts)
	if err != nil || slices.ContainsFunc(p.Problem.Ignored, func(i scheduling.Ignored) bool {
		_, planned := t.class[nameOf(i.Pod)]
		return planned
	}) {
		return nil, true
	}
	without := t.without(p)
	for class, n := range without {
		if n > left[class] {
			return nil, true
		}
	}
	if !fix.Kind.changesPods() {
		fix.Classes = slices.DeleteFunc(slices.Clone(fix.Classes), func(class int) bool { return without[class] > 0 })
	}
	refused, placed := 0, 0
	for _, class := range fix.Classes {
		refused, placed = refused+t.left[class], placed+max(0, t.left[class]-without[class])
	}
	if fix.Refused == refused { // it was tried in another plan, too
		placed = min(placed, fix.Placed)
	}
	if fix.Refused, fix.Placed = refused, placed; placed == 0 {
		return nil, false
	}
	return p, false
}

// spend takes a plan of the snapshot from the budget: that of waiting pods alone, or so many
// attempts of a plan of all pods.
func (t *trials) spend(s scheduling.Snapshot, attempts int) {
	t.p.spent += triedFix + len(s.Pods)
	for i := range s.Pools {
		t.p.spent += len(s.Pools[i].Types)
	}
	t.p.spent += podAnew * len(t.class) * attempts
}

// waiting returns the snapshot after the plan, with the refused pods of the classes and of the
// groups that these belong to.
func (t *trials) waiting(classes []int) scheduling.Snapshot {
	along := map[int]bool{}
	for _, class := range classes {
		for _, pod := range t.p.Problem.Classes[class].Pods {
			along[t.groupOf(pod)] = true
		}
	}
	delete(along, -1)
	s := t.p.CarriedOut()
	s.Pods = slices.Clip(s.Pods)
	for _, u := range t.refused {
		for _, pod := range u.Pods {
			if slices.Contains(classes, u.Class) || along[t.groupOf(pod)] {
				s.Pods = append(s.Pods, pod)
			}
		}
	}
	return s
}

// groupOf returns the index of the group of a pod, -1 if it is in none.
func (t *trials) groupOf(pod *corev1.Pod) int {
	return slices.IndexFunc(t.p.options.Groups, func(g gang.Group) bool { return g.Member(pod) })
}
