package simulate

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/whatif"
)

// Simulator answers the questions of package deprovision about one version of a cluster. It is immutable and safe for
// concurrent use.
type Simulator struct {
	at     *whatif.Cluster
	market *market
}

// New compiles a snapshot. Pending pods keep the room that they would take now; the nodes they would take it on are
// returned, for they are not to be given back.
func New(s scheduling.Snapshot) (*Simulator, []string, error) {
	c, err := whatif.Compile(s, nil)
	if err != nil {
		return nil, nil, err
	}
	var pending []*corev1.Pod
	for _, p := range s.Pods {
		if p.Spec.NodeName == "" {
			pending = append(pending, p)
		}
	}
	var nominated []string
	if len(pending) > 0 {
		reserved, placements := c.Reserve(pending)
		c = reserved
		for _, p := range placements {
			nominated = append(nominated, p.Node)
		}
	}
	return at(c, newMarket(c.Problem())), nominated, nil
}

func at(c *whatif.Cluster, m *market) *Simulator {
	return &Simulator{at: c, market: m}
}

// Placeable says why a pod could not be placed by us wherever it went, empty if it can.
func (s *Simulator) Placeable(p *corev1.Pod) string { return s.at.Refuses(p) }

// Simulate answers the question. The only error is that of the context.
func (s *Simulator) Simulate(ctx context.Context, q deprovision.Question) (deprovision.Answer, error) {
	if err := ctx.Err(); err != nil {
		return deprovision.Answer{}, err
	}
	ask := whatif.Question{Remove: q.Remove, Pods: q.Pods, MaxNodes: q.MaxNodes, MaxPrice: q.MaxPrice, CapacityTypes: q.CapacityTypes, Explain: q.Explain}
	if q.MaxNodes > 1 {
		ask.Buyer = s.market
	}
	if q.Moves != nil {
		ask.Place, ask.Elsewhere = q.Moves, q.Elsewhere
		for i := range q.Buy {
			n := &q.Buy[i]
			shape, offering := s.market.find(n)
			ask.Buy = append(ask.Buy, whatif.Bought{Name: n.Name, Shape: shape, Offering: offering})
		}
	}
	a := s.at.Ask(ask)
	out := deprovision.Answer{PricePerHour: a.Price, Left: a.Left, Why: a.Why}
	if !a.OK() {
		return out, nil
	}
	for _, p := range a.Placements {
		out.Placements = append(out.Placements, deprovision.Placement{Pod: p.Pod, Node: p.Node})
	}
	for _, b := range a.Bought {
		n := deprovision.NewNode{
			Name: b.Name, Pool: s.at.Problem().Pools[s.at.Problem().Shapes[b.Shape].Pool].Name, InstanceType: b.Type, Zone: b.Zone,
			CapacityType: b.CapacityType, PricePerHour: b.Price, Labels: b.Labels, Pods: b.Pods, Daemons: b.Daemons,
		}
		for _, alt := range b.Alternatives {
			n.Alternatives = append(n.Alternatives, deprovision.Alternative{InstanceType: alt.Type, PricePerHour: alt.Price})
		}
		out.NewNodes = append(out.NewNodes, n)
	}
	out.After = func() deprovision.Simulator { return at(a.After(), s.market) }
	out.Fresh = func() deprovision.Simulator { return at(a.After().Settled(), s.market) }
	return out, nil
}

// Bound returns prices below which nothing can hold the pods, from what a unit of each resource costs at least on anything
// that can be bought. It costs O(pods).
func (s *Simulator) Bound(q deprovision.Question) (worth, least float64) {
	need := s.at.Needs(q.Pods)
	worth = s.market.worth(need)
	free := s.at.Free()
	own := s.at.Room(q.Remove)
	for d := range need {
		need[d] -= max(0, free[d]-own[d])
	}
	return worth, s.market.worth(need)
}
