package topology

import "slices"

// Shared is something that all pods on a node take one unit of, however many of them use it, such as a volume.
type Shared struct {
	// Name tells it from others, whoever uses it.
	Name string
	// Dimension is the one of Class.Requests that counts it; one of its units there is for this.
	Dimension int
}

// onNode is what one pod of the class takes of an existing node: nothing of what it shares with pods that run there.
func (p *Problem) onNode(c *class, n int) []int64 {
	return sparing(c, func(name string) bool { return slices.Contains(p.nodes[n].Shared, name) })
}

// beside is what one more pod of the class takes beside the pods of a bundle.
func (s *assigner) beside(b *bundle, c *class) []int64 {
	return sparing(c, func(name string) bool { return s.uses(b, name) })
}

// uses reports whether some pod in the bundle, or running on its node, uses something.
func (s *assigner) uses(b *bundle, name string) bool {
	return b.node >= 0 && slices.Contains(s.p.nodes[b.node].Shared, name) || slices.ContainsFunc(b.slots, func(sl Slot) bool {
		return slices.ContainsFunc(s.p.classes[s.classes[sl.Relaxed].Class].Shared, func(sh Shared) bool { return sh.Name == name })
	})
}

// sharesWith reports whether the pods of the class use something that is used in the bundle.
func (s *assigner) sharesWith(b *bundle, c *class) bool {
	return slices.ContainsFunc(c.Shared, func(sh Shared) bool { return s.uses(b, sh.Name) })
}

// sparing is what a pod takes where some of what it shares is there.
func sparing(c *class, there func(name string) bool) []int64 {
	out := c.Requests
	for _, sh := range c.Shared {
		if there(sh.Name) {
			if &out[0] == &c.Requests[0] {
				out = slices.Clone(out)
			}
			out[sh.Dimension]--
		}
	}
	return out
}
