package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := command()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	code = inputs.End(&errs, cmd.ExecuteContext(t.Context()))
	return out.String(), errs.String(), code
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, name)
}

func TestRecordedMorning(t *testing.T) {
	drawing := filepath.Join(t.TempDir(), "day.svg")
	out, errs, code := run(t, "--trace", "testdata/morning.jsonl", "--svg", drawing)
	require.Equal(t, inputs.ExitOK, code, errs)
	golden(t, "morning.txt", out)
	svg, err := os.ReadFile(drawing)
	require.NoError(t, err)
	golden(t, "morning.svg", string(svg))
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err, "the drawing is well-formed")
		}
	}
	assert.Equal(t, 2*len(regimes()), strings.Count(string(svg), `class="plot"`)/2, "a line for each policy in both charts")
	page, _, code := run(t, "--trace", "testdata/morning.jsonl", "-o", "html")
	require.Equal(t, inputs.ExitOK, code)
	golden(t, "morning.html", page)
	again, _, _ := run(t, "--trace", "testdata/morning.jsonl")
	assert.Equal(t, out, again, "a day is the same every time")
}

func TestBadDays(t *testing.T) {
	for _, args := range [][]string{{"--trace", "nowhere"}, {"--apps", "0"}, {"-o", "xml"}, {"--pool", "nowhere"}, {"--sed", "1"}} {
		_, errs, code := run(t, args...)
		assert.Equal(t, inputs.ExitInput, code, args)
		assert.NotEmpty(t, errs)
	}
}
