package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/budget"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// ledger is what the budgets of pools and zones allow. It is immutable. kept are nodes that are charged
// already, and the methods that will give them back.
type ledger struct {
	pools, zones budget.Ledger
	kept         map[string]eligibility.Method
}

func newLedger(c *deprovision.Cluster, o *Options) ledger {
	return ledger{budget.New(c.Pools, budget.Count(c.Nodes), c.Now), budget.Zones(o.ZoneBudgets, c.Nodes, c.Now), nil}
}

// split returns the nodes, in their order, that the budgets allow the method to give back at once,
// and the others; see charged.
func (l ledger) split(method eligibility.Method, set []*member) (now, later []*member) {
	for _, m := range set {
		after, allowed := l.charged(method, m)
		if !allowed {
			later = append(later, m)
			continue
		}
		l, now = after, append(now, m)
	}
	return now, later
}

// charged returns the ledger after the method has given back the node, and whether the budgets
// allow that. Nodes that the plan buys do not count, nor does the repair of a node that was never
// ready.
func (l ledger) charged(method eligibility.Method, m *member) (ledger, bool) {
	if !l.counts(method, m) {
		return l, true
	}
	reason := m.reason(method)
	allowed := l.pools.Left(m.Pool, reason) > 0 && l.zones.Left(m.Zone, reason) > 0
	return ledger{l.pools.Take(m.Pool, 1), l.zones.Take(m.Zone, 1), l.kept}, forceful(method) || allowed
}

// counts reports whether budgets count the node, and have not counted it yet.
func (l ledger) counts(method eligibility.Method, m *member) bool {
	return m.bought == nil && (method != eligibility.Unhealthy || m.Node.Initialized()) && l.kept[m.Name] != method
}

// chargedInWaves returns the ledger after the method has given back the nodes in waves. What it still
// allows may go at any time beside the waves.
func (l ledger) chargedInWaves(method eligibility.Method, waves [][]*member) ledger {
	sizes := func(name func(*member) string) map[string][]int {
		out := map[string][]int{}
		for k, wave := range waves {
			for _, m := range wave {
				if n := name(m); l.counts(method, m) {
					out[n] = append(out[n], make([]int, len(waves)-len(out[n]))...)
					out[n][k]++
				}
			}
		}
		return out
	}
	for pool, waves := range sizes(func(m *member) string { return m.Pool }) {
		l.pools = l.pools.TakeInWaves(pool, waves)
	}
	for zone, waves := range sizes(func(m *member) string { return m.Zone }) {
		l.zones = l.zones.TakeInWaves(zone, waves)
	}
	return l
}

// gone returns the ledger when the nodes have gone, which percentages then count no more.
func (l ledger) gone(set []*member) ledger {
	for _, m := range set {
		if m.bought == nil {
			l.pools, l.zones = l.pools.Gone(m.Pool, 1), l.zones.Gone(m.Zone, 1)
		}
	}
	return l
}

// keep returns the ledger with the node charged before the method gives it back.
func (l ledger) keep(method eligibility.Method, m *member) ledger {
	l, _ = l.charged(method, m)
	l.kept = maps.Clone(l.kept)
	if l.kept == nil {
		l.kept = map[string]eligibility.Method{}
	}
	l.kept[m.Name] = method
	return l
}

// why says which budget keeps the node; empty if none does.
func (l ledger) why(n *eligibility.Node, r nodepool.Reason) string {
	if l.zones.Left(n.Zone, r) == 0 && l.pools.Left(n.PoolName(), r) > 0 {
		return l.zones.Why(n.Zone, r)
	}
	return l.pools.Why(n.PoolName(), r)
}

// reason returns the reason under which budgets count the node if the method gives it back. Pods
// that the plan moves there do not count, because the node goes instead of taking them.
func (m *member) reason(method eligibility.Method) nodepool.Reason {
	switch {
	case method == eligibility.Unhealthy:
		return nodepool.Unhealthy
	case method == eligibility.Drift:
		return nodepool.Drifted
	case len(m.Pods) == len(m.arrived):
		return nodepool.Empty
	}
	return nodepool.Underutilized
}

// taken returns the ledger after the commands, without what was kept for nodes that have none.
func (p *planner) taken() ledger {
	l := newLedger(&p.cluster, &p.o)
	for i := range p.out.Commands {
		c := &p.out.Commands[i]
		waves := make([][]*member, max(1, len(c.Waves)))
		for _, n := range c.Nodes {
			k := max(0, slices.IndexFunc(c.Waves, func(wave []string) bool { return slices.Contains(wave, n.Name) }))
			waves[k] = append(waves[k], &member{Candidate: n})
		}
		l = l.chargedInWaves(c.Method, waves)
	}
	return l
}

