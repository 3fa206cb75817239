package nodepool

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/internal/strictjson"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/internal/nodespec"
)

// Kubelet is what a pool may set of its nodes' kubelets: spec.kubeletConfiguration of v1alpha5,
// spec.template.spec.kubelet of v1beta1. Fields that are nil are left to the cloud. It must not be
// modified.
type Kubelet struct {
	// ClusterDNS are the addresses of the cluster's DNS servers.
	ClusterDNS []string
	// ContainerRuntime is the runtime by name; only v1alpha5 has it.
	ContainerRuntime *string
	// MaxPods is the most pods that a node takes; PodsPerCore limits them further by its CPU cores.
	MaxPods, PodsPerCore *int32
	// SystemReserved and KubeReserved are kept from pods, for the system and for Kubernetes itself.
	SystemReserved, KubeReserved corev1.ResourceList
	// EvictionHard and EvictionSoft are thresholds by signal ("memory.available"), each a quantity
	// or a percentage.
	EvictionHard, EvictionSoft map[string]string
	// EvictionSoftGracePeriod is how long a soft threshold may be crossed, by signal.
	EvictionSoftGracePeriod map[string]time.Duration
	// EvictionMaxPodGracePeriod is the longest grace period of pods evicted at a soft threshold, in
	// seconds.
	EvictionMaxPodGracePeriod *int32
	// ImageGCHighThresholdPercent and ImageGCLowThresholdPercent are the disk usage at which image
	// collection starts and stops, in percent.
	ImageGCHighThresholdPercent, ImageGCLowThresholdPercent *int32
	// CPUCFSQuota says whether CPU limits are enforced.
	CPUCFSQuota *bool
}

type wireKubelet struct {
	ClusterDNS                  []string                   `json:"clusterDNS"`
	ContainerRuntime            *string                    `json:"containerRuntime"`
	MaxPods                     *int32                     `json:"maxPods"`
	PodsPerCore                 *int32                     `json:"podsPerCore"`
	SystemReserved              corev1.ResourceList        `json:"systemReserved"`
	KubeReserved                corev1.ResourceList        `json:"kubeReserved"`
	EvictionHard                map[string]string          `json:"evictionHard"`
	EvictionSoft                map[string]string          `json:"evictionSoft"`
	EvictionSoftGracePeriod     map[string]metav1.Duration `json:"evictionSoftGracePeriod"`
	EvictionMaxPodGracePeriod   *int32                     `json:"evictionMaxPodGracePeriod"`
	ImageGCHighThresholdPercent *int32                     `json:"imageGCHighThresholdPercent"`
	ImageGCLowThresholdPercent  *int32                     `json:"imageGCLowThresholdPercent"`
	CPUCFSQuota                 *bool                      `json:"cpuCFSQuota"`
}

// decode converts the configuration. It returns nil for nil.
func (w *wireKubelet) decode() *Kubelet {
	if w == nil {
		return nil
	}
	k := Kubelet{
		ClusterDNS: w.ClusterDNS, ContainerRuntime: w.ContainerRuntime, MaxPods: w.MaxPods, PodsPerCore: w.PodsPerCore,
		SystemReserved: w.SystemReserved, KubeReserved: w.KubeReserved, EvictionHard: w.EvictionHard, EvictionSoft: w.EvictionSoft,
		EvictionMaxPodGracePeriod:   w.EvictionMaxPodGracePeriod,
		ImageGCHighThresholdPercent: w.ImageGCHighThresholdPercent, ImageGCLowThresholdPercent: w.ImageGCLowThresholdPercent,
		CPUCFSQuota: w.CPUCFSQuota,
	}
	for signal, period := range w.EvictionSoftGracePeriod {
		if k.EvictionSoftGracePeriod == nil {
			k.EvictionSoftGracePeriod = map[string]time.Duration{}
		}
		k.EvictionSoftGracePeriod[signal] = period.Duration
	}
	return &k
}

// check checks the configuration as the webhook and the CRD do. k may be nil.
func (k *Kubelet) check(r *nodespec.Report, path string) {
	if k == nil {
		return
	}
	const manyPods = 1 << 30
	nodespec.Range(r, path+".maxPods", k.MaxPods, 0, manyPods)
	nodespec.Range(r, path+".podsPerCore", k.PodsPerCore, 0, manyPods)
	nodespec.Range(r, path+".imageGCHighThresholdPercent", k.ImageGCHighThresholdPercent, 0, 100)
	nodespec.Range(r, path+".imageGCLowThresholdPercent", k.ImageGCLowThresholdPercent, 0, 100)
	if high, low := k.ImageGCHighThresholdPercent, k.ImageGCLowThresholdPercent; high != nil && low != nil && *high <= *low {
		r.Add(path+".imageGCHighThresholdPercent", "%d: want more than imageGCLowThresholdPercent, which is %d", *high, *low)
	}
	reserved(r, path+".systemReserved", k.SystemReserved)
	reserved(r, path+".kubeReserved", k.KubeReserved)
	thresholds(r, path+".evictionHard", k.EvictionHard)
	thresholds(r, path+".evictionSoft", k.EvictionSoft)
	for _, signal := range slices.Sorted(maps.Keys(k.EvictionSoft)) {
		if _, ok := k.EvictionSoftGracePeriod[signal]; !ok {
			r.Add(path+".evictionSoft"+strictjson.MapKey(signal), "the signal has no evictionSoftGracePeriod")
		}
	}
	for _, signal := range slices.Sorted(maps.Keys(k.EvictionSoftGracePeriod)) {
		at := path + ".evictionSoftGracePeriod" + strictjson.MapKey(signal)
		if r.OneOf(at, signal, signals()...) {
			if _, ok := k.EvictionSoft[signal]; !ok {
				r.Add(at, "the signal has no threshold in evictionSoft")
			}
		}
	}
}

// signals returns the eviction signals that Karpenter lets a pool set.
func signals() []string {
	return []string{"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree", "pid.available"}
}

func reserved(r *nodespec.Report, path string, list corev1.ResourceList) {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		at := path + strictjson.MapKey(string(name))
		r.OneOf(at, string(name), "cpu", "memory", "ephemeral-storage", "pid")
		if q := list[name]; q.Sign() < 0 {
			r.Add(at, "%s: must not be negative", q.String())
		}
	}
}

func thresholds(r *nodespec.Report, path string, list map[string]string) {
	for _, signal := range slices.Sorted(maps.Keys(list)) {
		at, text := path+strictjson.MapKey(signal), list[signal]
		r.OneOf(at, signal, signals()...)
		if digits, ok := strings.CutSuffix(text, "%"); ok {
			share, err := strconv.ParseFloat(digits, 64)
			if err != nil || !(share >= 0 && share <= 100) {
				r.Add(at, "%s: want a share of 0%% to 100%%", strictjson.Quote(text))
			}
			continue
		}
		q, err := strictjson.ParseQuantity(text)
		switch {
		case err != nil:
			r.Add(at, "%s", err)
		case q.Sign() < 0:
			r.Add(at, "%s: must not be negative", text)
		}
	}
}
