package scheduling

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// hostPort is one port of the node that a pod takes.
type hostPort struct {
	ip       string // "0.0.0.0" for every address
	protocol corev1.Protocol
	port     int32
}

const anyAddress = "0.0.0.0"

// hostPorts lists the host ports of all containers that run together, sorted, without duplicates.
func hostPorts(p *corev1.Pod) []hostPort {
	var out []hostPort
	add := func(cs []corev1.Container, sidecarsOnly bool) {
		for i := range cs {
			if sidecarsOnly && (cs[i].RestartPolicy == nil || *cs[i].RestartPolicy != corev1.ContainerRestartPolicyAlways) {
				continue
			}
			for _, port := range cs[i].Ports {
				if port.HostPort <= 0 {
					continue
				}
				hp := hostPort{cmp.Or(port.HostIP, anyAddress), cmp.Or(port.Protocol, corev1.ProtocolTCP), port.HostPort}
				if hp.ip == "::" {
					hp.ip = anyAddress
				}
				out = append(out, hp)
			}
		}
	}
	add(p.Spec.InitContainers, true)
	add(p.Spec.Containers, false)
	slices.SortFunc(out, func(a, b hostPort) int {
		return cmp.Or(cmp.Compare(a.port, b.port), cmp.Compare(a.protocol, b.protocol), cmp.Compare(a.ip, b.ip))
	})
	return slices.Compact(out)
}

// portTags puts host ports in the one form that packing knows. A port on one address conflicts with the same port on
// that address and with the wildcard; the wildcard conflicts with every address. So each port adds a tag for its
// address and a tag for the port at large: a wildcard allows one of the latter in all, an address allows one of its
// own and no wildcard.
func portTags(ports []hostPort) (tags []string, limits []Limit) {
	for _, p := range ports {
		all := fmt.Sprintf("port %s/%d", p.protocol, p.port)
		tags = append(tags, all)
		if p.ip == anyAddress {
			tags = append(tags, all+" wildcard")
			limits = append(limits, Limit{Tag: all, Max: 1})
			continue
		}
		own := all + " on " + p.ip
		tags = append(tags, own)
		limits = append(limits, Limit{Tag: own, Max: 1}, Limit{Tag: all + " wildcard", Max: 0})
	}
	return tags, limits
}
