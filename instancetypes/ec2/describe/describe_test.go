package describe_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
)

// one is what EC2 answers for one type, shortened to what is read.
const one = `{"InstanceType": "g6f.large", "SupportedUsageClasses": ["on-demand", "spot"], "SupportedVirtualizationTypes": ["hvm"],
  "ProcessorInfo": {"Manufacturer": "AMD", "SupportedArchitectures": ["x86_64"], "SustainedClockSpeedInGhz": 3.4},
  "VCpuInfo": {"DefaultVCpus": 2}, "MemoryInfo": {"SizeInMiB": 8192}, "Hypervisor": "nitro", "NitroEnclavesSupport": "supported",
  "NetworkInfo": {"DefaultNetworkCardIndex": 1, "MaximumNetworkCards": 2, "MaximumNetworkInterfaces": 7, "Ipv4AddressesPerInterface": 10,
    "NetworkCards": [{"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 5}, {"NetworkCardIndex": 1, "MaximumNetworkInterfaces": 2}],
    "EncryptionInTransitSupported": true, "EfaInfo": {"MaximumEfaInterfaces": 1}},
  "EbsInfo": {"EbsOptimizedSupport": "default", "EbsOptimizedInfo": {"MaximumBandwidthInMbps": 5000}, "MaximumEbsAttachments": 32, "AttachmentLimitType": "dedicated"},
  "InstanceStorageInfo": {"TotalSizeInGB": 100, "NvmeSupport": "required"},
  "GpuInfo": {"Gpus": [{"Count": 0, "GpuPartitionSize": 0.125, "LogicalGpuCount": 1, "Manufacturer": "NVIDIA", "MemoryInfo": {"SizeInMiB": 2861}, "Name": "L4"}]}}`

func TestRead(t *testing.T) {
	types, err := describe.Read([]byte(`{"InstanceTypes": [` + one + `]}`))
	require.NoError(t, err)
	require.Len(t, types, 1)
	assert.Equal(t, describe.Description{
		Name: "g6f.large", Architectures: []string{"x86_64"}, Virtualizations: []string{"hvm"}, UsageClasses: []string{"on-demand", "spot"},
		VCPUs: 2, MemoryMiB: 8192, CPUManufacturer: "AMD", ClockMHz: 3400, Hypervisor: "nitro", NitroEnclaves: true,
		MaxInterfaces: 7, DefaultCardInterfaces: 2, NetworkCards: 2, IPv4PerInterface: 10, EFAInterfaces: 1, EncryptionInTransit: true,
		EBSMbps: 5000, EBSAttachments: 32, LocalStorageGB: 100, LocalNVMe: true,
		GPUs: []describe.GPU{{Name: "L4", Manufacturer: "NVIDIA", MemoryMiB: 2861, Share: 125, Logical: 1}},
	}, types[0])
}

func TestReadForms(t *testing.T) {
	other := strings.Replace(one, "g6f.large", "a1.large", 1)
	for name, in := range map[string]string{
		"one page":  `{"InstanceTypes": [` + one + `,` + other + `], "NextToken": "x"}`,
		"two pages": `{"InstanceTypes": [` + one + `]} {"InstanceTypes": [` + other + `]}`,
		"a list":    `[` + one + `,` + other + `]`,
	} {
		types, err := describe.Read([]byte(in))
		require.NoError(t, err, name)
		require.Len(t, types, 2, name)
		assert.Equal(t, "a1.large", types[0].Name, "%s: sorted by name", name)
	}
	types, err := describe.Read([]byte(`{"InstanceTypes": []}`))
	require.NoError(t, err)
	assert.Empty(t, types)
}

func TestReadRefuses(t *testing.T) {
	with := func(old, with string) string { return `[` + strings.Replace(one, old, with, 1) + `]` }
	for name, c := range map[string]struct{ in, want string }{
		"nothing":           {"", "empty input"},
		"no JSON":           {"{", "describe: "},
		"something else":    {`{"Instances": []}`, `no list "InstanceTypes"`},
		"wrong type":        {with(`"SizeInMiB": 8192`, `"SizeInMiB": "8192"`), "MemoryInfo.SizeInMiB"},
		"no name":           {with("g6f.large", ""), `want a name like "m5.large"`},
		"strange name":      {with("g6f.large", "../x"), `want a name like "m5.large"`},
		"twice":             {`[` + one + `,` + one + `]`, "described twice"},
		"no memory":         {with(`"SizeInMiB": 8192`, `"SizeInMiB": 0`), "MemoryInfo.SizeInMiB: 0"},
		"negative":          {with(`"DefaultVCpus": 2`, `"DefaultVCpus": -2`), "VCpuInfo.DefaultVCpus: -2"},
		"absurd":            {with(`"SizeInMiB": 8192`, `"SizeInMiB": 9223372036854775807`), "want 1 to"},
		"no architecture":   {with(`["x86_64"]`, `[]`), "SupportedArchitectures: empty"},
		"huge clock":        {with(`3.4`, `1e300`), "SustainedClockSpeedInGhz"},
		"negative GPUs":     {with(`"Count": 0`, `"Count": -1`), "GpuInfo.Gpus[0].Count: -1"},
		"impossible share":  {with(`0.125`, `125`), "GpuPartitionSize"},
		"negative storage":  {with(`"TotalSizeInGB": 100`, `"TotalSizeInGB": -1`), "TotalSizeInGB: -1"},
		"negative adaptors": {with(`"MaximumEfaInterfaces": 1`, `"MaximumEfaInterfaces": -1`), "MaximumEfaInterfaces: -1"},
	} {
		types, err := describe.Read([]byte(c.in))
		if assert.Error(t, err, name) {
			assert.Contains(t, err.Error(), c.want, name)
		}
		assert.Nil(t, types, name)
	}
}

func ExampleRead() {
	types, err := describe.Read([]byte(`{"InstanceTypes": [{"InstanceType": "m5.large", "VCpuInfo": {"DefaultVCpus": 2},
	  "MemoryInfo": {"SizeInMiB": 8192}, "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]}}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(types[0].Name, types[0].VCPUs, types[0].MemoryMiB)
	// Output: m5.large 2 8192
}

func ExampleDescription_Validate() {
	fmt.Println(describe.Description{Name: "m5.large", Architectures: []string{"x86_64"}, VCPUs: 2}.Validate())
	// Output: MemoryInfo.SizeInMiB: 0: want 1 to 34359738368
}
