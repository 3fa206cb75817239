package greedy

import "slices"

// node is an existing node, or one to buy that is not decided yet.
type node struct {
	number int
	form   *form
	used   []int64
	tags   map[string]int
	limits map[string]int
	shared []string
	pods   int
	never  []uint64 // the stages whose pods it will not take any more, by number
}

func newNode(number int, f *form, dimensions int) *node {
	return &node{number: number, form: f, used: make([]int64, dimensions), tags: map[string]int{}, limits: map[string]int{}}
}

// take is what the node has in use with one more pod of the class; into is reused.
func (n *node) take(c *Class, into []int64) []int64 {
	into = append(into[:0], c.Requests...)
	for r, q := range n.used {
		into[r] += q
	}
	for _, sh := range c.Shared {
		if slices.Contains(n.shared, sh.Name) {
			into[sh.Dimension]--
		}
	}
	return into
}

// share notes what a pod of the class uses together with others.
func (n *node) share(c *Class) {
	for _, sh := range c.Shared {
		if !slices.Contains(n.shared, sh.Name) {
			n.shared = append(n.shared, sh.Name)
		}
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

// admits reports whether one more pod with the tags and limits of the stage may be on the node. If not, then never: tags
// only grow.
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

// close notes that the node takes no more pods of a stage.
func (n *node) close(stage int) {
	for len(n.never) <= stage/64 {
		n.never = append(n.never, 0)
	}
	n.never[stage/64] |= 1 << (stage % 64)
}

func (n *node) isClosed(stage int) bool {
	return stage/64 < len(n.never) && n.never[stage/64]>>(stage%64)&1 != 0
}
