package deprovision

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision/budget"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// planner is the working state of [Plan].
type planner struct {
	state
	ctx     context.Context
	err     error // the first of the simulator or the context
	cluster Cluster
	o       Options
	pdbs    eviction.Budgets
	pools   map[string]*nodepool.NodePool
	start   state // of the round
	out     Result
	noted   map[string]Verdict // by node: the verdict of the highest precedence so far
	gangs   gangs
	units   map[string]Price     // prices of disruption by pool
	done    map[*corev1.Pod]bool // pods that earlier rounds move
	quiet   bool                 // the search of the round has found nothing more
	ledger  budget.Ledger        // what the budgets allow besides the commands so far
	earlier int                  // pods that consolidation moved in earlier rounds
	limited bool                 // no command leads to the state without budgets, so the search keeps to them
}

// state is a cluster that the plan could end with, and its difference from the start of the round. Only commit changes it. A clone
// allows to go back.
type state struct {
	sim    Simulator
	nodes  map[string]*member
	order  []string // names of all nodes, sorted
	gone   []removal
	bought map[string]NewNode
	moved  map[*corev1.Pod]string // the node that each moved pod ends on
}

// removal is a node that goes, and the reason.
type removal struct {
	*member
	method eligibility.Method
	why    string
	atOnce bool
	// stranded are pods of a forced node that have no other place.
	stranded []*corev1.Pod
}

func (s *state) clone() state {
	out := *s
	out.nodes, out.bought, out.moved = maps.Clone(s.nodes), maps.Clone(s.bought), maps.Clone(s.moved)
	out.order, out.gone = slices.Clone(s.order), slices.Clone(s.gone)
	return out
}

// member is a node of a state. It is never changed.
type member struct {
	Candidate
	node  *eligibility.Node // nil for nodes that the plan buys
	there bool              // when the round began
	pool  *nodepool.NodePool
	// daemons are the pods of DaemonSets on a node that the plan buys; on other nodes they are among the pods of node.
	daemons []*corev1.Pod
	// base are the pods at the start of the round, and arrived those that the plan has moved there since.
	base, arrived []*corev1.Pod
	// owed is the disruption that emptying the node adds to the plan, and evictions the number of pods. Those that arrived in this
	// round count for nothing, because they move in any case.
	owed      float64
	evictions int
	// blocked is a cache of the blockers, by method.
	blocked map[eligibility.Method][]eligibility.Blocker
}

func newPlanner(ctx context.Context, c Cluster, sim Simulator, o Options) *planner {
	p := &planner{
		ctx: ctx, cluster: c, o: o, pdbs: eviction.NewBudgets(c.PodDisruptionBudgets), pools: map[string]*nodepool.NodePool{},
		noted: map[string]Verdict{}, done: map[*corev1.Pod]bool{}, gangs: newGangs(&c),
		state: state{sim: sim, nodes: make(map[string]*member, len(c.Nodes)), bought: map[string]NewNode{}, moved: map[*corev1.Pod]string{}},
	}
	for i := range c.Pools {
		p.pools[c.Pools[i].Name] = &c.Pools[i]
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		m := &member{Candidate: candidate(n, c.Now), node: n, there: true, pool: n.Pool, blocked: map[eligibility.Method][]eligibility.Blocker{}}
		sortPods(m.Pods)
		m.base, m.owed, m.evictions = m.Pods, m.Disruption, len(m.Pods)
		p.nodes[n.Name()] = m
		p.order = append(p.order, n.Name())
		p.out.PricePerHour += m.PricePerHour
	}
	slices.Sort(p.order)
	p.ledger = budget.New(c.Pools, budget.Count(c.Nodes), c.Now)
	p.start = p.clone()
	p.tie()
	return p
}

func sortPods(list []*corev1.Pod) { slices.SortFunc(list, comparePods) }

