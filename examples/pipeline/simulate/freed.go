package simulate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/deprovision/eviction"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
	"github.com/joinery-sdk/joinery/scheduling/whatif"
)

// goesFirst answers a question whose nodes are gone before others are bought, see
// [giveback.Question.Freed].
func (s *Simulator) goesFirst(ctx context.Context, q giveback.Question) (giveback.Answer, error) {
	out, err := s.afterwards(ctx, q)
	if err != nil || !out.OK() || len(out.Freed) == 0 {
		return out, err
	}
	slices.Sort(out.Freed)
	if pod := s.rival(ctx, q, out.Freed); pod != nil {
		return giveback.Answer{Unplaced: q.Pods, Why: fmt.Sprintf("pod %s is pending, and would take the place", eviction.Name(pod))}, nil
	}
	return out, nil
}

// afterwards buys the nodes of static pools once the old nodes are gone, and then places the pods.
func (s *Simulator) afterwards(ctx context.Context, q giveback.Question) (giveback.Answer, error) {
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
		return giveback.Answer{Unplaced: q.Pods, Why: first.Why}, nil // without pods, the missing nodes say it
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
	return out, nil
}

// rival returns a pod without a place that would be placed if the nodes of the question were gone, by
// what the answer to the question uses; nil if there is none. Of the pods of one controller one is
// asked about.
func (s *Simulator) rival(ctx context.Context, q giveback.Question, freed []string) *corev1.Pod {
	asked := map[string]bool{}
	for _, pod := range s.waiting {
		key := eviction.Name(pod)
		if len(pod.OwnerReferences) > 0 {
			key = string(pod.OwnerReferences[0].UID) + " " + cmp.Or(pod.OwnerReferences[0].Name, key)
		}
		if asked[key] || slices.Contains(q.Pods, pod) {
			continue
		}
		asked[key] = true
		one := []*corev1.Pod{pod}
		if a := s.at.Ask(ctx, whatif.Question{Pods: one, MaxNodes: 1}); a.OK() {
			continue
		}
		a := s.at.Ask(ctx, whatif.Question{Remove: q.Remove, Freed: true, Pods: one, MaxNodes: 1})
		if a.OK() && slices.ContainsFunc(a.Freed, func(text string) bool { return slices.Contains(freed, text) }) {
			return pod
		}
	}
	return nil
}

// limitedPools says, by name, which static pools have as many nodes as they may have.
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
			out[name] = fmt.Sprintf("pool %s has all %d nodes that it may have (limits.nodes)", name, limit.Value())
		}
	}
	return out
}
