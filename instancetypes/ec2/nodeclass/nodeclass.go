package nodeclass

import (
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
)

// NodeClass is a node class, whatever version it was written in. Read-only: copies share maps and slices.
type NodeClass struct {
	Kind, APIVersion, Name string

	Family ec2.Family
	// AMIs, Subnets, SecurityGroups and CapacityReservations select by alternatives: one matching term is enough. No AMI
	// term means the family's default image.
	AMIs, Subnets, SecurityGroups, CapacityReservations []Term
	PlacementGroup                                      *PlacementGroup

	// Role or InstanceProfile: at most one is set; neither means the cluster's default, which only AWSNodeTemplate has.
	Role, InstanceProfile string
	LaunchTemplate        string // of v1alpha1: a template by name instead of what follows
	UserData, Context     string
	Tags                  map[string]string

	BlockDevices       []BlockDevice
	RAID0              bool // local disks become the ephemeral storage
	Metadata           MetadataOptions
	DetailedMonitoring bool
	AssociatePublicIP  *bool // nil = the subnet decides
	IPPrefixCount      *int32
	NetworkInterfaces  []NetworkInterface
	ConnectionTracking *ConnectionTracking
	// NestedVirtualization is enabled, disabled, or empty for EC2's default.
	NestedVirtualization string

	// Kubelet is set by EC2NodeClass v1 only; in older versions it belongs to the pool.
	Kubelet *Kubelet

	Status Status
}

// Term selects resources that match all of what is set.
type Term struct {
	IDs, Names, Owners []string // one of each
	Tags               []Tag    // all of them
	Alias              string   // of an image: family@version
	SSMParameter       string   // that holds an image's id
	MatchCriteria      string   // of a capacity reservation: open or targeted
}

// Tag is a tag with one of some values; values may hold the wildcards * and ?, and no values or only "*" mean any.
type Tag struct {
	Key    string
	Values []string
}

// PlacementGroup is a placement group by name or id.
type PlacementGroup struct{ Name, ID string }

// BlockDevice is a disk that an instance is launched with.
type BlockDevice struct {
	Device              string
	Root                bool  // marked as the root volume
	Bytes               int64 // 0 = as large as the snapshot
	Type                string
	IOPS, Throughput    int64 // 0 = default; MiB/s
	InitializationRate  int64 // MiB/s; 0 = default
	KMSKeyID, Snapshot  string
	Encrypted           *bool
	DeleteOnTermination *bool
}

// MetadataOptions configure the instance metadata service.
type MetadataOptions struct {
	Endpoint string // enabled or disabled
	IPv6     string // enabled or disabled
	HopLimit int64
	Tokens   string // required or optional
}

// NetworkInterface is an interface that an instance is launched with.
type NetworkInterface struct {
	Card, Device int64
	Type         string // interface or efa-only
}

// ConnectionTracking are idle timeouts in seconds; 0 = default.
type ConnectionTracking struct{ TCPEstablished, UDPStream, UDP int64 }

// Status is what a controller found out; empty in manifests that were never applied.
type Status struct {
	Subnets         []Subnet
	SecurityGroups  []string // ids
	AMIs            []string // ids
	InstanceProfile string
}

// Subnet is a subnet that the controller found.
type Subnet struct{ ID, Zone, ZoneID string }

// Settings are the settings for package ec2 that the class decides: family, disks, kubelet, interfaces. The rest is zero.
func (c NodeClass) Settings() ec2.Settings {
	s := ec2.Settings{Family: c.Family, RAID0: c.RAID0}
	for _, b := range c.BlockDevices {
		s.BlockDevices = append(s.BlockDevices, ec2.BlockDevice{Device: b.Device, Bytes: b.Bytes, Root: b.Root})
	}
	if c.Kubelet != nil {
		s.Kubelet = c.Kubelet.settings()
	}
	for _, n := range c.NetworkInterfaces {
		if n.Type == "efa-only" {
			s.EFAOnly++
			if n.Card == 0 {
				s.EFAOnlyFirstCard++
			}
		}
	}
	return s
}

// Zones are the zones of the subnets that the controller found, each once, in the order of the status; nil if it found
// none yet, which says nothing about zones.
func (c NodeClass) Zones() []string {
	var out []string
	seen := map[string]bool{}
	for _, s := range c.Status.Subnets {
		if s.Zone != "" && !seen[s.Zone] {
			seen[s.Zone] = true
			out = append(out, s.Zone)
		}
	}
	return out
}
