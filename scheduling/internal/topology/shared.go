package topology

import "slices"

// Shared is a unit of a resource that all its users on a node take together, such as an attached
// volume.
type Shared struct {
	// Name identifies it.
	Name string
	// Dimension is the index of its resource in Class.Requests. It is one unit of that resource.
	Dimension int
}

// onNode returns what one pod of the class takes of an existing node, without what it shares with
// running pods.
func (p *Problem) onNode(c *class, n int) []int64 {
	return sparing(c, func(name string) bool { return slices.Contains(p.nodes[n].Shared, name) })
}

// beside returns what one more pod of the class takes beside a bundle, without what they share.
func (s *assigner) beside(b *bundle, c *class) []int64 {
	return sparing(c, func(name string) bool { return s.uses(b, name) })
}

// uses reports whether a pod of the bundle, or a running pod of its node, uses the shared unit of
// that name.
func (s *assigner) uses(b *bundle, name string) bool {
	return b.node >= 0 && slices.Contains(s.p.nodes[b.node].Shared, name) || slices.ContainsFunc(b.slots, func(sl Slot) bool {
		return slices.ContainsFunc(s.p.classes[s.classes[sl.Relaxed].Class].Shared, func(sh Shared) bool { return sh.Name == name })
	})
}

// sharesWith reports whether the pods of the class share something with the bundle.
func (s *assigner) sharesWith(b *bundle, c *class) bool {
	return slices.ContainsFunc(c.Shared, func(sh Shared) bool { return s.uses(b, sh.Name) })
}

// sparing returns the requests of a pod without the shared units that are already there.
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
