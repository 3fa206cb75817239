package topology_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/scheduling/internal/hostport"
	"github.com/joinery-sdk/joinery/scheduling/internal/topology"
)

// meets reports whether two pods with these ports share a node, by tags and limits alone.
func meets(a, b []hostport.Port) bool {
	counts, most := map[string]int{}, map[string]int{}
	for _, ports := range [][]hostport.Port{a, b} {
		tags, limits := topology.PortTags(ports)
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
	_, limits := topology.PortTags(nil)
	require.Equal(t, []topology.Limit(nil), limits)
}
