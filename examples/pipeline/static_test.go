package pipeline_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
)

func staticPool(replicas int, spec, template string) string {
	return fmt.Sprintf(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: base}
spec: {replicas: %d%s, template: {spec: {nodeClassRef: {group: g.example.com, kind: C, name: c}%s}}}
---
`, replicas, spec, template)
}

// Nodes that a static pool will have take pods before a node is bought, whatever it is; and none is bought from that pool.
func TestStaticNodesTakePodsFirst(t *testing.T) {
	offers := []string{"small 2 zone-a on-demand 0.2", "small 2 zone-b on-demand 0.1", "large 8 zone-b on-demand 0.4"}
	const requirements = ", requirements: "
	for name, c := range map[string]struct {
		static        string
		pods          int
		spec          string
		there, bought int
		notes         string
	}{
		"all fit": {
			static: staticPool(2, "", requirements+"[]"), pods: 4, there: 4,
			notes: "pool base: nodes still to join: 2 of 2; pods are planned on them as small in zone-b, on-demand, at $0.1000/h each, which is not part of the plan's price",
		},
		"the others are bought for": {static: staticPool(2, "", requirements+"[]"), pods: 5, there: 4, bought: 1},
		"the limit": {
			static: staticPool(3, ", limits: {nodes: 1}", requirements+"[]"), pods: 3, there: 2, bought: 1,
			notes: "pool base: its limit of nodes keeps nodes from joining: 2 of 3; pool base: nodes still to join: 1 of 3; pods are planned on them as small in zone-b, on-demand, at $0.1000/h each, which is not part of the plan's price",
		},
		"what it asks of types": {static: staticPool(1, "", requirements+"[{key: node.kubernetes.io/instance-type, operator: In, values: [large]}]"), pods: 8, there: 8},
		"its taints":            {static: staticPool(1, "", requirements+"[], taints: [{key: own, effect: NoSchedule}]"), pods: 2, bought: 2},
		"its startup taints":    {static: staticPool(1, "", requirements+"[], startupTaints: [{key: own, effect: NoSchedule}]"), pods: 2, there: 2},
		"another zone":          {static: staticPool(1, "", requirements+"[]"), pods: 2, spec: "nodeSelector: {topology.kubernetes.io/zone: zone-a}\n", bought: 2},
		"none":                  {static: staticPool(0, "", requirements+"[]"), pods: 2, bought: 2, notes: ""},
		"nothing on sale": {
			static: staticPool(2, "", requirements+"[{key: topology.kubernetes.io/zone, operator: In, values: [zone-c]}]"), pods: 2, bought: 2,
			notes: "pool base: nodes still to join: 2 of 2, but no type on sale meets its requirements, so pods are planned without them",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, notes := pipeline.Static(read(t, catalogue(t, offers...), anyPool+c.static+deployment("web", c.pods, c.spec+container("1"))))
			if c.notes != "" {
				assert.Equal(t, c.notes, strings.Join(notes, "; "))
			}
			p, err := plan.Make(t.Context(), s, nil)
			require.NoError(t, err)
			assert.Empty(t, p.Unplaced())
			there := 0
			for _, b := range p.Bindings() {
				if strings.HasPrefix(b.Node, "base-") {
					there++
				}
			}
			bought := 0
			for _, n := range p.NewNodes() {
				require.Equal(t, "default", n.Pool.Name)
				bought += len(n.Pods)
			}
			assert.Equal(t, []int{c.there, c.bought}, []int{there, bought})
		})
	}
}

// Whatever there is of a pool - nodes, claims, both by name or by id, on their way in or out - after the missing nodes were added nothing is
// missing, no name is there twice, and the nodes that take pods are as many as the pool keeps or its limit allows. The snapshot is left as it is.
func TestStaticNodesAreCountedOnce(t *testing.T) {
	market := catalogue(t, "small 2 zone-b on-demand 0.1")
	r := rand.New(rand.NewPCG(7, 7))
	for range 300 {
		replicas, limit, objects := r.IntN(5), "", ""
		most := 99
		if r.IntN(2) == 0 {
			most = r.IntN(6)
			limit = fmt.Sprintf(", limits: {nodes: %d}", most)
		}
		staying, leaving := 0, 0
		for i := range r.IntN(5) {
			name, id := fmt.Sprintf("base-%d", i), fmt.Sprintf("cloud://%d", i)
			claimed, joined, goes := r.IntN(3) > 0, r.IntN(3) > 0, r.IntN(4) == 0
			if !claimed && !joined {
				continue
			}
			if goes {
				leaving++
			} else {
				staying++
			}
			if claimed {
				meta, status := "", ""
				if goes {
					meta = `, deletionTimestamp: "2026-01-01T00:00:00Z"`
				}
				if r.IntN(2) == 0 {
					status += ", nodeName: n" + name
				}
				if r.IntN(2) == 0 {
					status += ", providerID: \"" + id + "\""
				}
				if status == "" && joined {
					status = ", nodeName: n" + name
				}
				objects += fmt.Sprintf("apiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {name: %s%s, labels: {karpenter.sh/nodepool: base}}\nspec: {requirements: []}\nstatus: {%s%s}\n---\n",
					name, meta, strings.TrimPrefix(promised, ", "), status)
			}
			if joined {
				label, taints := "karpenter.sh/nodepool: base", "[]"
				if claimed && r.IntN(2) == 0 {
					label, taints = "a: b", "[{key: karpenter.sh/unregistered, effect: NoExecute}]" // it has not registered
				} else if goes && !claimed {
					taints = "[{key: karpenter.sh/disrupted, effect: NoSchedule}]"
				}
				objects += fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: n%s, labels: {%s}}\nspec: {providerID: %q, taints: %s}\nstatus: {capacity: {cpu: 2, memory: 64Gi, pods: 100}}\n---\n", name, label, id, taints)
			}
		}
		s := read(t, market, staticPool(replicas, limit, ", requirements: []")+objects)
		before := len(s.NodeClaims)
		full, _ := pipeline.Static(s)
		require.Len(t, s.NodeClaims, before)
		again, _ := pipeline.Static(full)
		require.Len(t, again.NodeClaims, len(full.NodeClaims), objects)
		problem, err := scheduling.Compile(full, nil)
		require.NoError(t, err)
		want := max(staying, min(replicas, most-leaving))
		names := map[string]bool{}
		for _, n := range problem.Existing {
			require.False(t, names[n.Node.Name])
			names[n.Node.Name] = true
		}
		require.Len(t, problem.Existing, want, "%d replicas%s, %d stay, %d leave\n%s", replicas, limit, staying, leaving, objects)
	}
}

// A pool that has more nodes than it keeps says so; one that has what it keeps says nothing.
func TestNotesOfStaticPools(t *testing.T) {
	one := strings.ReplaceAll(machine("", "", "2"), "default", "base")
	for replicas, want := range map[int][]string{0: {"pool base: 1 of its nodes exceed its replicas (0), and will be given back"}, 1: nil} {
		s, notes := pipeline.Static(read(t, catalogue(t, "small 2 zone-b on-demand 0.1"), staticPool(replicas, "", ", requirements: []")+one))
		assert.Empty(t, s.NodeClaims)
		assert.Equal(t, want, notes)
	}
}

func TestStaticPoolsThatAreDeleted(t *testing.T) {
	going := strings.Replace(staticPool(2, "", ", requirements: []"), "{name: base}", `{name: base, deletionTimestamp: "2026-01-01T00:00:00Z"}`, 1)
	s, notes := pipeline.Static(read(t, catalogue(t, "small 2 zone-b on-demand 0.1"), going))
	assert.Empty(t, s.NodeClaims)
	assert.Empty(t, notes)
}

// A static pool has its nodes before a pod asks for one.
func ExampleStatic() {
	s, err := shopping()
	if err != nil {
		fmt.Println(err)
		return
	}
	s.Pools[0].Replicas = new(int64(2))
	s, notes := pipeline.Static(s)
	for _, c := range s.NodeClaims {
		fmt.Println(c.Name, c.Labels[corev1.LabelInstanceTypeStable])
	}
	fmt.Println(notes[0])
	// Output:
	// default-0 a.4
	// default-1 a.4
	// pool default: nodes still to join: 2 of 2; pods are planned on them as a.4 in zone-a, on-demand, at $0.2000/h each, which is not part of the plan's price
}
