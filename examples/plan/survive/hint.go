package survive

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/binpack"
)

// hint is how many pods of each kind a packing has on each node, by name. As a strategy it first
// fills the nodes in that way, as far as the domains chosen for pods allow. Then it puts the
// remaining pods where they fit.
type hint struct {
	group map[string]int         // the group of equal pods, by namespace/name
	quota map[int]map[string]int // by group and node
}

// newHint returns the hint for the given places by namespace/name.
func newHint(pods []*corev1.Pod, places map[string]string) *hint {
	h := &hint{group: map[string]int{}, quota: map[int]map[string]int{}}
	for g, members := range alike(pods) {
		h.quota[g] = map[string]int{}
		for _, p := range members {
			key := p.Namespace + "/" + p.Name
			h.group[key] = g
			if node := places[key]; node != "" {
				h.quota[g][node]++
			}
		}
	}
	return h
}

// Name implements [binpack.Strategy].
func (*hint) Name() string { return "hint" }

// Pack implements [binpack.Strategy].
func (h *hint) Pack(_ context.Context, in *binpack.Instance) (binpack.Layout, error) {
	filling, problem := in.NewFilling(), in.Problem()
	used := map[int]map[string]int{}
	for i := range problem.Items {
		pod, _, _ := strings.Cut(problem.Items[i].Name, " ") // an item is named after its first pod
		g, known := h.group[pod]
		if !known {
			continue
		}
		if used[g] == nil {
			used[g] = map[string]int{}
		}
		for n := range problem.Nodes {
			name := problem.Nodes[n].Name
			if want := min(h.quota[g][name]-used[g][name], filling.Missing(i)); want > 0 {
				used[g][name] += filling.AddToNode(n, i, want)
			}
		}
	}
	for i := range problem.Items {
		for n := range problem.Nodes {
			if missing := filling.Missing(i); missing > 0 {
				filling.AddToNode(n, i, missing)
			}
		}
	}
	return filling.Layout(), nil
}
