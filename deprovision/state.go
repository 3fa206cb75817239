package deprovision

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision/budget"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// planner holds a plan in the making.
type planner struct {
	cluster Cluster
	o       Options
	pdbs    eviction.Budgets
	ledger  budget.Ledger
	sim     Simulator
	nodes   map[string]*member
	order   []string // names of all nodes, sorted
	pools   map[string]*nodepool.NodePool
	out     Result
	refused map[string]Verdict // by node: the best that was found so far
	seen    map[string]bool
	asked   int // questions, for MaxQuestions
	ended   bool
	sums    map[string]PoolTotals // by pool
	begun   *planner              // as it was before the first consolidation, after so many commands
	first   int
}

// member is a node of the state that the plan has reached.
type member struct {
	Candidate
	node *eligibility.Node // nil for nodes that the plan buys
	pool *nodepool.NodePool
	// daemons run on nodes that the plan buys; those of other nodes are among the pods of node.
	daemons []*corev1.Pod
	// arrived are pods that the plan has put there: some had to go where they were whatever protects them, and stay here now.
	arrived []*corev1.Pod
	// blocked remembers what stands in the way, by method, for what stands on the node now.
	blocked map[eligibility.Method][]eligibility.Blocker
}

func newPlanner(c Cluster, sim Simulator, o Options) *planner {
	p := &planner{
		cluster: c, o: o, pdbs: eviction.NewBudgets(c.PodDisruptionBudgets), sim: sim, nodes: map[string]*member{}, sums: map[string]PoolTotals{},
		pools: map[string]*nodepool.NodePool{}, refused: map[string]Verdict{}, seen: map[string]bool{},
	}
	for i := range c.Pools {
		p.pools[c.Pools[i].Name] = &c.Pools[i]
	}
	usage := map[string]budget.Usage{}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		p.nodes[n.Name()] = &member{Candidate: candidate(n, c.Now), node: n, pool: n.Pool}
		p.order = append(p.order, n.Name())
		p.count(p.nodes[n.Name()], 1)
		if n.Priced {
			p.out.PricePerHour += n.PricePerHour
		}
		if n.Pool != nil && n.Initialized() {
			u := usage[n.Pool.Name]
			u.Nodes++
			if n.Leaving() || !n.Ready() {
				u.Leaving++
			}
			usage[n.Pool.Name] = u
		}
	}
	slices.Sort(p.order)
	p.ledger = budget.New(c.Pools, usage, c.Now)
	p.out.PricePerHourAfter = p.out.PricePerHour
	for _, name := range o.Cursor.Seen {
		p.seen[name] = true
	}
	return p
}

func candidate(n *eligibility.Node, now time.Time) Candidate {
	c := Candidate{
		Name: n.Name(), Pool: n.PoolName(), InstanceType: n.InstanceType, Zone: n.Zone, CapacityType: n.CapacityType,
		Pods: n.Reschedulable(), Lifetime: n.Lifetime(now), RemainingLife: math.MaxInt64,
	}
	if n.Priced {
		c.PricePerHour = n.PricePerHour
	}
	if life, ok := n.RemainingLife(now); ok {
		c.RemainingLife = life
	}
	c.Disruption = eviction.Disruption(c.Pods)
	return c
}

// blockers are those of the node for the method.
func (p *planner) blockers(m *member, method eligibility.Method) []eligibility.Blocker {
	by, ok := m.blocked[method]
	if !ok {
		by = p.findBlockers(m, method)
		if m.blocked == nil {
			m.blocked = map[eligibility.Method][]eligibility.Blocker{}
		}
		m.blocked[method] = by
	}
	return by
}

// findBlockers looks for them; nodes that the plan buys have only those of their pool and pods.
func (p *planner) findBlockers(m *member, method eligibility.Method) []eligibility.Blocker {
	if m.node != nil {
		n := *m.node
		n.Pods = slices.Concat(n.Pods, m.arrived)
		return eligibility.Blockers(&n, method, p.pdbs, p.cluster.Now, p.o.Rules)
	}
	n := eligibility.Node{
		Node: &corev1.Node{}, Pool: m.pool, Pods: slices.Concat(m.Pods, m.daemons), InstanceType: m.InstanceType, Zone: m.Zone,
		CapacityType: m.CapacityType, PricePerHour: m.PricePerHour, Priced: true,
		Claim: eligibility.Claim{Created: p.cluster.Now, LastPodEvent: p.cluster.Now},
	}
	n.Node.Name = m.Name
	return eligibility.Blockers(&n, method, p.pdbs, p.cluster.Now, p.o.Rules)
}

