// Package hostport reads the ports of the node that pods take, and puts them in the form that packing knows.
package hostport

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/scheduling/internal/topology"
)

// Port is one port of the node that a pod takes.
type Port struct {
	IP       string // "0.0.0.0" for every address
	Protocol corev1.Protocol
	Number   int32
}

const anyAddress = "0.0.0.0"

// Conflicts reports whether two pods that take the ports cannot be on one node.
func (p Port) Conflicts(q Port) bool {
	return p.Number == q.Number && p.Protocol == q.Protocol && (p.IP == q.IP || p.IP == anyAddress || q.IP == anyAddress)
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
				hp := Port{cmp.Or(port.HostIP, anyAddress), cmp.Or(port.Protocol, corev1.ProtocolTCP), port.HostPort}
				if hp.IP == "::" {
					hp.IP = anyAddress
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

// Tags puts host ports in the one form that packing knows. A port on one address conflicts with the same port on
// that address and with the wildcard; the wildcard conflicts with every address. So each port adds a tag for its
// address and a tag for the port at large: a wildcard allows one of the latter in all, an address allows one of its
// own and no wildcard.
func Tags(ports []Port) (tags []string, limits []topology.Limit) {
	for _, p := range ports {
		all := fmt.Sprintf("port %s/%d", p.Protocol, p.Number)
		tags = append(tags, all)
		if p.IP == anyAddress {
			tags = append(tags, all+" wildcard")
			limits = append(limits, topology.Limit{Tag: all, Max: 1})
			continue
		}
		own := all + " on " + p.IP
		tags = append(tags, own)
		limits = append(limits, topology.Limit{Tag: own, Max: 1}, topology.Limit{Tag: all + " wildcard", Max: 0})
	}
	return tags, limits
}
