package ec2

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/describe"
)

// Resources that count the volumes of a node by the CSI driver that attaches them. Package
// scheduling recognizes them by their prefix.
const (
	ResourceEBSVolumes     corev1.ResourceName = "attachable-volumes-csi-ebs.csi.aws.com"
	ResourceAutoEBSVolumes corev1.ResourceName = "attachable-volumes-csi-ebs.csi.eks.amazonaws.com"
)

// Attachments says how the EBS CSI driver of a cluster is configured. The zero value is the
// driver's default.
type Attachments struct {
	// Limit is the driver's --volume-attach-limit, the same for all types. Nil or negative means
	// that the driver computes the limit for each type.
	Limit *int64
	// Reserved is the driver's --reserved-volume-attachments: disks that pods cannot use. Nil or
	// negative means the root disk and the disks of the node class.
	Reserved *int64
}

// The driver's assumptions: a Nitro machine has 28 slots for disks and interfaces, including the
// primary interface, and a Xen machine takes 39 disks.
const (
	nitroSlots = 28
	xenDisks   = 39
)

// volumes returns how many volumes of pods a node of the type attaches. The limit that EC2 reports
// already excludes the primary interface and the local disks of a type, but not the other
// interfaces. The VPC CNI attaches these for the addresses of pods and keeps one spare. So the
// result is the largest number of volumes that have slots if each belongs to a pod of its own.
func (c compiled) volumes(d describe.Description) int64 {
	if limit := c.Attachments.Limit; limit != nil && *limit >= 0 {
		return *limit
	}
	slots := d.EBSAttachments
	shared := d.SharedAttachments || slots == 0
	switch {
	case d.Hypervisor == "xen":
		shared = false
		if slots == 0 || slots > xenDisks {
			slots = xenDisks
		}
	case shared && (slots == 0 || slots >= nitroSlots):
		slots = nitroSlots - 1
	}
	slots -= c.ownDisks()
	n := slots
	for shared && n > 1 && n+c.interfaces(d, n)-1 > slots {
		n--
	}
	return max(1, n) // the driver never reports less
}

// ownDisks returns how many disks of a node pods cannot use.
func (c compiled) ownDisks() int64 {
	if r := c.Attachments.Reserved; r != nil && *r >= 0 {
		return *r
	}
	disks := 1
	if c.Family == Bottlerocket { // one for the system and one for data
		disks = 2
	}
	return int64(max(disks, len(c.BlockDevices)))
}

// interfaces returns how many interfaces a node has for the addresses of so many pods: one more
// than they need, if the type has it.
func (c compiled) interfaces(d describe.Description, pods int64) int64 {
	slots := max(d.IPv4PerInterface-1, 1)
	if c.PrefixDelegation {
		slots *= 16
	}
	return max(1, min((pods+slots-1)/slots+1, d.DefaultCardInterfaces))
}
