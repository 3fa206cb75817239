package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every plan of the samples and scenarios convinces a checker that shares no line with the planner.
func TestProofsAreConfirmed(t *testing.T) {
	dir := t.TempDir()
	checker := filepath.Join(dir, "check")
	text, err := exec.CommandContext(t.Context(), "go", "build", "-o", checker, "../../check").CombinedOutput()
	require.NoError(t, err, "%s", text)
	valid, err := filepath.Glob(manifestsDir + "/valid/*")
	require.NoError(t, err)
	if testing.Short() {
		valid = valid[:len(valid)/4]
	}
	confirmed := 0
	for _, args := range append([][]string{{}, {"--sample", "refusals"}, {"--max-nodes", "3"}, {"--per-node", "0.1"}}, files(valid)...) {
		proof := filepath.Join(dir, "proof.json")
		_ = os.Remove(proof)
		got := run("", append(args, "--proof", proof)...)
		document, err := os.Open(proof)
		if got.code == 1 || got.code == 2 { // not a cluster that can be planned
			continue
		}
		require.NoError(t, err, "%v: %s", args, got.stderr)
		cmd := exec.CommandContext(t.Context(), checker)
		cmd.Stdin = document
		said, err := cmd.CombinedOutput()
		assert.NoError(t, err, "%v: %s", args, said)
		require.NoError(t, document.Close())
		confirmed++
	}
	assert.Greater(t, confirmed, 4)
	t.Log(confirmed, "plans are confirmed")
}

func files(paths []string) (out [][]string) {
	for _, path := range paths {
		out = append(out, []string{"-f", path})
	}
	return out
}
