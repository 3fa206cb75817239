package simulate

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/whatif"
)

// Simulator answers the questions of package deprovision about one version of a cluster. It is
// immutable and safe for concurrent use.
type Simulator struct {
	at       *whatif.Cluster
	market   *market
	reserved []giveback.Placement
}

// version returns the simulator of another version of the cluster.
func (s *Simulator) version(c *whatif.Cluster) *Simulator {
	return &Simulator{at: c, market: s.market}
}

// Reserved returns the places of pods that move without a command, see [New]. A simulator that
// comes from an answer has none.
func (s *Simulator) Reserved() []giveback.Placement { return s.reserved }

// New compiles a snapshot. Pending pods and pods of leaving nodes ([pipeline.Leaving]) get places;
// nominated pods get them on their nodes, see whatif.Cluster.Reserve. New also returns the names of
// the nodes with such places, which should not be given back.
//
// A command is right whenever these pods move to their places: before it, after it, or in between.
// They keep these places, with one exception: if the pods of a node that must go would have no
// place otherwise, these pods may take them. A pod whose spread counts a new node may have to wait
// until the pods of the command are there.
func New(s scheduling.Snapshot) (*Simulator, []string, error) { return NewFor(s, nil) }

// NewFor is New with the objective, the groups and LeaveZones of a plan. nil means the price, no
// groups, and that spreads count all zones for sale. The objective applies to nodes to buy;
// [Counted] applies it to existing nodes. Pods of groups move as their groups allow: all pods of a
// group share its label, and pending pods of a group that is not whole have no places.
func NewFor(s scheduling.Snapshot, o *plan.Options) (*Simulator, []string, error) {
	if o == nil {
		o = &plan.Options{}
	}
	c, err := whatif.Compile(s, &whatif.Options{Static: true, Together: together(o.Groups), LeaveZones: o.Scheduling != nil && o.Scheduling.LeaveZones, Cost: o.Objective.CostFunc()})
	if err != nil {
		return nil, nil, err
	}
	leaving := pipeline.Leaving(s)
	var moving, stays []*corev1.Pod
	for _, p := range s.Pods {
		switch {
		case p.Spec.NodeName == "" || leaving[p.Spec.NodeName] && eviction.Reschedulable(p) && s.Staying[eviction.Name(p)] == "":
			moving = append(moving, p)
		case !leaving[p.Spec.NodeName] && !eviction.Ended(p) && p.DeletionTimestamp == nil:
			stays = append(stays, p)
		}
	}
	c, places := reserve(c, moving, stays, o.Groups)
	sim := &Simulator{at: c, market: newMarket(c.Problem(), staticPools(s))}
	sim.market.limited = limitedPools(s)
	var nominated []string
	for _, p := range places {
		nominated = append(nominated, p.Node)
		sim.reserved = append(sim.reserved, giveback.Placement{Pod: p.Pod, Node: p.Node})
	}
	return sim, nominated, nil
}

// Placeable says why no plan can place the pod. It is empty if one can.
func (s *Simulator) Placeable(p *corev1.Pod) string { return s.at.Refuses(p) }

// Simulate answers the question. The error is that of the context, or names an invalid question
// that moves no pod.
func (s *Simulator) Simulate(ctx context.Context, q giveback.Question) (giveback.Answer, error) {
	if err := ctx.Err(); err != nil {
		return giveback.Answer{}, err
	}
	switch {
	case q.Freed:
		return s.goesFirst(ctx, q)
	case len(q.Replacements) > 0:
		return s.replace(ctx, q)
	}
	return s.answer(s.at.Ask(ctx, s.question(q))), nil
}

// question converts a question to one of package whatif.
func (s *Simulator) question(q giveback.Question) whatif.Question {
	ask := whatif.Question{Remove: q.Remove, Cordon: q.Cordon, Pods: q.Pods, MaxNodes: q.MaxNodes, MaxPrice: whatif.Price(q.MaxCost), Explain: q.Explain, LeaveDomains: q.LeaveDomains, Thorough: q.Thorough}
	if q.MaxNodes > 1 {
		if ask.Buyer = s.market; q.Thorough {
			ask.Buyer = thorough{s.market}
		}
	}
	if q.Moves != nil {
		ask.Place, ask.Elsewhere = q.Moves, q.Elsewhere
		for i := range q.Buy {
			n := &q.Buy[i]
			shape, offering := s.market.find(n)
			ask.Buy = append(ask.Buy, whatif.Bought{Name: n.Name, Shape: shape, Offering: offering})
		}
	}
	return ask
}