func comparePods(a, b *corev1.Pod) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// blockers are those of the node for the method. A node that the plan buys has only those of its pool and pods.
func (p *planner) blockers(m *member, method eligibility.Method) []eligibility.Blocker {
	if by, ok := m.blocked[method]; ok {
		return by
	}
	n := eligibility.Node{
		Node: &corev1.Node{}, Pool: m.pool, Pods: slices.Concat(m.Pods, m.daemons), InstanceType: m.InstanceType, Zone: m.Zone,
		CapacityType: m.CapacityType, PricePerHour: m.PricePerHour, Priced: true,
		Claim: eligibility.Claim{Created: p.cluster.Now, LastPodEvent: p.cluster.Now},
	}
	if n.Node.Name = m.Name; m.pool != nil {
		n.Node.Annotations = m.pool.Annotations
	}
	if m.node != nil {
		n = *m.node
		n.Pods = slices.Concat(n.Pods, m.arrived)
	}
	m.blocked[method] = eligibility.Blockers(&n, method, p.pdbs, p.cluster.Now, p.o.Rules)
	return m.blocked[method]
}

// ended reports whether an error has ended the search.
func (p *planner) ended() bool { return p.err != nil }

// ask asks the simulator of the state. After an error every pod is unplaced.
func (p *planner) ask(q Question) Answer { return p.askOf(p.sim, q) }

func (p *planner) askOf(sim Simulator, q Question) Answer {
	p.out.Questions++
	if p.err == nil {
		p.err = p.ctx.Err()
	}
	if p.err == nil {
		var a Answer
		if a, p.err = sim.Simulate(p.ctx, q); p.err == nil {
			return a
		}
	}
	return Answer{Unplaced: q.Pods}
}

func question(set []*member) Question {
	pods := 0
	for _, m := range set {
		pods += len(m.Pods)
	}
	q := Question{Remove: make([]string, 0, len(set)), Pods: make([]*corev1.Pod, 0, pods)}
	for _, m := range set {
		q.Remove = append(q.Remove, m.Name)
		q.Pods = append(q.Pods, m.Pods...)
	}
	return q
}

// stuck returns a function that reports whether some of the pods have no place in the answer.
func (a *Answer) stuck() func([]*corev1.Pod) bool {
	set := make(map[*corev1.Pod]bool, len(a.Unplaced))
	for _, pod := range a.Unplaced {
		set[pod] = true
	}
	return func(pods []*corev1.Pod) bool {
		return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return set[pod] })
	}
}

// costOf is the total cost of the set, and priceOf its total price.
func costOf(set []*member) (sum Price) {
	for _, m := range set {
		sum += m.CostPerHour
	}
	return sum
}

func priceOf(set []*member) (sum Price) {
	for _, m := range set {
		sum += m.PricePerHour
	}
	return sum
}

// commit changes the state by the answer.
func (p *planner) commit(method eligibility.Method, set []*member, a *Answer, why string) {
	p.remove(method, set, a, why)
	p.move(a.Placements)
}

// remove removes the set and adds the nodes that the answer buys.
func (p *planner) remove(method eligibility.Method, set []*member, a *Answer, why string) {
	leaves := make(map[string]bool, len(set))
	for _, m := range set {
		if m.there {
			p.gone = append(p.gone, removal{member: m, method: method, why: why})
		} else {
			delete(p.bought, m.Name)
		}
		delete(p.nodes, m.Name)
		leaves[m.Name] = true
	}
	if at, ok := slices.BinarySearch(p.order, set[0].Name); ok && len(set) == 1 {
		p.order = slices.Delete(p.order, at, at+1)
	} else {
		p.order = slices.DeleteFunc(p.order, func(name string) bool { return leaves[name] })
	}
	for _, n := range a.NewNodes {
		p.bought[n.Name] = n
		p.nodes[n.Name] = p.newMember(n)
		p.order = append(p.order, n.Name)
	}
	if len(a.NewNodes) > 0 {
		slices.Sort(p.order)
	}
	if a.After != nil {
		p.sim = a.After()
	}
}

