package scheduling

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/scheduling/podclass"
)

// Result is the end of the dialogue: which pod goes where, and which goes nowhere.
type Result struct {
	// Rooms holds the pods newly placed on each existing node, by position in Problem.Rooms.
	Rooms [][]*corev1.Pod
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

// seat is where one copy of an item sits: a room (bin < 0) or a bin.
type seat struct{ room, bin int }

// nowhere is the seat of a copy that packing did not place.
var nowhere = seat{-1, -1}

// chair is a pod's place in the order: the seat, and whether it is one of a bundle.
type chair struct {
	seat   seat
	bundle int
}

// Result deals the pods out to the seats of the last outcome, and orders their binding. Pods whose constraints would
// not hold in any order are left out. It may only be called when the state is done.
func (s *State) Result() *Result {
	res := &Result{Rooms: make([][]*corev1.Pod, len(s.p.Rooms))}
	byBin := make([][]*corev1.Pod, len(s.last.Bins))
	bound := make(map[*corev1.Pod]bool, s.p.pending())
	bindings := s.bound
	if bindings == nil {
		bindings = s.bindings(s.dealing())
	}
	res.Order = make([]*corev1.Pod, 0, len(bindings))
	for _, st := range bindings {
		bound[st.pod] = true
		res.Order = append(res.Order, st.pod)
		if st.at.bin >= 0 {
			byBin[st.at.bin] = append(byBin[st.at.bin], st.pod)
		} else {
			res.Rooms[st.at.room] = append(res.Rooms[st.at.room], st.pod)
		}
	}
	for r := range res.Rooms {
		podclass.Sort(res.Rooms[r])
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

// dealt is who sits where, by part and domain: chairs of bundles in the order of the bundles, then chairs of pods on
// their own; and the pods that take them, in that order.
type dealt struct {
	chairs [][][]chair
	pods   [][][]*corev1.Pod
}

// dealing is who sits where, worked out once for a state that is done.
func (s *State) dealing() dealt {
	if s.solved {
		return s.dealt
	}
	return s.deal()
}

func (s *State) deal() dealt {
	seats := s.seats()
	d := dealt{make([][][]chair, len(s.settled.Parts)), make([][][]*corev1.Pod, len(s.settled.Parts))}
	placed := 0
	for _, pt := range s.settled.Parts {
		for _, n := range pt.Placed {
			placed += n
		}
	}
	flat := make([]chair, placed)
	for i, pt := range s.settled.Parts {
		d.chairs[i] = make([][]chair, len(pt.Domains))
		d.pods[i] = make([][]*corev1.Pod, len(pt.Domains))
		for k, n := range pt.Placed {
			d.chairs[i][k], flat = flat[:0:n], flat[n:]
		}
	}
	type copyOf struct{ item, copy, bundle int }
	var bundles []copyOf
	for i := range s.items {
		for k, b := range s.settled.Lots[i].Bundles {
			bundles = append(bundles, copyOf{i, k, b})
		}
	}
	slices.SortStableFunc(bundles, func(a, b copyOf) int { return a.bundle - b.bundle })
	sit := func(c copyOf) {
		for _, sl := range s.settled.Lots[c.item].Slots {
			for range sl.Count {
				d.chairs[sl.Part][sl.Domain] = append(d.chairs[sl.Part][sl.Domain], chair{seats[c.item][c.copy], c.bundle})
			}
		}
	}
	for _, c := range bundles {
		sit(c)
	}
	for i := range s.items {
		if len(s.settled.Lots[i].Bundles) == 0 {
			for k := range s.items[i].Count {
				sit(copyOf{i, k, -1})
			}
		}
	}
	next := make([]int, len(s.p.Classes))
	for i, pt := range s.settled.Parts {
		for k := range pt.Domains {
			n := len(d.chairs[i][k])
			d.pods[i][k] = s.p.Classes[pt.Class].Pods[next[pt.Class] : next[pt.Class]+n]
			next[pt.Class] += n
		}
	}
	return d
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
	for r, shares := range s.last.Rooms {
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

// binding is a pod that sits down.
type binding struct {
	pod   *corev1.Pod
	at    seat
	class int
}

// bindings is the order of settling. Picks that joined a bundle take a chair there; the others take chairs in order, those
// that somebody joined later first. Where packing left something out, each pod is tested again, and what can bind in no
// order is left out.
func (s *State) bindings(d dealt) []binding {
	chairs := 0
	for i := range d.chairs {
		for k := range d.chairs[i] {
			chairs += len(d.chairs[i][k])
		}
	}
	picks := make([]picked, 0, chairs)
	marks := make([]bool, 2*chairs)
	taken := make([][][]bool, len(s.settled.Parts))
	keep := make([][][]bool, len(s.settled.Parts)) // chairs of those who join
	from := make([][]int, len(s.settled.Parts))
	joined := map[[3]int]int{} // how many pods of a part and domain joined a bundle, rather than being there first
	for _, pk := range s.settled.Picks {
		if pk.Bundle >= 0 {
			joined[[3]int{pk.Part, pk.Domain, pk.Bundle}] += pk.Count
		}
	}
	whole := true
	for i := range s.settled.Parts {
		rows := make([][]bool, 2*len(d.chairs[i]))
		taken[i], keep[i] = rows[:len(d.chairs[i])], rows[len(d.chairs[i]):]
		from[i] = make([]int, len(d.chairs[i]))
		for k, list := range d.chairs[i] {
			n := len(list)
			taken[i][k], keep[i][k], marks = marks[:n:n], marks[n:2*n:2*n], marks[2*n:]
			for at, c := range list {
				whole = whole && c.seat != nowhere
				if key := [3]int{i, k, c.bundle}; c.bundle >= 0 && joined[key] > 0 {
					joined[key]--
					keep[i][k][at] = true
				}
			}
		}
	}
	for _, pk := range s.settled.Picks {
		chairs := d.chairs[pk.Part][pk.Domain]
		for range pk.Count {
			at := from[pk.Part][pk.Domain]
			if pk.Bundle >= 0 {
				at = 0
			}
			for at < len(chairs) && (taken[pk.Part][pk.Domain][at] || keep[pk.Part][pk.Domain][at] != (pk.Bundle >= 0) || pk.Bundle >= 0 && chairs[at].bundle != pk.Bundle) {
				at++
			}
			if at == len(chairs) {
				continue
			}
			if pk.Bundle < 0 {
				from[pk.Part][pk.Domain] = at
			}
			taken[pk.Part][pk.Domain][at] = true
			picks = append(picks, picked{pk.Part, pk.Domain, at})
		}
	}
	if !whole {
		picks = s.rebind(d, picks)
	}
	out := make([]binding, 0, len(picks))
	for _, pk := range picks {
		out = append(out, binding{
			d.pods[pk.part][pk.domain][pk.chair], d.chairs[pk.part][pk.domain][pk.chair].seat, s.settled.Parts[pk.part].Class,
		})
	}
	return out
}

// picked is one pod's turn: the chair it takes.
type picked struct{ part, domain, chair int }

// rebind finds an order for what was really placed, when that is less than what was settled.
func (s *State) rebind(d dealt, picks []picked) []picked {
	replay := s.settled.Replay()
	var out []picked
	for progress := true; progress; {
		progress = false
		var later []picked
		for _, pk := range picks {
			switch {
			case d.chairs[pk.part][pk.domain][pk.chair].seat == nowhere:
			case replay.Bind(pk.part, pk.domain):
				out = append(out, pk)
				progress = true
			default:
				later = append(later, pk)
			}
		}
		picks = later
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

// GivenUp lists the preferences that a placed pod was settled without, in the order of giving them up, and those that
// it kept.
func (s *State) GivenUp(pod *corev1.Pod) (gone, kept []Preference) {
	d := s.dealing()
	for i, pt := range s.settled.Parts {
		for k := range pt.Domains {
			if slices.Contains(d.pods[i][k], pod) {
				soft := s.p.topology.Preferences(pt.Class)
				return slices.Clip(soft[:pt.Stage]), soft[pt.Stage:]
			}
		}
	}
	return nil, nil
}
