package memcloud_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/cloudtest"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
)

// offering is "zone=..., capacity type=...".
func offering(zone, capacityType string) requirements.Set {
	return requirements.MustOf(
		requirements.In(corev1.LabelTopologyZone, zone),
		requirements.In(instancetypes.LabelCapacityType, capacityType),
	)
}

// machine is a type with a number of cores, in zones a and b, as spot for a third of the price.
func machine(name string, cores int64, price float64) instancetypes.InstanceType {
	t := instancetypes.InstanceType{
		Name:         name,
		Requirements: requirements.MustOf(requirements.In(corev1.LabelInstanceTypeStable, name), requirements.In(corev1.LabelArchStable, "amd64"), requirements.In(corev1.LabelOSStable, "linux")),
		Capacity: corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewQuantity(cores, resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(cores<<32, resource.BinarySI),
			corev1.ResourcePods:   resource.MustParse("110"),
		},
		Overhead: instancetypes.Overhead{KubeReserved: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
	}
	for i, zone := range []string{"a", "b"} {
		p := price + float64(i)/1000
		t.Offerings = append(t.Offerings,
			instancetypes.Offering{Requirements: offering(zone, "on-demand"), Price: p, Available: true},
			instancetypes.Offering{Requirements: offering(zone, "spot"), Price: p / 3, Available: true})
	}
	return t
}

func catalogue() []instancetypes.InstanceType {
	return []instancetypes.InstanceType{machine("m.small", 2, 0.1), machine("m.large", 4, 0.2), machine("c.large", 4, 0.18)}
}

func harness(t *testing.T, config memcloud.Config) cloudtest.Harness {
	t.Helper()
	config.Types = catalogue()
	cloud, err := memcloud.New(config)
	require.NoError(t, err)
	return cloudtest.Harness{
		Provider: cloud,
		Now:      cloud.Clock().Now,
		Settle:   func(context.Context) error { cloud.Settle(); return nil },
		Exhaust: func(_ context.Context, c cloudprovider.Candidate) (func(), error) {
			err := cloud.SetCapacity(c.Type, c.Offering, 0)
			return func() { _ = cloud.SetCapacity(c.Type, c.Offering, -1) }, err
		},
		Block: func(context.Context) (func(), error) {
			cloud.SetQuota(memcloud.Quota{Name: "all nodes", Limit: 0})
			return func() { cloud.SetQuota(memcloud.Quota{Name: "all nodes", Limit: 1 << 40}) }, nil
		},
		Interrupt: func(_ context.Context, id string) error {
			return cloud.Interrupt(id, interruption.SpotInterrupted, 2*time.Minute)
		},
	}
}

func configs() map[string]memcloud.Config {
	return map[string]memcloud.Config{
		"plain":    {},
		"reveals":  {Reveal: true},
		"slow":     {Latency: 3 * time.Second, Boot: 90 * time.Second, Shutdown: time.Minute},
		"eventual": {Lag: 30 * time.Second, Shutdown: 40 * time.Second, Boot: time.Minute, Seed: 7},
		"moody":    {SpotLife: 1000 * time.Hour, Seed: 3, Image: "image-1"},
	}
}

func TestConformance(t *testing.T) {
	for name, config := range configs() {
		t.Run(name, func(t *testing.T) {
			cloudtest.Run(t, func(t *testing.T) cloudtest.Harness { return harness(t, config) })
		})
	}
}

// One cloud for all cases: they clean up behind themselves.
func TestConformanceOnOneCloud(t *testing.T) {
	for name, config := range configs() {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, harness(t, config).Check(t.Context()))
			h := harness(t, config)
			if config.Lag == 0 && config.Shutdown == 0 {
				require.NoError(t, cloudtest.Check(t.Context(), h.Provider))
			}
		})
	}
}
