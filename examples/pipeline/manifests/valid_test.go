package manifests_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
)

// describe writes a snapshot as a person would check it: counts, names, what the pools say, notes.
func describe(s *manifests.Snapshot) string {
	var b strings.Builder
	list := func(what string, names []string) {
		if len(names) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", what, strings.Join(names, ", "))
		}
	}
	var pods []string
	for p := range s.AllPods() {
		name := p.Namespace + "/" + p.Name
		if p.Spec.NodeName != "" {
			name += " on " + p.Spec.NodeName
		}
		pods = append(pods, name)
	}
	list("pods", pods)
	list("daemon sets", names(s.DaemonSets))
	list("nodes", names(s.Nodes))
	list("namespaces", names(s.Namespaces))
	list("volumes", names(s.PersistentVolumes))
	list("claims", names(s.PersistentVolumeClaims))
	list("storage classes", names(s.StorageClasses))
	list("csi", append(names(s.CSINodes), names(s.CSIDrivers)...))
	list("budgets", names(s.PodDisruptionBudgets))
	list("priority classes", names(s.PriorityClasses))
	list("runtime classes", names(s.RuntimeClasses))
	list("limit ranges", names(s.LimitRanges))
	for _, p := range s.NodePools {
		fmt.Fprintf(&b, "pool %s (%s): %s\n", p.Name, p.APIVersion, p.NodeRequirements())
	}
	for _, c := range s.NodeClaims {
		fmt.Fprintf(&b, "claim %s of %s: %s\n", c.Name, c.Pool, c.Requirements)
	}
	for _, o := range s.NodeOverlays {
		fmt.Fprintf(&b, "overlay %s: 1 becomes %g; %s\n", o.Name, o.Adjust(1), o.Requirements)
	}
	for _, c := range s.NodeClasses {
		fmt.Fprintf(&b, "class %s %s at %s, %d bytes\n", c.Kind, c.Name, c.Position, len(c.Raw))
	}
	if s.Settings != nil {
		fmt.Fprintf(&b, "settings: %v\n", s.Settings)
	}
	for _, note := range s.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	return b.String()
}

func names[T interface {
	GetName() string
	GetNamespace() string
}](objects []T) []string {
	var out []string
	for _, o := range objects {
		out = append(out, strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"))
	}
	return out
}

func TestValid(t *testing.T) {
	files, err := filepath.Glob("testdata/valid/*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 30)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			body, want := wanted(t, file)
			s, err := manifests.Parse([]manifests.File{{Name: "x.yaml", Data: body}}, nil)
			require.NoError(t, err)
			settle(t, file, body, want, describe(s))
			assert.Equal(t, s.CountPods(), len(pods(s)))
			for _, w := range s.Workloads {
				assert.Positive(t, w.Len())
			}
		})
	}
}

func pods(s *manifests.Snapshot) []*corev1.Pod {
	var all []*corev1.Pod
	for p := range s.AllPods() {
		all = append(all, p)
	}
	return all
}

// TestLineEndings reads every valid file as editors on other systems save it.
func TestLineEndings(t *testing.T) {
	files, err := filepath.Glob("testdata/valid/*.yaml")
	require.NoError(t, err)
	for _, file := range files {
		body, want := wanted(t, file)
		crlf := append([]byte("\xef\xbb\xbf"), bytes.ReplaceAll(body, []byte("\n"), []byte("\r\n"))...)
		s, err := manifests.Parse([]manifests.File{{Name: "x.yaml", Data: crlf}}, nil)
		require.NoError(t, err, file)
		assert.Equal(t, want, describe(s), file)
	}
}
