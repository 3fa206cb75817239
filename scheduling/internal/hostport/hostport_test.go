package hostport_test

import (
	"testing"

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
