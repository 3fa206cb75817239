package ec2_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
)

// Whatever DescribeInstanceTypes answers, the result is an error or types that keep the invariants, for every family.
func FuzzDescribeInstanceTypes(f *testing.F) {
	f.Add([]byte(`{"InstanceTypes": [{"InstanceType": "m5.large", "VCpuInfo": {"DefaultVCpus": 2}, "MemoryInfo": {"SizeInMiB": 8192},
	  "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]}, "SupportedUsageClasses": ["on-demand", "spot"], "SupportedVirtualizationTypes": ["hvm"],
	  "NetworkInfo": {"MaximumNetworkInterfaces": 3, "Ipv4AddressesPerInterface": 10}}]}`), uint8(0), uint8(0))
	f.Add([]byte(`[{"InstanceType": "a.b", "VCpuInfo": {"DefaultVCpus": 1}, "MemoryInfo": {"SizeInMiB": 1}, "SupportedUsageClasses": ["spot", "spot"],
	  "ProcessorInfo": {"SupportedArchitectures": ["arm64"]}, "SupportedVirtualizationTypes": ["hvm"], "InstanceStorageInfo": {"TotalSizeInGB": 1073741824}}]`), uint8(2), uint8(255))
	region := catalogue.Region{Name: "r", Zones: []catalogue.Zone{{Name: "ra", ID: "r-az1"}, {Name: "rb", ID: "r-az2"}}}
	f.Fuzz(func(t *testing.T, data []byte, family, flags uint8) {
		live, err := describe.Read(data)
		if err != nil {
			return
		}
		settings := ec2.Settings{
			Family: ec2.Families()[int(family)%len(ec2.Families())], RAID0: flags&1 != 0, PrefixDelegation: flags&2 != 0,
			FractionalGPU: flags&4 != 0, SoftEviction: flags&8 != 0, ReservedENIs: int64(flags >> 4),
			Kubelet: ec2.Kubelet{EvictionHard: map[string]string{"memory.available": "100%"}, EvictionSoft: map[string]string{"nodefs.available": "99.9%"}},
		}
		types, err := ec2.Types(ec2.WithDescriptions(region, live), settings)
		require.NoError(t, err)
		require.NoError(t, instancetypes.Validate(types))
		for _, it := range types {
			for _, s := range it.Breakdown() {
				require.GreaterOrEqual(t, s.Capacity, int64(0), "%s %s", it.Name, s.Resource)
				require.GreaterOrEqual(t, s.Allocatable, int64(0), "%s %s", it.Name, s.Resource)
				require.LessOrEqual(t, s.Allocatable, s.Capacity, "%s %s", it.Name, s.Resource)
			}
		}
	})
}
