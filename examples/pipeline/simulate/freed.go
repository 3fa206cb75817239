package simulate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
	"github.com/joinery-sdk/joinery/scheduling/whatif"
)

// goesFirst answers a question whose nodes are gone before others are bought, see
// [giveback.Question.Freed]. Static pools buy theirs before the pods are placed.
func (s *Simulator) goesFirst(ctx context.Context, q giveback.Question) (giveback.Answer, error) {
	if len(q.Replacements) == 0 {
		ask := s.question(q)
		ask.Freed = true
		a := s.at.Ask(ctx, ask)
		out := s.answer(a)
		out.Freed = a.Freed
		return out, nil
	}
	var first whatif.Answer
	for _, fixed := range []map[string][2]int{s.market.fixed, s.market.fixedFull} {
		ask := whatif.Question{Remove: q.Remove, Freed: true, Place: map[*corev1.Pod]string{}}
		for _, pool := range q.Replacements {
			if at, ok := fixed[pool]; ok {
				ask.Buy = append(ask.Buy, whatif.Bought{Shape: at[0], Offering: at[1]})
			}
		}
		if first = s.at.Ask(ctx, ask); first.OK() && len(first.Bought) == len(q.Replacements) {
			break
		}
	}
	if !first.OK() || len(first.Bought) < len(q.Replacements) {
		return giveback.Answer{Unplaced: q.Pods, Why: first.Why}, nil // if there are no pods, the missing nodes show that it failed
	}
	bought := s.answer(first)
	q.Remove, q.Replacements, q.Freed = nil, nil, false
	out, err := s.version(first.After()).Simulate(ctx, q)
	if err != nil || !out.OK() {
		return out, err
	}
	out.NewNodes = append(out.NewNodes, withPods(bought.NewNodes, out.Placements)...)
	out.Freed = first.Freed
	for _, n := range bought.NewNodes {
		if text := s.market.limited[n.Pool]; text != "" && !slices.Contains(out.Freed, text) {
			out.Freed = append(out.Freed, text)
		}
	}
	slices.Sort(out.Freed)
	return out, nil
}

// limitedPools returns, by name, the static pools that have as many nodes as their limits allow,
// with a text that says so.
func limitedPools(s scheduling.Snapshot) map[string]string {
	out := map[string]string{}
	for i := range s.Pools {
		limit, limited := s.Pools[i].Limits["nodes"]
		if !s.Pools[i].IsStatic() || !limited {
			continue
		}
		name, nodes := s.Pools[i].Name, int64(0)
		for _, n := range s.Nodes {
			if cmp.Or(n.Labels[nodepool.LabelKey], n.Labels[nodepool.ProvisionerLabelKey]) == name {
				nodes++
			}
		}
		if nodes+1 > limit.Value() {
			out[name] = fmt.Sprintf("pool %s has as many nodes as it may have (limits.nodes: %d)", name, limit.Value())
		}
	}
	return out
}
