package line_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue/internal/line"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
)

func TestTypeRoundTrip(t *testing.T) {
	full := line.Type{
		Description: describe.Description{
			Name: "x1.large", Architectures: []string{"i386", "x86_64"}, Virtualizations: []string{"hvm", "paravirtual"}, UsageClasses: []string{"on-demand"},
			VCPUs: 2, MemoryMiB: 3, CPUManufacturer: "Intel", ClockMHz: 2500, Hypervisor: "xen", BareMetal: true, Burstable: true, NitroEnclaves: true,
			MaxInterfaces: 64, DefaultCardInterfaces: 2, NetworkCards: 32, IPv4PerInterface: 50, EFAInterfaces: 4, EncryptionInTransit: true,
			NetworkMbps: 750, BranchInterfaces: 9, EBSMbps: 4750, EBSAttachments: 27, SharedAttachments: true, LocalStorageGB: 475, LocalNVMe: true,
			GPUs:         []describe.GPU{{Name: "Radeon Pro V520", Manufacturer: "AMD", Count: 4, MemoryMiB: 8192, Share: 1000, Logical: 4}, {Name: "L4", Manufacturer: "NVIDIA", MemoryMiB: 2861, Share: 125, Logical: 1}},
			Neuron:       []describe.NeuronDevice{{Name: "Inferentia2", Count: 6, Cores: 2, MemoryMiB: 32768}},
			Accelerators: []describe.Accelerator{{Name: "Qualcomm AI100", Manufacturer: "Qualcomm", Count: 8, MemoryMiB: 16000}},
		},
		Retired: true, Source: "c",
	}
	got, err := line.Decode(line.Encode(full))
	require.NoError(t, err)
	assert.Equal(t, full, got)

	plain := line.Type{Description: describe.Description{Name: "x1.small", Architectures: []string{"arm64"}, Virtualizations: []string{"hvm"}, UsageClasses: []string{"on-demand", "spot"}, VCPUs: 1, MemoryMiB: 1, NetworkCards: 1}}
	assert.Equal(t, "x1.small arch=arm64 vcpu=1 mib=1 use=on-demand,spot eni=0x0", line.Encode(plain))
	got, err = line.Decode(line.Encode(plain))
	require.NoError(t, err)
	assert.Equal(t, plain, got)
}

func TestOfferRoundTrip(t *testing.T) {
	for text, want := range map[string]line.Offer{
		"m5.large abcdf 0.096 67": {Type: "m5.large", Zones: "abcdf", Price: "0.096", Savings: 67},
		"m8i.large ab - ~62":      {Type: "m8i.large", Zones: "ab", Savings: 62, Guessed: true},
		"g7.large a 2 -":          {Type: "g7.large", Zones: "a", Price: "2", Savings: -1},
	} {
		got, err := line.DecodeOffer(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got)
		assert.Equal(t, text, line.EncodeOffer(got))
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, text := range []string{"a.b what=1", "a.b vcpu=x", "a.b eni=3", "a.b gpu=a/b", "a.b neuron=a/1/2", "a.b disk=nvme"} {
		_, err := line.Decode(text)
		assert.Error(t, err, text)
	}
	for _, text := range []string{"", "m5.large", "m5.large a 1", "m5.large a 1 x", "m5.large a 1 101", "m5.large a 1 -1"} {
		_, err := line.DecodeOffer(text)
		assert.Error(t, err, text)
	}
}
