package whatif

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
	"github.com/joinery-sdk/joinery/scheduling/internal/interpod"
	"github.com/joinery-sdk/joinery/scheduling/internal/taints"
)

// constraints reads what the pod of a class asks of other pods: what is required, and what it would rather have.
func (e *engine) constraints(c *class) error {
	asked, err := kube.FromPod(&c.template.Spec)
	if err != nil {
		return err
	}
	all, err := e.index.Read(interpod.Owner{Pod: c.template, Asked: e.aliases.Alternatives(asked.Required)})
	if err != nil {
		return err
	}
	soft := softly{nodes: e.wishes(asked.Preferred)}
	for _, s := range all.Spreads {
		if s.Hard {
			c.Spreads = append(c.Spreads, s)
		} else {
			soft.spreads = append(soft.spreads, s)
		}
	}
	for _, t := range all.Terms {
		if t.Hard {
			c.Terms = append(c.Terms, t)
		} else {
			soft.terms = append(soft.terms, t)
		}
	}
	if len(soft.nodes)+len(soft.terms)+len(soft.spreads) > 0 {
		c.soft = &soft
	}
	return nil
}

// join finds the groups that each class and DaemonSet is in.
func (e *engine) join() {
	for _, d := range e.daemons {
		e.index.Join(&d.Constraints, d.pod.Namespace, d.pod.Labels)
	}
	for i := range e.classes {
		c := &e.classes[i]
		e.index.Join(&c.Constraints, c.template.Namespace, c.template.Labels)
		if c.soft != nil {
			own := interpod.Constraints{Spreads: c.soft.spreads, Terms: c.soft.terms}
			e.index.Join(&own, c.template.Namespace, c.template.Labels)
		}
	}
}

// passes says which node filters of spreads a node passes.
func (e *engine) passes(n *node) func(filter int32) bool {
	return func(filter int32) bool {
		for int(filter) >= len(e.passed) {
			e.passed = append(e.passed, nil)
		}
		for int(n.static) >= len(e.passed[filter]) {
			e.passed[filter] = append(e.passed[filter], 0)
		}
		known := &e.passed[filter][n.static]
		if *known == 0 {
			f, st := &e.index.Filters()[filter], &e.statics[n.static]
			*known = 2
			if f.Asked.Compatible(st.labels, requirements.Keys{}) && (!f.HonorTaints || tolerates(f.Tolerations, st.taints)) {
				*known = 1
			}
		}
		for _, k := range e.index.Filters()[filter].Keys {
			if n.values[k] < 0 {
				return false
			}
		}
		return *known == 1
	}
}

func tolerates(tolerations []corev1.Toleration, list []corev1.Taint) bool {
	_, found := taints.Untolerated(list, tolerations, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)
	return !found
}

// count adds a pod to the counts of its node, or takes it off with sign -1.
func (e *engine) count(pod int32, n *node, sign int32) {
	p := &e.pods[pod]
	c := &e.classes[p.class].Constraints
	if len(c.MemberOf)+len(c.Terms) > 0 {
		e.state.Add(c, n.values, e.passes(n), p.leaving, sign)
	}
}

// domain adds a node to the domains of spreads, or takes it off.
func (e *engine) domain(n *node, sign int32) { e.state.AddNode(n.values, e.passes(n), sign) }

// allowed reports whether the constraints between pods let a pod of the class onto a node with these values of the keys.
// Groups that are left out are not asked about; what is said no to is refused whatever these say.
func (e *engine) allowed(c *class, values []int32, without []bool) bool {
	return e.state.Check(&c.Constraints, values, without).OK()
}

// keyOf is the name of the label by whose values a group is counted.
func (e *engine) keyOf(group int32) string { return e.index.Keys()[e.index.Groups()[group].Key] }

// narrow is the part of the set that the first alternative that suits it leaves.
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
