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

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/gang"
)

// change is one change that might give refused pods a place.
type change struct {
	// of is the corresponding fix, without its texts and price.
	of    Fix
	text  string
	apply func(scheduling.Snapshot) scheduling.Snapshot
	// prepare, if set, computes the actual change.
	prepare func(scheduling.Snapshot) (change, bool)
}

// fixBudget limits the work of looking for fixes for all refused pods of a plan. So explaining a
// large plan stays quick, and the answer does not depend on the speed of the machine. Trying a
// change costs triedFix plus one for each pod and instance type that is read again. With 1,500 pods
// that is a fortieth of the budget and about 25 ms of CPU.
const (
	fixBudget = 80_000
	triedFix  = 500
)

// FixKind is the kind of change that a fix makes.
type FixKind string

// The kinds of fixes.
const (
	// TolerateTaints lets the pods tolerate the taints of Pool.
	TolerateTaints FixKind = "TolerateTaints"
	// AllowType lets Pool buy the type Value.
	AllowType FixKind = "AllowType"
	// LabelPool gives Pool the label Key with Value.
	LabelPool FixKind = "LabelPool"
	// RaiseLimit sets the limit of Pool for the resource Key to Value.
	RaiseLimit FixKind = "RaiseLimit"
	// RaiseQuota sets the limit of the CapacityQuota Quota for the resource Key to Value.
	RaiseQuota FixKind = "RaiseQuota"
	// RequestLess lowers the requests of the pods to what the type Value has.
	RequestLess FixKind = "RequestLess"
	// DropSelector removes the label Key from what the pods require.
	DropSelector FixKind = "DropSelector"
	// PreferOnly makes a required spread, affinity or anti-affinity over the topology Key a
	// preferred one.
	PreferOnly FixKind = "PreferOnly"
)

// Fix is a change that gives refused pods a place.
type Fix struct {
	// Kind is the kind of change. It determines which of Pool, Quota, Key and Value are set. Pool
	// is the pool that is changed or that the pods would go to.
	Kind                    FixKind
	Pool, Quota, Key, Value string
	// Text describes the fix in words. It is empty if none was found.
	Text string
	// What is the text without the price. PerHour is an upper bound of the change's cost, in
	// dollars an hour.
	What    string
	PerHour float64
	// Untried is how many changes were not tried because the budget was used up.
	Untried int
}

// Fix looks for one change that gives the refused pods of a class a place. Every offered change was
// tried: with the plan carried out, every other pod in its place, and the change made, the refused
// pods find places. The most promising changes are tried first, that is, those for which the fewest
// conditions are unmet. If all is true, Fix tries every change; otherwise the fixes of a plan share
// a budget.
func (p *Plan) Fix(class int, reasons []scheduling.Reason, all bool) Fix {
	changes := p.changes(class, reasons)
	if len(changes) == 0 {
		return Fix{}
	}
	waiting := p.waiting(p.CarriedOut(), class)
	cost := triedFix + len(waiting.Pods)
	for i := range waiting.Pools {
		cost += len(waiting.Pools[i].Types)
	}
	for k, c := range changes {
		if p.spent += cost; p.spent > fixBudget && !all {
			return Fix{Untried: len(changes) - k}
		}
		if c.prepare != nil {
			p.spent += cost // preparing also makes a plan
		}
		if fix, ok := p.try(context.Background(), waiting, c); ok {
			return fix
		}
	}
	return Fix{}
}

// Fixes returns all changes that give the refused pods of a class a place, cheapest first. Each was
// tried as in [Plan.Fix], without a budget. When ctx ends, untried is how many changes were not
// tried.
func (p *Plan) Fixes(ctx context.Context, u scheduling.Unplaced) (fixes []Fix, untried int) {
	changes := p.changes(u.Class, u.Reasons())
	waiting := p.waiting(p.CarriedOut(), u.Class)
	for k, c := range changes {
		if ctx.Err() != nil {
			untried = len(changes) - k
			break
		}
		if fix, ok := p.try(ctx, waiting, c); ok {
			fixes = append(fixes, fix)
		}
	}
	slices.SortStableFunc(fixes, func(a, b Fix) int { return cmp.Compare(a.PerHour, b.PerHour) })
	return fixes, untried
}

