package capacityquota_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/capacityquota"
)

const whole = `
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityQuota
metadata: {name: gpu-team}
spec:
  selector:
    matchLabels: {team: research}
    matchExpressions:
      - {key: karpenter.sh/capacity-type, operator: NotIn, values: [reserved]}
  limits:
    resources: {nodes: 8, cpu: "2k", memory: 32Gi, nvidia.com/gpu: "16"}
status:
  used: {resources: {nodes: 3}}
  observedGeneration: 2
  conditions: [{type: Reconciled, status: "True", reason: ReconciliationSucceeded, message: "", lastTransitionTime: "2026-06-01T00:00:00Z"}]
`

func decode(t *testing.T, text string) (capacityquota.Quota, error) {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	return capacityquota.Decode(data)
}

func TestDecode(t *testing.T) {
	q, err := decode(t, whole)
	require.NoError(t, err)
	assert.Equal(t, "gpu-team", q.Name)
	assert.Len(t, q.Limits, 4)
	assert.True(t, q.Matches(map[string]string{"team": "research"}))
	assert.False(t, q.Matches(map[string]string{"team": "research", "karpenter.sh/capacity-type": "reserved"}))

	text, err := json.Marshal(q)
	require.NoError(t, err)
	again, err := capacityquota.Decode(text)
	require.NoError(t, err)
	assert.Equal(t, q.Selector, again.Selector)
	_, err = decode(t, strings.Replace(whole, "v1beta1", "v1alpha1", 1))
	assert.NoError(t, err)
}

// What the schema of the object refuses, Decode refuses, at the field.
func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"nodes: 8", "nodes: -8", "spec.limits.resources.nodes"},
		{"32Gi", "3.67Gi", "spec.limits.resources.memory"},
		{`"2k"`, "1000m", "spec.limits.resources.cpu"},
		{`"2k"`, `"0.3"`, "spec.limits.resources.cpu"},
		{"nodes: 8", strings.Repeat("x", 64) + ": 1, nodes: 8", "64 characters"},
		{"resources: {nodes: 8, cpu: \"2k\", memory: 32Gi, nvidia.com/gpu: \"16\"}", "{}", "spec.limits.resources"},
		{"NotIn", "Near", "spec.selector"},
		{"values: [reserved]", "values: []", "spec.selector"},
		{"selector:", "selectors:", "selectors"},
		{"v1beta1", "v2", "apiVersion"},
		{"{name: gpu-team}", "{name: gpu-team, namespace: default}", "metadata.namespace"},
	} {
		_, err := decode(t, strings.Replace(whole, c.from, c.to, 1))
		require.ErrorContains(t, err, c.want, c.to)
	}
	var many []string
	for i := range 21 {
		many = append(many, fmt.Sprintf("r%d: 1", i))
	}
	_, err := decode(t, strings.Replace(whole, "nodes: 8", strings.Join(many, ", "), 1))
	require.ErrorContains(t, err, "at most 20")
	_, err = decode(t, strings.Split(whole, "  limits:")[0])
	require.ErrorContains(t, err, "spec.limits: it is missing")
}

// A selector says the same of a node's labels as of what is known of a node to come, once that is everything.
func TestMayAgreesWithMatches(t *testing.T) {
	expr := func(key string, op metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	selectors := []*metav1.LabelSelector{
		nil,
		{},
		{MatchLabels: map[string]string{"a": "1"}},
		{MatchLabels: map[string]string{"a": "1", "b": "2"}},
		expr("a", "In", "1", "2"), expr("a", "NotIn", "1"), expr("a", "Exists"), expr("a", "DoesNotExist"),
		{MatchLabels: map[string]string{"a": "1"}, MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "NotIn", Values: []string{"1"}}}},
	}
	for _, s := range selectors {
		q := capacityquota.Quota{Selector: s}
		for _, labels := range []map[string]string{{}, {"a": "1"}, {"a": "2"}, {"a": "3"}, {"b": "2"}, {"a": "1", "b": "2"}, {"a": "1", "b": "3"}} {
			assert.Equal(t, q.Matches(labels), q.May(requirements.FromLabels(labels)), "%v %v", s, labels)
		}
	}
	open := requirements.MustOf(requirements.In("a", "1", "2"))
	assert.True(t, (&capacityquota.Quota{Selector: selectors[2]}).May(open))
	assert.True(t, (&capacityquota.Quota{Selector: selectors[5]}).May(open))
	assert.False(t, (&capacityquota.Quota{Selector: selectors[7]}).May(open))
}

