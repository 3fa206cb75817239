package userdata

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/discovery"
)

// settings returns the user's TOML, overridden by what the cluster and the node decide. Everything
// else stays as it was written, known or not. Taints are replaced as a whole, and labels are
// merged.
func settings(c discovery.Cluster, n Node) (string, error) {
	doc := map[string]any{}
	if err := toml.Unmarshal([]byte(n.Own), &doc); err != nil {
		if where, ok := errors.AsType[*toml.DecodeError](err); ok {
			row, column := where.Position()
			return "", fmt.Errorf("userdata: Bottlerocket settings are not TOML: line %d, column %d", row, column)
		}
		return "", errors.New("userdata: Bottlerocket settings are not TOML")
	}
	kubernetes, err := table(doc, "settings", "kubernetes")
	if err != nil {
		return "", err
	}
	kubernetes["cluster-name"], kubernetes["api-server"] = c.Name, c.Endpoint
	if c.CA != "" {
		kubernetes["cluster-certificate"] = c.CA
	}
	switch dns := n.kubelet().ClusterDNS; len(dns) {
	case 0:
	case 1:
		kubernetes["cluster-dns-ip"] = dns[0]
	default:
		kubernetes["cluster-dns-ip"] = dns
	}
	blocks := map[string]map[string]string{"node-labels": n.labels()}
	for _, s := range n.settings() {
		switch block, ok := s.value.(map[string]string); {
		case ok:
			blocks[s.bottlerocket] = block
		case strings.HasPrefix(s.bottlerocket, "image-gc-"):
			kubernetes[s.bottlerocket] = s.text() // Bottlerocket requires a string
		case s.bottlerocket != "":
			kubernetes[s.bottlerocket] = s.value
		}
	}
	for _, key := range slices.Sorted(maps.Keys(blocks)) {
		block := blocks[key]
		if len(block) == 0 {
			continue
		}
		into, err := table(kubernetes, key)
		if err != nil {
			return "", err
		}
		for key, value := range block {
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
		bind := []string{"apiclient", "ephemeral-storage", "bind"}
		if !bindsAll(n.ImageVersion) {
			bind = append(bind, "--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods")
		}
		// Ours runs first. A command of the user's with the same name would have the same purpose.
		commands["000-mount-instance-storage"] = map[string]any{
			"commands": [][]string{
				{"apiclient", "ephemeral-storage", "init"}, bind,
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

// bindsAll reports whether Bottlerocket of this version knows the directories of its own
// snapshotters and binds them if none are named. Versions before 1.46 want names.
func bindsAll(version string) bool {
	var major, minor int
	_, err := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d.", &major, &minor)
	return version == "latest" || err == nil && (major > 1 || major == 1 && minor >= 46)
}

// table follows a path of tables and creates missing ones.
func table(in map[string]any, path ...string) (map[string]any, error) {
	for _, key := range path {
		next, ok := in[key]
		if !ok {
			next = map[string]any{}
			in[key] = next
		}
		below, ok := next.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("userdata: Bottlerocket settings: %q is not a table", key)
		}
		in = below
	}
	return in, nil
}
