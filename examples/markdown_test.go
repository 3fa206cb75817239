package examples_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every link of a page to a file leads there, and every link to a section to a heading.
func TestLinksOfPagesLeadSomewhere(t *testing.T) {
	links := 0
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && path != ".." && strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir
			}
			return err
		}
		if filepath.Ext(path) != ".md" && d.Name() != "llms.txt" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		prose := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`").ReplaceAllString(string(text), "")
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(prose, -1) {
			target, section, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			links++
			file := path
			if target != "" {
				file = filepath.Join(filepath.Dir(path), target)
			}
			page, err := os.ReadFile(file)
			if info, failed := os.Stat(file); failed == nil && info.IsDir() {
				page, err = nil, nil
			}
			assert.NoError(t, err, "%s: link to %s", path, m[1])
			if section != "" {
				assert.Contains(t, sections(string(page)), section, "%s: link to %s", path, m[1])
			}
		}
		return nil
	}))
	assert.Greater(t, links, 50)
}

// sections are the names by which the headings of a page are linked to.
func sections(page string) (out []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		out = append(out, strings.ReplaceAll(name, " ", "-"))
	}
	return out
}

// The guide's table of versions is what go.mod files, the judges' other versions and the Makefile have.
func TestVersionsOfTheGuide(t *testing.T) {
	read := func(path string) string {
		data, err := os.ReadFile(filepath.Join("..", path))
		require.NoError(t, err)
		return string(data)
	}
	find := func(path, pattern string) string {
		m := regexp.MustCompile(`(?m)` + pattern).FindStringSubmatch(read(path))
		require.NotNil(t, m, "%s: %s", path, pattern)
		return m[1]
	}
	guide := read("docs/guide.md")
	row := func(what string, versions ...string) {
		assert.Contains(t, guide, "| "+what+" | "+strings.Join(versions, ", ")+" |")
	}
	row("Go", find("go.mod", `^go (\S+)`))
	assert.Contains(t, guide, "the modules with Karpenter need "+find("examples/judges/go.mod", `^go (\S+)`))
	minors := strings.Fields(find("Makefile", `^K8S_VERSIONS := (.*)`))
	row("k8s.io/api, k8s.io/apimachinery", minors[0], find("examples/go.mod", `k8s.io/api (\S+)`), minors[1])
	row("kube-scheduler", find("examples/judges/go.mod", `k8s.io/kubernetes (\S+)`), find("examples/judges/kubernetes-1.37.work", `k8s.io/kubernetes => k8s.io/kubernetes (\S+)`))
	newest := find("examples/judges/go.mod", `sigs.k8s.io/karpenter (\S+)`)
	row("Karpenter", find("examples/judges/karpenter-1.14.work", `sigs.k8s.io/karpenter => sigs.k8s.io/karpenter (\S+)`), newest)
	row("Karpenter's controllers, operator", newest)
	assert.Equal(t, newest, find("examples/karpenter/go.mod", `sigs.k8s.io/karpenter (\S+)`))
	assert.Equal(t, newest, find("examples/operator/go.mod", `sigs.k8s.io/karpenter (\S+)`))
	row("Kubernetes of the operator's test cluster", find("examples/operator/cluster/kubernetes/go.mod", `k8s.io/kubernetes (\S+)`))
}
