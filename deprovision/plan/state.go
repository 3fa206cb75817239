package plan

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// problem is the input of [Make].
type problem struct {
	ctx      context.Context
	cluster  deprovision.Cluster
	o        Options
	pdbs     eviction.Budgets
	pools    map[string]*nodepool.NodePool
	fromSpot map[*corev1.Pod]string // by pod: its node, if that is a spot node
}

// planner is the working state of [Make]. In each round it searches for a better state, beginning
// at start, and then for the commands that lead from start to it.
type planner struct {
	problem
	state
	start       state // of the round
	gangs       gangs
	units       map[string]deprovision.Price // prices of disruption by pool
	ledger      ledger                       // what the budgets allow in addition to the commands so far
	limited     bool                         // no command leads to the state without budgets, so the search respects them
	single      bool                         // nor to another, so the round gives back one node, see first
	stuck       []string                     // nodes that must go, but not as the last round would have it; so the round moves one of them
	least       deprovision.Price            // what that node must gain
	held, short bool                         // budgets kept nodes from going in some round; the commands of some did not reach its state
	retained    map[string]bool              // nodes whose moves were undone, see retain
	noted       map[string]Verdict           // the verdict of the highest precedence so far, by node
	losses      map[*corev1.Pod]string       // why pods that are stranded have no other place
	mates       map[string][]string          // nodes of one command, by one that budgets keep
	rebased     func() Simulator             // the cluster after the last command as if just read; see [Answer]
	purchases   map[string][2]int            // by name of the node bought: its command, and its number there
	keeps       map[string]string            // nodes that stay for pods of another node, which cannot go yet; see keepFor
	out         Result
	err         error // the first error of the simulator or the context
}

// state is a cluster that the plan could end with: the start of the round after the moves. Only
// commit changes it. A clone allows going back.
type state struct {
	sim   Simulator
	nodes map[string]*member
	moves []move
}

// move is a set of nodes that go together, either for the saving or because they must (see saves).
type move struct {
	method eligibility.Method
	nodes  []*member
	why    string
	atOnce bool
	// first says that the node goes before its successor is bought.
	first bool
	// leaves says that its pods leave domains of spreads, see [Question.LeaveDomains].
	leaves bool
	// stranded are pods without another place, on a node that goes in any case.
	stranded []*corev1.Pod
}

// saves reports whether the only purpose of the method is a saving.
func saves(m eligibility.Method) bool {
	return m == eligibility.Emptiness || m == eligibility.Consolidation
}

// forceful reports whether the method ignores budgets.
func forceful(m eligibility.Method) bool {
	return m == eligibility.Interruption || m == eligibility.Expiration
}

// of returns the move with these nodes.
func (v move) of(nodes []*member) move {
	v.nodes = nodes
	return v
}

// join makes one move of several moves. In everything but their nodes and pods it is like the first.
func join(list ...move) (out move) {
	var stranded []*corev1.Pod
	for i, v := range list {
		if i == 0 {
			out = v
		}
		stranded, out.leaves = append(stranded, v.stranded...), out.leaves || v.leaves
	}
	out.nodes, out.stranded = nodesOf(list), stranded
	return out
}

// pieces splits the moves into moves of one node each.
func pieces(list []move) []move {
	var out []move
	for _, v := range list {
		for _, m := range v.nodes {
			own := v.of([]*member{m})
			if len(v.nodes) > 1 {
				own.stranded = slices.DeleteFunc(slices.Clone(v.stranded), func(pod *corev1.Pod) bool { return !slices.Contains(m.Pods, pod) })
			}
			out = append(out, own)
		}
	}
	return out
}

// nodesOf returns the nodes of the moves.
func nodesOf(list []move) []*member {
	var out []*member
	for _, v := range list {
		out = append(out, v.nodes...)
	}
	return out
}

func (s *state) clone() state {
	return state{s.sim, maps.Clone(s.nodes), slices.Clone(s.moves)}
}

// member is a node of a state. It never changes.
type member struct {
	deprovision.Candidate
	// bought is the node as the plan buys it, or nil for a node of the cluster.
	bought *NewNode
	// arrived are the pods that the plan moves to the node.
	arrived []*corev1.Pod
	// blocked is a cache of the blockers, by method.
	blocked map[eligibility.Method][]eligibility.Blocker
}

func newPlanner(ctx context.Context, c deprovision.Cluster, sim Simulator, o Options) *planner {
	p := &planner{
		problem: problem{ctx, c, o, eviction.NewBudgets(c.PodDisruptionBudgets), map[string]*nodepool.NodePool{}, spotPods(&c)},
		noted:   map[string]Verdict{}, retained: map[string]bool{}, losses: map[*corev1.Pod]string{}, mates: map[string][]string{}, purchases: map[string][2]int{}, gangs: newGangs(&c), ledger: newLedger(&c, &o),
		state: state{sim: sim, nodes: make(map[string]*member, len(c.Nodes))},
	}
	for i := range c.Pools {
		p.pools[c.Pools[i].Name] = &c.Pools[i]
	}
	members := make([]*member, len(c.Nodes))
	var all sync.WaitGroup
	const part = 200 // nodes of one goroutine
	for from := 0; from < len(members); from += part {
		all.Go(func() {
			for i := from; i < min(from+part, len(members)); i++ {
				members[i] = newMember(&c.Nodes[i], nil, &p.problem)
			}
		})
	}
	all.Wait()
	for _, m := range members {
		p.nodes[m.Name] = m
		p.out.PricePerHour += m.PricePerHour
	}
	p.start = p.clone()
	p.tie()
	return p
}

