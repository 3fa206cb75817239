package nodeclass

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/ec2"
)

// Kubelet is the kubelet configuration of an EC2NodeClass v1. Nil and empty mean the default.
// ClusterDNS are the addresses of the cluster's DNS servers. MaxPods is the most pods that a node
// takes; PodsPerCore limits them further by its vCPUs. KubeReserved and SystemReserved are kept
// from pods, for Kubernetes itself and for the system.
type Kubelet struct {
	ClusterDNS                   []string
	MaxPods, PodsPerCore         *int32
	KubeReserved, SystemReserved corev1.ResourceList
	// EvictionHard and EvictionSoft are thresholds by signal ("memory.available"), each a quantity
	// or a percentage. EvictionSoftGracePeriod is how long a soft threshold may be crossed, by
	// signal, as a duration such as "1m30s".
	EvictionHard, EvictionSoft, EvictionSoftGracePeriod map[string]string
	// EvictionMaxPodGracePeriod is the longest grace period of pods evicted at a soft threshold, in
	// seconds.
	EvictionMaxPodGracePeriod *int32
	// ImageGCHighThresholdPercent and ImageGCLowThresholdPercent are the disk usage at which image
	// collection starts and stops, in percent.
	ImageGCHighThresholdPercent, ImageGCLowThresholdPercent *int32
	CPUCFSQuota                                             *bool // whether CPU limits are enforced
	// Further has all other settings of a KubeletConfiguration (kubelet.config.k8s.io/v1beta1), as
	// JSON by name. nil means none.
	Further map[string]json.RawMessage `json:",omitzero"`
}

// Unplanned returns the further settings, sorted, that change what a node has for pods or which
// pods it admits. The computed sizes of nodes ignore them, so a planner should say so.
func (k Kubelet) Unplanned() []string {
	var out []string
	for _, name := range []string{
		"cpuManagerPolicy", "cpuManagerPolicyOptions", "enforceNodeAllocatable", "localStorageCapacityIsolation", "memoryManagerPolicy", "memorySwap",
		"mergeDefaultEvictionSettings", "qosReserved", "reservedMemory", "reservedSystemCPUs", "topologyManagerPolicy", "topologyManagerPolicyOptions",
		"topologyManagerScope", "userNamespaces",
	} {
		if _, ok := k.Further[name]; ok {
			out = append(out, name)
		}
	}
	return out
}

func (k Kubelet) settings() ec2.Kubelet {
	return ec2.Kubelet{
		MaxPods: k.MaxPods, PodsPerCore: k.PodsPerCore, KubeReserved: k.KubeReserved, SystemReserved: k.SystemReserved,
		EvictionHard: k.EvictionHard, EvictionSoft: k.EvictionSoft,
	}
}

// wireKubelet is the JSON form of the block.
type wireKubelet struct {
	ClusterDNS                  []string            `json:"clusterDNS"`
	MaxPods                     *int32              `json:"maxPods"`
	PodsPerCore                 *int32              `json:"podsPerCore"`
	KubeReserved                map[string]quantity `json:"kubeReserved"`
	SystemReserved              map[string]quantity `json:"systemReserved"`
	EvictionHard                map[string]string   `json:"evictionHard"`
	EvictionSoft                map[string]string   `json:"evictionSoft"`
	EvictionSoftGracePeriod     map[string]string   `json:"evictionSoftGracePeriod"`
	EvictionMaxPodGracePeriod   *int32              `json:"evictionMaxPodGracePeriod"`
	ImageGCHighThresholdPercent *int32              `json:"imageGCHighThresholdPercent"`
	ImageGCLowThresholdPercent  *int32              `json:"imageGCLowThresholdPercent"`
	CPUCFSQuota                 *bool               `json:"cpuCFSQuota"`

	others map[string]json.RawMessage
}

// openObject is a struct that also accepts fields that it does not read.
type openObject interface {
	accepts() []string
	keep(name string, raw json.RawMessage)
}

func (w *wireKubelet) keep(name string, raw json.RawMessage) {
	if w.others == nil {
		w.others = map[string]json.RawMessage{}
	}
	w.others[name] = slices.Clone(raw)
}

