package golden_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/golden"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
)

// failing is a test whose failures are counted and not its own.
type failing struct {
	testing.TB
	failures int
}

func (f *failing) Errorf(string, ...any) { f.failures++ }

func TestRun(t *testing.T) {
	program := func() *cobra.Command {
		return &cobra.Command{Use: "greet", SilenceErrors: true, SilenceUsage: true, RunE: func(cmd *cobra.Command, args []string) error {
			fmt.Fprintln(cmd.OutOrStdout(), "hello", args)
			if len(args) > 0 {
				return inputs.Bad(errors.New("nobody of that name"))
			}
			return nil
		}}
	}
	out, problems, code := golden.Run(t, program())
	assert.Equal(t, []any{"hello []\n", "", inputs.ExitOK}, []any{out, problems, code})
	out, problems, code = golden.Run(t, program(), "you")
	assert.Equal(t, []any{"hello [you]\n", "nobody of that name\n", inputs.ExitInput}, []any{out, problems, code})
}

func TestEqual(t *testing.T) {
	if flag.Lookup("update").Value.String() == "true" {
		t.Skip("every file is made right")
	}
	path := filepath.Join(t.TempDir(), "want.txt")
	require.NoError(t, os.WriteFile(path, []byte("as it was"), 0o600))
	golden.Equal(t, path, "as it was")
	f := failing{TB: t}
	golden.Equal(&f, path, "as it is")
	assert.Equal(t, 1, f.failures)
}
