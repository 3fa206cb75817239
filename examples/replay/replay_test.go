package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/golden"
	"github.com/joinery-sdk/joinery/examples/pipeline/history"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/replay/day"
)

func run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return golden.Run(t, command(), args...)
}

func TestRecordedMorning(t *testing.T) {
	drawing := filepath.Join(t.TempDir(), "day.svg")
	out, errs, code := run(t, "--trace", "testdata/morning.jsonl", "--svg", drawing)
	require.Equal(t, inputs.ExitOK, code, errs)
	golden.Equal(t, "testdata/morning.txt", out)
	svg, err := os.ReadFile(drawing)
	require.NoError(t, err)
	golden.Equal(t, "testdata/morning.svg", string(svg))
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
	golden.Equal(t, "testdata/morning.html", page)
	if testing.Short() { // each day takes a second
		return
	}
	again, _, _ := run(t, "--trace", "testdata/morning.jsonl")
	assert.Equal(t, out, again, "a day is the same every time")
}

// One pod arrives, not "1 pods".
func TestOnePodArrives(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "one.jsonl")
	require.NoError(t, os.WriteFile(trace, []byte(`{"at": "2026-01-15T08:00:00Z", "app": "web", "replicas": 1, "cpu": "1", "memory": "2Gi"}`+"\n"), 0o600))
	out, errs, code := run(t, "--trace", trace)
	require.Equal(t, inputs.ExitOK, code, errs)
	assert.Contains(t, out, "1 event from 2026-01-15 08:00 to 2026-01-15 08:00, with 1 pod arriving\n")
}

// A recorded day is read as what happened: at each step as many pods and nodes as the day had.
func TestRecord(t *testing.T) {
	file := filepath.Join(t.TempDir(), "day.jsonl")
	out, errs, code := run(t, "--trace", "testdata/morning.jsonl", "--record", file, "--record-policy", "balanced", "-o", "json")
	require.Equal(t, inputs.ExitOK, code, errs)
	golden, _, _ := run(t, "--trace", "testdata/morning.jsonl", "-o", "json")
	assert.Equal(t, golden, out, "recording changes nothing")
	from, err := readPools("pool.yaml", []byte(pool))
	require.NoError(t, err)
	trace, err := os.Open("testdata/morning.jsonl")
	require.NoError(t, err)
	defer trace.Close()
	events, err := day.Read("morning.jsonl", trace)
	require.NoError(t, err)
	w, err := newWorld(from, "balanced", 1, events[0].At)
	require.NoError(t, err)
	want, err := w.run(t.Context(), events, regimes()[3])
	require.NoError(t, err)
	data, err := os.Open(file)
	require.NoError(t, err)
	defer data.Close()
	h, err := history.ReadLogs(nil, []history.Log{{Name: file, Data: data}}, nil)
	require.NoError(t, err)
	assert.Empty(t, h.Notes)
	last := want.points[len(want.points)-1].at
	assert.Equal(t, last.Add(step), h.Until)
	for _, p := range want.points {
		i := slices.IndexFunc(h.Observations, func(o history.Observation) bool { return o.At.After(p.at) })
		if i < 0 {
			i = len(h.Observations)
		}
		assert.Len(t, h.Observations[i-1].Pods, p.pods, p.at)
		assert.Len(t, h.Observations[i-1].Nodes, p.nodes, p.at)
	}
	_, errs, code = run(t, "--record", file, "--record-policy", "balance")
	assert.Equal(t, inputs.ExitInput, code)
	assert.Contains(t, errs, `did you mean "balanced"?`)
}

func TestBadDays(t *testing.T) {
	for _, args := range [][]string{{"--trace", "nowhere"}, {"--apps", "0"}, {"-o", "xml"}, {"--pool", "nowhere"}, {"--sed", "1"}, {"--trace", "testdata/morning.jsonl", "--seed", "2"}, {"--trace", "testdata/morning.jsonl", "--apps", "3"}, {"--record-policy", "none"}} {
		_, errs, code := run(t, args...)
		assert.Equal(t, inputs.ExitInput, code, args)
		assert.NotEmpty(t, errs)
	}
}