func newMember(n *eligibility.Node, bought *NewNode, of *problem) *member {
	m := &member{Candidate: deprovision.NewCandidate(n, of.cluster.Now), bought: bought, blocked: map[eligibility.Method][]eligibility.Blocker{}}
	sortPods(m.Pods)
	return m
}

// buy returns a node that the plan buys. Later commands treat it like any other node, with its pool
// and daemons.
func (p *problem) buy(b NewNode) *member {
	n := &eligibility.Node{
		Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: b.Name}}, Pool: p.pools[b.Pool], InstanceType: b.InstanceType, Zone: b.Zone, CapacityType: b.CapacityType,
		PricePerHour: b.PricePerHour, CostPerHour: b.CostPerHour, Priced: true, Claim: eligibility.Claim{Created: p.cluster.Now, LastPodEvent: p.cluster.Now},
	}
	if n.Pool != nil {
		n.Node.Annotations = n.Pool.Annotations
	}
	m := newMember(n, &b, p)
	m.Pool, n.Pods = b.Pool, b.Daemons
	return m
}

func sortPods(list []*corev1.Pod) { slices.SortFunc(list, comparePods) }

func comparePods(a, b *corev1.Pod) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// blockers returns the blockers of the node for the method.
func (p *planner) blockers(m *member, method eligibility.Method) []eligibility.Blocker {
	by, ok := m.blocked[method]
	if !ok {
		n := *m.Node
		n.Pods = slices.Concat(n.Pods, m.arrived)
		by = eligibility.Blockers(&n, method, p.pdbs, p.cluster.Now, p.o.Rules)
		m.blocked[method] = by
	}
	return by
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

// bound returns a lower bound of the cost of new nodes for the pods, or 0 if the simulator knows
// none.
func (p *planner) bound(q Question) deprovision.Price {
	if s, ok := p.sim.(CostBound); ok {
		return s.Bound(q)
	}
	return 0
}

// hint returns which nodes to retain at each price of disruption, or nil if the simulator does not
// know.
func (p *planner) hint(nodes []NodeChoice) [][]bool {
	if s, ok := p.sim.(RetentionHint); ok {
		return s.Choose(nodes, rates)
	}
	return nil
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

// stuck returns a function that reports whether some of the given pods have no place in the answer.
func (a *Answer) stuck() func([]*corev1.Pod) bool {
	set := make(map[*corev1.Pod]bool, len(a.Unplaced))
	for _, pod := range a.Unplaced {
		set[pod] = true
	}
	return func(pods []*corev1.Pod) bool {
		return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return set[pod] })
	}
}

// costOf returns the total cost of the set.
func costOf(set []*member) (sum deprovision.Price) {
	for _, m := range set {
		sum += m.CostPerHour
	}
	return sum
}

// priceOf returns the total price of the set.
func priceOf(set []*member) (sum deprovision.Price) {
	for _, m := range set {
		sum += m.PricePerHour
	}
	return sum
}

// commit applies the move and the answer to the state.
func (p *planner) commit(v move, a *Answer) {
	p.remove(v, a)
	p.move(a.Placements)
}

// remove removes the nodes of the move and adds those that the answer buys. Nodes that the round
// itself buys are not recorded in the move, because they are never bought.
func (p *planner) remove(v move, a *Answer) {
	var own []*member
	for _, m := range v.nodes {
		if p.start.nodes[m.Name] != nil {
			own = append(own, m)
		}
		delete(p.nodes, m.Name)
	}
	if len(own) > 0 {
		p.moves = append(p.moves, v.of(own))
	}
	for _, n := range a.NewNodes {
		p.nodes[n.Name] = p.buy(n)
	}
	if a.After != nil {
		p.sim = a.After()
	}
}

// move puts pods on their new nodes.
func (p *planner) move(list []Placement) {
	arrivals := map[string][]*corev1.Pod{}
	for _, pl := range list {
		arrivals[pl.Node] = append(arrivals[pl.Node], pl.Pod)
	}
	for name, pods := range arrivals {
		if m := p.nodes[name]; m != nil {
			p.nodes[name] = m.with(pods)
		}
	}
}

