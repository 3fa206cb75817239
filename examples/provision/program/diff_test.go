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
	deployment := func(replicas, cpu, scheduler string) string {
		return `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: ` + replicas + `
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {schedulerName: ` + scheduler + `, containers: [{name: web, image: web, resources: {requests: {cpu: "` + cpu + `", memory: 1Gi}}}]}
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
		replicas, cpu, scheduler, says string
		code                           int
	}{
		"smaller":              {"1", "1", "default-scheduler", "shop/web-1 is gone\n", inputs.ExitOK},
		"larger":               {"9", "1", "default-scheduler", "shop/web-8 gains a place\n", inputs.ExitDearer},
		"too large":            {"2", "9999", "default-scheduler", "shop/web-0 has no place\n", inputs.ExitNotAll},
		"new and too large":    {"3", "9999", "default-scheduler", "shop/web-2 has no place\n", inputs.ExitNotAll},
		"not planned any more": {"2", "1", "batch", "shop/web-0 had a place and is not planned any more: scheduler \"batch\" places it\n", inputs.ExitNotAll},
	} {
		file := filepath.Join(t.TempDir(), "after.yaml")
		require.NoError(t, os.WriteFile(file, []byte(deployment(c.replicas, c.cpu, c.scheduler)), 0o600))
		got := run(deployment("2", "1", "default-scheduler")+pool, "-f", "-", "--diff", file)
		assert.Equal(t, c.code, got.code, "%s: %s", name, got.stderr)
		assert.Contains(t, got.stdout, c.says, name)
	}
}

// A pod that waits on purpose, or that another scheduler places, is named, and stops nothing.
func TestDiffNamesWhoIsNotPlanned(t *testing.T) {
	pod := func(name, spec string) string {
		return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", namespace: shop}\nspec: {" + spec + ", containers: [{name: web, image: web}]}\n"
	}
	file := filepath.Join(t.TempDir(), "after.yaml")
	require.NoError(t, os.WriteFile(file, []byte(pod("gated", "schedulingGates: [{name: quota}]")+pod("old", "schedulerName: other")), 0o600))
	got := run(pod("old", "schedulerName: batch"), "-f", "-", "--diff", file)
	assert.Equal(t, inputs.ExitOK, got.code, got.stderr)
	assert.Contains(t, got.stdout, "shop/gated is not ours to place: scheduling gate \"quota\"\n")
	assert.Contains(t, got.stdout, "shop/old is not ours to place: scheduler \"other\" places it\n")
	assert.Regexp(t, `pods not ours to place +1 +2 +\+1\n`, got.stdout)
}