func ExampleDecode() {
	q, err := capacityquota.Decode([]byte(`{"apiVersion":"autoscaling.x-k8s.io/v1beta1","kind":"CapacityQuota","metadata":{"name":"spot"},
		"spec":{"selector":{"matchLabels":{"karpenter.sh/capacity-type":"spot"}},"limits":{"resources":{"cpu":"5m"}}}}`))
	fmt.Println(q.Name == "", err)
	// Output: true capacityquota: CapacityQuota spot: spec.limits.resources.cpu: 5m: want a whole number, 0 or more, without a fractional suffix such as m
}

func ExampleQuota() {
	q := capacityquota.Quota{
		Name:     "windows",
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/os": "windows"}},
		Limits:   corev1.ResourceList{capacityquota.Nodes: resource.MustParse("8")},
	}
	fmt.Println(q.Matches(map[string]string{"kubernetes.io/os": "windows"}), capacityquota.Amount(capacityquota.Nodes, nil))
	// Output: true 1
}

func ExampleFieldError() {
	e := &capacityquota.FieldError{Object: "CapacityQuota spot", Path: "spec.limits", Detail: "it is missing"}
	fmt.Println(e)
	// Output: capacityquota: CapacityQuota spot: spec.limits: it is missing
}

func ExampleBudget() {
	b := capacityquota.Budget{Quota: "gpu-team", Resource: capacityquota.Nodes, Max: 8, Left: 3}
	fmt.Println(b.Text(3))
	// Output: quota "gpu-team": 8 of 8 nodes
}

func ExampleSet() {
	all := capacityquota.Compile([]capacityquota.Quota{{Name: "all", Limits: corev1.ResourceList{"nodes": resource.MustParse("8"), "cpu": resource.MustParse("3")}}})
	node := func(int) (map[string]string, corev1.ResourceList) {
		return nil, corev1.ResourceList{"cpu": resource.MustParse("2")}
	}
	for _, b := range all.Budgets(2, node) {
		fmt.Println(b.Quota, b.Resource, b.Left, b.Over)
	}
	fmt.Println(all.Of(nil, corev1.ResourceList{"cpu": resource.MustParse("500m")}))
	// Output:
	// all cpu 0 1000
	// all nodes 6 0
	// [500 1]
}

func ExampleCounter() {
	spot := capacityquota.Compile([]capacityquota.Quota{{
		Name: "spot", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"capacity": "spot"}}, Limits: corev1.ResourceList{"nodes": resource.MustParse("8")},
	}})
	c := spot.Counter()
	fmt.Println(c.Of(requirements.MustParse("capacity in (spot, on-demand)"), nil), c.Of(requirements.MustParse("capacity=on-demand"), nil))
	// Output: [1] []
}

// A misspelt resource would limit nothing. Pools check their limits in the same way.
func TestMisspeltLimits(t *testing.T) {
	for name, meant := range map[string]string{"cpus": "cpu", "node": "nodes", "gpu": "nvidia.com/gpu", "Memory": "memory"} {
		_, err := decode(t, strings.Replace(whole, "nodes: 8", name+": 8", 1))
		assert.ErrorContains(t, err, fmt.Sprintf("spec.limits.resources.%s: unknown resource (did you mean %q?)", name, meant))
	}
	_, err := decode(t, strings.Replace(whole, "nodes: 8", "example.com/cpus: 8, pods: 100", 1))
	assert.NoError(t, err)
}
