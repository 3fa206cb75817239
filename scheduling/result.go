package scheduling

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// Result is where every pod goes: onto nodes that exist, are in flight or are to be bought, or nowhere. It is immutable and safe
// for concurrent use.
type Result struct {
	// Rounds is how many rounds were packed, the final packing not counted.
	Rounds int
	// Round is the number of the round that stands, of which Draft says that its first packing does, for the final one placed less.
	Round int
	Draft bool
	// Stopped says that the context ended before the search did.
	Stopped bool

	p        *Problem
	state    *state
	names    []string // of bins; empty for those that hold no pod
	newNodes func() []NewNode

	mu      sync.Mutex
	reasons map[int][]Reason // by class, as far as anybody has asked
}

// Binding is a pod and the node that it goes to.
type Binding struct {
	Pod *corev1.Pod
	// Node is the name of the node: of an existing one its own, of one that is not there yet that of its claim or, where it is to
	// be bought, that of [NewNode].
	Node string
	// New says that the node is to be bought, InFlight that it was bought and is not ready for pods yet. To kube-scheduler such pods
	// are nominated there: it binds them once the node is ready.
	New, InFlight bool
}

// Unplaced is the pods of one class that found no place.
type Unplaced struct {
	// Class is an index into Problem.Classes.
	Class int
	Pods  []*corev1.Pod

	result *Result
}

// Reasons say why the pods found no place: one for each pool, in the order of the pools, naming the first stage that no type of
// the pool passes, and one for the existing nodes where there are any. It costs a pass over the types of every pool,
// once.
func (u Unplaced) Reasons() []Reason {
	r := u.result
	r.mu.Lock()
	defer r.mu.Unlock()
	out, known := r.reasons[u.Class]
	if !known {
		if r.reasons == nil {
			r.reasons = map[int][]Reason{}
		}
		out = r.state.explain(u.Class)
		r.reasons[u.Class] = out
	}
	return slices.Clone(out)
}

func newResult(s *state, rounds int, stopped, draft bool) *Result {
	r := &Result{Rounds: rounds, Round: s.number, Draft: draft, Stopped: stopped, p: s.p, state: s, names: s.names()}
	r.newNodes = sync.OnceValue(func() []NewNode { return s.newNodes(r.names) })
	return r
}

// Bindings are all placed pods with their nodes: bound in this order, after the daemons, kube-scheduler accepts each.
func (r *Result) Bindings() []Binding {
	out := make([]Binding, len(r.state.bound))
	for i, b := range r.state.bound {
		out[i].Pod = b.pod
		if b.at.bin >= 0 {
			out[i].Node, out[i].New = r.names[b.at.bin], true
		} else {
			n := &r.p.Existing[b.at.node]
			out[i].Node, out[i].InFlight = n.Node.Name, n.Starting
		}
	}
	return out
}

// NewNodes are the nodes to buy: heaviest pool first, then by pool's name, within a pool in the order of the outcome.
func (r *Result) NewNodes() []NewNode { return slices.Clone(r.newNodes()) }

// Unplaced are the pods that found no place, by class, in the order of the classes.
func (r *Result) Unplaced() []Unplaced {
	bound := make([]int, len(r.p.Classes))
	has := make(map[*corev1.Pod]bool, len(r.state.bound))
	for _, b := range r.state.bound {
		bound[b.class]++
		has[b.pod] = true
	}
	var out []Unplaced
	for c, class := range r.p.Classes {
		if bound[c] == len(class.Pods) {
			continue
		}
		u := Unplaced{Class: c, result: r}
		for _, pod := range class.Pods {
			if !has[pod] {
				u.Pods = append(u.Pods, pod)
			}
		}
		out = append(out, u)
	}
	return out
}

// seat is where one copy of an item sits: an existing node (bin < 0) or a bin.
type seat struct{ node, bin int }

// nowhere is the seat of a copy that packing did not place.
var nowhere = seat{-1, -1}

