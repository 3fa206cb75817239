package plan

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/gang"
)

// change is one change that might give refused pods a place. It edits pods or something that all
// pods share, such as a pool.
type change struct {
	// of is the corresponding fix, without its texts, price and pods.
	of   Fix
	text string
	// classes are those whose pods are changed; nil if what pods share changes.
	classes []*scheduling.Class
	// prepare, if set, computes the actual change, one of what pods share, for the pods that wait in a
	// snapshot after a plan, or for a plan of the whole snapshot if there is none.
	prepare func(s scheduling.Snapshot, after *Plan) (change, bool)
}

// fixBudget limits the work of looking for fixes for all refused pods of a plan. So explaining a
// large plan stays quick, and the answer does not depend on the speed of the machine. Trying a
// change costs triedFix plus one for each pod and instance type that is read again. With 1,500 pods
// that is a fortieth of the budget and about 25 ms of CPU. The first attempt of a plan of all pods
// also costs podAnew for each pod, and a whole search searchAnew times as much. A change that was
// begun with the last of the budget is tried to the end.
const (
	fixBudget  = 80_000
	triedFix   = 500
	podAnew    = 60
	searchAnew = 5
)

// FixKind is the kind of change that a fix makes.
type FixKind string

// The kinds of fixes.
const (
	// TolerateTaints lets the pods tolerate the taints of Pool.
	TolerateTaints FixKind = "TolerateTaints"
	// AllowType lets Pool buy the type Value: its requirements have to allow the values of Allow, too.
	AllowType FixKind = "AllowType"
	// LabelPool gives Pool the label Key with Value.
	LabelPool FixKind = "LabelPool"
	// RaiseLimit sets the limit of Pool for the resource Key to Value.
	RaiseLimit FixKind = "RaiseLimit"
	// RaiseQuota sets the limit of the CapacityQuota Quota for the resource Key to Value.
	RaiseQuota FixKind = "RaiseQuota"
	// RequestLess lowers the requests and limits of the pods to Requests, which the type Value has.
	RequestLess FixKind = "RequestLess"
	// DropSelector removes the label Key, under each of its names, from the node selector and the
	// required node affinity of the pods. A term that becomes empty goes, too: it would match no
	// node.
	DropSelector FixKind = "DropSelector"
	// PreferOnly makes a required constraint over the topology Key a preferred one, see Constraint.
	PreferOnly FixKind = "PreferOnly"
)

// Fix is a change that gives refused pods a place. Its fields say all that a program needs to make
// it; [Fix.Apply] makes it to a snapshot.
type Fix struct {
	// Kind is the kind of change. It determines which of the fields up to Requests are set. Pool is
	// the pool that is changed or that the pods would go to.
	Kind                    FixKind
	Pool, Quota, Key, Value string
	// Pods are the pods of the snapshot to change, which may include pods that are not refused.
	// They are nil if a pool or a quota changes. In a cluster, a user changes the template of their
	// controllers instead.
	Pods []*corev1.Pod
	// Constraint and Index are for [PreferOnly]: they name the required constraint of each of Pods
	// that becomes a preferred one. Constraint names a list of the pod's spec, and Index is a
	// position in it. For affinity and anti-affinity it is the list of required terms. For spreads
	// it is topologySpreadConstraints, which has required and preferred ones. A term that becomes
	// preferred gets the weight 100.
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
	// what it adds in a new plan. So if the plan is carried out and the change is made then, it
	// never adds more. A plan that is made anew with the change may add more in rare cases: the
	// search for the new plan ends early if it finds one that adds no more than the change on top
	// of this plan.
	What    string
	PerHour float64
	// Classes are indexes into Problem.Classes: the refused classes whose pods all get places if
	// the change is made once.
	Classes []int
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

// Fixes returns all changes that give the refused pods of a class a place, cheapest first. Each was
// tried as in [Plan.Fix], without a budget. When ctx ends, untried is how many changes were not
// tried.
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
	left    map[int]int                  // how many pods of each class have no place
	// leftAtFirst is the same after the first attempt of a search, at least left; nil until needed.
	leftAtFirst map[int]int
	known       map[string]Fix // by the change and the classes; without text if it does not help
}