// replace answers a question with nodes that static pools buy in any case: the cheapest that each
// allows, like [pipeline.Static]. They are there before the pods move.
func (s *Simulator) replace(ctx context.Context, q giveback.Question) (giveback.Answer, error) {
	ask := whatif.Question{Place: map[*corev1.Pod]string{}}
	for _, pool := range q.Replacements {
		if at, ok := s.market.fixed[pool]; ok {
			ask.Buy = append(ask.Buy, whatif.Bought{Shape: at[0], Offering: at[1]})
		}
	}
	q.Replacements = nil
	first := s.at.Ask(ctx, ask)
	if len(first.Bought) < len(ask.Buy) || len(ask.Buy) == 0 { // quotas forbid it, or nothing is for sale
		return s.Simulate(ctx, q)
	}
	bought := s.answer(first)
	out, err := s.version(first.After()).Simulate(ctx, q)
	if err != nil || !out.OK() {
		return out, err
	}
	out.NewNodes = append(out.NewNodes, withPods(bought.NewNodes, out.Placements)...)
	return out, nil
}

// withPods returns the nodes with the pods that are placed there.
func withPods(nodes []giveback.NewNode, placements []giveback.Placement) []giveback.NewNode {
	out := slices.Clone(nodes)
	for i := range out {
		for _, p := range placements {
			if p.Node == out[i].Name {
				out[i].Pods = append(out[i].Pods, p.Pod)
			}
		}
	}
	return out
}

// answer converts an answer of package whatif.
func (s *Simulator) answer(a whatif.Answer) giveback.Answer {
	out := giveback.Answer{Unplaced: a.Unplaced, Why: a.Why, Unsold: a.Unsold, Inflexible: a.Inflexible}
	if len(a.Unplaced) > 0 { // an invalid question without pods changes nothing, such as one about a leaving node
		return out
	}
	out.Placements = make([]giveback.Placement, 0, len(a.Placements))
	for _, p := range a.Placements {
		out.Placements = append(out.Placements, giveback.Placement{Pod: p.Pod, Node: p.Node})
	}
	out.Forgone = deprovision.Price(a.Forgone)
	for _, b := range a.Bought {
		out.NewNodes = append(out.NewNodes, giveback.NewNode{
			Name: b.Name, Pool: s.at.Problem().Pools[s.at.Problem().Shapes[b.Shape].Pool].Name, InstanceType: b.Type, Zone: b.Zone,
			CapacityType: b.CapacityType, PricePerHour: priceOf(s.at.Problem(), b.Shape, b.Offering), CostPerHour: deprovision.Price(b.Price), Labels: b.Labels, Pods: b.Pods, Daemons: b.Daemons,
			Alternatives: s.alternatives(b.Alternatives),
		})
	}
	out.Filled = map[string][]giveback.Alternative{}
	for name, list := range a.Filled {
		out.Filled[name] = s.alternatives(list)
	}
	out.After = func() giveback.Simulator { return s.version(a.After()) }
	out.Rebased = func() giveback.Simulator { return s.version(a.After().Rebase()) }
	return out
}

func (s *Simulator) alternatives(list []whatif.Alternative) (out []giveback.Alternative) {
	for _, alt := range list {
		out = append(out, giveback.Alternative{InstanceType: alt.Type, PricePerHour: priceOf(s.at.Problem(), alt.Shape, alt.Offering)})
	}
	return out
}

// Bound returns a lower bound of the cost of new nodes for the pods, from dual prices of resources
// and the total free capacity of other nodes. It costs O(pods).
func (s *Simulator) Bound(q giveback.Question) deprovision.Price {
	need, free := s.at.Needs(q.Pods), s.at.Free()
	for _, own := range s.at.FreeOf(q.Remove) {
		for d := range free {
			free[d] -= own[d]
		}
	}
	for d := range need {
		need[d] -= max(0, free[d])
	}
	return s.market.atLeast(need, 0)
}