// try plans the waiting pods with the change.
func (p *Plan) try(ctx context.Context, waiting scheduling.Snapshot, c change) (Fix, bool) {
	if c.prepare != nil {
		ready, ok := c.prepare(waiting)
		if !ok {
			return Fix{}, false
		}
		c = ready
	}
	after, err := Unproved(ctx, c.apply(waiting), &p.options)
	if err != nil || len(after.Unplaced()) > 0 || slices.ContainsFunc(after.Problem.Ignored, func(i scheduling.Ignored) bool { return i.Pod.Status.NominatedNodeName == "" }) {
		return Fix{}, false
	}
	fix := c.of
	fix.Text, fix.What, fix.PerHour = c.text, c.text, after.Cost().Dollars()
	if fix.PerHour > 0 {
		fix.Text += fmt.Sprintf(", for at most %s/h more", after.Cost())
	}
	return fix, true
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
		for _, u := range p.Unplaced() {
			r := Refusal{Unplaced: u, Reasons: u.Reasons()}
			r.Fixes, r.Untried = p.Fixes(ctx, u)
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

// CarriedOut returns the snapshot after the plan has been carried out. The nodes that it buys
// exist, and the pods that it places run, with the spec that an API server would have stored and
// with the volumes that drivers create. Refused pods are left out. A plan of this snapshot finds
// what this plan leaves. The snapshot is made once and must only be read.
func (p *Plan) CarriedOut() scheduling.Snapshot {
	if p.after != nil {
		return *p.after
	}
	bindings := p.Bindings()
	home := make(map[types.NamespacedName]string, len(bindings))
	for _, b := range bindings {
		home[nameOf(b.Pod)] = b.Node
	}
	template := map[types.NamespacedName]*corev1.Pod{}
	for _, c := range p.Problem.Classes {
		for _, pod := range c.Pods {
			template[nameOf(pod)] = c.Template
		}
	}
	s := p.Problem.Snapshot()
	s.Nodes = slices.Clone(s.Nodes)
	nodes := p.Result.NewNodes()
	for _, n := range nodes {
		s.Nodes = append(s.Nodes, n.Node())
	}
	s.Pools = unsold(s.Pools, nodes)
	refused := map[types.NamespacedName]bool{}
	for _, u := range p.Unplaced() {
		for _, pod := range u.Pods {
			refused[nameOf(pod)] = true
		}
	}
	ignored := map[types.NamespacedName]bool{}
	for _, i := range p.Problem.Ignored {
		ignored[nameOf(i.Pod)] = i.Pod.Status.NominatedNodeName == "" // a nominated pod keeps the capacity reserved for it
	}
	pods := make([]*corev1.Pod, 0, len(s.Pods))
	for _, pod := range s.Pods {
		switch at, ok := home[nameOf(pod)]; {
		case ok:
			bound := *pod
			if t := template[nameOf(pod)]; t != nil { // replicas keep sharing what they share
				bound.Spec = t.Spec
				bound.Spec.Volumes = pod.Spec.Volumes
			}
			bound.Spec.NodeName, bound.DeletionTimestamp = at, nil // for a pod that is being deleted, its successor runs
			pods = append(pods, &bound)
		case !refused[nameOf(pod)] && !ignored[nameOf(pod)]:
			pods = append(pods, pod)
		}
	}
	s.Pods = pods
	bindVolumes(&s)
	p.after = &s
	return s
}

// waiting returns the snapshot with the refused pods of a class and of the groups that these belong
// to.
func (p *Plan) waiting(s scheduling.Snapshot, class int) scheduling.Snapshot {
	groupOf := func(pod *corev1.Pod) int {
		return slices.IndexFunc(p.options.Groups, func(g gang.Group) bool { return g.Member(pod) })
	}
	along := map[int]bool{}
	for _, pod := range p.Problem.Classes[class].Pods {
		along[groupOf(pod)] = true
	}
	delete(along, -1)
	s.Pods = slices.Clip(s.Pods)
	for _, u := range p.Unplaced() {
		for _, pod := range u.Pods {
			if u.Class == class || along[groupOf(pod)] {
				s.Pods = append(s.Pods, pod)
			}
		}
	}
	return s
}

func (p *Plan) changes(class int, reasons []scheduling.Reason) []change {
	var out []change
	c := p.Problem.Classes[class]
	crowded := false
	reasons = slices.Clone(reasons)
	slices.SortStableFunc(reasons, func(a, b scheduling.Reason) int { return cmp.Compare(b.Stage.Depth(), a.Stage.Depth()) })
	for _, r := range reasons {
		crowded = crowded || r.Stage == scheduling.StageTopology
		k := slices.IndexFunc(p.Problem.Pools, func(room scheduling.PoolState) bool { return room.Name == r.Pool })
		if k < 0 {
			continue
		}
		pool := &p.Problem.Pools[k]
		switch r.Stage {
		case scheduling.StageTaint:
			out = append(out, tolerate(c, pool))
		case scheduling.StageRequirement, scheduling.StageResource:
			if r.Nearest != nil && r.Nearest.ShutOutBy != "" {
				if w, ok := widen(pool, r.Nearest.Type); ok {
					out = append(out, w)
				}
			}
			if r.Stage == scheduling.StageResource && r.Nearest != nil && r.Nearest.Short != nil && r.Nearest.ShutOutBy == "" {
				if w, ok := shrink(c, r); ok {
					out = append(out, w)
				}
			}
			if r.Stage == scheduling.StageRequirement {
				out = append(out, suit(c, pool, r.Key)...)
			}
		case scheduling.StageOffering:
			out = append(out, suit(c, pool, r.Key)...)
		case scheduling.StagePod, scheduling.StageTopology, scheduling.StageGroup:
			// No change to volumes is offered. Constraints between pods are handled below.
		case scheduling.StageLimit:
			out = append(out, change{prepare: func(s scheduling.Snapshot) (change, bool) {
				if r.Quota != "" {
					return raiseQuota(p, s, r)
				}
				return raise(p, s, pool, r)
			}})
		}
	}
	if crowded {
		out = append(out, p.relaxations(class)...)
	}
	return out
}

// edit replaces the pods of a class with edited copies.
func edit(s scheduling.Snapshot, class *scheduling.Class, how func(*corev1.Pod)) scheduling.Snapshot {
	members := make(map[types.NamespacedName]bool, len(class.Pods))
	for _, pod := range class.Pods {
		members[nameOf(pod)] = true
	}
	pods := slices.Clone(s.Pods)
	for i, pod := range pods {
		if members[nameOf(pod)] {
			pods[i] = pod.DeepCopy()
			how(pods[i])
		}
	}
	s.Pods = pods
	return s
}

func tolerate(c *scheduling.Class, pool *scheduling.PoolState) change {
	var texts []string
	var add []corev1.Toleration
	for _, t := range pool.Taints {
		add = append(add, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: t.Effect})
		texts = append(texts, t.ToString())
	}
	return change{
		of:   Fix{Kind: TolerateTaints, Pool: pool.Name},
		text: fmt.Sprintf("would fit if it tolerated %s of pool %q", joined(texts), pool.Name),
		apply: func(s scheduling.Snapshot) scheduling.Snapshot {
			return edit(s, c, func(pod *corev1.Pod) { pod.Spec.Tolerations = append(pod.Spec.Tolerations, add...) })
		},
	}
}

// widen lets the pool buy a type that its requirements exclude, by adding the type's values to
// them.
func widen(pool *scheduling.PoolState, name string) (change, bool) {
	at := slices.IndexFunc(pool.Types, func(t instancetypes.InstanceType) bool { return t.Name == name })
	if at < 0 {
		return change{}, false
	}
	var b requirements.Builder
	var texts []string
	for r := range pool.Requirements.All() {
		have := pool.Types[at].Requirements
		if have.Has(r.Key()) && !have.Get(r.Key()).Overlaps(r) {
			values, ok := have.Get(r.Key()).Values()
			if !ok {
				return change{}, false
			}
			texts = append(texts, fmt.Sprintf("%s %s", r.Key(), joined(values)))
			r = r.Union(have.Get(r.Key()))
		}
		b.Add(r)
	}
	set, err := b.Set()
	if err != nil || len(texts) == 0 {
		return change{}, false
	}
	return change{
		of:   Fix{Kind: AllowType, Pool: pool.Name, Value: name},
		text: fmt.Sprintf("would fit if pool %q allowed %s (as %s has)", pool.Name, joined(texts), name),
		apply: func(s scheduling.Snapshot) scheduling.Snapshot {
			return editPool(s, pool, func(p *scheduling.Pool) { p.Requirements = set })
		},
	}, true
}

func editPool(s scheduling.Snapshot, pool *scheduling.PoolState, how func(*scheduling.Pool)) scheduling.Snapshot {
	s.Pools = slices.Clone(s.Pools)
	for i := range s.Pools {
		if s.Pools[i].Name == pool.Name && s.Pools[i].Kind == pool.Kind {
			how(&s.Pools[i])
		}
	}
	return s
}

// shrink lowers the requests to what the nearest type has, unless one would become zero.
func shrink(c *scheduling.Class, r scheduling.Reason) (change, bool) {
	var texts []string
	lower := corev1.ResourceList{}
	for _, key := range slices.Sorted(maps.Keys(r.Nearest.Short)) {
		name := corev1.ResourceName(key)
		q := c.Requests[name]
		most := resources.Request(name, q) - r.Nearest.Short[key]
		if most <= 0 {
			return change{}, false
		}
		lower[name] = resources.Quantity(name, most)
		texts = append(texts, fmt.Sprintf("%s %s", resources.Humane(name, most), name))
	}
	return change{
		of:   Fix{Kind: RequestLess, Pool: r.Pool, Value: r.Nearest.Type},
		text: fmt.Sprintf("would fit if it requested no more than %s, as %s has", joined(texts), r.Nearest.Type),
		apply: func(s scheduling.Snapshot) scheduling.Snapshot {
			return edit(s, c, func(pod *corev1.Pod) {
				if len(pod.Spec.Containers) != 1 || len(pod.Spec.InitContainers) > 0 {
					return // which of several containers should shrink is for the user to decide
				}
				res := &pod.Spec.Containers[0].Resources
				for name, q := range lower {
					if _, ok := res.Requests[name]; ok {
						res.Requests[name] = q
					}
					if _, ok := res.Limits[name]; ok {
						res.Limits[name] = q
					}
				}
			})
		},
	}, true
}

func joined(texts []string) string {
	if n := len(texts); n > 1 {
		return strings.Join(texts[:n-1], ", ") + " and " + texts[n-1]
	}
	return strings.Join(texts, "")
}

func nameOf(p *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(p.Namespace, corev1.NamespaceDefault), Name: p.Name}
}

