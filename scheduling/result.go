package scheduling

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/scheduling/podclass"
)

// Result is the end of the dialogue: which pod goes where, and which goes nowhere.
type Result struct {
	// Existing holds the pods newly placed on each existing node, by position in Problem.Existing.
	Existing [][]*corev1.Pod
	// Bins are the nodes to buy, in the order of the outcome, without those that ended up empty.
	Bins []ResultBin
	// Unplaced are the pods that found no place, by class, in the order of the classes.
	Unplaced []Unplaced
	// Order lists every placed pod: bound in this order, after the daemons, kube-scheduler accepts each.
	Order []*corev1.Pod
}

// ResultBin is a node to buy and its pods.
type ResultBin struct {
	// Bin is the index of the bin in the outcome.
	Bin             int
	Shape, Offering int
	Pods            []*corev1.Pod
}

// Unplaced is the pods of one class that found no place.
type Unplaced struct {
	Class int
	Pods  []*corev1.Pod
}

// seat is where one copy of an item sits: an existing node (bin < 0) or a bin.
type seat struct{ node, bin int }

// nowhere is the seat of a copy that packing did not place.
var nowhere = seat{-1, -1}

// Result deals the pods out to the seats of the last outcome, and orders their binding. Pods whose constraints would
// not hold in any order are left out. It may only be called when the state is done.
func (s *State) Result() *Result {
	res := &Result{Existing: make([][]*corev1.Pod, len(s.p.Existing))}
	byBin := make([][]*corev1.Pod, len(s.last.Bins))
	bound := make(map[*corev1.Pod]bool, s.p.pending())
	res.Order = make([]*corev1.Pod, 0, len(s.bound))
	for _, st := range s.bound {
		bound[st.pod] = true
		res.Order = append(res.Order, st.pod)
		if st.at.bin >= 0 {
			byBin[st.at.bin] = append(byBin[st.at.bin], st.pod)
		} else {
			res.Existing[st.at.node] = append(res.Existing[st.at.node], st.pod)
		}
	}
	for r := range res.Existing {
		podclass.Sort(res.Existing[r])
	}
	for b, list := range byBin {
		if len(list) > 0 {
			podclass.Sort(list)
			res.Bins = append(res.Bins, ResultBin{b, s.last.Bins[b].Shape, s.last.Bins[b].Offering, list})
		}
	}
	for c, class := range s.p.Classes {
		var list []*corev1.Pod
		for _, pod := range class.Pods {
			if !bound[pod] {
				list = append(list, pod)
			}
		}
		if len(list) > 0 {
			res.Unplaced = append(res.Unplaced, Unplaced{c, list})
		}
	}
	return res
}

// seats are those of every copy of every item.
func (s *State) seats() [][]seat {
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
}

// bindings is the pods that packing placed, in the order of assignment. A pick that joined a bundle goes where the bundle is; the
// others are the first of a bundle, or on their own.
func (s *State) bindings() []binding {
	type place struct{ relaxed, domain int }
	type join struct {
		place
		bundle int
	}
	joined := map[join]int{}
	for _, pk := range s.assigned.Picks {
		if pk.Bundle >= 0 {
			joined[join{place{pk.Relaxed, pk.Domain}, pk.Bundle}] += pk.Count
		}
	}
	bundles, alone := map[int]seat{}, map[place][]seat{}
	seats := s.seats()
	for _, bundled := range []bool{true, false} { // those that others joined later go first
		for i := range s.assigned.Lots {
			lot := &s.assigned.Lots[i]
			if bundled != (len(lot.Bundles) > 0) {
				continue
			}
			for k, at := range seats[i] {
				for _, sl := range lot.Slots {
					to, n := place{sl.Relaxed, sl.Domain}, sl.Count
					if bundled {
						bundles[lot.Bundles[k]] = at
						n -= joined[join{to, lot.Bundles[k]}]
					}
					for range n {
						alone[to] = append(alone[to], at)
					}
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
			if from := (place{pk.Relaxed, pk.Domain}); pk.Bundle >= 0 {
				at = bundles[pk.Bundle]
			} else if len(alone[from]) > 0 {
				at, alone[from] = alone[from][0], alone[from][1:]
			}
			if at != nowhere {
				out = append(out, binding{s.p.Classes[rc.Class].Pods[next[rc.Class]], at, rc.Class, rc.Level})
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

// GivenUp lists the preferences that a placed pod was placed without, in the order of giving them up, and those that
// it kept.
func (s *State) GivenUp(pod *corev1.Pod) (gone, kept []Preference) {
	at := slices.IndexFunc(s.bound, func(b binding) bool { return b.pod == pod })
	if at < 0 {
		return nil, nil
	}
	b := s.bound[at]
	soft := s.p.topology.Preferences(b.class)
	return slices.Clip(soft[:b.level]), soft[b.level:]
}
