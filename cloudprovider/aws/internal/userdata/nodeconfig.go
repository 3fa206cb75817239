package userdata

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// nodeConfig is the NodeConfig (node.eks.aws/v1alpha1) that nodeadm of AL2023 reads.
func nodeConfig(c Cluster, n Node) (string, error) {
	k := n.kubelet()
	config := map[string]any{}
	put := func(key string, set bool, value any) {
		if set {
			config[key] = value
		}
	}
	put("clusterDNS", len(k.ClusterDNS) > 0, k.ClusterDNS)
	put("maxPods", k.MaxPods != nil, k.MaxPods)
	put("podsPerCore", k.PodsPerCore != nil, k.PodsPerCore)
	put("kubeReserved", len(k.KubeReserved) > 0, reserved(k.KubeReserved))
	put("systemReserved", len(k.SystemReserved) > 0, reserved(k.SystemReserved))
	put("evictionHard", len(k.EvictionHard) > 0, k.EvictionHard)
	put("evictionSoft", len(k.EvictionSoft) > 0, k.EvictionSoft)
	put("evictionSoftGracePeriod", len(k.EvictionSoftGracePeriod) > 0, k.EvictionSoftGracePeriod)
	put("evictionMaxPodGracePeriod", k.EvictionMaxPodGracePeriod != nil, k.EvictionMaxPodGracePeriod)
	put("imageGCHighThresholdPercent", k.ImageGCHighThresholdPercent != nil, k.ImageGCHighThresholdPercent)
	put("imageGCLowThresholdPercent", k.ImageGCLowThresholdPercent != nil, k.ImageGCLowThresholdPercent)
	put("cpuCFSQuota", k.CPUCFSQuota != nil, k.CPUCFSQuota)
	var taints []map[string]string
	for _, t := range n.taints() {
		taint := map[string]string{"key": t.Key, "effect": string(t.Effect)}
		if t.Value != "" {
			taint["value"] = t.Value
		}
		taints = append(taints, taint)
	}
	put("registerWithTaints", len(taints) > 0, taints)

	kubelet := map[string]any{}
	if len(config) > 0 {
		kubelet["config"] = config
	}
	if labels := n.labels(); len(labels) > 0 {
		kubelet["flags"] = []string{"--node-labels=" + strings.Join(labels, ",")}
	}
	spec := map[string]any{
		"cluster": map[string]string{"name": c.Name, "apiServerEndpoint": c.Endpoint, "certificateAuthority": c.CA, "cidr": c.ServiceCIDR},
	}
	if len(kubelet) > 0 {
		spec["kubelet"] = kubelet
	}
	if n.RAID0 {
		spec["instance"] = map[string]any{"localStorage": map[string]string{"strategy": "RAID0"}}
	}
	text, err := yaml.Marshal(map[string]any{"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec})
	if err != nil {
		return "", fmt.Errorf("userdata: node config: %w", err)
	}
	return string(text), nil
}
