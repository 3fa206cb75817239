package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// smallCatalogue has one type in a zone.
const smallCatalogue = `[{"name": "m6a.large", "architecture": "amd64", "resources": {"cpu": "2", "memory": "8Gi"}, "offerings": [{"Price": 0.1,
  "Requirements": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]}, {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}]}]}]`

func smallMarket(t *testing.T) *pipeline.Market {
	t.Helper()
	m, err := pipeline.KWOKMarket("small", []byte(smallCatalogue))
	require.NoError(t, err)
	return m
}

func manifestsOf(t *testing.T, text string) *manifests.Snapshot {
	t.Helper()
	m, err := manifests.Parse([]manifests.File{{Name: "in.yaml", Data: []byte(text)}}, pipeline.ReadOptions())
	require.NoError(t, err)
	return m
}

func poolsManifest(pools map[string]string) string {
	text := ""
	for name, own := range pools {
		text += fmt.Sprintf(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %s}
spec:
  template:
    metadata: {labels: {%s}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [m6a.large]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
---`, name, own)
	}
	return text
}

// An overlay corrects what a pool buys if the labels of the pool's nodes meet its requirements, by
// the selectors of Kubernetes, whatever the operator.
func TestOverlaysSeeThePool(t *testing.T) {
	pools := map[string]string{"p0": `team: a, tier: "3"`, "p1": `team: b, tier: "7"`, "p2": `other: a`, "p3": `team: a, tier: "3"`}
	files := smallMarket(t)
	cloud, err := pipeline.EC2Market("us-east-1")
	require.NoError(t, err)
	for _, req := range []struct{ key, operator, values string }{
		{"karpenter.sh/nodepool", "In", "p0"},
		{"karpenter.sh/nodepool", "In", "p0, p1"},
		{"karpenter.sh/nodepool", "NotIn", "p0"},
		{"karpenter.sh/nodepool", "In", "nope"},
		{"karpenter.sh/nodepool", "NotIn", "nope"},
		{"karpenter.sh/nodepool", "Exists", ""},
		{"karpenter.sh/nodepool", "DoesNotExist", ""},
		{"team", "In", "a"},
		{"team", "In", "a, b"},
		{"team", "NotIn", "a"},
		{"team", "Exists", ""},
		{"team", "DoesNotExist", ""},
		{"tier", "Gt", `"5"`},
		{"tier", "Lt", `"5"`},
		{"other", "NotIn", "a"},
		{"nobody", "In", "a"},
		{"nobody", "NotIn", "a"},
		{"kubernetes.io/arch", "In", "amd64"},
		{"kubernetes.io/arch", "NotIn", "amd64"},
		{"karpenter.sh/capacity-type", "In", "spot"},
		{"topology.kubernetes.io/zone", "In", "us-east-1a"},
	} {
		name := req.key + " " + req.operator + " " + req.values
		read := manifestsOf(t, poolsManifest(pools)+fmt.Sprintf(`
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: o}
spec: {requirements: [{key: %s, operator: %s, values: [%s]}], price: "0.01", capacity: {example.com/fuse: "10"}}
`, req.key, req.operator, req.values))
		for _, m := range []*pipeline.Market{files, cloud} {
			sold, _, err := m.Pools(read)
			require.NoError(t, err, name)
			for _, pool := range sold {
				for _, it := range pool.Types {
					if it.Name != "m6a.large" {
						continue
					}
					meets := func(node map[string]string) bool { return selects(t, req.key, req.operator, req.values, node) }
					any := false
					for _, o := range it.Offerings {
						if !o.Available {
							continue
						}
						node := labels.Merge(labels.Merge(pool.PoolLabels(), it.Requirements.Labels()), o.Requirements.Labels())
						delete(node, "karpenter.sh/provisioner-name")
						any = any || meets(node)
						assert.Equal(t, meets(node), o.Price == 0.01, "%s: price of %s in pool %s: %v", name, o.Requirements, pool.Name, o.Price)
					}
					assert.Equal(t, any, it.Capacity.Name("example.com/fuse", "").Value() == 10, "%s: capacity in pool %s", name, pool.Name)
				}
			}
		}
	}
}

func selects(t *testing.T, key, operator, values string, node map[string]string) bool {
	t.Helper()
	op := map[string]selection.Operator{
		"In": selection.In, "NotIn": selection.NotIn, "Exists": selection.Exists, "DoesNotExist": selection.DoesNotExist, "Gt": selection.GreaterThan, "Lt": selection.LessThan,
	}[operator]
	var list []string
	if values != "" {
		list = strings.Split(strings.ReplaceAll(values, `"`, ""), ", ")
	}
	r, err := labels.NewRequirement(key, op, list)
	require.NoError(t, err)
	return r.Matches(labels.Set(node))
}

