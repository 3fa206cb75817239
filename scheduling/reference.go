package scheduling

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/podclass"
	"github.com/joinery-sdk/joinery/scheduling/topology"
)

// Reference is how many pods of each class a planner places that takes one pod at a time and the larger first, as Karpenter
// does: who has a right to a place where pods exclude each other. It costs about as much as a plan.
func (p *Problem) Reference() []int { return p.topology.Start().Reference(p.queue()).Placed }

// references are the plans of several such planners, for of what is as good as each other Karpenter takes now this, now
// that: five where pods are few, two where they are many.
func (p *Problem) references(settled *topology.Settlement) []*topology.Reference {
	const random = 2 // and above, see topology.Queue
	out := make([]*topology.Reference, 2+min(3, 3_000/p.pending()))
	for i, q := 0, p.queue(); i < len(out); i++ {
		q.Ties = random + i
		out[i] = settled.Reference(q)
	}
	return out
}

// queue is the pods as Karpenter takes them, and what else it goes by.
func (p *Problem) queue() topology.Queue {
	return topology.Queue{Classes: p.ordered(), SoftTaints: p.softTaints(), Pools: p.queued()}
}

// ordered is the classes of all pods that Karpenter would place, in the order in which it takes them: the larger first, by cpu,
// then memory, then the older, then by UID.
func (p *Problem) ordered() []int {
	type turn struct {
		class int
		pod   *corev1.Pod
		id    string
	}
	var queue []turn
	for i, c := range p.Classes {
		for _, pod := range c.Pods {
			if c.Refusal == nil || len(c.readings) > 0 {
				queue = append(queue, turn{i, pod, cmp.Or(string(pod.UID), podclass.Name(pod))})
			}
		}
	}
	slices.SortStableFunc(queue, func(a, b turn) int {
		x, y := p.Classes[a.class].requests, p.Classes[b.class].requests
		return cmp.Or(cmp.Compare(y[0], x[0]), cmp.Compare(y[1], x[1]),
			a.pod.CreationTimestamp.Compare(b.pod.CreationTimestamp.Time), cmp.Compare(a.id, b.id))
	})
	order := make([]int, len(queue))
	for i, t := range queue {
		order[i] = t.class
	}
	return order
}

// queued is what each pool asks and what its limits leave of resources, then of nodes, in the order in which Karpenter tries
// the pools.
func (p *Problem) queued() []topology.QueuePool {
	keys := p.mentioned()
	out := make([]topology.QueuePool, len(p.Pools))
	for i, turn := range p.turns() {
		r := &p.Pools[i]
		at := &out[turn]
		at.Asks, _ = p.labelsOf(r, keys) // pools that contradict themselves sell nothing
		if at.Left = r.Left; r.NodesLeft >= 0 {
			at.Left = append(slices.Clip(r.Left), int64(r.NodesLeft))
		}
	}
	return out
}

// softTaints reports whether the nodes of some pool have taints that pods should rather avoid.
func (p *Problem) softTaints() bool {
	return slices.ContainsFunc(p.Pools, func(r PoolRoom) bool {
		return slices.ContainsFunc(r.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectPreferNoSchedule })
	})
}

// read works out what the terms of a manifest ask as Karpenter reads them, where that differs from the alternatives of what is
// asked: a term that says the same as another is one more try, and of a label of which contradictory things are asked it takes
// that nodes must not have it. Others who are refused it does not place either.
func (c *Class) read(aliases requirements.Aliases) {
	if c.Refusal != nil && (!c.asked.IsImpossible() || c.where.IsImpossible()) {
		return
	}
	spec := &c.Template.Spec
	terms := []corev1.NodeSelectorTerm{{}}
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		terms = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	}
	if len(terms) == c.asked.Len() {
		return // each stands for itself
	}
	for _, t := range terms {
		asked := map[string]requirements.Requirement{}
		contradicts := false
		ask := func(r requirements.Requirement) {
			if other, ok := asked[r.Key()]; ok {
				r = r.Intersect(other)
			}
			if r.IsImpossible() {
				r, contradicts = requirements.DoesNotExist(r.Key()), true
			}
			asked[r.Key()] = r
		}
		for r := range requirements.FromLabels(aliases.Labels(spec.NodeSelector)).All() {
			ask(r)
		}
		for _, e := range t.MatchExpressions {
			r, err := requirements.New(aliases.Key(e.Key), requirements.Operator(e.Operator), e.Values...)
			if err != nil {
				c.readings = nil // no API server would have stored it, which is told elsewhere
				return
			}
			ask(r)
		}
		alone := requirements.AnyOf(requirements.MustOf(slices.Collect(maps.Values(asked))...))
		reading := topology.Reading{Asked: alone, Required: c.Required.Intersect(alone)}
		if contradicts {
			reading.Required = c.where.Intersect(alone)
		}
		c.readings = append(c.readings, reading)
	}
}
