package examples_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The program in the README is the Example of the pipeline, byte for byte.
func TestReadmeProgram(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	program, err := os.ReadFile("plan/example_test.go")
	require.NoError(t, err)
	assert.True(t, strings.Contains(string(readme), "```go\n"+string(program)+"```\n"), "copy plan/example_test.go into the README")
}
