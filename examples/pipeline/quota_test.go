package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/rulecost"
	"github.com/joinery-sdk/joinery/scheduling"
	"github.com/joinery-sdk/joinery/scheduling/gang"
)

// quota is a manifest of a CapacityQuota; selector and limits are flow mappings.
func quota(name, selector, limits string) string {
	return fmt.Sprintf(`
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityQuota
metadata: {name: %s}
spec: {selector: {%s}, limits: {resources: {%s}}}
---
`, name, selector, limits)
}

func namedPool(name, template string) string {
	return strings.NewReplacer("{name: default}", "{name: "+name+"}", "{template: {", "{template: {"+template).Replace(anyPool)
}

// Quotas over pools, zones, capacity types and everything hold at once.
func TestOverlappingQuotas(t *testing.T) {
	market := catalogue(t, "a.2 2 zone-a on-demand 0.1", "b.2 2 zone-b on-demand 0.11", "c.2 2 zone-c spot 0.12")
	pools := namedPool("red", "") + namedPool("blue", "")
	zone := func(z string) string { return "matchLabels: {topology.kubernetes.io/zone: " + z + "}" }
	for name, c := range map[string]struct {
		quotas string
		zones  map[string]int
	}{
		"everything":            {quota("all", "", "nodes: 3"), map[string]int{"zone-a": 3}},
		"one zone":              {quota("a", zone("zone-a"), "nodes: 2"), map[string]int{"zone-a": 2, "zone-b": 8}},
		"two zones":             {quota("a", zone("zone-a"), "nodes: 2") + quota("b", zone("zone-b"), "cpu: 6"), map[string]int{"zone-a": 2, "zone-b": 3, "zone-c": 5}},
		"a zone and everything": {quota("a", zone("zone-a"), "nodes: 2") + quota("all", "", "cpu: 10"), map[string]int{"zone-a": 2, "zone-b": 3}},
		"capacity types": {
			quota("od", "matchExpressions: [{key: karpenter.sh/capacity-type, operator: NotIn, values: [spot]}]", "nodes: 1"), map[string]int{"zone-a": 1, "zone-c": 9},
		},
		"a label that no node has": {quota("none", "matchExpressions: [{key: team, operator: Exists}]", "nodes: 0"), map[string]int{"zone-a": 10}},
		"all without that label":   {quota("bare", "matchExpressions: [{key: team, operator: DoesNotExist}]", "nodes: 4"), map[string]int{"zone-a": 4}},
		"a pool":                   {quota("red", "matchLabels: {karpenter.sh/nodepool: red}", "nodes: 0"), map[string]int{"zone-a": 10}},
		"both pools": {
			quota("both", "matchExpressions: [{key: karpenter.sh/nodepool, operator: In, values: [red, blue]}]", "nodes: 5"), map[string]int{"zone-a": 5},
		},
		"a resource that nobody has": {quota("gpu", "", "nvidia.com/gpu: 0"), map[string]int{"zone-a": 10}},
	} {
		t.Run(name, func(t *testing.T) {
			p := pack(t, market, pools+c.quotas+deployment("web", 10, container("1500m")))
			got := map[string]int{}
			for _, n := range p.NewNodes() {
				got[n.Zone]++
			}
			assert.Equal(t, c.zones, got)
		})
	}
}

// A label that the pool leaves open is decided by the quotas, too: what one value may not have, another may.
func TestQuotasOfLabelsThatPoolsLeaveOpen(t *testing.T) {
	market := catalogue(t, "a.2 2 zone-a on-demand 0.1")
	pool := strings.Replace(anyPool, "requirements: []", "requirements: [{key: team, operator: In, values: [shop, batch]}]", 1)
	p := pack(t, market, pool+quota("shop", "matchLabels: {team: shop}", "nodes: 2")+quota("batch", "matchLabels: {team: batch}", "nodes: 3")+deployment("web", 10, container("1500m")))
	teams := map[string]int{}
	for _, n := range p.NewNodes() {
		teams[n.Node().Labels["team"]]++
	}
	assert.Equal(t, map[string]int{"shop": 2, "batch": 3}, teams)
}