// move puts pods on their new nodes.
func (p *planner) move(list []Placement) {
	arrivals := map[string][]*corev1.Pod{}
	for _, pl := range list {
		p.moved[pl.Pod] = pl.Node
		arrivals[pl.Node] = append(arrivals[pl.Node], pl.Pod)
	}
	for name, pods := range arrivals {
		if m := p.nodes[name]; m != nil {
			p.nodes[name] = m.with(pods)
		}
	}
}

func (p *planner) newMember(n NewNode) *member {
	m := &member{pool: p.pools[n.Pool], daemons: n.Daemons, blocked: map[eligibility.Method][]eligibility.Blocker{}, Candidate: Candidate{
		Name: n.Name, Pool: n.Pool, InstanceType: n.InstanceType, Zone: n.Zone, CapacityType: n.CapacityType, PricePerHour: n.PricePerHour, CostPerHour: n.cost(),
		Lifetime: 1, RemainingLife: math.MaxInt64, Disruption: 1,
	}}
	if m.pool != nil && m.pool.Disruption.ExpireAfter != nil {
		m.RemainingLife = *m.pool.Disruption.ExpireAfter
	}
	return m
}

// with is the node with more pods.
func (m *member) with(pods []*corev1.Pod) *member {
	out := *m
	out.arrived = slices.Concat(m.arrived, pods)
	out.Disruption = m.Disruption + eviction.Disruption(pods) - 1 // exact, because every cost is a multiple of 2^-27
	pods = slices.Clone(pods)
	sortPods(pods)
	out.Pods = make([]*corev1.Pod, 0, len(m.Pods)+len(pods))
	for rest := m.Pods; len(rest) > 0 || len(pods) > 0; { // both are sorted
		from := &pods
		if len(pods) == 0 || len(rest) > 0 && comparePods(rest[0], pods[0]) <= 0 {
			from = &rest
		}
		out.Pods, *from = append(out.Pods, (*from)[0]), (*from)[1:]
	}
	out.blocked = map[eligibility.Method][]eligibility.Blocker{}
	return &out
}

// members are the nodes of the state by name.
func (p *planner) members() []*member {
	out := make([]*member, 0, len(p.order))
	for _, name := range p.order {
		out = append(out, p.nodes[name])
	}
	return out
}

// moveQuestion asks to remove nodes of the start of the round and to move the pods that were there then as given.
func (p *planner) moveQuestion(gone []removal, moves map[*corev1.Pod]string) Question {
	set := make([]*member, len(gone))
	for i := range gone {
		set[i] = p.start.nodes[gone[i].Name]
	}
	q := question(set)
	for i := range gone {
		if lost := gone[i].stranded; len(lost) > 0 {
			q.Pods = slices.DeleteFunc(q.Pods, func(pod *corev1.Pod) bool { return slices.Contains(lost, pod) })
		}
	}
	q.Moves = make(map[*corev1.Pod]string, len(q.Pods))
	for _, pod := range q.Pods {
		q.Moves[pod] = moves[pod]
	}
	return q
}

// flatten makes the state one change from the start of the round, in which every pod moves once. Pods that their node refuses go
// elsewhere. It returns false and leaves the state as it is if a pod is unplaced.
func (p *planner) flatten() bool {
	gone := slices.Clone(p.gone)
	rank := func(r removal) float64 {
		if r.method != eligibility.Consolidation { // forced methods come first, in their own order
			return math.Inf(1)
		}
		return p.o.Ranker.Rank(r.Candidate)
	}
	slices.SortStableFunc(gone, func(a, b removal) int { return cmp.Compare(rank(b), rank(a)) })
	for i := range gone {
		gone[i].member = p.start.nodes[gone[i].Name]
	}
	q := p.moveQuestion(gone, p.moved)
	q.Elsewhere = true
	for _, name := range slices.Sorted(maps.Keys(p.bought)) {
		q.Buy = append(q.Buy, p.bought[name])
	}
	a := p.askOf(p.start.sim, q)
	if !a.OK() || p.ended() {
		return false
	}
	p.state = p.start.clone()
	p.commit(eligibility.Consolidation, members(gone), &a, "")
	p.gone = gone
	if a.Rebased != nil {
		p.sim = a.Rebased()
	}
	return true
}