// ask puts a question and counts it.
func (p *planner) ask(q Question) Answer {
	p.out.Questions++
	p.asked++
	if p.o.MaxQuestions > 0 && p.asked >= p.o.MaxQuestions {
		p.ended = true
	}
	return p.sim.Simulate(q)
}

// bound is what the simulator knows without trying.
func (p *planner) bound(q Question) (worth, least float64) {
	if b, ok := p.sim.(Bounder); ok {
		return b.Bound(q)
	}
	return 0, 0
}

func question(set []*member) Question {
	var q Question
	for _, m := range set {
		q.Remove = append(q.Remove, m.Name)
		q.Pods = append(q.Pods, m.Pods...)
	}
	return q
}

func price(set []*member) float64 {
	sum := 0.0
	for _, m := range set {
		sum += m.PricePerHour
	}
	return sum
}

// commit makes the answer the state to go on from.
func (p *planner) commit(method eligibility.Method, set []*member, a Answer, why string) *Command {
	slices.SortFunc(set, func(a, b *member) int { return strings.Compare(a.Name, b.Name) })
	c := Command{Method: method, Kind: Delete, NewNodes: a.NewNodes, Placements: a.Placements, SavingsPerHour: price(set) - a.PricePerHour, Why: why}
	if len(a.NewNodes) > 0 {
		c.Kind = Replace
	}
	for _, m := range set {
		c.Nodes = append(c.Nodes, m.Candidate)
		c.Disruption += m.Disruption
		p.ledger = p.ledger.Take(m.Pool, 1)
		p.refused[m.Name] = Verdict{Node: m.Name, Outcome: Chosen, Method: method, Detail: chosenDetail(&c), Disruption: m.Disruption, PricePerHour: m.PricePerHour}
		p.count(m, -1)
		delete(p.nodes, m.Name)
		if at, ok := slices.BinarySearch(p.order, m.Name); ok {
			p.order = slices.Delete(p.order, at, at+1)
		}
	}
	for _, n := range a.NewNodes {
		m := &member{pool: p.pools[n.Pool], daemons: n.Daemons, Candidate: Candidate{
			Name: n.Name, Pool: n.Pool, InstanceType: n.InstanceType, Zone: n.Zone, CapacityType: n.CapacityType, PricePerHour: n.PricePerHour,
			Lifetime: 1, RemainingLife: math.MaxInt64,
		}}
		if m.pool != nil && m.pool.Disruption.ExpireAfter != nil {
			m.RemainingLife = *m.pool.Disruption.ExpireAfter
		}
		p.nodes[n.Name] = m
		p.count(m, 1)
		at, _ := slices.BinarySearch(p.order, n.Name)
		p.order = slices.Insert(p.order, at, n.Name)
	}
	changed, touched := map[*member]bool{}, map[string]*member{}
	for _, pl := range a.Placements {
		if m := p.nodes[pl.Node]; m != nil {
			if !changed[m] {
				p.count(m, -1)
				m.Pods = slices.Clip(m.Pods)
				m.blocked = nil // not cleared, for a copy of the planner may share it
				m.arrived = slices.Clip(m.arrived)
				changed[m], touched[m.Name] = true, m
			}
			m.Pods, m.arrived = append(m.Pods, pl.Pod), append(m.arrived, pl.Pod)
		}
	}
	for m := range changed {
		slices.SortFunc(m.Pods, func(a, b *corev1.Pod) int {
			return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
		})
		m.Disruption = eviction.Disruption(m.Pods)
	}
	for _, name := range slices.Sorted(maps.Keys(touched)) { // in order, as sums of fractions depend on it
		p.count(touched[name], 1)
	}
	p.out.PricePerHourAfter -= c.SavingsPerHour
	p.out.Evictions += len(a.Placements)
	p.out.Commands = append(p.out.Commands, c)
	if a.After != nil {
		p.sim = a.After()
	}
	return &p.out.Commands[len(p.out.Commands)-1]
}

// members are the nodes of the state in the order of their names.
func (p *planner) members() []*member {
	out := make([]*member, 0, len(p.order))
	for _, name := range p.order {
		out = append(out, p.nodes[name])
	}
	return out
}

// count adds a node to the sums of its pool, or takes it off.
func (p *planner) count(m *member, sign float64) {
	s := p.sums[m.Pool]
	s.PricePerHour += sign * m.PricePerHour
	s.Disruption += sign * m.Disruption
	p.sums[m.Pool] = s
}

// recount computes the sums of all pools anew, so that they do not depend on how the state was reached.
func (p *planner) recount() {
	p.sums = map[string]PoolTotals{}
	for _, m := range p.members() {
		p.count(m, 1)
	}
}