// with returns the node with more pods.
func (m *member) with(pods []*corev1.Pod) *member {
	out := *m
	out.arrived = slices.Concat(m.arrived, pods)
	for _, pod := range pods {
		out.Disruption += max(0, eviction.Cost(pod)) // exact, because every cost is a multiple of 2^-27
	}
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

// ranked returns the members in the order of the ranker, then by name.
func (p *planner) ranked(list []*member) []*member {
	out := slices.Clone(list)
	for i, m := range out {
		scored := *m
		scored.Score = p.o.Ranker.Rank(m.Candidate)
		out[i] = &scored
	}
	slices.SortStableFunc(out, func(a, b *member) int { return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.Name, b.Name)) })
	return out
}

// members returns the nodes of the state by name.
func (s *state) members() []*member {
	out := make([]*member, 0, len(s.nodes))
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		out = append(out, s.nodes[name])
	}
	return out
}

// destination is the result of the moves of a round: the final node of each moved pod, and the
// nodes that are bought. hosts are nodes that take pods in this plan although a later one gives them
// back, see planner.deletions.
type destination struct {
	moved  map[*corev1.Pod]string
	bought map[string]NewNode
	hosts  map[string]bool
}

// destination compares the state with the start of the round.
func (p *planner) destination() destination {
	out := destination{map[*corev1.Pod]string{}, map[string]NewNode{}, map[string]bool{}}
	for name, m := range p.nodes {
		before := 0
		if at := p.start.nodes[name]; at != nil {
			before = len(at.arrived)
		} else {
			out.bought[name] = *m.bought
		}
		for _, pod := range m.arrived[before:] {
			out.moved[pod] = name
		}
	}
	return out
}

// fromStart returns the moves with one node each, as it is at the start of the round. If a pod is
// stranded on a node that it moved to, it is stranded at once, because a node that goes accepts no
// pod. A node without pods goes because it is empty, even if consolidation found it with pods that
// had moved there.
func (p *planner) fromStart() []move {
	stranded := map[*corev1.Pod]bool{}
	for _, v := range p.moves {
		for _, pod := range v.stranded {
			stranded[pod] = true
		}
	}
	list := pieces(p.moves)
	for i := range list {
		m := p.start.nodes[list[i].nodes[0].Name]
		list[i].nodes[0], list[i].stranded = m, nil
		if list[i].method == eligibility.Consolidation && len(m.Pods) == 0 && p.asksFor(eligibility.Emptiness) {
			list[i].method = eligibility.Emptiness
		}
		for _, pod := range m.Pods {
			if stranded[pod] {
				list[i].stranded = append(list[i].stranded, pod)
			}
		}
	}
	return list
}

// going returns the number of nodes that the moves give back.
func (s *state) going() int { return len(nodesOf(s.moves)) }

// moveQuestion asks to remove nodes as they are at the start of the round and to move their pods as
// given.
func (p *planner) moveQuestion(set []*member, stranded []*corev1.Pod, moves map[*corev1.Pod]string) Question {
	q := question(set)
	if len(stranded) > 0 {
		q.Pods = slices.DeleteFunc(q.Pods, func(pod *corev1.Pod) bool { return slices.Contains(stranded, pod) })
	}
	q.Moves = make(map[*corev1.Pod]string, len(q.Pods))
	for _, pod := range q.Pods {
		q.Moves[pod] = moves[pod]
	}
	return q
}

// replay builds the state again from the start of the round with all moves at once, so that every
// pod moves once. Pods that their node refuses go elsewhere. If a pod is unplaced, it returns false
// and leaves the state unchanged.
func (p *planner) replay() bool {
	list, to := p.fromStart(), p.destination()
	rank := func(v move) float64 {
		if v.method != eligibility.Consolidation { // the others come first, in their own order
			return math.Inf(1)
		}
		return p.o.Ranker.Rank(v.nodes[0].Candidate)
	}
	slices.SortStableFunc(list, func(a, b move) int { return cmp.Compare(rank(b), rank(a)) })
	all := join(list...)
	q := p.moveQuestion(all.nodes, all.stranded, to.moved)
	q.Elsewhere, q.LeaveDomains = true, all.leaves
	for _, name := range slices.Sorted(maps.Keys(to.bought)) {
		q.Buy = append(q.Buy, to.bought[name])
	}
	a := p.askOf(p.start.sim, q)
	if !a.OK() || len(a.NewNodes) < len(q.Buy) || p.ended() {
		return false
	}
	p.state = p.start.clone()
	p.commit(all, &a)
	p.moves = list
	if a.Rebased != nil {
		p.sim = a.Rebased()
	}
	return true
}

// askDue asks for places of pods of nodes that must go, if possible not on nodes that must go, too,
// and in the domains of their spreads.
func (p *planner) askDue(q *Question) Answer {
	a := p.ask(*q)
	if len(q.Cordon) > 0 && !a.OK() {
		q.Cordon = nil
		a = p.ask(*q)
	}
	if !a.OK() {
		q.Thorough = true
		a = p.ask(*q)
	}
	if !a.OK() {
		q.LeaveDomains = true
		a = p.ask(*q)
	}
	return a
}

func sortDue(list []due) {
	slices.SortStableFunc(list, func(a, b due) int { return cmp.Or(a.at.Compare(b.at), strings.Compare(a.Name, b.Name)) })
}
