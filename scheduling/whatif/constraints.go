package whatif

import "github.com/joinery-sdk/joinery/requirements"

// join finds the groups that each class and DaemonSet is in.
func (e *engine) join() {
	for _, d := range e.daemons {
		e.index.Join(&d.Constraints, d.pod.Namespace, d.pod.Labels)
	}
	for i := range e.classes {
		c := &e.classes[i]
		e.index.Join(&c.Constraints, c.template.Namespace, c.template.Labels)
		if c.soft != nil {
			e.index.Join(&c.soft.Constraints, c.template.Namespace, c.template.Labels)
		}
	}
}

// allowed reports whether the constraints between pods let a pod of the class onto a node with these values of the keys.
// Groups that are left out are skipped; a refusal without them stands.
func (e *engine) allowed(c *class, values []int32, without []bool) bool {
	return e.cluster.Between(&c.Constraints, values, without).OK()
}

// keyOf is the name of the label by whose values a group is counted.
func (e *engine) keyOf(group int32) string { return e.index.Keys()[e.index.Groups()[group].Key] }

// narrow is the set narrowed by the first alternative that suits it.
func narrow(set requirements.Set, asked requirements.Alternatives) (requirements.Set, bool) {
	for a := range asked.All() {
		if !a.Compatible(set, requirements.Keys{}) {
			continue
		}
		var b requirements.Builder
		b.AddSet(set)
		for r := range a.All() {
			if set.Has(r.Key()) {
				b.Add(r)
			}
		}
		if out, err := b.Set(); err == nil {
			return out, true
		}
	}
	return set, false
}
