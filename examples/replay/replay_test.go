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

func TestGeneratedDayIsTheSameEveryTime(t *testing.T) {
	assert.Equal(t, generate(7, 5), generate(7, 5))
	assert.NotEqual(t, generate(7, 5), generate(8, 5))
	day := generate(7, 5)
	for i := 1; i < len(day); i++ {
		assert.False(t, day[i].At.Before(day[i-1].At), "in the order of time")
	}
}

func TestBadDays(t *testing.T) {
	_, err := read("day", strings.NewReader(`{"at": "2026-01-15T08:00:00Z", "app": "web", "replicas": 3}
{"at": "2026-01-15T08:00:00Z", "replicas": 3}
{"app": "web", "replicas": -1, "cpu": "much"}
{"ap": "web"}`))
	require.Error(t, err)
	for _, want := range []string{`day:1: cpu, memory: required where app "web" is first named`, "day:2: app: required", "day:3: at: required", "day:3: cpu:", `day:4: json: unknown field "ap"`} {
		assert.ErrorContains(t, err, want)
	}
	_, err = read("day", strings.NewReader(""))
	assert.EqualError(t, err, "day: no events")
	_, err = read("day", strings.NewReader(`{"at": "2026-01-15T08:00:00Z", "app": "a", "replicas": 1, "cpu": "-1", "memory": "1Gi"}`))
	assert.ErrorContains(t, err, "less than nothing")
	_, err = read("day", strings.NewReader(`{"at": "2026-01-15T08:00:00Z", "app": "a", "replicas": 1, "cpu": "1", "memory": "1Gi"}
{"at": "9026-01-15T08:00:00Z", "app": "a", "replicas": 0}`))
	assert.ErrorContains(t, err, "at most 744h0m0s can be replayed")
	for _, args := range [][]string{{"--trace", "nowhere"}, {"--apps", "0"}, {"-o", "xml"}, {"--pool", "nowhere"}, {"--sed", "1"}} {
		_, errs, code := run(t, args...)
		assert.Equal(t, inputs.ExitInput, code, args)
		assert.NotEmpty(t, errs)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"at": "2026-01-15T08:00:00Z", "app": "web", "replicas": 3, "cpu": "1", "memory": "1Gi"}`)
	f.Add("# nothing\n\n")
	f.Add(`{"at": "2026-01-15T08:00:00Z", "app": "web", "replicas": 1e9}`)
	f.Fuzz(func(t *testing.T, text string) {
		list, err := read("day", strings.NewReader(text))
		if err != nil {
			return
		}
		assert.NotEmpty(t, list)
		for i, e := range list {
			assert.NotEmpty(t, e.App)
			assert.True(t, i == 0 || !e.At.Before(list[i-1].At))
		}
	})
}
