package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The table is what botocore says, where botocore is installed.
func TestTableIsUpToDate(t *testing.T) {
	home := filepath.Join("..", "..", "..", "..", "..", "..", ".cache", "moto")
	if _, err := os.Stat(filepath.Join(home, "installed")); err != nil {
		t.Skip(`SKIPPED: botocore is not installed: run "make moto", which needs Python and pip`)
	}
	found, err := filepath.Glob(filepath.Join(home, "lib", "python*", "site-packages", "botocore"))
	require.NoError(t, err)
	require.NotEmpty(t, found)
	want, err := Table(found[0])
	require.NoError(t, err)
	have, err := os.ReadFile(filepath.Join("..", "operations.txt"))
	require.NoError(t, err)
	assert.Equal(t, string(want), string(have), `run "go generate"`)
}
