package whatif

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// port is a port of the node that a pod takes; an empty address is every address.
type port struct {
	ip       string
	protocol corev1.Protocol
	number   int32
}

func portsOf(spec *corev1.PodSpec) []port {
	var out []port
	add := func(c *corev1.Container) {
		for _, p := range c.Ports {
			if p.HostPort <= 0 {
				continue
			}
			q := port{p.HostIP, cmp.Or(p.Protocol, corev1.ProtocolTCP), p.HostPort}
			if q.ip == "0.0.0.0" || q.ip == "::" {
				q.ip = ""
			}
			if !slices.Contains(out, q) {
				out = append(out, q)
			}
		}
	}
	for i := range spec.InitContainers {
		if r := spec.InitContainers[i].RestartPolicy; r != nil && *r == corev1.ContainerRestartPolicyAlways {
			add(&spec.InitContainers[i])
		}
	}
	for i := range spec.Containers {
		add(&spec.Containers[i])
	}
	return out
}

func (p port) conflicts(q port) bool {
	return p.number == q.number && p.protocol == q.protocol && (p.ip == q.ip || p.ip == "" || q.ip == "")
}
