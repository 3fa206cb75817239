package scheduling

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
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

// seat is where one pod of an item sits: a room (bin < 0) or a bin.
type seat struct{ room, bin int }

// Result deals the pods out to the seats of the last outcome, and orders their binding. Pods whose constraints would
// not hold in any order are left out. It may only be called when the state is done.
func (s *State) Result() *Result {
	seats := make([][]seat, len(s.items))
	for r, shares := range s.last.Rooms {
		for _, sh := range shares {
			seats[sh.Item] = append(seats[sh.Item], slices.Repeat([]seat{{r, -1}}, sh.Count)...)
		}
	}
	for b, bin := range s.last.Bins {
		for _, sh := range bin.Shares {
			seats[sh.Item] = append(seats[sh.Item], slices.Repeat([]seat{{-1, b}}, sh.Count)...)
		}
	}
	pods := s.pods()
	res := &Result{Rooms: make([][]*corev1.Pod, len(s.p.Rooms))}
	byBin := make([][]*corev1.Pod, len(s.last.Bins))
	bound := make([]int, len(s.items))
	for _, pk := range s.bindings(seats) {
		i := pk.part
		for range pk.count {
			pod, at := pods[i][bound[i]], seats[i][bound[i]]
			bound[i]++
			res.Order = append(res.Order, pod)
			if at.bin >= 0 {
				byBin[at.bin] = append(byBin[at.bin], pod)
			} else {
				res.Rooms[at.room] = append(res.Rooms[at.room], pod)
			}
		}
	}
	for r := range res.Rooms {
		sortPods(res.Rooms[r])
	}
	for b, list := range byBin {
		if len(list) > 0 {
			sortPods(list)
			res.Bins = append(res.Bins, ResultBin{b, s.last.Bins[b].Shape, s.last.Bins[b].Offering, list})
		}
	}
	s.unplaced(res, pods, bound)
	return res
}

// bindings is the picks of settling, less what packing did not place.
func (s *State) bindings(seats [][]seat) []pick {
	whole := true
	for i, it := range s.items {
		whole = whole && len(seats[i]) == it.Count
	}
	if whole {
		return s.picks
	}
	return s.rebind(seats)
}

// rebind finds an order for what was really placed, when that is less than what was settled: the same constraints are
// tested again, pod by pod, and what can bind in no order is left out.
func (s *State) rebind(seats [][]seat) []pick {
	f := facts{caps: map[capKey]int{}, closed: s.facts.closed}
	settler := s.p.newSettler(&f)
	left := make([]int, len(s.items))
	parts := make([]*part, len(s.items))
	byPart := map[[2]int]*part{}
	for i, it := range s.items {
		left[i] = len(seats[i])
		key := [2]int{it.Class, s.parts[i].stage}
		if byPart[key] == nil {
			byPart[key] = settler.addPart(it.Class, s.parts[i].stage, 0)
		}
		parts[i] = byPart[key]
	}
	var out []pick
	for progress := true; progress; {
		progress = false
		for _, pk := range s.picks {
			i := pk.part
			pt := parts[i]
			d := slices.IndexFunc(pt.domains, func(d domain) bool { return d.text() == s.parts[i].text })
			if d < 0 {
				continue
			}
			for left[i] > 0 && (len(pt.keys) == 0 || settler.allowed(pt, d)) {
				left[i]--
				if len(pt.keys) > 0 {
					settler.count(pt, d, 1)
				}
				out = append(out, pick{part: i, count: 1})
				progress = true
			}
		}
	}
	return out
}

func (s *State) unplaced(res *Result, pods [][]*corev1.Pod, bound []int) {
	byClass := make([][]*corev1.Pod, len(s.p.Classes))
	dealt := make([]int, len(s.p.Classes))
	for i, it := range s.items {
		byClass[it.Class] = append(byClass[it.Class], pods[i][bound[i]:]...)
		dealt[it.Class] += it.Count
	}
	for c, class := range s.p.Classes {
		list := append(byClass[c], class.Pods[dealt[c]:]...)
		if len(list) > 0 {
			sortPods(list)
			res.Unplaced = append(res.Unplaced, Unplaced{c, list})
		}
	}
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
	for i, pods := range s.pods() {
		if slices.Contains(pods, pod) {
			soft := s.p.Classes[s.items[i].Class].soft
			return slices.Clone(soft[:s.parts[i].stage]), slices.Clone(soft[s.parts[i].stage:])
		}
	}
	return nil, nil
}
