package manifests_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
)

// agree holds that what the plain reading accepts, the full reading makes the same of.
func agree(t *testing.T, data []byte) bool {
	t.Helper()
	if bytes.Contains(data, []byte("\n---")) || bytes.Contains(data, []byte("\n...")) || bytes.HasPrefix(data, []byte("...")) {
		return false // never reaches a document's reader
	}
	got, ok := manifests.ParsePlain(data)
	if !ok {
		return false
	}
	want, err := manifests.ParseFull(data)
	require.NoError(t, err, "%q", data)
	require.Equal(t, string(want.Raw()), string(got.Raw()), "%q", data)
	require.Equal(t, want, got, "%q", data)
	return true
}

func TestPlain(t *testing.T) {
	for text, plain := range map[string]bool{
		"a: b":        true,
		"a: b\n":      true,
		"---\na: b\n": true,
		"a:\n  b: c\n  d:\n  - e\n  - f: g\n    h: i\n": true,
		"a:\n- b\n-\n  c: d\n- - e\n  - f\ng:\nh: ''\n": true,
		"- a: b\n  c: d\n":        true,
		"# c\n\na: b\n\n  # d\n":  true,
		"a: {}\nb: []\n":          true,
		"a: \"b c\"\nd: 'e: #'\n": true,
		"a: 1\nb: 1.5\nc: 250m\nd: 1.2.3\ne: 2026-03-01T12:00:00Z\nf: 10.0.0.1\ng: 0\nh: 10:30\ni: 5Gi\nj: 2026-03-01\nk: 9e\n": false,
		"a: 1\nb: 1.5\nc: 250m\nd: 1.2.3\ne: 2026-03-01T12:00:00Z\nf: 10.0.0.1\ng: 0\nh: 10:30\ni: 5Gi\nj: 2026-03-01\n":        true,
		"a: true\nb: null\nc: yes\nd: Off\ne: nulls\n":          true,
		"a: aws:///us-east-1a/i-1\nb: x y z\nc: a,b\nd: a[0]\n": true,
		"a: b: c\n":                           false,
		"a: b #c\n":                           false,
		"a: b\n c: d\n":                       false,
		"a: b\n c\n":                          false,
		"a:\n   b: c\n  d: e\n":               false,
		"a: |\n  b\n":                         false,
		"a: &b c\nd: *b\n":                    false,
		"a: -1\n":                             false,
		"a: 010\nb: 0x10\nc: 1e3\nd: 1_000\n": false,
		"a: é\n":                              false,
		"a:\tb\n":                             false,
		"a: b\r\n":                            false,
		"a: [b]\n":                            false,
		"? a\n: b\n":                          false,
		"a\n":                                 false,
		"null: b\n":                           false,
		"<<: b\n":                             false,
		"a: \"b\\n\"\n":                       false,
		"a: 'b''c'\n":                         false,
		"a: .5\nb: .inf\n":                    false,
		"- a\nb: c\n":                         false,
		"a: b\n- c\n":                         false,
		"  a: b\n":                            false,
		"":                                    false,
	} {
		assert.Equal(t, plain, agree(t, []byte(text)), "%q", text)
	}
}

// TestPlainReadsBenchmarks makes sure that the benchmarks measure what they mean to.
func TestPlainReadsBenchmarks(t *testing.T) {
	assert.True(t, agree(t, bytes.TrimPrefix(podDocuments(1), []byte("---\n"))))
}

func FuzzPlain(f *testing.F) {
	for _, pattern := range []string{"testdata/valid/*.yaml", "testdata/malformed/*.yaml"} {
		files, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(f, err)
			for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
				f.Add(document)
			}
		}
	}
	f.Add([]byte("a: 1.5\nb:\n- 0\n- 1e-5\n- 12e\n- 0b1\n- 1-2\n- 1-2e\n- 1:2\n- 0o7\n- 1.e5\n- 1.\n- 12abc\n"))
	f.Add([]byte("- - - a\n    - b\n  - c: d\n-\n - e\n"))
	f.Fuzz(func(t *testing.T, data []byte) { agree(t, data) })
}
