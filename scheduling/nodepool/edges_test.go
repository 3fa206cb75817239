package nodepool_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// TestEdges has what is just allowed, or just not.
func TestEdges(t *testing.T) {
	v1 := func(spec string) string {
		return `{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"a","managedFields":[{"later":1}]},"spec":` + spec + `,"status":{"later":1}}`
	}
	v1alpha5 := func(spec string) string {
		return `{"apiVersion":"karpenter.sh/v1alpha5","kind":"Provisioner","metadata":{"name":"a","managedFields":[{"later":1}]},"spec":` + spec + `,"status":[]}`
	}
	requirement := func(text string) string { return v1(`{"template":{"spec":{"requirements":[` + text + `]}}}`) }
	many := strings.TrimSuffix(strings.Repeat(`{"key":"a","operator":"Exists"},`, 100), ",")
	budgets := func(n int) string {
		return v1(`{"disruption":{"budgets":[` + strings.TrimSuffix(strings.Repeat(`{"nodes":"1"},`, n), ",") + `]}}`)
	}
	for text, ok := range map[string]bool{
		v1(`{"weight":1}`):                                                                                  true,
		v1(`{"weight":100}`):                                                                                true,
		v1(`{"weight":0}`):                                                                                  false,
		v1(`{"replicas":0}`):                                                                                true,
		v1(`{"limits":{}}`):                                                                                 true,
		v1(`{"limits":{"cpu":0}}`):                                                                          true,
		v1(`{"replicas":1,"limits":{"nodes":1}}`):                                                           true,
		v1(`{"replicas":1,"limits":{"nodes":1,"cpu":1}}`):                                                   false,
		v1(`{"limits":{"gpu":1}}`):                                                                          false,
		v1(`{"limits":{"example.com/cpus":1,"attachable":1}}`):                                              true,
		requirement(many):                                                                                   true,
		requirement(`{"key":"a","operator":"Exists","minValues":50}`):                                       true,
		requirement(`{"key":"a","operator":"Exists","minValues":1}`):                                        true,
		requirement(`{"key":"a","operator":"Exists","minValues":0}`):                                        false,
		requirement(`{"key":"a","operator":"In","values":["x","y"],"minValues":2}`):                         true,
		requirement(`{"key":"a","operator":"Gt","values":["0"]}`):                                           true,
		requirement(`{"key":"a","operator":"Lt","values":["0"]}`):                                           false, // nothing is less
		requirement(`{"key":"kubernetes.io/hostname","operator":"Exists"}`):                                 false,
		requirement(`{"key":"example.karpenter.sh/a","operator":"Exists"}`):                                 false,
		requirement(`{"key":"notkarpenter.sh/a","operator":"Exists"}`):                                      true,
		requirement(`{"key":"node-role.kubernetes.io/a","operator":"Exists"}`):                              true,
		requirement(`{"key":"karpenter.sh/capacity-type","operator":"Exists"}`):                             true,
		requirement(`{"key":"karpenter.sh/capacity-type","operator":"In","values":["spot"],"minValues":1}`): true,
		requirement(`{"key":"a","operator":"In","values":["x"]},{"key":"a","operator":"DoesNotExist"}`):     false,
		requirement(`{"key":"a","operator":"NotIn","values":["x"]},{"key":"a","operator":"DoesNotExist"}`):  true,
		budgets(50): true,
		budgets(51): false,
		v1(`{"disruption":{"budgets":[{"nodes":"100%"},{"nodes":"0%"},{"nodes":"0"}]}}`):                                                true,
		v1(`{"disruption":{"budgets":[{"nodes":"1","schedule":"* * * * *","duration":"1m"}]}}`):                                         true,
		v1(`{"disruption":{"budgets":[{"nodes":"1","schedule":"* * * * *","duration":"0s"}]}}`):                                         false,
		v1(`{"disruption":{"budgets":[{"nodes":"1","schedule":"* * * * *","duration":"-1h"}]}}`):                                        false,
		v1(`{"disruption":{"consolidateAfter":"9999999999h"}}`):                                                                         false,
		v1(`{"disruption":{"consolidateAfter":"1h30m5s"}}`):                                                                             true,
		v1(`{"disruption":{"consolidateAfter":"1.5h"}}`):                                                                                false,
		v1alpha5(`{"requirements":[{"key":"kops.k8s.io/a","operator":"Exists"},{"key":"x.node.kubernetes.io/a","operator":"Exists"}]}`): true,
		v1alpha5(`{"requirements":[{"key":"k8s.io/a","operator":"Exists"}]}`):                                                           false,
		v1alpha5(`{"requirements":[{"key":"karpenter.k8s.aws/a","operator":"Exists"}]}`):                                                true,
		v1(`{"disruption":{"budgets":[{"nodes":"1","schedule":"* * * * *","duration":"0m"}]}}`):                                         true,
		v1(`{"disruption":{"budgets":[{"nodes":"1","schedule":"* * * * *","duration":"8h0m0s"}]}}`):                                     true,
		v1(`{"disruption":{"budgets":[{"nodes":"1","schedule":"* * * * *","duration":"1m1h"}]}}`):                                       false,
		v1alpha5(`{"requirements":[{"key":"a","operator":"Exists","minValues":1}]}`):                                                    false,
		v1alpha5(`{"ttlSecondsAfterEmpty":9223372037}`):                                                                                 false,
		v1alpha5(`{"provider":null,"providerRef":{"name":"a"}}`):                                                                        true,
		v1alpha5(`{"kubeletConfiguration":{"imageGCHighThresholdPercent":5,"imageGCLowThresholdPercent":5}}`):                           false,
		v1alpha5(`{"kubeletConfiguration":{"evictionHard":{"memory.available":"100%","pid.available":"0%"}}}`):                          true,
		v1alpha5(`{"kubeletConfiguration":{"evictionHard":{"memory.available":"NaN%"}}}`):                                               false,
		v1alpha5(`{"kubeletConfiguration":{"evictionHard":{"memory.available":"-1Gi"}}}`):                                               false,
		v1alpha5(`{"kubeletConfiguration":{"evictionHard":{"memory.available":"much"}}}`):                                               false,
		v1alpha5(`{"kubeletConfiguration":{"evictionSoftGracePeriod":{"memory.available":"1m"}}}`):                                      false,
	} {
		_, err := nodepool.Decode([]byte(text))
		if ok {
			assert.NoError(t, err, text)
		} else {
			assert.Error(t, err, text)
		}
	}
}

// TestNoSecondComplaint is silent on fields that could not be decoded, and on what lies below and above them.
func TestNoSecondComplaint(t *testing.T) {
	_, err := nodepool.Decode([]byte(`{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":5},"spec":{"template":{"spec":{
		"taints":[{"key":1,"effect":2}],"requirements":[{"key":"a","operator":3}],"nodeClassRef":{"name":["x"],"group":"g","kind":"k"}}},"weight":"1"}}`))
	require.Error(t, err)
	var paths []string
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		paths = append(paths, e.(*nodepool.FieldError).Path)
	}
	assert.Equal(t, []string{
		"metadata.name", "spec.template.spec.taints[0].key", "spec.template.spec.taints[0].effect", "spec.template.spec.requirements[0].operator",
		"spec.template.spec.nodeClassRef.name", "spec.weight",
	}, paths)
}
