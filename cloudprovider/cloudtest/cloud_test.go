package cloudtest_test

import (
	"context"
	"sync"
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

func offering(zone, capacityType string) requirements.Set {
	return requirements.MustOf(
		requirements.In(corev1.LabelTopologyZone, zone),
		requirements.In(instancetypes.LabelCapacityType, capacityType),
	)
}

func catalogue() []instancetypes.InstanceType {
	var types []instancetypes.InstanceType
	for i, name := range []string{"small", "large"} {
		cores := int64(2 << i)
		types = append(types, instancetypes.InstanceType{
			Name:         name,
			Requirements: requirements.MustOf(requirements.In(corev1.LabelInstanceTypeStable, name), requirements.In(corev1.LabelArchStable, "amd64"), requirements.In(corev1.LabelOSStable, "linux")),
			Capacity: corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewQuantity(cores, resource.DecimalSI),
				corev1.ResourceMemory: *resource.NewQuantity(cores<<32, resource.BinarySI),
			},
			Overhead: instancetypes.Overhead{KubeReserved: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
			Offerings: []instancetypes.Offering{
				{Requirements: offering("a", "on-demand"), Price: 0.05 * float64(cores), Available: true},
				{Requirements: offering("b", "on-demand"), Price: 0.06 * float64(cores), Available: true},
			},
		})
	}
	return types
}

// What a broken double must know of the cloud that it is wrapped around: the machine that was never made, whether it is alive, and
// whether a reply is to be lost, or that to which reading request.
const foreigner = "memcloud://foreign"

var foreigners, losing, lostReads sync.Map // by cloud

// obstacles are what keeps a cloud from launching: the errors that a new claim gets, by obstacle.
var obstacles sync.Map

type obstacle struct {
	cloud *memcloud.Cloud
	code  error
}

// provider is a provider with everything optional, as memcloud is.
type provider interface {
	cloudprovider.Provider
	cloudprovider.BatchCreator
	cloudprovider.RepairAdviser
	cloudprovider.Rebooter
	interruption.Source
}

func obstruct(cloud *memcloud.Cloud, code error) (restore func()) {
	obstacles.Store(obstacle{cloud, code}, true)
	return func() { obstacles.Delete(obstacle{cloud, code}) }
}

// harness puts something between the kit and a new memcloud.
func harness(t *testing.T, config memcloud.Config, wrap func(*memcloud.Cloud) cloudprovider.Provider) cloudtest.Harness {
	t.Helper()
	config.Types = catalogue()
	cloud, err := memcloud.New(config)
	require.NoError(t, err)
	alive := true
	return cloudtest.Harness{
		Provider: wrap(cloud),
		Reopen:   func(context.Context) (cloudprovider.Provider, error) { return wrap(cloud), nil },
		Foreign: func(context.Context) (string, func(context.Context) (bool, error), error) {
			foreigners.Store(cloud, &alive)
			return foreigner, func(context.Context) (bool, error) { return alive, nil }, nil
		},
		LoseReply: func(context.Context) (func(), error) {
			losing.Store(cloud, true)
			return func() { losing.Delete(cloud) }, nil
		},
		LoseRead: func(_ context.Context, n int) (func(), error) {
			lostReads.Store(cloud, n)
			return func() { lostReads.Delete(cloud) }, nil
		},
		Reboots: func(_ context.Context, id string) (int, error) { return cloud.Reboots(id), nil },
		Prefix:  "test",
		Now:     cloud.Clock().Now,
		Settle:  func(context.Context) error { cloud.Settle(); return nil },
		Exhaust: func(_ context.Context, c cloudprovider.Candidate) (func(), error) {
			err := cloud.SetCapacity(c.Type, c.Offering, 0)
			remove := obstruct(cloud, cloudprovider.ErrInsufficientCapacity)
			return func() { remove(); _ = cloud.SetCapacity(c.Type, c.Offering, -1) }, err
		},
		Block: func(context.Context) (func(), error) {
			cloud.SetQuota(memcloud.Quota{Name: "all nodes", Limit: 0})
			remove := obstruct(cloud, cloudprovider.ErrQuota)
			return func() { remove(); cloud.SetQuota(memcloud.Quota{Name: "all nodes", Limit: 1 << 40}) }, nil
		},
		Withdraw: func(context.Context, cloudprovider.Candidate) (func(), error) { // a memcloud sells for ever; only the doubles see this
			return obstruct(cloud, cloudprovider.ErrInvalidSpec), nil
		},
		Interrupt: func(_ context.Context, id string) error {
			return cloud.Interrupt(id, interruption.SpotInterrupted, 2*time.Minute)
		},
	}
}
