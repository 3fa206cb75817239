package topology

import (
	"cmp"
	"slices"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/topology/internal/greedy"
)

// greedy is the problem as a planner reads it that takes one pod at a time.
func (p *Problem) greedy(q *Queue) *greedy.Problem {
	bare := *p
	bare.standing = nil // Karpenter's least count by the hostname is 0 everywhere
	p = &bare
	out := &greedy.Problem{
		Ties:    q.Ties,
		Classes: make([]greedy.Class, len(p.classes)), Groups: make([]greedy.Group, len(p.groups)), Nodes: make([]greedy.Node, len(p.nodes)),
	}
	for i, g := range p.groups {
		out.Groups[i] = greedy.Group{
			Key: g.key, Within: g.hostname, Tag: g.tag, Running: g.counts, Owners: g.owners, Kept: len(g.owners) > 0,
		}
		if g.filter != nil {
			out.Groups[i].Filter = g.filter.asked
		}
		if !g.hostname {
			out.Groups[i].Values = p.known(g)
		}
	}
	for i := range p.classes {
		c := &p.classes[i]
		out.Classes[i] = greedy.Class{Requests: c.Requests, Groups: c.memberOf, Stages: p.inTurn(c, q.SoftTaints)}
		for _, sh := range c.Shared {
			out.Classes[i].Shared = append(out.Classes[i].Shared, greedy.Shared(sh))
		}
		for _, t := range c.terms {
			out.Groups[t.group].Kept = out.Groups[t.group].Kept || t.anti && t.hard
		}
	}
	for i := range p.nodes {
		n := &p.nodes[i]
		out.Nodes[i] = greedy.Node{Labels: n.Labels, Free: n.Free, Tags: n.Tags, Limits: asGreedy(n.Limits), Shared: n.Shared}
	}
	for i, shapes := range p.byPool() {
		var pool greedy.Pool
		for _, c := range cellsOf(slices.Values(shapes), true) {
			pool.Cells = append(pool.Cells, greedy.Cell{Labels: c.labels, Sizes: c.sizes})
		}
		if i < len(q.Pools) {
			pool.Asks, pool.Left = q.Pools[i].Asks, q.Pools[i].Left
		}
		out.Pools = append(out.Pools, pool)
	}
	return out
}

// byPool are the shapes by pool.
func (p *Problem) byPool() [][]Shape {
	var out [][]Shape
	if p.shapes == nil {
		return nil
	}
	for s := range p.shapes {
		s.Offerings = slices.Clone(s.Offerings)
		for len(out) <= s.Pool {
			out = append(out, nil)
		}
		out[s.Pool] = append(out[s.Pool], s)
	}
	return out
}

// known are the values of a group's key that Karpenter knows: those of all pools whose taints do not matter or are tolerated,
// and of existing nodes that its filter passes.
func (p *Problem) known(g *group) []string {
	out := map[string]bool{}
	anything := requirements.AnyOf(requirements.Set{})
	for i := range p.cells {
		if c := &p.cells[i]; g.filter == nil || g.filter.tainted.Compatible(c.labels, requirements.Keys{}) {
			p.combinations(c.labels, anything, []string{g.key}, []bool{false}, func(v []string) { out[v[0]] = true })
		}
	}
	for i := range p.nodes {
		if v, ok := p.nodes[i].value(g.key); ok && (g.filter == nil || g.filter.asked.Compatible(p.nodes[i].Labels, requirements.Keys{})) {
			out[v] = true
		}
	}
	for v := range g.counts {
		out[v] = true
	}
	return sortedTrue(out)
}

