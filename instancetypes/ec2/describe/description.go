package describe

// Description is what EC2 says about one instance type. It must only be read; copies share the
// slices. The zero value is a type without name, processors and memory, which
// [Description.Validate] rejects.
type Description struct {
	Name string
	// Architectures are in EC2's order and spelling: x86_64, arm64, i386, x86_64_mac, arm64_mac.
	// Kubernetes uses the first that it knows.
	Architectures []string
	// Virtualizations are in EC2's spelling: hvm, paravirtual.
	Virtualizations []string
	// UsageClasses are in EC2's spelling: on-demand, spot, capacity-block.
	UsageClasses []string

	VCPUs           int64
	MemoryMiB       int64
	CPUManufacturer string // as EC2 writes it: Intel, AMD, AWS, Apple
	ClockMHz        int64  // sustained; 0 means unknown
	Hypervisor      string // nitro or xen; empty on bare metal
	BareMetal       bool
	Burstable       bool // the CPU has a baseline and credits
	NitroEnclaves   bool // it can run Nitro Enclaves

	// MaxInterfaces is the number of network interfaces over all network cards.
	MaxInterfaces int64
	// DefaultCardInterfaces is the number on the default network card. Only these give addresses to
	// pods.
	DefaultCardInterfaces int64
	NetworkCards          int64
	IPv4PerInterface      int64 // private IPv4 addresses, the primary one included
	EFAInterfaces         int64 // elastic fabric adapters, at most one per card
	EncryptionInTransit   bool  // traffic between instances of such types is encrypted
	// NetworkMbps is the baseline bandwidth in megabit per second; 0 means unknown. This is the
	// number that AWS publishes. DescribeInstanceTypes reports a different one for each network
	// card, so this one comes from package catalogue.
	NetworkMbps int64
	// BranchInterfaces is the number of pods with their own security groups
	// (vpc.amazonaws.com/pod-eni). DescribeInstanceTypes does not report it.
	BranchInterfaces int64

	// EBSMbps is the maximum EBS bandwidth of types that are EBS-optimized by default; 0 means
	// unknown.
	EBSMbps int64
	// EBSAttachments is the limit of attached volumes. SharedAttachments says that network
	// interfaces and local disks count against it.
	EBSAttachments    int64
	SharedAttachments bool

	LocalStorageGB int64 // instance store, in 10^9 bytes
	LocalNVMe      bool

	// GPUs, Neuron and Accelerators have an entry for each kind of device. A device may be both in
	// Neuron and in Accelerators.
	GPUs         []GPU
	Neuron       []NeuronDevice
	Accelerators []Accelerator
}

// GPU is one kind of graphics processor of an instance type.
type GPU struct {
	Name         string // as EC2 writes it: "T4", "A10G", "Radeon Pro V520"
	Manufacturer string // NVIDIA, AMD, Habana
	Count        int64  // whole devices; 0 for a share of one
	MemoryMiB    int64  // of one device or share
	// Share is the fraction of a device that the type has, in thousandths: 1000 for whole devices,
	// 125 for an eighth.
	Share int64
	// Logical is the number of devices that the operating system sees: a share counts as one.
	Logical int64
}

// NeuronDevice is one kind of AWS machine-learning chip of an instance type.
type NeuronDevice struct {
	Name      string // Inferentia, Inferentia2, Trainium, Trainium2
	Count     int64
	Cores     int64 // of one device
	MemoryMiB int64 // of one device
}

// Accelerator is one kind of inference accelerator of an instance type. AWS also lists its own
// Inferentia chips here.
type Accelerator struct {
	Name         string
	Manufacturer string
	Count        int64
	MemoryMiB    int64 // of one device
}
