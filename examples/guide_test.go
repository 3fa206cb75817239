package examples_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/ruletest"
)

// The blocks of the guide are what they say they are: programs that compile and print what they state, manifests and rules that are read.
func TestGuide(t *testing.T) {
	guide, err := os.ReadFile("../docs/guide.md")
	require.NoError(t, err)
	programs, seen := map[string][]string{}, map[string]int{}
	folders := map[string]string{"go": t.TempDir(), "go karpenter": t.TempDir(), "yaml": t.TempDir(), "yaml rules": t.TempDir()}
	for i, block := range regexp.MustCompile("(?ms)^```(\\w[^\n]*)\n(.*?)^```$").FindAllSubmatch(guide, -1) {
		kind, text := string(block[1]), block[2]
		seen[kind]++
		name := fmt.Sprintf("block%d", i)
		switch kind {
		case "go", "go karpenter":
			path := filepath.Join(folders[kind], name+"_test.go")
			require.NoError(t, os.WriteFile(path, text, 0o600))
			programs[kind] = append(programs[kind], path)
		case "yaml":
			_, err := manifests.Parse([]manifests.File{{Name: name, Data: text}}, nil)
			require.NoError(t, err, "%s", text)
			require.NoError(t, os.WriteFile(filepath.Join(folders[kind], name+".yaml"), text, 0o600))
		case "yaml rules":
			rules, err := ruletest.Parse(manifests.File{Name: name, Data: text})
			require.NoError(t, err, "%s", text)
			assert.NotEmpty(t, rules)
			require.NoError(t, os.WriteFile(filepath.Join(folders[kind], "rules.yaml"), text, 0o600))
		default:
			assert.Fail(t, "a block that nobody checks", kind)
		}
	}
	assert.Equal(t, map[string]int{"go": 7, "go karpenter": 1, "yaml": 2, "yaml rules": 1}, seen)
	for kind, module := range map[string]string{"go": ".", "go karpenter": "karpenter"} {
		if kind == "go karpenter" && testing.Short() {
			continue // it compiles Karpenter, which takes minutes where nothing is cached
		}
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"test", "-v"}, programs[kind]...)...)
		cmd.Dir = module
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.Len(t, regexp.MustCompile(`(?m)^--- PASS: Example`).FindAll(out, -1), seen[kind], "each block has an Example with its output:\n%s", out)
	}

	// The rules hold for the manifests, as the guide says.
	cmd := exec.CommandContext(t.Context(), "go", "run", "./provision", "-f", folders["yaml"], "--assert", filepath.Join(folders["yaml rules"], "rules.yaml"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "6 of 6 pods placed")
}
