package whatif

import (
	"encoding/binary"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/scheduling/internal/bind"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
)

// bucket holds nodes that are equal to pod classes except for name and free capacity: they have the
// same relevant labels and taints, and the same domain of every key with few values. If one of them
// does not suit a class, none does. So a question skips whole buckets, and within a bucket whole
// blocks of nodes that are too full.
type bucket struct {
	// mixed is set for the one bucket of all nodes beyond mostBuckets. Each of its nodes is checked
	// on its own.
	mixed      bool
	labelClass int32
	values     []int32 // by key, the values of its nodes; unspecified for fine keys
	nodes      []int32 // ascending
	free       []int64 // of the nodes side by side, by measure; closed for nodes that take no pods
	blocks     []int64 // by block of nodes and measure: the maximum over its nodes
	rows       []int64 // the same by row of blocks
}

// blend is a proportion of CPU to memory. The measure of a node for a blend is the lesser of its
// two parts. It can show that no node of a block has enough of both; the maxima by resource cannot.
type blend [2]float64

// mostBlends limits the number of blends. The measures of a node are its resources and the blends.
const mostBlends = 6

func (b blend) of(free []int64) int64 {
	return int64(min(float64(free[0])/b[0], float64(free[1])/b[1]) * (1 << 20)) // any monotonous rounding will do
}

const (
	// manyValues is the number of values above which a key does not distinguish buckets.
	manyValues = 64
	// blockSize is the number of nodes of a block, and of blocks of a row.
	blockSize = 16
	rowSize   = blockSize * blockSize
	// mostBuckets limits the number of buckets, because each costs a look for each pod.
	mostBuckets = 128
	// closed is every measure of a node that takes no pods.
	closed = math.MinInt64
)

// bucketOf returns the bucket of a described node.
func (e *engine) bucketOf(n *node) int32 {
	text := binary.AppendVarint(nil, int64(n.LabelClass))
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
		e.buckets = append(e.buckets, bucket{labelClass: n.LabelClass, values: slices.Clone(n.Values)})
	case id == mostBuckets:
		e.buckets = append(e.buckets, bucket{mixed: true})
	default:
		id = mostBuckets
	}
	e.bucketAt[string(text)] = id
	return id
}

// measure chooses the blends by the needs of the classes, and sets the probe of each class.
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

// refine finds the fine keys, which have too many values to distinguish buckets, and the classes
// that have constraints on them.
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

// stock puts all nodes into buckets.
func (e *engine) stock() {
	for i := range e.nodes {
		e.nodes[i].bucket = e.bucketOf(&e.nodes[i])
		e.putIn(int32(i))
	}
}

// putIn appends a node to its bucket; its number must be the highest there.
func (e *engine) putIn(at int32) {
	n := &e.nodes[at]
	s := &e.buckets[n.bucket]
	n.place = int32(len(s.nodes))
	s.nodes = append(s.nodes, at)
	for range e.width() {
		s.free = append(s.free, closed)
		if n.place%blockSize == 0 {
			s.blocks = append(s.blocks, closed)
		}
		if n.place%rowSize == 0 {
			s.rows = append(s.rows, closed)
		}
	}
	e.refresh(at)
}

// takeOut removes the node that was put into a bucket last.
func (e *engine) takeOut(at int32) {
	n := &e.nodes[at]
	s := &e.buckets[n.bucket]
	n.alive = false
	e.refresh(at)
	s.nodes = s.nodes[:n.place]
	s.free = s.free[:len(s.free)-e.width()]
	if n.place%blockSize == 0 {
		s.blocks = s.blocks[:len(s.blocks)-e.width()]
	}
	if n.place%rowSize == 0 {
		s.rows = s.rows[:len(s.rows)-e.width()]
	}
}

// refresh updates the measures of a node in its bucket.
func (e *engine) refresh(at int32) {
	n := &e.nodes[at]
	s, width, open := &e.buckets[n.bucket], int32(e.width()), n.open()
	block, row := n.place/blockSize, n.place/rowSize
	for m := range width {
		now := int64(closed)
		switch {
		case open && m < int32(e.dims):
			now = n.Free[m]
		case open:
			now = e.blends[m-int32(e.dims)].of(n.Free)
		}
		was, before := s.free[n.place*width+m], s.blocks[block*width+m]
		s.free[n.place*width+m] = now
		bound(s.free, s.blocks, block, m, width, was, now)
		bound(s.blocks, s.rows, row, m, width, before, s.blocks[block*width+m])
	}
}

// bound updates the maximum of a group of numbers after one of them changed from was to now.
func bound(of, bounds []int64, group, m, width int32, was, now int64) {
	at := group*width + m
	switch old := bounds[at]; {
	case now >= old:
		bounds[at] = now
		return
	case was < old:
		return
	}
	most := int64(closed)
	for i := group*blockSize*width + m; i < min(int32(len(of)), (group+1)*blockSize*width); i += width {
		most = max(most, of[i])
	}
	bounds[at] = most
}

// width returns the number of measures of a node.
func (e *engine) width() int { return e.dims + len(e.blends) }

// find returns the first node from lo to hi that accepts a pod of the class. For a class with
// preferences it is the preferred one. It is hi if none accepts.
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
		if s.mixed || e.cluster.Suits(&c.Class, s.labelClass) && e.allowed(c, s.values, e.fineGroups) {
			best = e.search(c, s, int32(lo), best)
		}
	}
	return int(best)
}

// search returns the first node of the bucket from lo to hi that accepts a pod of the class; hi if
// none does.
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
		if !bind.Fits(c.Need, s.free[at*width:at*width+e.dims]) {
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
