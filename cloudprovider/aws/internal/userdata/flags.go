package userdata

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// flags are the kubelet's command line, in a fixed order.
func flags(n Node) []string {
	k := n.kubelet()
	var out []string
	add := func(name, value string) {
		if value != "" {
			out = append(out, "--"+name+"="+value)
		}
	}
	count := func(name string, p *int32) {
		if p != nil {
			add(name, strconv.FormatInt(int64(*p), 10))
		}
	}
	add("node-labels", strings.Join(n.labels(), ","))
	var taints []string
	for _, t := range n.taints() {
		taints = append(taints, fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect))
	}
	add("register-with-taints", strings.Join(taints, ","))
	count("max-pods", k.MaxPods)
	count("pods-per-core", k.PodsPerCore)
	add("system-reserved", joinPairs(reserved(k.SystemReserved), "="))
	add("kube-reserved", joinPairs(reserved(k.KubeReserved), "="))
	add("eviction-hard", joinPairs(k.EvictionHard, "<"))
	add("eviction-soft", joinPairs(k.EvictionSoft, "<"))
	add("eviction-soft-grace-period", joinPairs(k.EvictionSoftGracePeriod, "="))
	count("eviction-max-pod-grace-period", k.EvictionMaxPodGracePeriod)
	count("image-gc-high-threshold", k.ImageGCHighThresholdPercent)
	count("image-gc-low-threshold", k.ImageGCLowThresholdPercent)
	if k.CPUCFSQuota != nil {
		add("cpu-cfs-quota", strconv.FormatBool(*k.CPUCFSQuota))
	}
	return out
}

// reserved writes quantities as kubelets read them.
func reserved(list corev1.ResourceList) map[string]string {
	if len(list) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, name := range resources.Names(list) {
		q := list[name]
		out[string(name)] = q.String()
	}
	return out
}

func joinPairs(by map[string]string, sign string) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(by)) {
		out = append(out, key+sign+by[key])
	}
	return strings.Join(out, ",")
}
