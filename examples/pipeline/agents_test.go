package pipeline_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A DaemonSet may select labels that Karpenter sets on each node of a pool. Its pods take their share of the
// nodes to buy if these will have the label, and none if they must not have it.
func TestDaemonsThatSelectLabelsOfAgents(t *testing.T) {
	for expression, counted := range map[string]bool{
		"{key: karpenter.sh/registered, operator: Exists}":                        true,
		"{key: karpenter.sh/registered, operator: NotIn, values: ['true']}":       false,
		"{key: karpenter.sh/initialized, operator: In, values: ['true']}":         true,
		"{key: karpenter.sh/initialized, operator: DoesNotExist}":                 false,
		"{key: g.example.com/c, operator: In, values: [c]}":                       true,
		"{key: g.example.com/c, operator: In, values: [d]}":                       false,
		"{key: topology.ebs.csi.aws.com/zone, operator: In, values: [zone-a]}":    true,
		"{key: topology.ebs.csi.aws.com/zone, operator: NotIn, values: [zone-a]}": false,
	} {
		agent := fmt.Sprintf(`
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {%s, containers: [{name: main, image: i, resources: {requests: {cpu: 2}}}]}
---
`, required("{matchExpressions: ["+expression+"]}"))
		p := pack(t, catalogue(t, "s.3 3 zone-a on-demand 0.11", "l.5 5 zone-a on-demand 0.27"), anyPool+agent+deployment("web", 1, container("2")))
		require.Len(t, p.NewNodes(), 1, expression)
		assert.Equal(t, map[bool]string{true: "l.5", false: "s.3"}[counted], p.NewNodes()[0].InstanceType.Name, expression)
	}
}

// A zone that only a pool without any limit left could open is no domain of a spread, unless a node is there.
func TestZonesThatNoPoolCanOpen(t *testing.T) {
	pool := func(name, limits string) string {
		return fmt.Sprintf(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %s}
spec: {%stemplate: {spec: {nodeClassRef: {group: g.example.com, kind: C, name: c}, requirements: [{key: %s, operator: In, values: [zone-%s]}]}}}
---
`, name, limits, zoneKey, name)
	}
	for name, c := range map[string]struct {
		limits, node string
		placed       int
	}{
		"no limit":         {"", "", 7},
		"no core":          {"limits: {cpu: 0}, ", "", 7},
		"too little":       {"limits: {cpu: 1}, ", "", 7},
		"no node":          {"limits: {nodes: 0}, ", "", 7},
		"a node, but full": {"limits: {nodes: 0}, ", nodeIn("full", "zone-b", "0", "") + "---\n", 1},
	} {
		p := pack(t, catalogue(t, "a.2 2 zone-a on-demand 0.1", "a.2 2 zone-b on-demand 0.1"), pool("a", "")+pool("b", c.limits)+c.node+deployment("web", 7, spreadBy(zoneKey)+container("1")))
		assert.Len(t, p.Bindings(), c.placed, name)
	}
}