func (p *Plan) trials(all bool) *trials {
	t := &trials{p: p, all: all, refused: p.Unplaced(), class: map[types.NamespacedName]int{}, known: map[string]Fix{}}
	for i, c := range p.Problem.Classes {
		for _, pod := range c.Pods {
			t.class[nameOf(pod)] = i
		}
	}
	t.left = t.without(p)
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

// first returns the first change that helps.
func (t *trials) first(class int, reasons []scheduling.Reason) Fix {
	changes := t.p.changes(class, reasons)
	for k, c := range changes {
		switch fix, known := t.offer(context.Background(), class, reasons, c); {
		case !known:
			return Fix{Untried: len(changes) - k}
		case fix.Text != "":
			return fix
		}
	}
	return Fix{}
}

// helpful returns all changes that help, cheapest first, and how many were not tried.
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
	slices.SortStableFunc(fixes, func(a, b Fix) int { return cmp.Compare(a.PerHour, b.PerHour) })
	return fixes, untried
}

// offer returns the fix, without a text if the change does not help the class. It is not known if
// the budget is used up or ctx has ended.
func (t *trials) offer(ctx context.Context, class int, reasons []scheduling.Reason, c change) (fix Fix, known bool) {
	if joint, classes := t.joint(class, reasons, c); len(classes) > 1 {
		if fix, known = t.try(ctx, joint, classes); !known || slices.Contains(fix.Classes, class) {
			return fix, known
		}
	}
	return t.try(ctx, c, []int{class})
}

// joint returns the change for all classes that may need it: those that the same limit refuses, or
// those that are refused for the same reasons.
func (t *trials) joint(class int, reasons []scheduling.Reason, c change) (change, []int) {
	joint, classes := c, []int{}
	joint.classes = nil
	for _, u := range t.refused {
		its := []change{c}
		if u.Class != class {
			theirs := u.Reasons()
			if c.prepare == nil && !slices.EqualFunc(reasons, theirs, func(a, b scheduling.Reason) bool { return a.String() == b.String() }) {
				continue
			}
			its = t.p.changes(u.Class, theirs)
		}
		if k := slices.IndexFunc(its, c.same); k >= 0 {
			classes = append(classes, u.Class)
			for _, of := range its[k].classes {
				if !slices.Contains(joint.classes, of) {
					joint.classes = append(joint.classes, of)
				}
			}
		}
	}
	return joint, classes
}

// same reports whether another change is the same one, perhaps of other pods.
func (c change) same(other change) bool { return c.id() == other.id() }