// budgets fills in the details of nodes that budgets keep, once it is known how many nodes the
// plan takes. A node that something else keeps, such as the limit of evictions, has its detail
// already. If what is left is enough for the node alone, the detail says what needs more, or that
// it was reserved.
func (p *planner) budgets() {
	taken := p.taken()
	for i := range p.cluster.Nodes {
		n := &p.cluster.Nodes[i]
		v := p.verdictOf(n.Name())
		if v.Outcome != OverBudget {
			continue
		}
		own := &member{Candidate: deprovision.NewCandidate(n, p.cluster.Now)}
		first, with, reserved := own, p.together(n.Name()), ""
		if _, over := taken.split(v.Method, []*member{own}); len(over) == 0 {
			if v.Detail != "" {
				continue
			}
			set, text := p.along(p.nodes[n.Name()])
			with = cmp.Or(with, text)
			if _, over = taken.split(v.Method, set); len(over) > 0 {
				first = over[0]
			} else {
				reserved = "; the rest is reserved for nodes that come first"
			}
		}
		if why := taken.why(first.Node, first.reason(v.Method)); why != "" {
			v.Detail = with + why + reserved
		} else {
			v.Detail = cmp.Or(v.Detail, "the budgets are reserved for nodes that come first")
		}
	}
}

// along returns the nodes that go in one command with the node, including itself, and says so.
// The text begins a sentence. It is empty if groups of pods are the only reason, or if some of
// the nodes go.
func (p *planner) along(m *member) (set []*member, text string) {
	for _, name := range p.mates[m.Name] {
		if p.nodes[name] == nil {
			return p.tied(m), ""
		}
		set = append(set, p.nodes[name])
	}
	others := slices.DeleteFunc(slices.Clone(p.mates[m.Name]), func(name string) bool { return name == m.Name })
	switch len(others) {
	case 0:
		return p.tied(m), ""
	case 1:
		return set, fmt.Sprintf("in this plan it goes together with %s: ", others[0])
	}
	return set, fmt.Sprintf("in this plan it goes together with %s and %d more: ", slices.Min(others), len(others)-1)
}

// population counts the nodes of a pool in this state.
func (s *state) population(pool string) (out nodepool.Population) {
	for _, m := range s.nodes {
		switch {
		case m.Pool != pool || m.Node.Pool == nil:
		case m.Node.Leaving():
			out.Leaving++
		default:
			out.Staying++
		}
	}
	return out
}

// staticPools returns how many nodes of each static pool are in the set, and the names of these
// pools, sorted.
func (p *planner) staticPools(set []*member) ([]string, map[string]int64) {
	nodes := map[string]int64{}
	for _, m := range set {
		if pool := p.pools[m.Pool]; m.Node.Pool != nil && pool != nil && pool.IsStatic() {
			nodes[m.Pool]++
		}
	}
	return slices.Sorted(maps.Keys(nodes)), nodes
}

// replacements returns the static pools that lack more nodes without the set, each once for every
// such node. The pool buys these nodes sooner or later, so a command that left them out would claim
// a saving that does not last.
func (p *planner) replacements(set []*member) (out []string) {
	names, nodes := p.staticPools(set)
	for _, name := range names {
		pool := *p.pools[name]
		pool.Limits = nil // once the old nodes are gone, the limit allows the new ones
		now := p.population(name)
		after := now
		after.Staying -= nodes[name]
		for range pool.Deficit(after) - pool.Deficit(now) {
			out = append(out, name)
		}
	}
	return out
}

// heldByPool says why a static pool gives back none of the set now, if the nodes do not have to go.
// limited says that the reason is the pool's limit of nodes.
func (p *planner) heldByPool(set []*member) (why string, limited bool) {
	names, nodes := p.staticPools(set)
	for _, name := range names {
		pool, now := p.pools[name], p.population(name)
		if surplus := pool.Surplus(now); surplus > 0 {
			return fmt.Sprintf("pool %s has more nodes than its replicas (%d more than %d), and gives these back first", name, surplus, *pool.Replicas), false
		}
		limit, is := pool.Limits["nodes"]
		if now.Staying -= nodes[name]; is && now.Staying+now.Leaving+2*nodes[name] > limit.Value() && len(p.replacements(set)) > 0 {
			return fmt.Sprintf("pool %s has as many nodes as it may have (limits.nodes: %d), so no other node can join before it goes", name, limit.Value()), true
		}
	}
	return "", false
}

