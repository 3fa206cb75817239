package examples_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The program in the README is the Example of the pipeline, byte for byte.
func TestReadmeProgram(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	program, err := os.ReadFile("pipeline/example_test.go")
	require.NoError(t, err)
	assert.Contains(t, string(readme), "```go\n"+string(program)+"```\n")
}
