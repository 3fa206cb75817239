package manifests_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
)

// update rewrites what the files of testdata want by what is got. Read the difference before committing it.
var update = flag.Bool("update", false, "rewrite the expectations in testdata")

const wantMark = "# want: "

// wanted splits a file of testdata into the manifest and the lines that it should give, which stand in comments at its
// end so that they do not shift what they speak of.
func wanted(t *testing.T, file string) (body []byte, want string) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range strings.Lines(string(data)) {
		if text, ok := strings.CutPrefix(line, wantMark); ok {
			want += text
		} else {
			body = append(body, line...)
		}
	}
	return body, want
}

func settle(t *testing.T, file string, body []byte, want, got string) {
	t.Helper()
	if *update {
		var b bytes.Buffer
		b.Write(body)
		for line := range strings.Lines(got) {
			b.WriteString(wantMark + line)
		}
		require.NoError(t, os.WriteFile(file, b.Bytes(), 0o644))
		return
	}
	assert.Equal(t, want, got)
}

func TestMalformed(t *testing.T) {
	files, err := filepath.Glob("testdata/malformed/*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 40)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			body, want := wanted(t, file)
			start := time.Now()
			s, err := manifests.Parse([]manifests.File{{Name: "x.yaml", Data: body}}, nil)
			require.Error(t, err)
			assert.Nil(t, s)
			assert.Less(t, time.Since(start), 5*time.Second)
			settle(t, file, body, want, err.Error()+"\n")
		})
	}
}

// TestMalformedBytes has what cannot stand in a file of text, and what is about whole files.
func TestMalformedBytes(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)
	for name, c := range map[string]struct{ data, want string }{
		"nul bytes":             {"apiVersion: v1\nkind: \x00Pod\n", "x.yaml:2: the file contains NUL bytes; it is not UTF-8 text"},
		"utf-16":                {"\xff\xfea\x00:\x00 \x001\x00", "x.yaml:1: the file contains NUL bytes; it is not UTF-8 text"},
		"not utf-8":             {"apiVersion: v1\nkind: Pod\nmetadata: {name: caf\xe9}\n", "x.yaml:3: the line contains bytes that are not UTF-8"},
		"json cut short":        {"{\"apiVersion\": \"v1\",\n \"kind\": \"Pod\",\n", "x.yaml:3: not JSON: the text ends before or within a value"},
		"json with a comma":     {"{\"apiVersion\": \"v1\",\n \"kind\" \"Pod\",\n}", "x.yaml:2: not JSON: invalid character '\"' after object key"},
		"deep json":             {deep, "x.yaml:1: not JSON: nested deeper than 100 levels"},
		"deep yaml":             {strings.Repeat("- ", 50_000) + "x\n", "x.yaml:1: not YAML: exceeded max depth of 10000"},
		"json of two kinds":     {`{"apiVersion":"v1","kind":"Nope"}{"apiVersion":"v1","kind":"Pods","metadata":{"name":"a"}}`, `x.yaml:1: Pods a: kind: "Pods": v1 has no such kind (did you mean "Pod"?)`},
		"stray bytes":           {"{\"apiVersion\":\"v1\",\"kind\":\"Secret\"}\n}", "x.yaml:2: not JSON: invalid character '}' looking for beginning of value"},
		"control characters":    {"apiVersion: v1\nkind: \x07Pod\n", "x.yaml:2: not YAML: control characters are not allowed"},
		"huge scalar":           {"apiVersion: v1\nkind: Pod\nmetadata: {name: " + strings.Repeat("a", 8<<20) + "}\nspec: {containers: [{}]}\n", "must be no more than 253"},
		"hundred thousand keys": {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n" + strings.Repeat("  containrs: []\n", 100_000), `spec.containrs: unknown field "containrs": did you mean "containers"?`},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := manifests.Parse([]manifests.File{{Name: "x.yaml", Data: []byte(c.data)}}, nil)
			require.Error(t, err)
			assert.Contains(t, err.Error(), c.want)
			assert.Less(t, time.Since(start), 5*time.Minute, "far above what it takes, for slow machines and the race detector")
		})
	}
}

func TestMalformedArguments(t *testing.T) {
	empty := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(empty, "below.yaml"), 0o755))
	_, err := manifests.Read([]string{"nowhere.yaml", empty, "-", empty, "", "https://example.com/pod.yaml"}, nil)
	require.Error(t, err)
	assert.Equal(t, strings.Join([]string{
		"-: there is no standard input",
		empty + ": the argument is given twice",
		empty + ": the directory holds no *.yaml, *.yml or *.json file",
		"https://example.com/pod.yaml: addresses are not read: fetch it first, and pipe it to -",
		"input: the name of a file or a directory is empty",
		"nowhere.yaml: no such file or directory",
	}, "\n"), err.Error())
	var p *manifests.Problem
	require.ErrorAs(t, err, &p)
}

func TestManyProblemsAreCut(t *testing.T) {
	data := strings.Repeat("---\nkind: Pod\n", 3000)
	_, err := manifests.Parse([]manifests.File{{Name: "x.yaml", Data: []byte(data)}}, nil)
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok)
	require.Len(t, joined.Unwrap(), 1001)
	assert.EqualError(t, joined.Unwrap()[1000], "and 2000 more problems")
	var p *manifests.Problem
	require.True(t, errors.As(err, &p))
	assert.Equal(t, manifests.Position{File: "x.yaml", Document: 1, Line: 2}, p.Position)
}
