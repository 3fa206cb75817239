package greedy

import (
	"slices"

	"github.com/joinery-sdk/joinery/requirements"
)

// node is an existing node, or one to buy that is not decided yet.
type node struct {
	number int
	set    requirements.Set // what its pods ask
	all    []*Cell          // that it could be at first
	cells  []*Cell          // that it can still be
	used   []int64
	tags   map[string]int
	limits map[string]int
	pods   int
	never  map[[2]int]bool // classes and stages that it will not take any more
}

func newNode(number int, set requirements.Set, cells []*Cell, dimensions int) *node {
	return &node{
		number: number, set: set, all: cells, cells: cells, used: make([]int64, dimensions),
		tags: map[string]int{}, limits: map[string]int{}, never: map[[2]int]bool{},
	}
}

// bind adds what acts within the node.
func (n *node) bind(tags []string, limits []Limit) {
	for _, t := range tags {
		n.tags[t]++
	}
	for _, l := range limits {
		if most, ok := n.limits[l.Tag]; !ok || l.Max < most {
			n.limits[l.Tag] = l.Max
		}
	}
}

// admits reports whether one more pod with the tags and limits of the stage may be on the node.
func (n *node) admits(st *Stage) bool {
	for _, l := range st.Limits {
		if n.tags[l.Tag]+times(st.Tags, l.Tag) > l.Max {
			return false
		}
	}
	for _, t := range st.Tags {
		if most, ok := n.limits[t]; ok && n.tags[t]+times(st.Tags, t) > most {
			return false
		}
	}
	return true
}

func times(list []string, of string) int {
	n := 0
	for _, t := range list {
		if t == of {
			n++
		}
	}
	return n
}

// open are the cells that meet the requirements and have the room.
func open(cells []*Cell, set requirements.Set, used []int64) []*Cell {
	var out []*Cell
	for _, c := range cells {
		if c.holds(used) && set.Compatible(c.Labels, requirements.Keys{}) {
			out = append(out, c)
		}
	}
	return out
}

// holds reports whether some size of the cell has the room.
func (c *Cell) holds(used []int64) bool {
	return slices.ContainsFunc(c.Rooms, func(room []int64) bool { return fits(used, room) })
}

func fits(used, room []int64) bool {
	for r, q := range used {
		if q > room[r] && q > 0 {
			return false
		}
	}
	return true
}

// values are those that a label may have on a node of one of the cells, in order, as far as the requirements let it.
func values(key string, set requirements.Set, cells []*Cell) []string {
	var out []string
	asked := set.Get(key)
	for _, c := range cells {
		if !c.Labels.Has(key) {
			continue
		}
		some, finite := asked.Intersect(c.Labels.Get(key)).Values()
		if !finite {
			continue
		}
		for _, v := range some {
			if at, ok := slices.BinarySearch(out, v); !ok {
				out = slices.Insert(out, at, v)
			}
		}
	}
	return out
}
