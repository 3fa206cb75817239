// Package golden runs the example programs in tests and compares their output with files. go test
// -update rewrites the files.
package golden

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
)

var update = flag.Bool("update", false, "rewrite the golden files; commit only what you understand")

// Run runs a program in this process and returns its output and exit code.
func Run(t testing.TB, program *cobra.Command, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, problems bytes.Buffer
	program.SetArgs(args)
	program.SetOut(&out)
	program.SetErr(&problems)
	code = inputs.End(&problems, program.ExecuteContext(t.Context()))
	return out.String(), problems.String(), code
}

// Equal fails the test if the text differs from the file.
func Equal(t testing.TB, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, path)
}