// unsold returns the pools with counted machines reduced by those that the nodes have taken.
// Offerings of one reservation or commitment share their count.
func unsold(pools []scheduling.Pool, nodes []scheduling.NewNode) []scheduling.Pool {
	taken := map[string]int{}
	for i := range nodes {
		if n := &nodes[i]; n.Offering.ReservationCount > 0 {
			taken[stock(n.Pool.Name, n.InstanceType.Name, &n.Offering)]++
		}
	}
	if len(taken) == 0 {
		return pools
	}
	pools = slices.Clone(pools)
	for k := range pools {
		kept := slices.Clone(pools[k].Types)
		for i := range kept {
			kept[i].Offerings = slices.Clone(kept[i].Offerings)
			for j := range kept[i].Offerings {
				o := &kept[i].Offerings[j]
				if gone := taken[stock(pools[k].Name, kept[i].Name, o)]; o.ReservationCount > 0 && gone > 0 {
					o.Available = o.Available && o.ReservationCount > gone // a count of 0 would mean any number
					o.ReservationCount = max(1, o.ReservationCount-gone)
				}
			}
		}
		pools[k].Types = kept
	}
	return pools
}

// stock returns the name of what the count of an offering refers to.
func stock(pool, typ string, o *instancetypes.Offering) string {
	if id, ok := o.Requirements.Get(instancetypes.LabelReservationID).Single(); ok {
		return "reservation " + id
	}
	if o.Commitment != "" {
		return "commitment " + o.Commitment
	}
	return pool + " " + typ + " " + o.Requirements.String()
}
