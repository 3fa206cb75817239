package ec2

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// Extended resources of EC2 nodes.
const (
	ResourceNVIDIA      corev1.ResourceName = "nvidia.com/gpu"
	ResourceAMD         corev1.ResourceName = "amd.com/gpu"
	ResourceGaudi       corev1.ResourceName = "habana.ai/gaudi"
	ResourceNeuron      corev1.ResourceName = "aws.amazon.com/neuron"
	ResourceNeuronCore  corev1.ResourceName = "aws.amazon.com/neuroncore"
	ResourceEFA         corev1.ResourceName = "vpc.amazonaws.com/efa"
	ResourcePodENI      corev1.ResourceName = "vpc.amazonaws.com/pod-eni"
	ResourcePrivateIPv4 corev1.ResourceName = "vpc.amazonaws.com/PrivateIPv4Address"
)

// capacity returns the whole machine, without resources that it does not have.
func (c compiled) capacity(d describe.Description) corev1.ResourceList {
	out := make(corev1.ResourceList, 8)
	put := func(name corev1.ResourceName, count int64) { out[name] = resources.Quantity(name, count) }
	some := func(name corev1.ResourceName, count int64) {
		if count > 0 {
			put(name, count)
		}
	}
	put(corev1.ResourceCPU, d.VCPUs*1000)
	put(corev1.ResourceMemory, c.memoryMiB(d)<<20)
	put(corev1.ResourceEphemeralStorage, c.ephemeralBytes(d))
	put(corev1.ResourcePods, c.pods(d))
	var nvidia, amd, gaudi int64
	for _, g := range d.GPUs {
		switch g.Manufacturer {
		case "NVIDIA":
			nvidia += g.Count
			if c.FractionalGPU && g.Count == 0 {
				nvidia += g.Logical
			}
		case "AMD":
			amd += g.Count
		case "Habana":
			gaudi += g.Count
		}
	}
	some(ResourceNVIDIA, nvidia)
	some(ResourceAMD, amd)
	some(ResourceGaudi, gaudi)
	var neuron int64
	for _, n := range d.Neuron {
		neuron += n.Count
	}
	some(ResourceNeuron, neuron)
	if len(d.Neuron) > 0 {
		some(ResourceNeuronCore, d.Neuron[0].Count*d.Neuron[0].Cores)
	}
	if c.EFAOnly > 0 {
		some(ResourceEFA, c.EFAOnly)
	} else {
		some(ResourceEFA, d.EFAInterfaces)
	}
	if !c.NoPodENI {
		some(ResourcePodENI, d.BranchInterfaces)
	}
	if c.windowsBuild != "" {
		some(ResourcePrivateIPv4, d.IPv4PerInterface-1)
	}
	put(ResourceEBSVolumes, c.volumes(d))
	return out
}

// memoryMiB returns the memory that the operating system sees. Graviton keeps 64 MiB for itself,
// and the hypervisor takes a share of the rest.
func (c compiled) memoryMiB(d describe.Description) int64 {
	mib := d.MemoryMiB
	if d.Architectures[0] == "arm64" {
		mib = max(0, mib-64)
	}
	return mib - min(max(c.VMMemory(d, mib), 0), mib)
}

// ephemeralBytes returns the size of the disk that pods write to, by the first rule that applies.
func (c compiled) ephemeralBytes(d describe.Description) int64 {
	if c.RAID0 && d.LocalStorageGB > 0 {
		return d.LocalStorageGB * 1e9
	}
	for _, b := range c.BlockDevices {
		if b.Root && b.Bytes > 0 {
			return b.Bytes
		}
	}
	if c.Family == Custom {
		// The image decides which disk is which. The last disk given is the best guess.
		if n := len(c.BlockDevices); n > 0 && c.BlockDevices[n-1].Bytes > 0 {
			return c.BlockDevices[n-1].Bytes
		}
		return c.deviceBytes
	}
	for _, b := range c.BlockDevices {
		if b.Device == c.device && b.Bytes > 0 {
			return b.Bytes
		}
	}
	return c.deviceBytes
}

// pods returns how many pods the kubelet accepts.
func (c compiled) pods(d describe.Description) int64 {
	var n int64
	switch {
	case c.Kubelet.MaxPods != nil:
		n = int64(*c.Kubelet.MaxPods)
	case !c.eniDensity || c.NoENIDensity:
		n = 110
	default:
		n = interfacePods(d, c.ReservedENIs+c.EFAOnlyFirstCard, c.PrefixDelegation)
	}
	if per := c.Kubelet.PodsPerCore; per != nil && *per > 0 && c.podsPerCore {
		n = min(n, int64(*per)*d.VCPUs)
	}
	return n
}

// interfacePods returns the number of pods that get an address of their own, plus two pods that
// share the host's network. Every interface of the default card keeps one address for itself. See
// the VPC CNI's table of maximum pods.
func interfacePods(d describe.Description, taken int64, prefixes bool) int64 {
	usable := d.DefaultCardInterfaces - taken
	if usable <= 0 {
		return 0
	}
	slots := max(d.IPv4PerInterface-1, 0)
	if !prefixes {
		return usable*slots + 2
	}
	limit := int64(250)
	if d.VCPUs <= 30 {
		limit = 110
	}
	return min(usable*slots*16+2, limit)
}

// architecture returns the Kubernetes name of the first architecture that Kubernetes knows, or an
// empty string.
func architecture(d describe.Description) string {
	for _, a := range d.Architectures {
		if i := slices.Index([]string{"x86_64", "arm64"}, a); i >= 0 {
			return []string{"amd64", "arm64"}[i]
		}
	}
	return ""
}