// lacks returns the first of the static pools for which the answer buys too few nodes; empty if
// there is none.
func (a *Answer) lacks(pools []string) string {
	bought := map[string]int{}
	for i := range a.NewNodes {
		bought[a.NewNodes[i].Pool]++
	}
	for _, name := range pools {
		if bought[name]--; bought[name] < 0 {
			return name
		}
	}
	return ""
}

// withReplacements returns the names of the nodes that a command for the set buys: those that its
// pods need, and of each static pool as many as it must buy for the set.
func (p *planner) withReplacements(needed []string, set []*member, to *destination) (out []string) {
	static, missing := p.replacements(set), map[string]int{}
	for _, pool := range static {
		missing[pool]++
	}
	out = slices.DeleteFunc(slices.Clone(needed), func(name string) bool {
		pool := to.bought[name].Pool
		missing[pool]--
		return missing[pool] < 0 && p.pools[pool] != nil && p.pools[pool].IsStatic()
	})
	if len(static) == 0 {
		return out
	}
	for _, name := range slices.Sorted(maps.Keys(to.bought)) {
		if pool := to.bought[name].Pool; missing[pool] > 0 && p.nodes[name] == nil && !slices.Contains(out, name) {
			missing[pool]--
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// spotPods returns the spot nodes of the cluster by pod.
func spotPods(c *deprovision.Cluster) map[*corev1.Pod]string {
	out := map[*corev1.Pod]string{}
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.CapacityType == "spot" {
			for _, pod := range n.Reschedulable() {
				out[pod] = n.Name()
			}
		}
	}
	return out
}

// spot reports whether the rules for spot nodes hold for the node. A node that the plan buys
// stands for the nodes whose pods it takes, because the commands go from these to what replaces
// it. So the rules hold if all of these are spot nodes, and none of them must go.
func (p *planner) spot(m *member) bool {
	if m.bought == nil || len(m.arrived) == 0 {
		return m.CapacityType == "spot"
	}
	return !slices.ContainsFunc(m.arrived, func(pod *corev1.Pod) bool {
		from, is := p.fromSpot[pod]
		return !is || slices.ContainsFunc(p.moves, func(v move) bool {
			return !saves(v.method) && slices.ContainsFunc(v.nodes, func(m *member) bool { return m.Name == from })
		})
	})
}

// onlySpot reports whether the rules for spot nodes hold for all of the set.
func (p *planner) onlySpot(set []*member) bool {
	return !slices.ContainsFunc(set, func(m *member) bool { return !p.spot(m) })
}

// spotForSpot reports whether a command that gives back the set and buys these nodes would break
// the rules for spot nodes. Each step of the search keeps them, but the commands are not these
// steps: pods of spot nodes may share a spot node that the search bought for others.
func (p *planner) spotForSpot(set []*member, bought []NewNode) bool {
	return p.onlySpot(set) && (p.inflexible(set, &Answer{NewNodes: bought}) != "" || !p.o.SpotToSpot && p.forSpot(bought))
}

// forSpot reports whether one of the nodes to buy is a spot node, or an on-demand node where its pool
// allows spot nodes. In the place of a spot node, the latter would be replaced by a spot node next.
func (p *planner) forSpot(bought []NewNode) bool {
	return slices.ContainsFunc(bought, func(n NewNode) bool {
		pool := p.pools[n.Pool]
		return n.CapacityType == instancetypes.CapacityTypeSpot || n.CapacityType == instancetypes.CapacityTypeOnDemand &&
			pool != nil && pool.NodeRequirements().Get(instancetypes.LabelCapacityType).Contains(instancetypes.CapacityTypeSpot)
	})
}

// inflexible says why spot nodes that replace spot nodes have too few types to choose from; empty
// if they have enough.
func (p *planner) inflexible(set []*member, a *Answer) string {
	if !slices.ContainsFunc(set, p.spot) {
		return ""
	}
	for _, n := range a.NewNodes {
		types := map[string]bool{n.InstanceType: true}
		for _, alt := range n.Alternatives {
			types[alt.InstanceType] = true
		}
		if n.CapacityType == "spot" && len(types) < p.o.SpotFlexibility {
			return fmt.Sprintf("too few types of spot capacity would be cheaper (%d): %d are required so that it does not move from one scarce type to the next", len(types), p.o.SpotFlexibility)
		}
	}
	return ""
}
