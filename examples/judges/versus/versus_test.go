package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
)

// At a small size, every pod that Karpenter places is placed by us, and kube-scheduler accepts all of ours.
func TestSmall(t *testing.T) {
	for _, f := range families() {
		t.Run(f.name, func(t *testing.T) {
			r, err := compare(t.Context(), f, 200, 1, []binpack.Effort{binpack.EffortFast, binpack.EffortDefault}, 200, time.Minute)
			require.NoError(t, err)
			require.Len(t, r.ours, 2)
			for _, ours := range r.ours {
				assert.Equal(t, 200, ours.placed)
				assert.Equal(t, 200, ours.accepted)
				assert.Positive(t, ours.nodes)
				assert.Positive(t, ours.price)
				assert.Positive(t, ours.perSecond())
			}
			assert.LessOrEqual(t, r.ours[1].price, r.ours[0].price)
			assert.Equal(t, 200, r.theirs.placed)
			assert.Positive(t, r.theirs.accepted)
			assert.Positive(t, r.theirs.nodes)
			t.Log(r.line())
		})
	}
}

func TestTheTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "VERSUS.md")
	var out, errs bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-sizes", "50,100", "-families", "deployments,diverse", "-runs", "1", "-judge", "60", "-growth", "50,100", "-o", path}, &out, &errs))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, part := range []string{"Karpenter v1.15.0", "kube-scheduler v1.36.3", "## diverse", "## deployments", "| 50 | 1 | Joinery, fast | 50 | 50 |", "| 100 | 1 | Joinery, fast | 100 | - |", "## Growth"} {
		assert.Contains(t, string(data), part)
	}
	assert.Contains(t, errs.String(), "deployments     100 pods")
	assert.Empty(t, out.String())
	for _, args := range [][]string{{"-sizes", "x"}, {"-families", "divers"}, {"-growth", "1"}, {"-sizes", "0"}, {"-runs", "0"}, {"-effort", "x"}} {
		assert.Error(t, run(t.Context(), args, &out, &errs), args)
	}
}

func TestImpatience(t *testing.T) {
	r, err := compare(t.Context(), families()[0], 300, 2, []binpack.Effort{binpack.EffortFast}, 300, time.Microsecond)
	require.NoError(t, err)
	assert.True(t, r.theirs.gaveUp)
	assert.Equal(t, 300, r.ours[0].placed)
	assert.Contains(t, document([]row{r}, nil, time.Unix(0, 0)), "| over 1µs |")
}

func TestMedian(t *testing.T) {
	assert.Equal(t, 3*time.Second, median([]time.Duration{5 * time.Second, 1 * time.Second, 3 * time.Second}))
}
