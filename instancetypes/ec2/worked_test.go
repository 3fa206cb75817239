package ec2_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// worked are figures of the AWS provider's published reference: allocatable with defaults, and memory (MiB) of a family
// that reserves for 110 pods.
func worked() map[string]struct{ pods, kubeCPU, kubeMemory, capacityMemory, cpu, memory, memory110 int64 } {
	return map[string]struct{ pods, kubeCPU, kubeMemory, capacityMemory, cpu, memory, memory110 int64 }{
		"t3.nano":          {4, 70, 299, 473, 1930, 74, -1092},
		"t3.small":         {11, 70, 376, 1894, 1930, 1418, 329},
		"t3.medium":        {17, 70, 442, 3788, 1930, 3246, 2223},
		"t4g.small":        {11, 70, 376, 1835, 1930, 1359, 270},
		"t4g.medium":       {17, 70, 442, 3729, 1930, 3187, 2164},
		"a1.medium":        {8, 60, 343, 1835, 940, 1392, 270},
		"m6g.medium":       {8, 60, 343, 3729, 940, 3286, 2164},
		"m5.large":         {29, 70, 574, 7577, 1930, 6903, 6012},
		"m5.xlarge":        {58, 80, 893, 15155, 3920, 14162, 13590},
		"m5.2xlarge":       {58, 90, 893, 30310, 7910, 29317, 28745},
		"m5.4xlarge":       {234, 110, 2829, 60620, 15890, 57691, 59055},
		"m5.metal":         {737, 310, 8362, 363724, 95690, 355262, 362159},
		"m7g.xlarge":       {58, 80, 893, 15096, 3920, 14103, 13531},
		"m7i-flex.large":   {29, 70, 574, 7577, 1930, 6903, 6012},
		"c5.large":         {29, 70, 574, 3788, 1930, 3114, 2223},
		"c6g.large":        {29, 70, 574, 3729, 1930, 3055, 2164},
		"c7g.16xlarge":     {737, 230, 8362, 121182, 63770, 112720, 119617},
		"c6a.48xlarge":     {737, 550, 8362, 363724, 191450, 355262, 362159},
		"r5.large":         {29, 70, 574, 15155, 1930, 14481, 13590},
		"r6g.12xlarge":     {234, 190, 2829, 363665, 47810, 360736, 362100},
		"i3.large":         {29, 70, 574, 14444, 1930, 13770, 12879},
		"i4i.xlarge":       {58, 80, 893, 30310, 3920, 29317, 28745},
		"g4dn.xlarge":      {29, 80, 574, 15155, 3920, 14481, 13590},
		"g4dn.8xlarge":     {58, 150, 893, 121241, 31850, 120248, 119676},
		"g4ad.16xlarge":    {234, 230, 2829, 242483, 63770, 239554, 240918},
		"g5.12xlarge":      {737, 190, 8362, 181862, 47810, 173400, 180297},
		"p4d.24xlarge":     {737, 310, 8362, 1091174, 95690, 1082712, 1089609},
		"p5.48xlarge":      {100, 550, 1355, 1939865, 191450, 1938410, 1938300},
		"inf2.xlarge":      {58, 80, 893, 15155, 3920, 14162, 13590},
		"inf2.24xlarge":    {737, 310, 8362, 363724, 95690, 355262, 362159},
		"trn1.32xlarge":    {247, 390, 2972, 484966, 127610, 481894, 483401},
		"m6idn.32xlarge":   {394, 390, 4589, 484966, 127610, 480277, 483401},
		"u-6tb1.112xlarge": {737, 1190, 8362, 5819596, 446810, 5811134, 5818031},
	}
}

func TestWorkedExamples(t *testing.T) {
	byName := map[string]instancetypes.InstanceType{}
	for _, region := range []string{"us-east-1", "us-west-2"} {
		types, err := ec2.Catalogue(region)
		require.NoError(t, err)
		for _, it := range types {
			byName[it.Name] = it
		}
	}
	r, err := catalogue.Load("us-east-1")
	require.NoError(t, err)
	limit := int32(110)
	bottlerocket, err := ec2.Types(r, ec2.Settings{Family: ec2.Bottlerocket, Kubelet: ec2.Kubelet{MaxPods: &limit}})
	require.NoError(t, err)
	at110 := map[string]instancetypes.InstanceType{}
	for _, it := range bottlerocket {
		at110[it.Name] = it
	}
	for name, want := range worked() {
		it, ok := byName[name]
		if !assert.True(t, ok, name) {
			continue
		}
		steps := map[corev1.ResourceName]instancetypes.Step{}
		for _, s := range it.Breakdown() {
			steps[s.Resource] = s
		}
		memory, cpu := steps[corev1.ResourceMemory], steps[corev1.ResourceCPU]
		assert.Equal(t, want.pods, steps[corev1.ResourcePods].Allocatable, "%s pods", name)
		assert.Equal(t, want.kubeCPU, cpu.KubeReserved, "%s kube-reserved cpu", name)
		assert.Equal(t, want.cpu, cpu.Allocatable, "%s cpu", name)
		assert.Equal(t, want.kubeMemory<<20, memory.KubeReserved, "%s kube-reserved memory", name)
		assert.Equal(t, want.capacityMemory<<20, memory.Capacity, "%s memory capacity", name)
		assert.Equal(t, want.memory<<20, memory.Allocatable, "%s memory", name)
		assert.Equal(t, int64(17<<30), steps[corev1.ResourceEphemeralStorage].Allocatable, "%s ephemeral storage", name)
		if other, ok := at110[name]; assert.True(t, ok, name) {
			allocatable := other.Allocatable()[corev1.ResourceMemory]
			assert.Equal(t, max(0, want.memory110)<<20, resources.Capacity(corev1.ResourceMemory, allocatable), "%s memory for 110 pods", name)
		}
	}
}
