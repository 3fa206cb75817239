package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/examples/pipeline/golden"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
)

// The archive that the manifest names has the sum that it names, and in it a plugin that runs, under the name by which kubectl finds it.
func TestRelease(t *testing.T) {
	if os.Getenv("JOINERY_LONG") == "" {
		t.Skip("compiles the plugin anew; JOINERY_LONG=1 runs it")
	}
	dir := t.TempDir()
	_, errs, code := golden.Run(t, command(), "--version", "v0.1.0", "--out", dir, "--platform", runtime.GOOS+"/"+runtime.GOARCH, "--url", "https://releases.example")
	require.Equal(t, inputs.ExitOK, code, errs)
	text, err := os.ReadFile(filepath.Join(dir, "joinery.yaml"))
	require.NoError(t, err)
	var m manifest
	require.NoError(t, yaml.UnmarshalStrict(text, &m))
	assert.Equal(t, "v0.1.0", m.Spec.Version)
	require.Len(t, m.Spec.Platforms, 1)
	p := m.Spec.Platforms[0]
	archive := fmt.Sprintf("kubectl-joinery_%s_%s.tar.gz", runtime.GOOS, runtime.GOARCH)
	assert.Equal(t, "https://releases.example/v0.1.0/"+archive, p.URI)
	data, err := os.ReadFile(filepath.Join(dir, archive))
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprintf("%x", sha256.Sum256(data)), p.SHA256)
	zip, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	files := tar.NewReader(zip)
	var names []string
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		names = append(names, header.Name)
		if header.Name == p.Bin {
			program, err := io.ReadAll(files)
			require.NoError(t, err)
			path := filepath.Join(dir, p.Bin)
			require.NoError(t, os.WriteFile(path, program, os.FileMode(header.Mode)))
			help, err := exec.CommandContext(t.Context(), path, "--help").Output()
			require.NoError(t, err)
			assert.Contains(t, string(help), "kubectl joinery why-pending")
		}
	}
	assert.Equal(t, []string{p.Bin, "LICENSE"}, names)
}

func TestBadVersion(t *testing.T) {
	for _, args := range [][]string{nil, {"--version", "0.1"}, {"--version", "v1.0.0", "--platform", "linux", "--out", t.TempDir()}} {
		_, _, code := golden.Run(t, command(), append(args, "--out", t.TempDir())...)
		assert.Equal(t, inputs.ExitInput, code)
	}
}
