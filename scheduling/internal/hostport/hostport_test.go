package hostport_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/scheduling/internal/hostport"
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

// A disk that pods name themselves is for one pod of a node, or for several that only read it; an image of Ceph is known by any monitor.
func TestDisks(t *testing.T) {
	of := func(s corev1.VolumeSource) []hostport.Port {
		return hostport.Of(&corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: s}}}})
	}
	gce := func(name string, read bool) []hostport.Port {
		return of(corev1.VolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: name, ReadOnly: read}})
	}
	rbd := func(monitors ...string) []hostport.Port {
		return of(corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{CephMonitors: monitors, RBDImage: "i"}})
	}
	iscsi := of(corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{IQN: "a"}})
	aws := of(corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "a", ReadOnly: true}})
	for _, c := range []struct {
		a, b []hostport.Port
		want bool
	}{
		{gce("a", true), gce("a", true), false},
		{gce("a", true), gce("a", false), true},
		{gce("a", false), gce("b", false), false},
		{aws, aws, true},
		{iscsi, iscsi, true},
		{iscsi, aws, false},
		{rbd("x", "y"), rbd("y", "z"), true},
		{rbd("x"), rbd("y"), false},
	} {
		got := slices.ContainsFunc(c.a, func(p hostport.Port) bool { return slices.ContainsFunc(c.b, p.Conflicts) })
		assert.Equal(t, c.want, got, "%v %v", c.a, c.b)
	}
	assert.Equal(t, "disk gce a", gce("a", true)[0].String())
}