// accepts returns the settings of a KubeletConfiguration of Kubernetes 1.36 and 1.37 that are not
// read here.
func (*wireKubelet) accepts() []string {
	return strings.Fields(`address allowedUnsafeSysctls authentication authorization cgroupDriver cgroupRoot cgroupsPerQOS clusterDomain
		configMapAndSecretChangeDetectionStrategy containerLogMaxFiles containerLogMaxSize containerLogMaxWorkers containerLogMonitorInterval
		containerRuntimeEndpoint contentType cpuCFSQuotaPeriod cpuManagerPolicy cpuManagerPolicyOptions cpuManagerReconcilePeriod crashLoopBackOff
		enableContentionProfiling enableControllerAttachDetach enableDebugFlagsHandler enableDebuggingHandlers enableProfilingHandler enableServer
		enableSystemLogHandler enableSystemLogQuery enforceNodeAllocatable eventBurst eventRecordQPS evictionMinimumReclaim
		evictionPressureTransitionPeriod failCgroupV1 failSwapOn featureGates fileCheckFrequency hairpinMode healthzBindAddress healthzPort
		httpCheckFrequency imageMaximumGCAge imageMinimumGCAge imagePullCredentialsVerificationPolicy imageServiceEndpoint iptablesDropBit
		iptablesMasqueradeBit kernelMemcgNotification kubeAPIBurst kubeAPIQPS kubeReservedCgroup kubeletCgroups localStorageCapacityIsolation logging
		makeIPTablesUtilChains maxOpenFiles maxParallelImagePulls memoryManagerPolicy memoryReservationPolicy memorySwap memoryThrottlingFactor
		mergeDefaultEvictionSettings nodeLeaseDurationSeconds nodeStatusMaxImages nodeStatusReportFrequency nodeStatusUpdateFrequency oomScoreAdj
		podCIDR podLogsDir podPidsLimit port preloadedImagesVerificationAllowlist protectKernelDefaults providerID qosReserved readOnlyPort
		registerNode registerWithTaints registryBurst registryPullQPS reservedMemory reservedSystemCPUs resolvConf rotateCertificates runOnce
		runtimeRequestTimeout seccompDefault serializeImagePulls serverTLSBootstrap showHiddenMetricsForVersion shutdownGracePeriod
		shutdownGracePeriodByPodPriority shutdownGracePeriodCriticalPods singleProcessOOMKill staticPodPath staticPodURL staticPodURLHeader
		streamingConnectionIdleTimeout syncFrequency systemCgroups systemReservedCgroup tlsCertFile tlsCipherSuites tlsCurvePreferences tlsMinVersion
		tlsPrivateKeyFile topologyManagerPolicy topologyManagerPolicyOptions topologyManagerScope tracing userNamespaces volumePluginDir
		volumeStatsAggPeriod`)
}

func (w *wireKubelet) kubelet(r *report) *Kubelet {
	if w == nil {
		return nil
	}
	const at = "spec.kubelet."
	k := &Kubelet{
		ClusterDNS: w.ClusterDNS, MaxPods: w.MaxPods, PodsPerCore: w.PodsPerCore,
		EvictionHard: w.EvictionHard, EvictionSoft: w.EvictionSoft, EvictionSoftGracePeriod: w.EvictionSoftGracePeriod,
		EvictionMaxPodGracePeriod: w.EvictionMaxPodGracePeriod, ImageGCHighThresholdPercent: w.ImageGCHighThresholdPercent,
		ImageGCLowThresholdPercent: w.ImageGCLowThresholdPercent, CPUCFSQuota: w.CPUCFSQuota, Further: w.others,
	}
	r.least(at+"maxPods", w.MaxPods, 0)
	r.least(at+"podsPerCore", w.PodsPerCore, 0)
	k.KubeReserved = r.reserved(at+"kubeReserved", w.KubeReserved)
	k.SystemReserved = r.reserved(at+"systemReserved", w.SystemReserved)
	for _, block := range []struct {
		name string
		by   map[string]string
	}{{"evictionHard", w.EvictionHard}, {"evictionSoft", w.EvictionSoft}, {"evictionSoftGracePeriod", w.EvictionSoftGracePeriod}} {
		for _, signal := range slices.Sorted(maps.Keys(block.by)) {
			r.oneOf(fmt.Sprintf("%s%s[%q]", at, block.name, signal), signal, "memory.available", "nodefs.available", "nodefs.inodesFree",
				"imagefs.available", "imagefs.inodesFree", "pid.available")
		}
	}
	for _, signal := range slices.Sorted(maps.Keys(w.EvictionSoft)) {
		if _, ok := w.EvictionSoftGracePeriod[signal]; !ok {
			r.bad(at+"evictionSoft", "%s has no evictionSoftGracePeriod", signal)
		}
	}
	for _, signal := range slices.Sorted(maps.Keys(w.EvictionSoftGracePeriod)) {
		if _, ok := w.EvictionSoft[signal]; !ok {
			r.bad(at+"evictionSoftGracePeriod", "%s has no evictionSoft", signal)
		}
	}
	r.percent(at+"imageGCHighThresholdPercent", w.ImageGCHighThresholdPercent)
	r.percent(at+"imageGCLowThresholdPercent", w.ImageGCLowThresholdPercent)
	if high, low := w.ImageGCHighThresholdPercent, w.ImageGCLowThresholdPercent; high != nil && low != nil && *high <= *low {
		r.bad(at+"imageGCHighThresholdPercent", "%d: want more than imageGCLowThresholdPercent, %d", *high, *low)
	}
	// The package that computes with thresholds checks their text.
	if err := (ec2.Settings{Kubelet: k.settings()}).Validate(); err != nil {
		r.bad("spec.kubelet", "%v", err)
	}
	return k
}

func (r *report) reserved(path string, by map[string]quantity) corev1.ResourceList {
	if by == nil {
		return nil
	}
	out := corev1.ResourceList{}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		at := fmt.Sprintf("%s[%q]", path, name)
		r.oneOf(at, name, "cpu", "memory", "ephemeral-storage", "pid")
		out[corev1.ResourceName(name)] = by[name].Quantity
	}
	return out
}

func (r *report) least(path string, p *int32, low int32) {
	if p != nil && *p < low {
		r.bad(path, "%d: want %d or more", *p, low)
	}
}

func (r *report) percent(path string, p *int32) {
	if p != nil && (*p < 0 || *p > 100) {
		r.bad(path, "%d: want 0 to 100", *p)
	}
}
