package userdata

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

// setting is a kubelet setting with its names as a flag, in the kubelet's configuration (of AL2023)
// and in Bottlerocket. An empty name means that it does not exist there.
type setting struct {
	flag, config, bottlerocket string
	value                      any // a *int32, *bool or map[string]string
}

// settings returns the settings that are set, in a fixed order.
func (n Node) settings() []setting {
	k := n.kubelet()
	return slices.DeleteFunc([]setting{
		{"max-pods", "maxPods", "max-pods", k.MaxPods},
		{"pods-per-core", "podsPerCore", "", k.PodsPerCore},
		{"system-reserved", "systemReserved", "system-reserved", reserved(k.SystemReserved)},
		{"kube-reserved", "kubeReserved", "kube-reserved", reserved(k.KubeReserved)},
		{"eviction-hard", "evictionHard", "eviction-hard", k.EvictionHard},
		{"eviction-soft", "evictionSoft", "eviction-soft", k.EvictionSoft},
		{"eviction-soft-grace-period", "evictionSoftGracePeriod", "eviction-soft-grace-period", k.EvictionSoftGracePeriod},
		{"eviction-max-pod-grace-period", "evictionMaxPodGracePeriod", "eviction-max-pod-grace-period", k.EvictionMaxPodGracePeriod},
		{"image-gc-high-threshold", "imageGCHighThresholdPercent", "image-gc-high-threshold-percent", k.ImageGCHighThresholdPercent},
		{"image-gc-low-threshold", "imageGCLowThresholdPercent", "image-gc-low-threshold-percent", k.ImageGCLowThresholdPercent},
		{"cpu-cfs-quota", "cpuCFSQuota", "cpu-cfs-quota-enforced", k.CPUCFSQuota},
	}, func(s setting) bool {
		v := reflect.ValueOf(s.value)
		return v.IsNil() || v.Kind() == reflect.Map && v.Len() == 0
	})
}

// text returns the value in the form of a flag.
func (s setting) text() string {
	by, ok := s.value.(map[string]string)
	if !ok {
		return fmt.Sprint(reflect.ValueOf(s.value).Elem())
	}
	sign := "="
	if s.flag == "eviction-hard" || s.flag == "eviction-soft" {
		sign = "<"
	}
	return pairs(by, sign)
}

// pairs returns a map as one word, in the order of its keys.
func pairs(by map[string]string, sign string) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(by)) {
		list = append(list, key+sign+by[key])
	}
	return strings.Join(list, ",")
}

// flags returns the kubelet's command line, in a fixed order.
func flags(n Node) []string {
	var out, taints []string
	if labels := n.labels(); len(labels) > 0 {
		out = append(out, "--node-labels="+pairs(labels, "="))
	}
	for _, t := range n.taints() {
		taints = append(taints, fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect))
	}
	if len(taints) > 0 {
		out = append(out, "--register-with-taints="+strings.Join(taints, ","))
	}
	for _, s := range n.settings() {
		out = append(out, "--"+s.flag+"="+s.text())
	}
	return out
}

// reserved returns quantities in the form that kubelets read.
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
