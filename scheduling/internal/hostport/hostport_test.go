package hostport_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/scheduling/internal/hostport"
	"github.com/joinery-sdk/joinery/scheduling/internal/topology"
)

func container(ports ...corev1.ContainerPort) corev1.Container {
	return corev1.Container{Ports: ports}
}

func TestPortsOfWhatRunsTogether(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	sidecar := container(corev1.ContainerPort{HostPort: 9000})
	sidecar.RestartPolicy = &always
	p := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{container(corev1.ContainerPort{HostPort: 1}), sidecar},
		Containers: []corev1.Container{
			container(corev1.ContainerPort{ContainerPort: 80}, corev1.ContainerPort{HostPort: 8080, HostIP: "::", Protocol: corev1.ProtocolUDP}),
			container(corev1.ContainerPort{HostPort: 9000, HostIP: "0.0.0.0", Protocol: corev1.ProtocolTCP}, corev1.ContainerPort{HostPort: 53, HostIP: "10.0.0.1"}),
		},
	}}
	require.Equal(t, []hostport.Port{
		{IP: "10.0.0.1", Protocol: corev1.ProtocolTCP, Number: 53},
		{IP: "0.0.0.0", Protocol: corev1.ProtocolUDP, Number: 8080},
		{IP: "0.0.0.0", Protocol: corev1.ProtocolTCP, Number: 9000},
	}, hostport.Of(p), "no init container that ends, no port that stays inside, none twice")
}

// meets reports whether two pods with these ports share a node, by tags and limits alone.
func meets(a, b []hostport.Port) bool {
	counts, most := map[string]int{}, map[string]int{}
	for _, ports := range [][]hostport.Port{a, b} {
		tags, limits := hostport.Tags(ports)
		for _, tag := range tags {
			counts[tag]++
		}
		for _, l := range limits {
			if m, ok := most[l.Tag]; !ok || l.Max < m {
				most[l.Tag] = l.Max
			}
		}
	}
	for tag, m := range most {
		if counts[tag] > m {
			return false
		}
	}
	return true
}

func TestPortsConflictByAddressAndProtocol(t *testing.T) {
	port := func(ip string, protocol corev1.Protocol, n int32) []hostport.Port {
		return []hostport.Port{{IP: ip, Protocol: protocol, Number: n}}
	}
	all, one, other := "0.0.0.0", "10.0.0.1", "10.0.0.2"
	require.False(t, meets(port(all, "TCP", 80), port(all, "TCP", 80)))
	require.False(t, meets(port(all, "TCP", 80), port(one, "TCP", 80)))
	require.False(t, meets(port(one, "TCP", 80), port(one, "TCP", 80)))
	require.True(t, meets(port(one, "TCP", 80), port(other, "TCP", 80)))
	require.True(t, meets(port(all, "TCP", 80), port(all, "UDP", 80)))
	require.True(t, meets(port(all, "TCP", 80), port(all, "TCP", 81)))
	_, limits := hostport.Tags(nil)
	require.Equal(t, []topology.Limit(nil), limits)
}
