package simulate

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/eviction"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/whatif"
)

// Simulator answers the questions of package deprovision about one version of a cluster. It is immutable and safe for concurrent use.
type Simulator struct {
	at       *whatif.Cluster
	market   *market
	reserved []deprovision.Placement
}

// Reserved are the places of pods that move without a command, see [New]. A simulator that an answer leads to has none.
func (s *Simulator) Reserved() []deprovision.Placement { return s.reserved }

// New compiles a snapshot. Pending pods and pods of nodes that leave ([pipeline.Leaving]) get places, nominated pods on their nodes, see
// whatif.Cluster.Reserve. New returns the names of the nodes with such places, which should not be given back.
//
// A command is right whenever these pods move to their places: before it, after it, or in between.
func New(s scheduling.Snapshot) (*Simulator, []string, error) { return NewFor(s, nil) }

// NewFor is New with the objective and the groups of a plan. The objective is that for nodes to buy; [Counted] is the same for existing nodes.
// Pods of groups move as their groups allow: all pods of one share its label, and pending pods of a group that is not whole have no places. nil
// is the price, and no groups.
func NewFor(s scheduling.Snapshot, o *plan.Options) (*Simulator, []string, error) {
	if o == nil {
		o = &plan.Options{}
	}
	c, err := whatif.Compile(s, &whatif.Options{Together: together(o.Groups), Price: func(p *scheduling.Problem, shape, offering int) whatif.Price {
		return whatif.Price(costOf(p, o.Objective, shape, offering))
	}})
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
	sim := &Simulator{at: c, market: newMarket(c.Problem(), o.Objective)}
	var nominated []string
	for _, p := range places {
		nominated = append(nominated, p.Node)
		sim.reserved = append(sim.reserved, deprovision.Placement{Pod: p.Pod, Node: p.Node})
	}
	return sim, nominated, nil
}

// Placeable says why no plan places the pod, empty if one can.
func (s *Simulator) Placeable(p *corev1.Pod) string { return s.at.Refuses(p) }

// Simulate answers the question. The only error is that of the context.
func (s *Simulator) Simulate(ctx context.Context, q deprovision.Question) (deprovision.Answer, error) {
	if err := ctx.Err(); err != nil {
		return deprovision.Answer{}, err
	}
	ask := whatif.Question{Remove: q.Remove, Cordon: q.Cordon, Pods: q.Pods, MaxNodes: q.MaxNodes, MaxPrice: whatif.Price(q.MaxCost), CapacityTypes: q.CapacityTypes, Explain: q.Explain}
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
	a := s.at.Ask(ctx, ask)
	out := deprovision.Answer{Unplaced: a.Unplaced, Why: a.Why}
	if !a.OK() {
		return out, nil
	}
	out.Placements = make([]deprovision.Placement, 0, len(a.Placements))
	for _, p := range a.Placements {
		out.Placements = append(out.Placements, deprovision.Placement{Pod: p.Pod, Node: p.Node})
	}
	out.Forgone = deprovision.Price(a.Forgone)
	for _, b := range a.Bought {
		n := deprovision.NewNode{
			Name: b.Name, Pool: s.at.Problem().Pools[s.at.Problem().Shapes[b.Shape].Pool].Name, InstanceType: b.Type, Zone: b.Zone,
			CapacityType: b.CapacityType, PricePerHour: priceOf(s.at.Problem(), b.Shape, b.Offering), CostPerHour: deprovision.Price(b.Price), Labels: b.Labels, Pods: b.Pods, Daemons: b.Daemons,
		}
		for _, alt := range b.Alternatives {
			n.Alternatives = append(n.Alternatives, deprovision.Alternative{InstanceType: alt.Type, PricePerHour: priceOf(s.at.Problem(), alt.Shape, alt.Offering)})
		}
		out.NewNodes = append(out.NewNodes, n)
	}
	out.After = func() deprovision.Simulator { return &Simulator{at: a.After(), market: s.market} }
	out.Rebased = func() deprovision.Simulator { return &Simulator{at: a.After().Rebase(), market: s.market} }
	return out, nil
}

// Bound returns a lower bound of the cost of new nodes for the pods, from dual prices of resources and the total free capacity of other
// nodes. It costs O(pods).
func (s *Simulator) Bound(q deprovision.Question) deprovision.Price {
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
