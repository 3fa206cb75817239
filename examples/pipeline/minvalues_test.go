package pipeline_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

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
