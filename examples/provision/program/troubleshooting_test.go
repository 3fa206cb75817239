package program

import (
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/scheduling"
)

const troubleshooting = "../../../docs/troubleshooting.md"

// Each manifest of docs/troubleshooting.md makes the message that stands below it, and every stage of refusals is there. -update writes the
// messages anew.
func TestTroubleshooting(t *testing.T) {
	doc, err := os.ReadFile(troubleshooting)
	require.NoError(t, err)
	examples := regexp.MustCompile("(?s)\n## ([^\n]+)\n.*?```yaml\n(.*?)```\n\n```text\n(.*?)```\n").FindAllSubmatchIndex(doc, -1)
	require.Greater(t, len(examples), 10)
	_, pool, _ := strings.Cut(string(doc[:examples[0][0]]), "```yaml\n")
	pool, _, _ = strings.Cut(pool, "```")
	stages, news, last := map[scheduling.Stage]bool{}, "", 0
	for _, at := range examples {
		title, manifest, want := string(doc[at[2]:at[3]]), string(doc[at[4]:at[5]]), string(doc[at[6]:at[7]])
		if !strings.Contains(manifest, "kind: NodePool") {
			manifest = pool + "---\n" + manifest
		}
		got := run(manifest, "-f", "-", "--no-timing").stdout
		_, got, _ = strings.Cut(got, " placed")
		_, got, _ = strings.Cut(got, "\n")
		got = strings.TrimSpace(got) + "\n"
		assert.Equal(t, want, got, title)
		for part := range strings.SplitSeq(title, "...") {
			assert.Contains(t, got, strings.Trim(part, " ,"), title)
		}
		news, last = news+string(doc[last:at[6]])+got, at[7]

		var report struct {
			Unschedulable []struct {
				Reasons []struct {
					Stage scheduling.Stage `json:"stage"`
				} `json:"reasons"`
			} `json:"unschedulable"`
		}
		require.NoError(t, json.Unmarshal([]byte(run(manifest, "-f", "-", "--no-timing", "--fixes", "none", "-o", "json").stdout), &report))
		for _, u := range report.Unschedulable {
			for _, r := range u.Reasons {
				stages[r.Stage] = true
			}
		}
	}
	for _, s := range []scheduling.Stage{
		scheduling.StagePod, scheduling.StageTaint, scheduling.StageRequirement, scheduling.StageResource, scheduling.StageOffering, scheduling.StageLimit,
		scheduling.StageTopology, scheduling.StageGroup,
	} {
		assert.True(t, stages[s], "no example is refused at stage %s", s)
	}
	if f := flag.Lookup("update"); f.Value.String() == "true" {
		require.NoError(t, os.WriteFile(troubleshooting, []byte(news+string(doc[last:])), 0o600))
	}
}
