// Package hostport reads the ports of the node that pods take.
package hostport

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Port is one port of the node that a pod takes.
type Port struct {
	IP       string // [AnyAddress] for every one
	Protocol corev1.Protocol
	Number   int32
}

// AnyAddress is the IP of a port on every address.
const AnyAddress = "0.0.0.0"

// Conflicts reports whether two pods that take the ports cannot be on one node.
func (p Port) Conflicts(q Port) bool {
	return p.Number == q.Number && p.Protocol == q.Protocol && (p.IP == q.IP || p.IP == AnyAddress || q.IP == AnyAddress)
}

// Of lists the host ports of all containers that run together, sorted, without duplicates.
func Of(p *corev1.Pod) []Port {
	var out []Port
	add := func(cs []corev1.Container, sidecarsOnly bool) {
		for i := range cs {
			if sidecarsOnly && (cs[i].RestartPolicy == nil || *cs[i].RestartPolicy != corev1.ContainerRestartPolicyAlways) {
				continue
			}
			for _, port := range cs[i].Ports {
				if port.HostPort <= 0 {
					continue
				}
				hp := Port{cmp.Or(port.HostIP, AnyAddress), cmp.Or(port.Protocol, corev1.ProtocolTCP), port.HostPort}
				if hp.IP == "::" {
					hp.IP = AnyAddress
				}
				out = append(out, hp)
			}
		}
	}
	add(p.Spec.InitContainers, true)
	add(p.Spec.Containers, false)
	slices.SortFunc(out, func(a, b Port) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.IP, b.IP))
	})
	return slices.Compact(out)
}
