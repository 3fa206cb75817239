package whatif

import (
	"encoding/binary"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// shelf holds the nodes that no class can tell apart but by their names and their room: the same labels and taints as far as
// anybody asks, and the same domains of every key that has few values. What does not hold for one of them holds for none, so
// that a question passes over whole shelves, and on a shelf over blocks of nodes that have no room.
type shelf struct {
	// mixed is set for the one shelf of all that is too odd to have its own; there each node is looked at by itself.
	mixed  bool
	static int32
	values []int32 // by key, as those of its nodes; for keys of many values it says nothing
	nodes  []int32 // ascending
	room   []int64 // of the nodes side by side, by measure; nowhere where a node takes no pods
	blocks []int64 // by block of nodes and measure: the most that a node of it has
	rows   []int64 // the same by row of blocks
}

// blend is a proportion of CPU to memory. What a node has of a blend is the less of what it has of either part: the nodes of a
// block may have both in plenty, but not the same node, and the bounds of the block by resource cannot tell.
type blend [2]float64

// mostBlends is how many proportions are told apart; the measures of a node are its resources and these.
const mostBlends = 6

func (b blend) of(room []int64) int64 {
	return int64(min(float64(room[0])/b[0], float64(room[1])/b[1]) * (1 << 20)) // rising in both, rounded as it may be
}

const (
	// blockSize is how many nodes, or blocks, share a bound.
	blockSize = 16
	rowSize   = blockSize * blockSize
	// mostShelves is how many there are: each costs a look for each pod.
	mostShelves = 128
	// nowhere is the room of a node that takes no pods.
	nowhere = math.MinInt64
)

// shelfOf finds the shelf of a node whose labels have been read.
func (e *engine) shelfOf(n *node) int32 {
	text := binary.AppendVarint(nil, int64(n.static))
	for k, v := range n.values {
		if !e.fine[k] {
			text = binary.AppendVarint(text, int64(v))
		}
	}
	if id, ok := e.shelfAt[string(text)]; ok {
		return id
	}
	id := int32(len(e.shelves))
	switch {
	case id < mostShelves:
		e.shelves = append(e.shelves, shelf{static: n.static, values: slices.Clone(n.values)})
	case id == mostShelves:
		e.shelves = append(e.shelves, shelf{mixed: true})
	default:
		id = mostShelves
	}
	e.shelfAt[string(text)] = id
	return id
}

// measure chooses the blends by what the classes ask for, and says how much of each a class needs.
func (e *engine) measure() {
	var shares []float64
	for i := range e.classes {
		if need := e.classes[i].need; e.classes[i].movable && need[0] > 0 && need[1] > 0 {
			shares = append(shares, float64(need[1])/float64(need[0]))
		}
	}
	slices.Sort(shares)
	distinct := slices.Compact(slices.Clone(shares))
	if len(distinct) > mostBlends {
		distinct = distinct[:0]
		for k := range mostBlends {
			distinct = append(distinct, shares[(2*k+1)*len(shares)/(2*mostBlends)])
		}
		distinct = slices.Compact(distinct)
	}
	for _, s := range distinct {
		e.blends = append(e.blends, blend{1, s})
	}
	for i := range e.classes {
		c := &e.classes[i]
		c.probe = slices.Clone(c.need)
		for _, b := range e.blends {
			c.probe = append(c.probe, b.of(c.need))
		}
	}
}

// refine finds the keys of so many values that nodes are not shelved by them, and the classes to which these matter.
func (e *engine) refine() {
	e.fine = make([]bool, len(e.keys))
	for k := range e.keys {
		e.fine[k] = len(e.values[k]) > manyValues || e.keys[k] == corev1.LabelHostname
	}
	for i := range e.classes {
		c := &e.classes[i]
		see := func(g int32) { c.fine = c.fine || e.fine[e.groups[g].key] }
		for _, list := range [][]int32{c.anti, c.memberOf, c.affinity} {
			for _, g := range list {
				see(g)
			}
		}
		for _, s := range c.spreads {
			see(s.group)
		}
		if c.soft != nil {
			for _, d := range c.soft.pods {
				c.soft.fine = c.soft.fine || e.fine[e.groups[d.group].key]
			}
			for _, s := range c.soft.spread {
				c.soft.fine = c.soft.fine || e.fine[e.groups[s.group].key]
			}
		}
	}
}

// stock puts all nodes on their shelves.
func (e *engine) stock() {
	for i := range e.nodes {
		e.nodes[i].shelf = e.shelfOf(&e.nodes[i])
		e.shelve(int32(i))
	}
}

// shelve puts a node at the end of its shelf; it must come after all that are there.
func (e *engine) shelve(at int32) {
	n := &e.nodes[at]
	s := &e.shelves[n.shelf]
	n.place = int32(len(s.nodes))
	s.nodes = append(s.nodes, at)
	for range e.width() {
		s.room = append(s.room, nowhere)
		if n.place%blockSize == 0 {
			s.blocks = append(s.blocks, nowhere)
		}
		if n.place%rowSize == 0 {
			s.rows = append(s.rows, nowhere)
		}
	}
	e.refresh(at)
}

// unshelve takes the node off that was shelved last.
func (e *engine) unshelve(at int32) {
	n := &e.nodes[at]
	s := &e.shelves[n.shelf]
	e.stand(n, false)
	s.nodes = s.nodes[:n.place]
	s.room = s.room[:len(s.room)-e.width()]
	if n.place%blockSize == 0 {
		s.blocks = s.blocks[:len(s.blocks)-e.width()]
	}
	if n.place%rowSize == 0 {
		s.rows = s.rows[:len(s.rows)-e.width()]
	}
}

// refresh notes that a node's room has changed, or whether it takes pods.
func (e *engine) refresh(at int32) {
	n := &e.nodes[at]
	e.stand(n, n.open())
}

func (e *engine) stand(n *node, open bool) {
	s := &e.shelves[n.shelf]
	width := int32(e.width())
	block, row := n.place/blockSize, n.place/rowSize
	for m := range width {
		now := int64(nowhere)
		switch {
		case open && m < int32(e.dims):
			now = n.free[m]
		case open:
			now = e.blends[m-int32(e.dims)].of(n.free)
		}
		was, before := s.room[n.place*width+m], s.blocks[block*width+m]
		s.room[n.place*width+m] = now
		bound(s.room, s.blocks, block, m, width, was, now)
		bound(s.blocks, s.rows, row, m, width, before, s.blocks[block*width+m])
	}
}

// bound brings the highest of a group of numbers up to date after one of them went from was to now.
func bound(of, bounds []int64, group, m, width int32, was, now int64) {
	at := group*width + m
	switch old := bounds[at]; {
	case now >= old:
		bounds[at] = now
		return
	case was < old:
		return
	}
	most := int64(nowhere)
	for i := group*blockSize*width + m; i < min(int32(len(of)), (group+1)*blockSize*width); i += width {
		most = max(most, of[i])
	}
	bounds[at] = most
}

// width is how many measures there are of a node's room.
func (e *engine) width() int { return e.dims + len(e.blends) }

// find is the first node from lo to hi that takes a pod of the class; hi if none does. A class that would rather have some
// nodes than others gets one of these instead.
func (e *engine) find(c *class, lo, hi int) int {
	if c.soft != nil && hi-lo > 1 {
		return e.prefer(c, lo, hi)
	}
	if hi-lo < blockSize {
		for at := lo; at < hi; at++ {
			if n := &e.nodes[at]; n.open() && e.accepts(c, n) {
				return at
			}
		}
		return hi
	}
	best := int32(hi)
	for i := range e.shelves {
		s := &e.shelves[i]
		if len(s.nodes) == 0 || s.nodes[0] >= best || s.nodes[len(s.nodes)-1] < int32(lo) {
			continue
		}
		if s.mixed || e.suits(c, s.static) && e.allowed(c, s.values, e.fine) {
			best = e.search(c, s, int32(lo), best)
		}
	}
	return int(best)
}

// search is the first node of the shelf from lo to hi that takes a pod of the class.
func (e *engine) search(c *class, s *shelf, lo, hi int32) int32 {
	at := 0
	if s.nodes[0] < lo {
		at, _ = slices.BinarySearch(s.nodes, lo)
	}
	for width := e.width(); at < len(s.nodes) && s.nodes[at] < hi; at++ {
		if at%rowSize == 0 {
			if b := at / rowSize * width; !fits(c.probe, s.rows[b:b+width]) {
				at += rowSize - 1
				continue
			}
		}
		if at%blockSize == 0 {
			if b := at / blockSize * width; !fits(c.probe, s.blocks[b:b+width]) {
				at += blockSize - 1
				continue
			}
		}
		if !fits(c.need, s.room[at*width:at*width+e.dims]) {
			continue
		}
		n := &e.nodes[s.nodes[at]]
		if !n.open() || (s.mixed || len(c.ports) > 0) && !e.holds(c, n) || (s.mixed || c.fine) && !e.allowed(c, n.values, nil) {
			continue
		}
		return s.nodes[at]
	}
	return hi
}
