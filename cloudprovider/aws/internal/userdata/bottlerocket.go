package userdata

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/pelletier/go-toml/v2"
)

// settings is the user's TOML with what the cluster and the node decide put over it. Everything else stays as it was written,
// whether or not we know it; taints are replaced as a whole, labels are merged.
func settings(c Cluster, n Node) (string, error) {
	doc := map[string]any{}
	if err := toml.Unmarshal([]byte(n.Own), &doc); err != nil {
		if where, ok := errors.AsType[*toml.DecodeError](err); ok {
			row, column := where.Position()
			return "", fmt.Errorf("userdata: Bottlerocket settings are no TOML: line %d, column %d", row, column)
		}
		return "", errors.New("userdata: Bottlerocket settings are no TOML")
	}
	kubernetes, err := table(doc, "settings", "kubernetes")
	if err != nil {
		return "", err
	}
	kubernetes["cluster-name"], kubernetes["api-server"] = c.Name, c.Endpoint
	put := func(key string, set bool, value any) {
		if set {
			kubernetes[key] = value
		}
	}
	k := n.kubelet()
	put("cluster-certificate", c.CA != "", c.CA)
	put("cluster-dns-ip", len(k.ClusterDNS) == 1, first(k.ClusterDNS))
	put("cluster-dns-ip", len(k.ClusterDNS) > 1, k.ClusterDNS)
	put("max-pods", k.MaxPods != nil, k.MaxPods)
	put("eviction-max-pod-grace-period", k.EvictionMaxPodGracePeriod != nil, k.EvictionMaxPodGracePeriod)
	put("cpu-cfs-quota-enforced", k.CPUCFSQuota != nil, k.CPUCFSQuota)
	percent := func(key string, p *int32) {
		if p != nil {
			kubernetes[key] = strconv.FormatInt(int64(*p), 10) // Bottlerocket wants text
		}
	}
	percent("image-gc-high-threshold-percent", k.ImageGCHighThresholdPercent)
	percent("image-gc-low-threshold-percent", k.ImageGCLowThresholdPercent)
	for _, block := range []struct {
		key string
		by  map[string]string
	}{
		{"kube-reserved", reserved(k.KubeReserved)},
		{"system-reserved", reserved(k.SystemReserved)},
		{"eviction-hard", k.EvictionHard},
		{"eviction-soft", k.EvictionSoft},
		{"eviction-soft-grace-period", k.EvictionSoftGracePeriod},
		{"node-labels", n.labelMap()},
	} {
		if len(block.by) == 0 {
			continue
		}
		into, err := table(kubernetes, block.key)
		if err != nil {
			return "", err
		}
		for key, value := range block.by {
			into[key] = value
		}
	}
	if taints := n.taints(); len(taints) > 0 {
		byKey := map[string][]string{}
		for _, t := range taints {
			byKey[t.Key] = append(byKey[t.Key], t.Value+":"+string(t.Effect))
		}
		kubernetes["node-taints"] = byKey
	}
	if n.RAID0 {
		commands, err := table(doc, "settings", "bootstrap-commands")
		if err != nil {
			return "", err
		}
		// Ours runs first; a command of the user's under the same name would be one for the same purpose.
		commands["000-mount-instance-storage"] = map[string]any{
			"commands": [][]string{
				{"apiclient", "ephemeral-storage", "init"},
				{"apiclient", "ephemeral-storage", "bind", "--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"},
			},
			"essential": true, "mode": "always",
		}
	}
	var b bytes.Buffer
	if err := toml.NewEncoder(&b).Encode(doc); err != nil {
		return "", errors.New("userdata: Bottlerocket settings cannot be written as TOML")
	}
	return b.String(), nil
}

// labelMap are the registrable labels.
func (n Node) labelMap() map[string]string {
	out := map[string]string{}
	for key, value := range n.Labels {
		if Registrable(key) {
			out[key] = value
		}
	}
	return out
}

// table goes down a path of tables and makes those that are missing.
func table(in map[string]any, path ...string) (map[string]any, error) {
	for _, key := range path {
		next, ok := in[key]
		if !ok {
			next = map[string]any{}
			in[key] = next
		}
		below, ok := next.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("userdata: Bottlerocket settings: %q is no table", key)
		}
		in = below
	}
	return in, nil
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}
