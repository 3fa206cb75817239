package examples_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// namesOf are the names of Karpenter v1.15.0, by section, as testdata lists them.
func namesOf(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile("testdata/karpenter-1.15.txt")
	require.NoError(t, err)
	out, title := map[string][]string{}, ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if after, ok := strings.CutPrefix(line, "## "); ok {
			title = after
		} else if line != "" && title != "" {
			out[title] = append(out[title], line)
		}
	}
	return out
}

// Each name of Karpenter v1.15 stands in docs/karpenter-1.15.md once, in its section, and nothing else does. What is said to be done wholly or
// in part and is new in that version has a test, each named test exists, and the operator has just the metrics that it is said to have.
func TestKarpenterTableIsWhole(t *testing.T) {
	data, err := os.ReadFile("../docs/karpenter-1.15.md")
	require.NoError(t, err)
	metrics, err := os.ReadFile("operator/controller/metrics.go")
	require.NoError(t, err)
	have, title, tests := map[string][]string{}, "", 0
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if after, ok := strings.CutPrefix(line, "## "); ok {
			title = after
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if !strings.HasPrefix(line, "| `") || !assert.Len(t, cells, 5, line) {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		name := strings.Trim(cells[0], "`")
		have[title] = append(have[title], name)
		assert.Contains(t, []string{"yes", "in part", "no"}, cells[1], line)
		if title == "Metrics" {
			assert.Equal(t, strings.Contains(string(metrics), `"`+name+`"`), cells[1] == "yes", name)
			continue
		}
		assert.NotEmpty(t, cells[2], line)
		if cells[3] != "" && cells[1] != "no" {
			assert.NotEmpty(t, cells[4], line)
		}
		if cells[4] != "" {
			tests++
			assert.True(t, testExists(t, cells[4]), "there is no test %s", cells[4])
		}
	}
	assert.Equal(t, namesOf(t), have)
	assert.Greater(t, tests, 40)
}

// testExists reports whether a folder below the root has a test, given as in "scheduling TestX" or "scheduling TestX/part". A part must be a text
// in the folder's tests.
func testExists(t *testing.T, ref string) bool {
	t.Helper()
	dir, test, ok := strings.Cut(ref, " ")
	require.True(t, ok, "%q: want folder and test", ref)
	test, part, _ := strings.Cut(test, "/")
	files, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
	require.NoError(t, err)
	function, there := false, part == ""
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		there = there || strings.Contains(string(text), `"`+part+`"`)
		function = function || regexp.MustCompile(`(?m)^func `+test+`\(`).Match(text)
	}
	return function && there
}