// id identifies a change, whatever pods it is made to.
func (c change) id() string {
	f := &c.of
	return fmt.Sprintf("%q", []string{string(f.Kind), f.Pool, f.Quota, f.Key, f.Value, string(f.Constraint), strconv.Itoa(f.Index), c.text})
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
	case c.classes == nil:
		fix, _ = t.verify(ctx, c, waiting, classes)
	default:
		narrow := t.edit(c, classes, false)
		fix, _ = t.verify(ctx, narrow, waiting, classes)
		if wide := t.edit(c, classes, true); fix.Text == "" && wide.text != narrow.text {
			fix, _ = t.verify(ctx, wide, waiting, classes)
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

// edit returns the change of pods with the pods to change. Its text says what it changes beside
// refused pods. These are the other pods of the same controllers, whose template the user changes,
// or if wide is true, all pods of the classes. Of another class it changes all pods; the text names
// the first.
func (t *trials) edit(c change, classes []int, wide bool) change {
	more, what := 0, "placed pod"
	for _, of := range c.classes {
		at := slices.IndexFunc(t.refused, func(u scheduling.Unplaced) bool {
			return t.p.Problem.Classes[u.Class] == of && slices.Contains(classes, u.Class)
		})
		refused, controllers := map[types.NamespacedName]bool{}, map[string]bool{}
		if at >= 0 {
			for _, pod := range t.refused[at].Pods {
				refused[nameOf(pod)], controllers[controller(pod)] = true, true
			}
			delete(controllers, "")
		} else {
			what = "pod"
		}
		for i, pod := range of.Pods {
			name := nameOf(pod)
			if at >= 0 && !refused[name] && !wide && !controllers[controller(pod)] {
				continue
			}
			if at >= 0 && !refused[name] || at < 0 && i > 0 {
				more++
			}
			c.of.Pods = append(c.of.Pods, pod)
		}
	}
	switch more {
	case 0:
	case 1:
		c.text += fmt.Sprintf(" (also for 1 %s like it)", what)
	default:
		c.text += fmt.Sprintf(" (also for %d %ss like it)", more, what)
	}
	return c
}

// verify plans the waiting pods with the change. If that helps, it plans anew what the user has
// after making the change, because other pods then choose again, too. The fix costs what the dearer
// of the two adds. It has no text if a new plan does not help.
func (t *trials) verify(ctx context.Context, c change, waiting scheduling.Snapshot, classes []int) (fix Fix, helps bool) {
	t.spend(waiting, 0)
	after, helped, _ := t.plan(ctx, c.of.Apply(waiting), &t.p.options, t.left, classes, c.classes != nil)
	if len(helped) == 0 {
		return Fix{}, false
	}
	more := after.Cost()
	if helped, more = t.anew(ctx, c, helped, more); len(helped) == 0 {
		return Fix{}, true
	}
	fix = c.of
	fix.Text, fix.What, fix.PerHour, fix.Classes = c.text, c.text, more.Dollars(), helped
	if more > 0 {
		fix.Text += fmt.Sprintf(", for at most %s/h more", more)
	}
	return fix, true
}

// anew plans the whole changed snapshot like plan, and returns what that adds to the cost, at least
// more. The first attempt of a search is compared with that of the unchanged snapshot. It tells what
// the change does to other pods, in a fraction of the time. The whole search decides if the first
// attempt adds more or does not decide who has a place.
func (t *trials) anew(ctx context.Context, c change, classes []int, more binpack.Price) ([]int, binpack.Price) {
	s, all := c.of.Apply(t.p.Problem.Snapshot()), c.classes != nil
	quick := t.p.options
	once := *quick.Scheduling
	once.Attempts, quick.Scheduling = 1, &once
	if t.leftAtFirst == nil {
		t.spend(s, 1)
		p, err := Unproved(ctx, t.p.Problem.Snapshot(), &quick)
		if err != nil {
			return nil, 0
		}
		t.leftAtFirst = t.without(p)
		for class, n := range t.left {
			t.leftAtFirst[class] = max(n, t.leftAtFirst[class])
		}
	}
	t.spend(s, 1)
	after, helped, harms := t.plan(ctx, s, &quick, t.leftAtFirst, classes, all)
	if harms || len(helped) == len(classes) && after.Cost()-t.p.Cost() <= more && t.decided(c, after) {
		return helped, more
	}
	t.spend(s, searchAnew)
	if after, helped, _ = t.plan(ctx, s, &t.p.options, t.left, classes, all); after != nil {
		more = max(more, after.Cost()-t.p.Cost())
	}
	return helped, more
}

// plan plans a changed snapshot and returns which of the classes it places. harms says that more
// pods of some class have no place than are left; then it helps none. If all is true, it has to
// place all of the classes.
func (t *trials) plan(ctx context.Context, s scheduling.Snapshot, opts *Options, left map[int]int, classes []int, all bool) (p *Plan, helped []int, harms bool) {
	p, err := Unproved(ctx, s, opts)
	if err != nil || slices.ContainsFunc(p.Problem.Ignored, func(i scheduling.Ignored) bool {
		_, planned := t.class[nameOf(i.Pod)]
		return planned
	}) {
		return nil, nil, true
	}
	without := t.without(p)
	for class, n := range without {
		if n > left[class] {
			return nil, nil, true
		}
	}
	helped = slices.DeleteFunc(slices.Clone(classes), func(class int) bool { return without[class] > 0 })
	if all && len(helped) < len(classes) {
		return nil, nil, false
	}
	return p, helped, false
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
