package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
)

// pools writes a file with pools that ask for these, in flow style.
func pools(t *testing.T, name string, asks ...string) string {
	t.Helper()
	text := ""
	for i, ask := range asks {
		text += fmt.Sprintf("---\n{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: p%d}, spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, %s}}}}\n", i, ask)
	}
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// A day can be run with any pool: of spot capacity that is taken away, of several architectures, of another region.
func TestAnyPool(t *testing.T) {
	family := func(name string) string {
		return "{key: karpenter.k8s.aws/instance-family, operator: In, values: [" + name + "]}"
	}
	spot := "{key: karpenter.sh/capacity-type, operator: In, values: [spot]}"
	both := "{key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}"
	seeds, apps := []string{"5", "1"}, "3"
	cases := map[string][]string{
		"spot":              {"requirements: [" + family("c6i") + ", " + spot + "]"},
		"spot or on-demand": {"requirements: [" + family("r5") + ", " + both + "]"},
		"two architectures": {"requirements: [" + family("c7g") + "]", "requirements: [" + family("r5a") + "]"},
		"spot and fallback": {"requirements: [" + family("m6a") + ", " + spot + "]", "requirements: [" + family("m7i") + "]"},
		"another region":    {"requirements: [" + family("m5") + ", {key: topology.kubernetes.io/zone, operator: In, values: [eu-west-1b]}]"},
	}
	if testing.Short() { // each day takes seconds
		seeds, apps = seeds[:1], "1"
		maps.DeleteFunc(cases, func(name string, _ []string) bool { return name != "spot and fallback" })
	}
	for name, asks := range cases {
		for _, seed := range seeds {
			out, errs, code := run(t, "--apps", apps, "--seed", seed, "--pool", pools(t, "mine.yaml", asks...))
			assert.Equal(t, inputs.ExitOK, code, "%s, seed %s: %s", name, seed, errs)
			assert.NotContains(t, out, "$0.000", name)
		}
	}
}

// A day on which pods find no place says so, and why.
func TestPoolsThatHoldNothing(t *testing.T) {
	for name, c := range map[string]struct{ ask, want string }{
		"taint":  {"taints: [{key: team, value: a, effect: NoSchedule}], requirements: [{key: karpenter.k8s.aws/instance-family, operator: In, values: [m5]}]", "team=a:NoSchedule"},
		"size":   {"requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [t3.nano]}]", "t3.nano"},
		"family": {"requirements: [{key: karpenter.k8s.aws/instance-family, operator: In, values: [m55]}]", "m55"},
	} {
		_, errs, code := run(t, "--apps", "3", "--pool", pools(t, "mine.yaml", c.ask))
		assert.Equal(t, inputs.ExitNotAll, code, name)
		assert.Contains(t, errs, "never had a place", name)
		assert.Contains(t, errs, c.want, name)
	}
	_, errs, code := run(t, "--pool", pools(t, "mine.yaml", "weight: 5"))
	assert.Equal(t, inputs.ExitInput, code)
	assert.Contains(t, errs, "mine.yaml:2", "the file is called by its name")
}
