package capacity

import (
	"context"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/whatif"
)

// slots is how many pods of a kind can be placed before the cluster is compiled again.
const slots = 128

// quick is a state compiled for questions about pods that it has learned. It is immutable: placing
// pods gives another one.
type quick struct {
	at    *whatif.Cluster
	kinds map[string]*kind
	used  []int // by kind: how many of its slots are placed
	names *names
	sale  *sale // nil if purchases need a plan of the whole state
}

// kind is a set of pods that are equal except for the name.
type kind struct {
	number int
	// slots are waiting pods of the kind that package whatif knows. They stand for pods in
	// questions.
	slots []*corev1.Pod
	// free says that no constraint between pods concerns them.
	free bool
}

// names is a set of pod names. A new state adds its names to those of the state before.
type names struct {
	before *names
	own    map[string]bool
}

func (n *names) has(name string) bool {
	for ; n != nil; n = n.before {
		if n.own[name] {
			return true
		}
	}
	return false
}

// with merges small sets, so that a lookup visits O(log pods) sets.
func (n *names) with(pods []*corev1.Pod) *names {
	own := make(map[string]bool, len(pods))
	for _, p := range pods {
		own[nameOf(p)] = true
	}
	for ; n != nil && len(n.own) <= len(own); n = n.before {
		for name := range n.own {
			own[name] = true
		}
	}
	return &names{n, own}
}

// compile compiles the state for quick questions. It returns nil if all questions need a plan.
func (s *State) compile() *quick {
	if s.how.planned || len(s.like) == 0 {
		return nil
	}
	in := s.Snapshot()
	if !plain(&in) {
		return nil
	}
	out := &quick{kinds: map[string]*kind{}, used: make([]int, len(s.like)), names: (*names)(nil).with(in.Pods)}
	ways := antiAffinity(in.Pods)
	in.Pods = slices.Clone(in.Pods)
	for _, p := range s.like {
		key, ok := keyOf(p)
		if !ok || out.kinds[key] != nil || admits(&in, p) {
			continue
		}
		k := &kind{number: len(out.kinds)}
		for i := range slots {
			slot := *p
			slot.Name = "slot " + strconv.Itoa(k.number) + " " + strconv.Itoa(i) // no pod can have such a name
			k.slots = append(k.slots, &slot)
		}
		ways = append(ways, antiAffinity(k.slots[:1])...)
		in.Pods = append(in.Pods, k.slots...)
		out.kinds[key] = k
	}
	for _, k := range out.kinds {
		a := k.slots[0].Spec.Affinity
		k.free = (a == nil || a.PodAffinity == nil && a.PodAntiAffinity == nil) && !slices.ContainsFunc(ways, func(w selector) bool { return w.selects(k.slots[0]) })
	}
	var o whatif.Options
	if opts := s.how.plan.Scheduling; opts != nil {
		o.Constraints, o.Aliases = opts.Constraints, opts.Aliases
	}
	var err error
	if out.at, err = whatif.Compile(in, &o); err != nil {
		return nil
	}
	for key, k := range out.kinds {
		if out.at.Refuses(k.slots[0]) != "" { // a plan explains it better
			delete(out.kinds, key)
		}
	}
	problem := out.at.Problem()
	if slices.ContainsFunc(problem.Existing, func(n scheduling.ExistingNode) bool { return n.InFlight || n.Starting }) {
		return out
	}
	out.sale = newSale(in, problem)
	return out
}

// lot is pods of one kind in a question.
type lot struct {
	*kind
	pods []*corev1.Pod
}

// ask answers without a plan of the whole state. It returns nil if it needs one.
func (q *quick) ask(ctx context.Context, s *State, pods []*corev1.Pod) *Answer {
	lots, ok := q.lots(pods)
	if !ok {
		return nil
	}
	at, used := q.at, q.used
	var places []Place
	for i, l := range lots {
		from := used[l.number]
		answer := at.Ask(ctx, whatif.Question{Pods: l.slots[from : from+len(l.pods)]})
		if !answer.OK() {
			if i == 0 {
				return q.buy(ctx, s, lots, pods)
			}
			return nil
		}
		if i == 0 {
			used = slices.Clone(used)
		}
		used[l.number] += len(l.pods)
		for k, p := range answer.Placements {
			places = append(places, Place{l.pods[k], p.Node})
		}
		at = answer.After()
	}
	out := &Answer{Kind: Fits, Places: places, of: s}
	out.after = sync.OnceValue(func() *State {
		next := s.with(run(places))
		after := &quick{at: at, kinds: q.kinds, used: used, sale: q.sale}
		for _, l := range lots {
			if used[l.number] > slots/2 { // soon there would be too few
				next.quick = sync.OnceValue(next.compile)
				return next
			}
		}
		after.names = q.names.with(pods)
		next.quick = func() *quick { return after }
		return next
	})
	return out
}

// lots returns the pods by kind, in the order in which the kinds first occur. It returns false if
// one of them needs a plan.
func (q *quick) lots(pods []*corev1.Pod) ([]lot, bool) {
	var out []lot
	asked := make(map[string]bool, len(pods))
	for _, p := range pods {
		key, ok := keyOf(p)
		k := q.kinds[key]
		name := nameOf(p)
		if !ok || k == nil || p.Name == "" || asked[name] || q.names.has(name) {
			return nil, false
		}
		asked[name] = true
		i := slices.IndexFunc(out, func(l lot) bool { return l.kind == k })
		if i < 0 {
			i, out = len(out), append(out, lot{kind: k})
		}
		out[i].pods = append(out[i].pods, p)
	}
	for _, l := range out {
		if q.used[l.number]+len(l.pods) > slots {
			return nil, false
		}
	}
	return out, len(out) > 0
}

// run returns the placed pods as running pods.
func run(places []Place) []*corev1.Pod {
	out := make([]*corev1.Pod, len(places))
	for i, p := range places {
		bound := *p.Pod // replicas keep sharing what they share
		bound.Spec.NodeName = p.Node
		out[i] = &bound
	}
	return out
}
