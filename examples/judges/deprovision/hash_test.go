package deprovision_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/deprovision/drift"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// randomTemplate is the template of a pool with some of the fields that are hashed.
func randomTemplate(r *rand.Rand) map[string]any {
	words := func() map[string]string {
		out := map[string]string{}
		for range 1 + r.IntN(4) {
			out[fmt.Sprintf("example.com/k%d", r.IntN(9))] = fmt.Sprintf("v%d", r.IntN(3))
		}
		return out
	}
	taints := func(prefix string) []map[string]string {
		var out []map[string]string
		for i := range 1 + r.IntN(3) {
			t := map[string]string{"key": fmt.Sprintf("%s%d", prefix, i), "effect": []string{"NoSchedule", "NoExecute", "PreferNoSchedule"}[r.IntN(3)]}
			if r.IntN(2) == 0 {
				t["value"] = fmt.Sprintf("v%d", r.IntN(3))
			}
			out = append(out, t)
		}
		return out
	}
	meta := map[string]any{}
	spec := map[string]any{
		"nodeClassRef": map[string]any{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": fmt.Sprintf("c%d", r.IntN(3))},
		"requirements": []map[string]any{{"key": "kubernetes.io/arch", "operator": "In", "values": []string{"amd64"}}},
		"expireAfter":  []string{"Never", "720h", "90m", "24h0m0s"}[r.IntN(4)],
	}
	for _, f := range []struct {
		in    map[string]any
		name  string
		value any
	}{
		{meta, "labels", words()},
		{meta, "annotations", words()},
		{spec, "taints", taints("t")},
		{spec, "startupTaints", taints("s")},
		{spec, "terminationGracePeriod", []string{"30s", "5m", "24h"}[r.IntN(3)]},
	} {
		if r.IntN(2) == 0 {
			f.in[f.name] = f.value
		}
	}
	return map[string]any{"metadata": meta, "spec": spec}
}

// The hash of a pool is the one that Karpenter computes.
func TestHashIsKarpenters(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(500) {
		text, err := json.Marshal(map[string]any{
			"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": map[string]any{"name": "default"},
			"spec": map[string]any{"template": randomTemplate(rand.New(rand.NewPCG(seed, 3)))},
		})
		require.NoError(t, err)
		var theirs karpenter.NodePool
		require.NoError(t, json.Unmarshal(text, &theirs))
		ours, err := nodepool.Decode(text)
		require.NoError(t, err)
		got, ok := drift.Hash(&ours)
		require.True(t, ok)
		require.Equal(t, theirs.Hash(), got, "%s", text)
		seen[got] = true
	}
	require.Equal(t, karpenter.NodePoolHashVersion, drift.HashVersion)
	require.Greater(t, len(seen), 400)
}
