package program

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
)

// A gate lets a workload shrink, and stops one that no longer fits, whether its pods had a place or are new.
func TestDiffEndsByWhoHasNoPlace(t *testing.T) {
	deployment := func(replicas, cpu string) string {
		return `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: ` + replicas + `
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web, resources: {requests: {cpu: "` + cpu + `", memory: 1Gi}}}]}
`
	}
	pool := `
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, requirements: [{key: karpenter.k8s.aws/instance-family, operator: In, values: [m6a]}]}}}
`
	for name, c := range map[string]struct {
		replicas, cpu, says string
		code                int
	}{
		"smaller":           {"1", "1", "shop/web-1 is gone\n", inputs.ExitOK},
		"larger":            {"9", "1", "shop/web-8 gains a place\n", inputs.ExitDearer},
		"too large":         {"2", "9999", "shop/web-0 has no place\n", inputs.ExitNotAll},
		"new and too large": {"3", "9999", "shop/web-2 has no place\n", inputs.ExitNotAll},
	} {
		file := filepath.Join(t.TempDir(), "after.yaml")
		require.NoError(t, os.WriteFile(file, []byte(deployment(c.replicas, c.cpu)), 0o600))
		got := run(deployment("2", "1")+pool, "-f", "-", "--diff", file)
		assert.Equal(t, c.code, got.code, "%s: %s", name, got.stderr)
		assert.Contains(t, got.stdout, c.says, name)
	}
}
