package nodepool

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Kubelet is what a pool may set of its nodes' kubelets: spec.kubeletConfiguration of v1alpha5, spec.template.spec.kubelet
// of v1beta1. Fields that are nil were not set and are left to the cloud. It is to be read, not changed.
type Kubelet struct {
	// ClusterDNS are the addresses of the cluster's DNS servers.
	ClusterDNS []string
	// ContainerRuntime is the runtime by name; only v1alpha5 has it.
	ContainerRuntime *string
	// MaxPods is the most pods a node takes; PodsPerCore limits them further by its CPU cores.
	MaxPods, PodsPerCore *int32
	// SystemReserved and KubeReserved are kept from pods, for the system and for Kubernetes itself.
	SystemReserved, KubeReserved corev1.ResourceList
	// EvictionHard and EvictionSoft are thresholds by signal ("memory.available"), each a quantity or a percentage.
	EvictionHard, EvictionSoft map[string]string
	// EvictionSoftGracePeriod is how long a soft threshold may be crossed, by signal.
	EvictionSoftGracePeriod map[string]time.Duration
	// EvictionMaxPodGracePeriod is the longest grace period of pods evicted at a soft threshold, in seconds.
	EvictionMaxPodGracePeriod *int32
	// ImageGCHighThresholdPercent and ImageGCLowThresholdPercent are the disk usage at which image collection starts and
	// stops, in percent.
	ImageGCHighThresholdPercent, ImageGCLowThresholdPercent *int32
	// CPUCFSQuota tells whether CPU limits are enforced.
	CPUCFSQuota *bool
}
