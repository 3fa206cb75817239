// Package hostport reads what a pod takes of its node for itself: ports, and disks that it names in
// its own spec.
package hostport

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Port is one port of the node that a pod takes, or a disk.
type Port struct {
	IP       string // [AnyAddress] for every one
	Protocol corev1.Protocol
	Number   int32
	// Disk is set for a disk. Several pods of a node can have it only if all of them just read it.
	Disk     string
	ReadOnly bool
}

// String returns the port or the disk in words.
func (p Port) String() string {
	if p.Disk != "" {
		return "disk " + p.Disk
	}
	return fmt.Sprintf("host port %d/%s", p.Number, p.Protocol)
}

// AnyAddress is the IP of a port on every address.
const AnyAddress = "0.0.0.0"

// Conflicts reports whether two pods that take the ports cannot be on one node.
func (p Port) Conflicts(q Port) bool {
	if p.Disk != "" || q.Disk != "" {
		return p.Disk == q.Disk && (!p.ReadOnly || !q.ReadOnly)
	}
	return p.Number == q.Number && p.Protocol == q.Protocol && (p.IP == q.IP || p.IP == AnyAddress || q.IP == AnyAddress)
}

// Of returns the host ports of all containers that run together, and the disks, sorted and without
// duplicates.
func Of(p *corev1.Pod) []Port {
	var out []Port
	add := func(cs []corev1.Container, sidecarsOnly bool) {
		for i := range cs {
			if sidecarsOnly && (cs[i].RestartPolicy == nil || *cs[i].RestartPolicy != corev1.ContainerRestartPolicyAlways) {
				continue
			}
			for _, port := range cs[i].Ports {
				if p.Spec.HostNetwork && port.HostPort == 0 { // an API server defaults it
					port.HostPort = port.ContainerPort
				}
				if port.HostPort <= 0 {
					continue
				}
				hp := Port{IP: cmp.Or(port.HostIP, AnyAddress), Protocol: cmp.Or(port.Protocol, corev1.ProtocolTCP), Number: port.HostPort}
				if hp.IP == "::" {
					hp.IP = AnyAddress
				}
				out = append(out, hp)
			}
		}
	}
	add(p.Spec.InitContainers, true)
	add(p.Spec.Containers, false)
	for i := range p.Spec.Volumes {
		out = append(out, disks(&p.Spec.Volumes[i])...)
	}
	slices.SortFunc(out, func(a, b Port) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.IP, b.IP), cmp.Compare(a.Disk, b.Disk), compareBool(a.ReadOnly, b.ReadOnly))
	})
	return slices.Compact(out)
}

// disks returns the disks of a volume that kube-scheduler's VolumeRestrictions looks at. Two images
// of Ceph are the same if they share one monitor.
func disks(v *corev1.Volume) []Port {
	switch {
	case v.GCEPersistentDisk != nil:
		return []Port{{Disk: "gce " + v.GCEPersistentDisk.PDName, ReadOnly: v.GCEPersistentDisk.ReadOnly}}
	case v.AWSElasticBlockStore != nil:
		return []Port{{Disk: "aws " + v.AWSElasticBlockStore.VolumeID}}
	case v.ISCSI != nil:
		return []Port{{Disk: "iscsi " + v.ISCSI.IQN, ReadOnly: v.ISCSI.ReadOnly}}
	case v.RBD != nil:
		var out []Port
		for _, monitor := range v.RBD.CephMonitors {
			out = append(out, Port{Disk: fmt.Sprintf("rbd %s/%s/%s", monitor, v.RBD.RBDPool, v.RBD.RBDImage), ReadOnly: v.RBD.ReadOnly})
		}
		return out
	}
	return nil
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