// inTurn is what the pods of the class ask in the order in which Karpenter gives up: of several required terms of node
// affinity the first holds, of preferred ones the heaviest; first go the alternatives, then preferred affinity,
// anti-affinity and node affinity, each the heaviest first, then spreads. Where the nodes of some pool have soft taints,
// pods tolerate none until the end.
func (p *Problem) inTurn(c *class, softTaints bool) []greedy.Stage {
	left := slices.DeleteFunc(slices.Clone(c.soft), func(s Preference) bool { return s.Kind == PreferNoTaint })
	slices.SortStableFunc(left, func(a, b Preference) int {
		return cmp.Or(cmp.Compare(c.turnOf(a), c.turnOf(b)), cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.index, b.index))
	})
	if p.ignoresSoft {
		left = nil
	}
	terms := c.Readings
	if len(terms) == 0 {
		for asked := range c.Asked.All() {
			alone := requirements.AnyOf(asked)
			terms = append(terms, Reading{Asked: alone, Required: c.Required.Intersect(alone)})
		}
	}
	var out []greedy.Stage
	for i, term := range terms {
		for k := range len(left) + 1 {
			out = append(out, p.turn(c, term, left[k:], !softTaints))
			out[len(out)-1].Anew = i
			if i < len(terms)-1 {
				break
			}
		}
	}
	if softTaints && len(terms) > 0 {
		out = append(out, p.turn(c, terms[len(terms)-1], nil, true))
		out[len(out)-1].Anew = len(terms)
	}
	return out
}

// turnOf is when Karpenter gives up a preference.
func (c *class) turnOf(s Preference) int {
	switch {
	case s.Kind == PreferPods && !c.terms[s.index].anti:
		return 0
	case s.Kind == PreferPods:
		return 1
	case s.Kind == PreferNodes:
		return 2
	}
	return 3
}

// prefer adds what is preferred of nodes as Karpenter does: where that contradicts what is required of a label, the node must
// not have the label. kube-scheduler refuses the pod there, but its like takes others' place until then.
func prefer(required requirements.Alternatives, preferred requirements.Set) requirements.Alternatives {
	var out []requirements.Set
	for set := range required.All() {
		var both []requirements.Requirement
		for r := range set.All() {
			if preferred.Has(r.Key()) {
				if r = r.Intersect(preferred.Get(r.Key())); r.IsImpossible() {
					r = requirements.DoesNotExist(r.Key())
				}
			}
			both = append(both, r)
		}
		for r := range preferred.All() {
			if !set.Has(r.Key()) {
				both = append(both, r)
			}
		}
		out = append(out, requirements.MustOf(both...))
	}
	return requirements.AnyOf(out...)
}

// turn is what the pods ask of nodes and of each other with some preferences left.
func (p *Problem) turn(c *class, as Reading, soft []Preference, tolerant bool) greedy.Stage {
	tolerated := c.Untainted
	if tolerant {
		tolerated = c.Tolerated
	}
	st := stage{required: as.Required.Intersect(requirements.AnyOf(tolerated))}
	if k := slices.IndexFunc(soft, func(s Preference) bool { return s.Kind == PreferNodes }); k >= 0 {
		st.required = prefer(st.required, c.Preferred[soft[k].index].Nodes)
	}
	st.spreads, st.terms = c.kept(soft)
	out := greedy.Stage{Required: st.required, Asked: as.Asked}
	var lasting, passing []Limit
	out.Tags, lasting, passing = p.within(c, &st)
	out.Limits = asGreedy(slices.Concat(lasting, passing))
	_, lasting, _ = p.within(c, &stage{terms: slices.DeleteFunc(slices.Clone(c.terms), func(t term) bool { return !t.hard })})
	out.Keeps = asGreedy(lasting)
	for _, sp := range st.spreads {
		out.Spreads = append(out.Spreads, greedy.Spread{Group: sp.group, MaxSkew: sp.maxSkew, MinDomains: sp.minDomains, Self: sp.self})
	}
	for _, t := range st.terms {
		if !t.volume {
			out.Terms = append(out.Terms, greedy.Term{Group: t.group, Anti: t.anti, Hard: t.hard, Self: t.self})
		}
	}
	return out
}

func asGreedy(limits []Limit) []greedy.Limit {
	out := make([]greedy.Limit, len(limits))
	for i, l := range limits {
		out[i] = greedy.Limit(l)
	}
	return out
}
