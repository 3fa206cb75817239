package controller

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// described are the labels of each of the operator's own metrics.
func described(t *testing.T) map[string][]string {
	t.Helper()
	collector, ok := metrics.Registry.(prometheus.Collector)
	require.True(t, ok)
	ch := make(chan *prometheus.Desc)
	go func() {
		collector.Describe(ch)
		close(ch)
	}()
	out := map[string][]string{}
	for d := range ch {
		m := regexp.MustCompile(`fqName: "((?:joinery|karpenter)_[^"]*)".*variableLabels: \{([^}]*)\}`).FindStringSubmatch(d.String())
		if m != nil {
			out[m[1]] = strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' })
		}
	}
	return out
}

// The board of deploy/ asks for metrics and labels that there are, and every metric is on it.
func TestDashboardAsksForWhatThereIs(t *testing.T) {
	data, err := os.ReadFile("../deploy/dashboard.json")
	require.NoError(t, err)
	var board struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr         string `json:"expr"`
				LegendFormat string `json:"legendFormat"`
			} `json:"targets"`
		} `json:"panels"`
	}
	require.NoError(t, json.Unmarshal(data, &board))
	known, asked := described(t), map[string]bool{}
	require.NotEmpty(t, known)
	for _, p := range board.Panels {
		require.NotEmpty(t, p.Targets, p.Title)
		for _, q := range p.Targets {
			names := regexp.MustCompile(`(?:joinery|karpenter)_\w+`).FindAllString(q.Expr, -1)
			require.NotEmpty(t, names, q.Expr)
			var labels []string
			for _, name := range names {
				name = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
				require.Contains(t, known, name, q.Expr)
				asked[name] = true
				labels = append(labels, known[name]...)
			}
			for _, m := range regexp.MustCompile(`by \(([^)]*)\)|\{(\w+)=`).FindAllStringSubmatch(q.Expr, -1) {
				for label := range strings.SplitSeq(m[1]+m[2], ", ") {
					assert.True(t, label == "le" || slices.Contains(labels, label), "%s: label %q", q.Expr, label)
				}
			}
			for _, m := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(q.LegendFormat, -1) {
				assert.Contains(t, labels, m[1], q.LegendFormat)
			}
		}
	}
	for name := range known {
		assert.True(t, asked[name], "no panel shows %s", name)
	}
}
