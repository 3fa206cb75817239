// Package label names the label keys of EC2 nodes. Keys of other groups are constants of package
// instancetypes and of k8s.io/api/core/v1.
package label

import "github.com/joinery-sdk/joinery/requirements"

// Group is the domain of all keys of this package.
const Group = "karpenter.k8s.aws"

// Keys that describe an instance type. Sizes are numbers in the unit named in the comment.
const (
	Category                = Group + "/instance-category"   // letters before the generation: c, m, r, g, inf
	Family                  = Group + "/instance-family"     // before the dot: m5, c7gd
	Generation              = Group + "/instance-generation" // 5, 7
	Size                    = Group + "/instance-size"       // after the dot: large, metal-48xl
	CPU                     = Group + "/instance-cpu"        // vCPUs
	CPUManufacturer         = Group + "/instance-cpu-manufacturer"
	CPUSustainedClockSpeed  = Group + "/instance-cpu-sustained-clock-speed-mhz" // MHz
	Memory                  = Group + "/instance-memory"                        // MiB, before any overhead
	EBSBandwidth            = Group + "/instance-ebs-bandwidth"                 // Mbps at most
	NetworkBandwidth        = Group + "/instance-network-bandwidth"             // Mbps baseline; types newer than the catalogue lack it
	LocalNVMe               = Group + "/instance-local-nvme"                    // 10^9 bytes
	Hypervisor              = Group + "/instance-hypervisor"                    // nitro, xen; empty on bare metal
	EncryptionInTransit     = Group + "/instance-encryption-in-transit-supported"
	CapabilityFlex          = Group + "/instance-capability-flex"
	Tenancy                 = Group + "/instance-tenancy"
	GPUName                 = Group + "/instance-gpu-name"
	GPUManufacturer         = Group + "/instance-gpu-manufacturer"
	GPUCount                = Group + "/instance-gpu-count"  // GPUs of an instance
	GPUMemory               = Group + "/instance-gpu-memory" // MiB of one
	AcceleratorName         = Group + "/instance-accelerator-name"
	AcceleratorManufacturer = Group + "/instance-accelerator-manufacturer"
	AcceleratorCount        = Group + "/instance-accelerator-count" // accelerators of an instance, such as Inferentia chips
	// Pods is the older provider's number of pods. Current nodes do not have it.
	Pods = Group + "/instance-pods"
)

// Keys that describe how an instance was bought.
const (
	ReservationType          = Group + "/capacity-reservation-type"
	ReservationInterruptible = Group + "/capacity-reservation-interruptible"
	PlacementGroupID         = Group + "/placement-group-id"
	PlacementGroupPartition  = Group + "/placement-group-partition"
	NodeClass                = Group + "/ec2nodeclass"
)

// Keys returns all keys above that are undecided for a node that is not bought yet.
func Keys() requirements.Keys {
	return requirements.KeysOf(Category, Family, Generation, Size, CPU, CPUManufacturer, CPUSustainedClockSpeed, Memory,
		EBSBandwidth, NetworkBandwidth, LocalNVMe, Hypervisor, EncryptionInTransit, CapabilityFlex, Tenancy,
		GPUName, GPUManufacturer, GPUCount, GPUMemory, AcceleratorName, AcceleratorManufacturer, AcceleratorCount,
		ReservationType, ReservationInterruptible, PlacementGroupID, PlacementGroupPartition)
}
