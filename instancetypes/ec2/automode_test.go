package ec2_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/label"
)

func TestAutoMode(t *testing.T) {
	region, err := catalogue.Load("eu-central-1")
	require.NoError(t, err)
	plain, err := ec2.Types(region, ec2.AutoSettings(ec2.Settings{Family: ec2.Bottlerocket}))
	require.NoError(t, err)
	types := ec2.AutoMode(plain)
	assert.Less(t, len(types), len(plain))
	for _, it := range types {
		for key := range it.Requirements.All() {
			assert.False(t, label.Keys().Contains(key.Key()), "%s: %s", it.Name, key)
		}
		kind, ok := it.Requirements.Get(ec2.LabelComputeType).Single()
		assert.True(t, ok && kind == "auto", it.Name)
		cpu, pods := it.Capacity[corev1.ResourceCPU], it.Capacity[corev1.ResourcePods]
		assert.Greater(t, cpu.Value(), int64(1), it.Name)
		assert.LessOrEqual(t, pods.Value(), int64(110), it.Name)
		assert.Contains(t, it.Capacity, ec2.ResourceAutoEBSVolumes)
		assert.NotContains(t, it.Capacity, ec2.ResourceEBSVolumes)
	}
	for _, it := range plain { // what was given is as it was
		assert.Contains(t, it.Capacity, ec2.ResourceEBSVolumes, it.Name)
	}
}

func ExampleAutoMode() {
	region, _ := catalogue.Load("us-east-1")
	types, _ := ec2.Types(region, ec2.AutoSettings(ec2.Settings{}))
	for _, t := range ec2.AutoMode(types) {
		if t.Name == "r7g.xlarge" {
			fmt.Println(t.Requirements.Get("eks.amazonaws.com/instance-family"), t.Requirements.Get(ec2.LabelComputeType))
		}
	}
	// Output: eks.amazonaws.com/instance-family in (r7g) eks.amazonaws.com/compute-type in (auto)
}