// seats are those of every copy of every item.
func (s *state) seats() [][]seat {
	seats := make([][]seat, len(s.items))
	count := 0
	for i := range s.items {
		count += s.items[i].Count
	}
	flat := make([]seat, count)
	for i := range s.items {
		seats[i], flat = flat[:0:s.items[i].Count], flat[s.items[i].Count:]
	}
	sit := func(shares []Share, at seat) {
		for _, sh := range shares {
			for range sh.Count {
				seats[sh.Item] = append(seats[sh.Item], at)
			}
		}
	}
	for r, shares := range s.last.Existing {
		sit(shares, seat{r, -1})
	}
	for b := range s.last.Bins {
		sit(s.last.Bins[b].Shares, seat{-1, b})
	}
	for i := range s.items {
		for len(seats[i]) < s.items[i].Count {
			seats[i] = append(seats[i], nowhere)
		}
	}
	return seats
}

// binding is a pod that goes to a seat, with so many preferences given up.
type binding struct {
	pod   *corev1.Pod
	at    seat
	class int
	level int
	added bool // the packer had left it out
}

// bindings is the pods that packing placed, in the order of assignment. A pick that joined a bundle goes where the bundle is; the
// others are the first of a bundle, or on their own.
func (s *state) bindings() []binding {
	first, places := make([]int, len(s.assigned.Classes)), 0 // a place is a relaxed class in a domain
	for i, rc := range s.assigned.Classes {
		first[i], places = places, places+len(rc.Domains)
	}
	type join struct{ place, bundle int }
	joined := map[join]int{}
	for _, pk := range s.assigned.Picks {
		if pk.Bundle >= 0 {
			joined[join{first[pk.Relaxed] + pk.Domain, pk.Bundle}] += pk.Count
		}
	}
	bundles, alone := map[int]seat{}, make([][]seat, places)
	seats := s.seats()
	for i := range s.assigned.Lots { // bundles come first
		lot := &s.assigned.Lots[i]
		if len(lot.Bundles) == 0 {
			to := first[lot.Slots[0].Relaxed] + lot.Slots[0].Domain
			if alone[to] == nil {
				alone[to] = seats[i]
			} else {
				alone[to] = append(alone[to], seats[i]...)
			}
			continue
		}
		for k, at := range seats[i] {
			bundles[lot.Bundles[k]] = at
			for _, sl := range lot.Slots {
				to := first[sl.Relaxed] + sl.Domain
				for range sl.Count - joined[join{to, lot.Bundles[k]}] { // those that others joined later
					alone[to] = append(alone[to], at)
				}
			}
		}
	}
	next := make([]int, len(s.p.Classes))
	out := make([]binding, 0, s.p.pending())
	for _, pk := range s.assigned.Picks {
		rc := s.assigned.Classes[pk.Relaxed]
		for range pk.Count {
			at := nowhere
			if from := first[pk.Relaxed] + pk.Domain; pk.Bundle >= 0 {
				at = bundles[pk.Bundle]
			} else if len(alone[from]) > 0 {
				at, alone[from] = alone[from][0], alone[from][1:]
			}
			if at != nowhere {
				out = append(out, binding{s.p.Classes[rc.Class].Pods[next[rc.Class]], at, rc.Class, rc.Level, false})
				next[rc.Class]++
			}
		}
	}
	return out
}

// Class is the class that a pending pod belongs to, by namespace and name; false for other pods.
func (p *Problem) Class(namespace, name string) (int, bool) {
	for i, c := range p.Classes {
		for _, pod := range c.Pods {
			if pod.Name == name && pod.Namespace == namespace {
				return i, true
			}
		}
	}
	return 0, false
}

// GivenUp says in words, sort first, which preferences a placed pod was placed without and which it kept, each in the order of
// giving them up: spreads that may be violated, preferred affinity between pods, preferred node affinity, taints that are only to be
// avoided; of one sort the lightest first.
func (r *Result) GivenUp(pod *corev1.Pod) (gone, kept []string) {
	s := r.state
	at := slices.IndexFunc(s.bound, func(b binding) bool { return b.pod == pod })
	if at < 0 {
		return nil, nil
	}
	b := s.bound[at]
	for level, p := range s.p.topology.Preferences(b.class) {
		if text := string(p.Kind) + ": " + p.Text; level < b.level {
			gone = append(gone, text)
		} else {
			kept = append(kept, text)
		}
	}
	return gone, kept
}
