package nodeclass

import (
	"time"

	"github.com/joinery-sdk/joinery/instancetypes/ec2"
)

// NodeClass is a node class of any version. It must only be read: copies share maps and slices.
//
// Machines keep a hash of its JSON. So a new field of it, or of a struct in it, comes last and has
// the tag `json:",omitzero"`: as long as it is not set, hashes stay as they are.
type NodeClass struct {
	Kind, APIVersion, Name string

	Family ec2.Family
	// AMIs, Subnets, SecurityGroups and CapacityReservations are lists of alternatives: one
	// matching term is enough. Without AMI terms the family's default image is used.
	AMIs, Subnets, SecurityGroups, CapacityReservations []Term
	PlacementGroup                                      *PlacementGroup

	// At most one of Role and InstanceProfile is set. Neither means the cluster's default, which
	// only AWSNodeTemplate has.
	Role, InstanceProfile string
	LaunchTemplate        string // of v1alpha1: the name of a template in place of the fields below; package aws refuses it
	// UserData is the plain text, not in base64. Context is an id that EC2 gets with each launch, as
	// CreateFleet's field Context. Empty means none.
	UserData, Context string
	Tags              map[string]string

	BlockDevices       []BlockDevice
	RAID0              bool // local disks become the ephemeral storage
	Metadata           MetadataOptions
	DetailedMonitoring bool
	AssociatePublicIP  *bool // nil means that the subnet decides
	// IPPrefixCount is the number of address prefixes of each interface with an address; nil means
	// that EC2 decides.
	IPPrefixCount      *int32
	NetworkInterfaces  []NetworkInterface
	ConnectionTracking *ConnectionTracking
	// NestedVirtualization is enabled, disabled, or empty for EC2's default.
	NestedVirtualization string

	// Kubelet is set only by EC2NodeClass v1. In older versions it belongs to the pool.
	Kubelet *Kubelet

	Status Status
}

// Term selects resources that match everything that is set.
type Term struct {
	IDs, Names, Owners []string // of each list that is not empty, one entry must match
	Tags               []Tag    // all must match
	Alias              string   // of an image: family@version
	SSMParameter       string   // the parameter with an image's id
	MatchCriteria      string   // of a capacity reservation: open or targeted
}

// Tag is a tag with one of several values. Values may contain the wildcards * and ?. No values, or
// only "*", mean any value.
type Tag struct {
	Key    string
	Values []string
}

// PlacementGroup is a placement group by name or id.
type PlacementGroup struct{ Name, ID string }

// BlockDevice is a disk that an instance is launched with.
type BlockDevice struct {
	Device              string // such as /dev/xvda
	Root                bool   // marked as the root volume
	Bytes               int64  // 0 means as large as the snapshot
	Type                string // as EC2 names it, such as gp3; empty means EC2's default
	IOPS                int64  // I/O operations a second; 0 means EC2's default
	Throughput          int64  // MiB/s; 0 means EC2's default
	InitializationRate  int64  // MiB/s; 0 means EC2's default
	KMSKeyID            string // the key that encrypts the disk; empty means the account's default
	Snapshot            string // the id of the snapshot that the disk is made from; empty means none
	Encrypted           *bool  // nil means EC2's default
	DeleteOnTermination *bool  // whether the disk is deleted with the instance; nil means EC2's default
}

// MetadataOptions configure the instance metadata service. [Decode] sets every field. Package aws
// takes the zero value of a field as the default of EC2NodeClass v1.
type MetadataOptions struct {
	Endpoint string // enabled or disabled; default enabled
	IPv6     string // enabled or disabled; default disabled
	HopLimit int64  // network hops of an answer, 1 to 64; default 1, in older versions 2
	Tokens   string // required or optional; default required
}

// NetworkInterface is an interface that an instance is launched with.
type NetworkInterface struct {
	Card, Device int64  // indexes from 0; the primary interface has both 0
	Type         string // interface or efa-only
}

// ConnectionTracking are idle timeouts in seconds; 0 means the default.
type ConnectionTracking struct{ TCPEstablished, UDPStream, UDP int64 }

// Status is what a controller has found. It is empty in manifests that were never applied.
type Status struct {
	Subnets         []Subnet
	SecurityGroups  []string // ids
	AMIs            []string // ids
	InstanceProfile string   // the name of the profile that nodes of the class get
	// Reservations are the capacity reservations that the class selects, each id once. nil means
	// that the controller has found none yet.
	Reservations []Reservation `json:",omitzero"`
}

// Subnet is a subnet that the controller found.
type Subnet struct{ ID, Zone, ZoneID string }

// Reservation is a capacity reservation that the controller found.
type Reservation struct {
	ID, InstanceType, Zone string
	// Free is how many instances can still be launched into it, or nil if the status does not say.
	// Karpenter asks EC2 for this number and does not write it to the status.
	Free *int
	// End is when it ends; the zero time means that it has no end.
	End time.Time
	// State is active, or expiring if EC2 is about to take the machines back. Type is default or
	// capacity-block. A later Karpenter may have further values of both.
	State, Type string
	// Interruptible says that its owner may take machines back.
	Interruptible bool
}

// Settings returns the settings for package ec2 that the class decides: family, disks, kubelet,
// interfaces. The others are zero.
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

// Zones returns the zones of the subnets that the controller has found, each once, in the order of
// the status. It is nil if the controller has found no subnets yet. Then nothing is known about the
// zones.
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
