package blueprints_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/ruletest"
)

// A plan with the pools of a blueprint keeps its rules. With one pool that sells everything, it does not: the rules are about the pools.
func TestBlueprints(t *testing.T) {
	folders, err := os.ReadDir(".")
	require.NoError(t, err)
	count := 0
	for _, f := range folders {
		if !f.IsDir() {
			continue
		}
		count++
		t.Run(f.Name(), func(t *testing.T) {
			t.Parallel()
			rules, err := ruletest.ReadFile(f.Name() + "/rules.yaml")
			require.NoError(t, err)
			ruletest.Scenario{}.Files(f.Name()+"/pools.yaml", f.Name()+"/workloads.yaml").Plan(t).Keep(rules...)
			if testing.Short() {
				return
			}
			plain, err := ruletest.New(ruletest.Pool("default")).Files(f.Name() + "/workloads.yaml").Solve()
			require.NoError(t, err)
			broken := 0
			for _, r := range plain.Check(rules...) {
				if !r.Holds() {
					broken++
				}
			}
			assert.Positive(t, broken, "no rule needs the pools")
		})
	}
	assert.Equal(t, 7, count)
}
