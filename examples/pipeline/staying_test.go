package pipeline_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/plan"
)

// Nobody knows when a pod ends that no drain evicts. So nothing is bought for its successor.
func TestPodsThatNoDrainEvicts(t *testing.T) {
	const notStarted = "# not started"
	start := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		annotation, budget, deleted string
		at                          time.Time // zero as for files
		why                         string
	}{
		"nothing":                       {"", "", "", start, ""},
		"do-not-disrupt":                {"karpenter.sh/do-not-disrupt: \"true\"", "", "", start, "karpenter.sh/do-not-disrupt=true"},
		"for an hour, of which one ran": {"karpenter.sh/do-not-disrupt: 1h", "", "", start.Add(2 * time.Hour), ""},
		"for an hour":                   {"karpenter.sh/do-not-disrupt: 1h", "", "", start.Add(time.Minute), "karpenter.sh/do-not-disrupt=1h"},
		"for an hour, in a file":        {"karpenter.sh/do-not-disrupt: 1h", "", "", time.Time{}, ""},
		"for an hour, and not started":  {"karpenter.sh/do-not-disrupt: 1h", "", notStarted, time.Time{}, ""},
		"not a value":                   {"karpenter.sh/do-not-disrupt: soon", "", "", start, ""},
		"a budget for none":             {"", "maxUnavailable: 0", "", start, "PodDisruptionBudget default/web allows 0 disruptions"},
		"a budget for none, as a share": {"", "maxUnavailable: 0%", "", start, "PodDisruptionBudget default/web allows 0 disruptions"},
		"a budget that wants all":       {"", "minAvailable: 100%", "", start, "PodDisruptionBudget default/web allows 0 disruptions"},
		"a budget that allows one soon": {"", "maxUnavailable: 1", "", start, ""},
		"it ends already":               {"karpenter.sh/do-not-disrupt: \"true\"", "maxUnavailable: 0", "deletionTimestamp: 2026-01-02T12:00:00Z", start, ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := `
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1, topology.kubernetes.io/zone: zone-a}, deletionTimestamp: 2026-01-02T12:00:00Z, finalizers: [karpenter.sh/termination]}
status: {capacity: {cpu: 8, memory: 64Gi, pods: 100}, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: web-0
  namespace: default
  labels: {app: web}
  annotations: {` + c.annotation + `}
  ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: web, uid: web, controller: true}]
  ` + c.deleted + `
spec: {nodeName: n1, containers: [{name: main, image: i, resources: {requests: {cpu: 1}}}]}
status: {phase: Running, startTime: 2026-01-02T12:00:00Z, conditions: [{type: Ready, status: "True"}]}
` + "---" + anyPool
			if c.budget != "" {
				text += "\n---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web, namespace: default}\nspec: {" + c.budget + ", selector: {matchLabels: {app: web}}}\n"
			}
			if c.deleted == notStarted {
				text = strings.Replace(text, "startTime: 2026-01-02T12:00:00Z, ", "", 1)
			}
			m, err := manifests.Parse([]manifests.File{{Name: "c.yaml", Data: []byte(text)}}, nil)
			require.NoError(t, err)
			s, _, err := pipeline.Snapshot(m, catalogue(t, "a.4 4 zone-a on-demand 0.2"))
			require.NoError(t, err)
			if !c.at.IsZero() {
				s.Staying = pipeline.Staying(s, m.PodDisruptionBudgets, c.at)
			}
			assert.Equal(t, c.why, s.Staying["default/web-0"])
			p, err := plan.Make(t.Context(), s, nil)
			require.NoError(t, err)
			if c.why == "" {
				assert.Len(t, p.Bindings(), 1)
				return
			}
			assert.Empty(t, p.Bindings())
			assert.Empty(t, p.Result.NewNodes())
			assert.Contains(t, p.Notes(), "pod default/web-0 stays on node n1, and nothing is planned for it: "+c.why)
		})
	}
}