// An unplaced pod's reason names the quota. The fix raises it by what was verified, and whoever does that sees the pods placed.
func TestRefusalsNameTheQuota(t *testing.T) {
	market := catalogue(t, "a.2 2 zone-a on-demand 0.1")
	web := deployment("web", 10, container("1500m"))
	p := pack(t, market, anyPool+quota("gpu-team", "", "nodes: 8")+web)
	require.Len(t, p.Unplaced(), 1)
	u := p.Unplaced()[0]
	r := u.Reasons()[0]
	assert.Equal(t, `pool "default": quota "gpu-team": 8 of 8 nodes`, r.String())
	assert.Equal(t, [3]string{"gpu-team", "nodes", string(scheduling.StageLimit)}, [3]string{r.Quota, r.Resource, string(r.Stage)})
	fix := p.Fix(u.Class, u.Reasons(), false)
	assert.Equal(t, [4]string{"RaiseQuota", "gpu-team", "nodes", "10"}, [4]string{string(fix.Kind), fix.Quota, fix.Key, fix.Value})
	assert.Contains(t, fix.Text, `would fit if quota "gpu-team" had a limit of 10 nodes`)
	assert.Empty(t, pack(t, market, anyPool+quota("gpu-team", "", "nodes: 10")+web).Unplaced())

	p = pack(t, market, anyPool+quota("cores", "", "cpu: 15")+quota("zone", "matchLabels: {topology.kubernetes.io/zone: zone-a}", "nodes: 20")+web)
	u = p.Unplaced()[0]
	assert.Equal(t, `pool "default": quota "cores": 14 of 15 cpu, and the smallest node that holds it counts 2`, u.Reasons()[0].String())
	assert.Equal(t, "20", p.Fix(u.Class, u.Reasons(), false).Value)
}

// A quota has a price, as a pool's limit has one.
func TestQuotasHaveAPrice(t *testing.T) {
	s := read(t, catalogue(t, "a.2 2 zone-a on-demand 0.1", "b.2 2 zone-b on-demand 0.3"),
		anyPool+quota("a", "matchLabels: {topology.kubernetes.io/zone: zone-a}", "nodes: 1")+deployment("web", 4, container("1500m")))
	lifted := rulecost.Rule{Kind: rulecost.Quota, Owner: "CapacityQuota a", Key: "nodes"}.Lift(s)
	with, err := plan.Make(t.Context(), s, nil)
	require.NoError(t, err)
	without, err := plan.Make(t.Context(), lifted, nil)
	require.NoError(t, err)
	assert.InDelta(t, 1.0, with.Cost().Dollars(), 1e-9)
	assert.InDelta(t, 0.4, without.Cost().Dollars(), 1e-9)
	assert.Len(t, s.Quotas[0].Limits, 1, "the snapshot is not changed")
}

// Nodes of static pools join as far as quotas allow.
func TestStaticPoolsKeepToQuotas(t *testing.T) {
	s := read(t, catalogue(t, "a.2 2 zone-a on-demand 0.1"), staticPool(5, "", "")+quota("all", "", "cpu: 7"))
	out, notes := pipeline.Static(s)
	assert.Len(t, out.NodeClaims, 3)
	assert.Contains(t, strings.Join(notes, "\n"), `quota "all" keeps nodes from joining: 2 of 5`)
	assert.Empty(t, s.NodeClaims)
}

// What is bought as a claim counts until it is a node, and a node that is being removed counts until it is gone.
func TestClaimsAndLeavingNodesCount(t *testing.T) {
	claim := func(name, more string) string {
		return fmt.Sprintf(`
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: %s, labels: {karpenter.sh/nodepool: default, topology.kubernetes.io/zone: zone-a}%s}
spec: {nodeClassRef: {group: g.example.com, kind: C, name: c}, requirements: []}
status: {capacity: {cpu: "2", memory: 4Gi, pods: "110"}, allocatable: {cpu: 100m, memory: 1Gi, pods: "110"}}
---
`, name, more)
	}
	p := pack(t, catalogue(t, "a.2 2 zone-a on-demand 0.1"), anyPool+claim("one", "")+claim("two", `, deletionTimestamp: "2026-01-01T00:00:00Z"`)+
		quota("a", "matchLabels: {topology.kubernetes.io/zone: zone-a}", "nodes: 3")+deployment("web", 4, container("1500m")))
	assert.Len(t, p.NewNodes(), 1)
	u := p.Unplaced()[0]
	assert.Contains(t, u.Reasons()[0].String(), `quota "a": 3 of 3 nodes; node two, which is being removed, counts until it is gone`)
}

// A group that a quota does not hold whole buys nothing, and its reason names the quota.
func TestGroupsAreWholeWithinQuotas(t *testing.T) {
	train := gang.Group{Name: "train", Member: func(p *corev1.Pod) bool { return p.Labels["app"] == "train" }}
	for nodes, want := range map[int]int{3: 0, 4: 4, 9: 4} {
		s := read(t, catalogue(t, "a.2 2 zone-a on-demand 0.1", "b.2 2 zone-b on-demand 0.2"), anyPool+quota("all", "", fmt.Sprintf("nodes: %d", nodes))+deployment("train", 4, container("1500m")))
		p, err := plan.Make(t.Context(), s, &plan.Options{Groups: []gang.Group{train}})
		require.NoError(t, err)
		assert.Len(t, p.NewNodes(), want, "%d", nodes)
		if want == 0 {
			assert.Contains(t, fmt.Sprint(p.Unplaced()[0].Reasons()), `quota "all": `)
		}
	}
}