// Pools that overlays do not tell apart share a slice of types, which is compiled once.
func TestOverlaysShareTypes(t *testing.T) {
	pools := map[string]string{"p0": "team: a", "p1": "team: a", "p2": "team: b"}
	for requirement, groups := range map[string]int{
		"key: kubernetes.io/arch, operator: In, values: [amd64]": 1, "key: team, operator: In, values: [a]": 2,
		"key: karpenter.sh/nodepool, operator: In, values: [p0]": 2, "key: karpenter.sh/nodepool, operator: Exists": 1,
	} {
		read := manifestsOf(t, poolsManifest(pools)+`
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: o}
spec: {requirements: [{`+requirement+`}], price: "0.01"}
`)
		cloud, err := pipeline.EC2Market("us-east-1")
		require.NoError(t, err)
		for _, m := range []*pipeline.Market{smallMarket(t), cloud} {
			for i := range read.NodePools { // a pool that names types may revive retired ones, and then has a slice of its own
				read.NodePools[i].Requirements = requirements.MustParse("karpenter.sh/capacity-type=on-demand")
			}
			sold, _, err := m.Pools(read)
			require.NoError(t, err)
			seen := map[any]bool{}
			for _, pool := range sold {
				seen[&pool.Types[0]] = true
			}
			assert.Len(t, seen, groups, requirement)
		}
	}
}

// Overlays of one weight contradict each other only if a pool has nodes that meet both.
func TestOverlaysOfDifferentPools(t *testing.T) {
	for second, contradict := range map[string]bool{"key: team, operator: In, values: [b]": false, "key: team, operator: In, values: [a]": true} {
		read := manifestsOf(t, poolsManifest(map[string]string{"p0": "team: a", "p1": "team: b"})+`
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: one}
spec: {requirements: [{key: karpenter.sh/nodepool, operator: In, values: [p0]}], price: "0.01"}
---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: two}
spec: {requirements: [{`+second+`}], price: "0.02"}
`)
		_, _, err := smallMarket(t).Pools(read)
		assert.Equal(t, contradict, err != nil, "%s: %v", second, err)
	}
}

// An overlay that no pool has nodes for is a note.
func TestOverlaysOfNoPool(t *testing.T) {
	read := manifestsOf(t, poolsManifest(map[string]string{"p0": "team: a"})+`
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: lost}
spec: {requirements: [{key: karpenter.sh/nodepool, operator: In, values: [nope]}], price: "0.01"}
`)
	_, notes, err := smallMarket(t).Pools(read)
	require.NoError(t, err)
	assert.Contains(t, strings.Join(notes, "\n"), "NodeOverlay lost")
}

// An overlay sees the name of the pool, so each pool may have prices of its own.
func ExampleCorrectionOf() {
	overlay := `apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: contract}
spec: {requirements: [{key: karpenter.sh/nodepool, operator: In, values: [main]}], priceAdjustment: "-20%"}`
	m, err := manifests.Parse([]manifests.File{{Name: "overlay.yaml", Data: []byte(overlay)}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	box := instancetypes.New("box", nil, nil, instancetypes.Offer("hall", "on-demand", 1))
	for _, name := range []string{"main", "other"} {
		correction, err := pipeline.CorrectionOf(m, nodepool.New(name))
		fmt.Println(name, correction.Overlays, correction.Apply([]instancetypes.InstanceType{box})[0].Offerings[0].Price, err)
	}
	// Output:
	// main [contract] 0.8 <nil>
	// other [] 1 <nil>
}

func ExampleCorrection() {
	box := instancetypes.New("box", nil, nil, instancetypes.Offer("hall", "on-demand", 1))
	fmt.Println(pipeline.Correction{}.Apply([]instancetypes.InstanceType{box})[0].Offerings[0].Price)
	// Output: 1
}
