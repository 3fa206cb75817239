package pipeline_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/instancetypes"
)

// For minValues only those values of a label count that the pods of a node leave it, as in Karpenter v1.15: a pod that is alone has a place if
// and only if enough values are left among the offerings that it allows, and every node of a plan has as many.
func TestMinValuesCountWhatIsLeft(t *testing.T) {
	keys := []string{corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone, instancetypes.LabelCapacityType}
	all := map[string][]string{keys[0]: {"a", "b", "c"}, keys[1]: {"zone-a", "zone-b", "zone-c"}, keys[2]: {"on-demand", "spot"}}
	r := rand.New(rand.NewPCG(3, 3))
	some := func(list []string) []string {
		list = append([]string(nil), list...)
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		return list[:1+r.IntN(len(list))]
	}
	placed, refused := 0, 0
	for range 150 {
		type offer map[string]string
		var offers []offer
		var lines []string
		for _, typ := range all[keys[0]] {
			for _, zone := range all[keys[1]] {
				for _, capacity := range all[keys[2]] {
					if r.IntN(3) > 0 {
						offers = append(offers, offer{keys[0]: typ, keys[1]: zone, keys[2]: capacity})
						lines = append(lines, fmt.Sprintf("%s 4 %s %s 0.%d", typ, zone, capacity, 1+r.IntN(9)))
					}
				}
			}
		}
		if len(offers) == 0 {
			continue
		}
		key := keys[r.IntN(len(keys))]
		want := 1 + r.IntN(len(all[key]))
		pool := fmt.Sprintf("apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: default}\nspec: {template: {spec: {nodeClassRef: {group: g.example.com, kind: C, name: c}, "+
			"requirements: [{key: %s, operator: Exists, minValues: %d}]}}}\n---\n", key, want)
		text, feasible := pool, map[string]bool{}
		for i := range 1 + r.IntN(3) {
			name, allowed, terms := fmt.Sprintf("p%d", i), map[string][]string{}, []string(nil)
			for _, k := range keys {
				allowed[k] = all[k]
				if r.IntN(2) == 0 {
					allowed[k] = some(all[k])
					terms = append(terms, fmt.Sprintf("{key: %s, operator: In, values: [%s]}", k, strings.Join(allowed[k], ", ")))
				}
			}
			values := map[string]bool{}
			for _, o := range offers {
				fits := true
				for _, k := range keys {
					fits = fits && strings.Contains(" "+strings.Join(allowed[k], " ")+" ", " "+o[k]+" ")
				}
				if fits {
					values[o[key]] = true
				}
			}
			feasible[name] = len(values) >= want
			text += fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  containers: [{name: main, image: i, resources: {requests: {cpu: 1}}}]\n", name)
			if len(terms) > 0 {
				text += fmt.Sprintf("  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [%s]}]}}}\n", strings.Join(terms, ", "))
			}
			text += "---\n"
		}
		p := pack(t, catalogue(t, lines...), text)
		there := map[string]bool{}
		for _, n := range p.NewNodes() {
			values := map[string]bool{n.Labels[key]: true}
			for _, a := range n.Alternatives {
				values[map[string]string{keys[0]: a.InstanceType, keys[1]: a.Zone, keys[2]: a.CapacityType}[key]] = true
			}
			require.GreaterOrEqual(t, len(values), want, "%s of node %s\n%s\n%s", key, n.Name, strings.Join(lines, "\n"), text)
			for _, pod := range n.Pods {
				there[pod.Name] = true
			}
		}
		for name, ok := range feasible {
			require.Equal(t, ok, there[name], "%s, %d of %s\n%s\n%s", name, want, key, strings.Join(lines, "\n"), text)
			if ok {
				placed++
			} else {
				refused++
			}
		}
	}
	require.Greater(t, placed, 50)
	require.Greater(t, refused, 50)
}

// As in Karpenter, only values of types count. A label that the pool alone defines has one value on a node, whatever its type.
func TestMinValuesOfALabelOfThePool(t *testing.T) {
	for _, limits := range []string{"", "limits: {cpu: 100}, "} {
		p := pack(t, catalogue(t, "a.4 4 zone-a on-demand 0.2", "b.4 4 zone-a on-demand 0.3"), fmt.Sprintf("apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: default}\nspec: {%stemplate: {spec: {nodeClassRef: {group: g.example.com, kind: C, name: c}, "+
			"requirements: [{key: example.com/team, operator: In, values: [blue, green], minValues: 2}]}}}\n---\n", limits)+deployment("web", 1, container("1")))
		require.Len(t, p.Unplaced(), 1)
		require.Contains(t, p.Unplaced()[0].Reasons()[0].Detail, "minValues of example.com/team: the pool requires 2 values, but the types that hold the pod have 0")
	}
}

// A claim names what minValues need, though it costs more than the buyer would otherwise pay.
func TestClaimsNameWhatMinValuesNeed(t *testing.T) {
	market := catalogue(t, "a.4 4 zone-a on-demand 0.2", "a.4 4 zone-b on-demand 0.2", "b.4 4 zone-a on-demand 0.3", "c.4 4 zone-a on-demand 0.4")
	s := read(t, market, "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: default}\nspec: {limits: {cpu: 100}, template: {spec: {nodeClassRef: {group: g.example.com, kind: C, name: c}, "+
		"requirements: [{key: node.kubernetes.io/instance-type, operator: Exists, minValues: 2}]}}}\n---\n"+deployment("web", 1, container("1")))
	cloud, err := memcloud.New(memcloud.Config{Types: s.Pools[0].Types})
	require.NoError(t, err)
	var types []string
	buyer := pipeline.Buyer{Provider: cloud, Written: func(c cloudprovider.NodeClaim) error {
		for _, x := range c.Candidates {
			types = append(types, x.Type)
		}
		return nil
	}}
	_, err = buyer.Buy(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, []string{"a.4", "a.4", "b.4"}, types)
}
