package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
)

// What is found wrong with a pool after it was read has its file and line, too, each fault in a line of its own.
func TestFaultsOfPoolsAreLocated(t *testing.T) {
	const first = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\n"
	for name, c := range map[string]struct{ text, want string }{
		"a label that is misspelt": {
			"apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: wide}\nspec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: c}, " +
				"requirements: [{key: karpenter.k8s.aws/instance-sizes, operator: In, values: [large]}]}}}\n",
			`pools.yaml:5: NodePool wide: no instance type has the label "karpenter.k8s.aws/instance-sizes"; did you mean "karpenter.k8s.aws/instance-size"?`,
		},
		"a provider that lacks fields": {
			"apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: old}\nspec: {provider: {instanceProfile: x}}\n",
			"pools.yaml:5: Provisioner old: spec.provider.subnetSelector: missing: want tags or aws-ids of subnets\n" +
				"pools.yaml:5: Provisioner old: spec.provider.securityGroupSelector: missing: want tags or aws-ids of security groups",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := manifests.Parse([]manifests.File{{Name: "pools.yaml", Data: []byte(first + c.text)}}, nil)
			require.NoError(t, err)
			market, err := pipeline.EC2Market("eu-west-1")
			require.NoError(t, err)
			_, _, err = pipeline.Snapshot(s, market)
			require.EqualError(t, err, c.want)
		})
	}
}
