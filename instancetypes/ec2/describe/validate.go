package describe

import (
	"errors"
	"fmt"
	"regexp"
)

// Upper limits far above anything sold, so that no sum or product of a few facts can overflow
// int64.
const (
	maxVCPUs     = 1_000_000
	maxMemoryMiB = 1 << 35 // 2^55 bytes
	maxCount     = 1 << 20
	maxMbps      = 1 << 40
	maxStorageGB = 1 << 24 // 1.7 x 10^16 bytes
)

// name matches the names of types: family, dot, size. The largest families include their memory:
// "u-6tb1.112xlarge".
var name = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*\.[a-z0-9][a-z0-9-]*$`)

// Validate rejects a description that cannot be of a real instance type: without name,
// architecture, processors or memory, or with negative or absurd numbers. The error joins one line
// for each field.
func (d Description) Validate() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf(field+": "+format, args...))
	}
	within := func(field string, v, low, high int64) {
		if v < low || v > high {
			bad(field, "%d: want %d to %d", v, low, high)
		}
	}
	if len(d.Name) > 63 || !name.MatchString(d.Name) {
		bad("InstanceType", `%q: want a name like "m5.large"`, d.Name)
	}
	if len(d.Architectures) == 0 {
		bad("ProcessorInfo.SupportedArchitectures", "empty: want x86_64 or arm64")
	}
	if len(d.GPUs) > 64 || len(d.Neuron) > 64 || len(d.Accelerators) > 64 {
		bad("GpuInfo, NeuronInfo, InferenceAcceleratorInfo", "more than 64 kinds of device")
	}
	within("VCpuInfo.DefaultVCpus", d.VCPUs, 1, maxVCPUs)
	within("MemoryInfo.SizeInMiB", d.MemoryMiB, 1, maxMemoryMiB)
	within("ProcessorInfo.SustainedClockSpeedInGhz x 1000", d.ClockMHz, 0, 1e9)
	within("NetworkInfo.MaximumNetworkInterfaces", d.MaxInterfaces, 0, maxCount)
	within("NetworkInfo.NetworkCards[].MaximumNetworkInterfaces", d.DefaultCardInterfaces, 0, maxCount)
	within("NetworkInfo.MaximumNetworkCards", d.NetworkCards, 0, maxCount)
	within("NetworkInfo.Ipv4AddressesPerInterface", d.IPv4PerInterface, 0, maxCount)
	within("NetworkInfo.EfaInfo.MaximumEfaInterfaces", d.EFAInterfaces, 0, maxCount)
	within("EbsInfo.MaximumEbsAttachments", d.EBSAttachments, 0, maxCount)
	within("EbsInfo.EbsOptimizedInfo.MaximumBandwidthInMbps", d.EBSMbps, 0, maxMbps)
	within("InstanceStorageInfo.TotalSizeInGB", d.LocalStorageGB, 0, maxStorageGB)
	within("network Mbps", d.NetworkMbps, 0, maxMbps)
	within("branch interfaces", d.BranchInterfaces, 0, maxCount)
	for i, g := range d.GPUs {
		at := fmt.Sprintf("GpuInfo.Gpus[%d].", i)
		within(at+"Count", g.Count, 0, maxCount)
		within(at+"LogicalGpuCount", g.Logical, 0, maxCount)
		within(at+"GpuPartitionSize x 1000", g.Share, 0, 1000)
		within(at+"MemoryInfo.SizeInMiB", g.MemoryMiB, 0, maxMemoryMiB)
	}
	for i, n := range d.Neuron {
		at := fmt.Sprintf("NeuronInfo.NeuronDevices[%d].", i)
		within(at+"Count", n.Count, 0, maxCount)
		within(at+"CoreInfo.Count", n.Cores, 0, maxCount)
		within(at+"MemoryInfo.SizeInMiB", n.MemoryMiB, 0, maxMemoryMiB)
	}
	for i, a := range d.Accelerators {
		at := fmt.Sprintf("InferenceAcceleratorInfo.Accelerators[%d].", i)
		within(at+"Count", a.Count, 0, maxCount)
		within(at+"MemoryInfo.SizeInMiB", a.MemoryMiB, 0, maxMemoryMiB)
	}
	return errors.Join(errs...)
}
