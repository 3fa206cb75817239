package userdata

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/discovery"
)

// nodeConfig returns the NodeConfig (node.eks.aws/v1alpha1) that nodeadm of AL2023 reads.
func nodeConfig(c discovery.Cluster, n Node) (string, error) {
	config := map[string]any{}
	for name, value := range n.kubelet().Further {
		config[name] = value
	}
	if dns := n.kubelet().ClusterDNS; len(dns) > 0 {
		config["clusterDNS"] = dns
	}
	for _, s := range n.settings() {
		config[s.config] = s.value
	}
	if taints := n.taints(); len(taints) > 0 {
		config["registerWithTaints"] = taints
	}
	kubelet := map[string]any{}
	if len(config) > 0 {
		kubelet["config"] = config
	}
	if labels := n.labels(); len(labels) > 0 {
		kubelet["flags"] = []string{"--node-labels=" + pairs(labels, "=")}
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
