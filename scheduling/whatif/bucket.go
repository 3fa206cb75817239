package whatif

import (
	"encoding/binary"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/scheduling/internal/bind"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
)

// bucket holds the nodes that no class can tell apart but by their names and their room: the same labels and taints as far as
// anybody asks, and the same domains of every key that has few values. What does not hold for one of them holds for none, so
// that a question passes over whole buckets, and on a bucket over blocks of nodes that have no room.
type bucket struct {
	// mixed is set for the one bucket of all that is too odd to have its own; there each node is looked at by itself.
	mixed  bool
	kind   int32
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
	// manyValues is from how many values on nodes are not put into buckets by a key.
	manyValues = 64
	// blockSize is how many nodes, or blocks, share a bound.
	blockSize = 16
	rowSize   = blockSize * blockSize
	// mostBuckets is how many there are: each costs a look for each pod.
	mostBuckets = 128
	// nowhere is the room of a node that takes no pods.
	nowhere = math.MinInt64
)

// bucketOf finds the bucket of a node whose labels have been read.
func (e *engine) bucketOf(n *node) int32 {
	text := binary.AppendVarint(nil, int64(n.Kind))
	for k, v := range n.Values {
		if !e.fine[k] {
			text = binary.AppendVarint(text, int64(v))
		}
	}
	if id, ok := e.bucketAt[string(text)]; ok {
		return id
	}
	id := int32(len(e.buckets))
	switch {
	case id < mostBuckets:
		e.buckets = append(e.buckets, bucket{kind: n.Kind, values: slices.Clone(n.Values)})
	case id == mostBuckets:
		e.buckets = append(e.buckets, bucket{mixed: true})
	default:
		id = mostBuckets
	}
	e.bucketAt[string(text)] = id
	return id
}

// measure chooses the blends by what the classes ask for, and says how much of each a class needs.
func (e *engine) measure() {
	var shares []float64
	for i := range e.classes {
		if need := e.classes[i].Need; e.classes[i].movable && need[0] > 0 && need[1] > 0 {
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
		c.probe = slices.Clone(c.Need)
		for _, b := range e.blends {
			c.probe = append(c.probe, b.of(c.Need))
		}
	}
}

// refine finds the keys of so many values that nodes are not put into buckets by them, and the classes to which these matter.
func (e *engine) refine() {
	keys := e.index.Keys()
	e.fine = make([]bool, len(keys))
	for k := range keys {
		e.fine[k] = e.cluster.Values.Len(int32(k)) > manyValues || keys[k] == corev1.LabelHostname
	}
	e.fineGroups = make([]bool, len(e.index.Groups()))
	for i, g := range e.index.Groups() {
		e.fineGroups[i] = e.fine[g.Key]
	}
	looks := func(c *interpod.Constraints) bool {
		return slices.ContainsFunc(c.MemberOf, func(g int32) bool { return e.fineGroups[g] }) ||
			slices.ContainsFunc(c.Terms, func(t interpod.Term) bool { return e.fineGroups[t.Group] }) ||
			slices.ContainsFunc(c.Spreads, func(s interpod.Spread) bool { return e.fineGroups[s.Group] })
	}
	for i := range e.classes {
		c := &e.classes[i]
		c.fine = looks(&c.Constraints)
		if c.soft != nil {
			c.soft.fine = looks(&c.soft.Constraints)
		}
	}
}

// stock puts all nodes into their buckets.
func (e *engine) stock() {
	for i := range e.nodes {
		e.nodes[i].bucket = e.bucketOf(&e.nodes[i])
		e.putIn(int32(i))
	}
}

// putIn puts a node at the end of its bucket; it must come after all that are there.
func (e *engine) putIn(at int32) {
	n := &e.nodes[at]
	s := &e.buckets[n.bucket]
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

// takeOut takes the node off that was put into buckets last.
func (e *engine) takeOut(at int32) {
	n := &e.nodes[at]
	s := &e.buckets[n.bucket]
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
	s := &e.buckets[n.bucket]
	width := int32(e.width())
	block, row := n.place/blockSize, n.place/rowSize
	for m := range width {
		now := int64(nowhere)
		switch {
		case open && m < int32(e.dims):
			now = n.Free[m]
		case open:
			now = e.blends[m-int32(e.dims)].of(n.Free)
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
	for i := range e.buckets {
		s := &e.buckets[i]
		if len(s.nodes) == 0 || s.nodes[0] >= best || s.nodes[len(s.nodes)-1] < int32(lo) {
			continue
		}
		if s.mixed || e.cluster.Suits(&c.Class, s.kind) && e.allowed(c, s.values, e.fineGroups) {
			best = e.search(c, s, int32(lo), best)
		}
	}
	return int(best)
}

// search is the first node of the bucket from lo to hi that takes a pod of the class.
func (e *engine) search(c *class, s *bucket, lo, hi int32) int32 {
	at := 0
	if s.nodes[0] < lo {
		at, _ = slices.BinarySearch(s.nodes, lo)
	}
	for width := e.width(); at < len(s.nodes) && s.nodes[at] < hi; at++ {
		if at%rowSize == 0 {
			if b := at / rowSize * width; !bind.Fits(c.probe, s.rows[b:b+width]) {
				at += rowSize - 1
				continue
			}
		}
		if at%blockSize == 0 {
			if b := at / blockSize * width; !bind.Fits(c.probe, s.blocks[b:b+width]) {
				at += blockSize - 1
				continue
			}
		}
		if !bind.Fits(c.Need, s.room[at*width:at*width+e.dims]) {
			continue
		}
		n := &e.nodes[s.nodes[at]]
		if !n.open() || (s.mixed || len(c.Ports) > 0) && !e.cluster.Alone(&c.Class, &n.Node).OK() || (s.mixed || c.fine) && !e.allowed(c, n.Values, nil) {
			continue
		}
		return s.nodes[at]
	}
	return hi
}
