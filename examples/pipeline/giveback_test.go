package pipeline_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
)

// Whatever a cloud refuses in the middle of a group, in the end each group is whole or has no node, and no node without pods is paid for.
func TestNothingIsKeptForPartOfAGroup(t *testing.T) {
	whole, waiting, returned, draws := 0, 0, 0, 60
	if testing.Short() {
		draws = 20
	}
	for draw := range uint64(draws) {
		r := rand.New(rand.NewPCG(draw, 0x676976))
		var offers []string
		var pools []memcloud.Pool
		for i, typ := range []string{"a.4", "b.4", "c.8"} {
			for _, zone := range []string{"zone-a", "zone-b"} {
				offers = append(offers, fmt.Sprintf("%s %s %s on-demand %.2f", typ, typ[2:], zone, 0.2+0.1*float64(i)+0.01*float64(r.IntN(9))))
				pools = append(pools, memcloud.Pool{Type: typ, Offering: offeringOf(t, fmt.Sprintf("topology.kubernetes.io/zone in (%s), karpenter.sh/capacity-type in (on-demand)", zone)), Free: r.IntN(4)})
			}
		}
		text := strings.TrimSuffix(anyPool, "---\n")
		if r.IntN(3) == 0 {
			text = strings.Replace(text, "spec: {", fmt.Sprintf("spec: {limits: {nodes: %d}, ", 2+r.IntN(8)), 1)
		}
		text += "---\n" + deployment("web", r.IntN(5), container("3"))
		for g := range 1 + r.IntN(3) {
			key, size := "", 2+r.IntN(4)
			if r.IntN(2) == 0 {
				key = fmt.Sprintf(", schedulingConstraints: {topology: [{key: %s}]}", zoneKey)
			}
			text += fmt.Sprintf("apiVersion: scheduling.k8s.io/v1alpha2\nkind: PodGroup\nmetadata: {name: train-%d}\nspec: {schedulingPolicy: {gang: {minCount: %d}}%s}\n---\n", g, size, key)
			for k := range size {
				text += fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: train-%d-%d}\nspec:\n  schedulingGroup: {podGroupName: train-%d}\n  %s---\n", g, k, g, container("3"))
			}
		}
		m, err := manifests.Parse([]manifests.File{{Name: "test.yaml", Data: []byte(text)}}, nil)
		require.NoError(t, err)
		s, _, err := pipeline.Snapshot(m, catalogue(t, offers...))
		require.NoError(t, err)
		cloud, err := memcloud.New(memcloud.Config{Types: pipeline.Offered(s), Pools: pools})
		require.NoError(t, err)
		b := buyer(cloud, cloud.Clock())
		b.Groups = pipeline.Groups(m, s.Pods)
		b.Plan = func(s scheduling.Snapshot) (*plan.Plan, error) {
			return plan.Make(context.Background(), s, &plan.Options{Groups: b.Groups}) //nolint:forbidigo // the buyer has no context for it
		}
		got, err := b.Buy(t.Context(), s)
		require.NoError(t, err, "draw %d", draw)
		placed := map[string]int{}
		for i := range got.Nodes {
			assert.NotEmpty(t, got.Nodes[i].Pods, "draw %d: %s", draw, got.Nodes[i].Name)
			for _, pod := range got.Nodes[i].Pods {
				for _, g := range b.Groups {
					if g.Member(pod) {
						placed[g.Name]++
					}
				}
			}
		}
		for _, g := range b.Groups {
			assert.Contains(t, []int{0, g.Minimum}, placed[g.Name], "draw %d: %s", draw, g.Name)
			if placed[g.Name] > 0 {
				whole++
			} else {
				waiting++
			}
		}
		live := 0
		for _, i := range cloud.Truth() {
			if i.State != cloudprovider.Terminating {
				live++
			}
		}
		assert.Equal(t, len(got.Nodes), live, "draw %d", draw)
		returned += len(got.Returned)
	}
	t.Logf("%d groups are whole, %d wait, %d nodes were given back", whole, waiting, returned)
	assert.Positive(t, whole)
	assert.Positive(t, waiting)
	assert.Positive(t, returned)
}

// A job moves to the zone where its machines cost less, whole and with its new nodes first, or stays if one of its nodes must.
func TestAJobMovesToACheaperZone(t *testing.T) {
	market := catalogue(t, "a.4 4 zone-a on-demand 0.4", "a.4 4 zone-b on-demand 0.2", "a.4 4 zone-c on-demand 0.3")
	text := strings.Replace(anyPool, "spec: {", "spec: {disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 0s, budgets: [{nodes: 100%}]}, ", 1)
	text += fmt.Sprintf("apiVersion: scheduling.k8s.io/v1alpha2\nkind: PodGroup\nmetadata: {name: train}\nspec: {schedulingPolicy: {gang: {minCount: 2}}, schedulingConstraints: {topology: [{key: %s}]}}\n---\n", zoneKey)
	for i := range 2 {
		text += fmt.Sprintf(`apiVersion: v1
kind: Node
metadata:
  name: node-%[1]d
  creationTimestamp: 2026-01-01T00:00:00Z
  labels: {kubernetes.io/hostname: node-%[1]d, node.kubernetes.io/instance-type: a.4, %[2]s: zone-a, karpenter.sh/capacity-type: on-demand, karpenter.sh/nodepool: default, karpenter.sh/registered: "true", karpenter.sh/initialized: "true"}
status: {allocatable: {cpu: 4, memory: 64Gi, pods: 20}, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: train-%[1]d, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: train, uid: u, controller: true}]}
spec:
  nodeName: node-%[1]d
  schedulingGroup: {podGroupName: train}
  %[3]sstatus: {phase: Running}
---
`, i, zoneKey, container("3"))
	}
	m, err := manifests.Parse([]manifests.File{{Name: "test.yaml", Data: []byte(text)}}, nil)
	require.NoError(t, err)
	s, _, err := pipeline.Snapshot(m, market)
	require.NoError(t, err)
	planned := func() giveback.Result {
		sim, nominated, err := simulate.NewFor(s, &plan.Options{Groups: pipeline.Groups(m, s.Pods)})
		require.NoError(t, err)
		r, err := giveback.Make(t.Context(), simulate.Cluster(m, s, nominated, time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)), sim, nil)
		require.NoError(t, err)
		return r
	}
	r := planned()
	require.Len(t, r.Commands, 1, "%+v", r.Verdicts)
	c := r.Commands[0]
	assert.Equal(t, []string{"default/train"}, c.Groups)
	assert.Len(t, c.Nodes, 2)
	if assert.Len(t, c.NewNodes, 2) {
		assert.Equal(t, "zone-b", c.NewNodes[0].Zone)
		assert.Equal(t, "zone-b", c.NewNodes[1].Zone)
	}
	s.Pods[1].Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
	r = planned()
	assert.Empty(t, r.Commands)
	assert.Contains(t, r.Verdicts[0].Detail, "group default/train needs all pods that would move")
}
