// Package userdata writes what an EC2 instance needs at its first boot so that its kubelet joins a
// cluster. It is a shell script in a MIME archive for AL2 and Ubuntu, a NodeConfig for AL2023, TOML
// for Bottlerocket, PowerShell for Windows, and the user's own text, verbatim, for custom images.
// The user's own user data is merged in, and nothing of it is dropped.
//
// The output depends only on the input. Maps are written in the order of their keys, so equal nodes
// get equal bytes and share a launch template.
package userdata

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/discovery"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
)

// MaxBytes is EC2's limit, before base64.
const MaxBytes = 16384

// Node is what was decided about a node.
type Node struct {
	// Labels and Taints are registered with the node. Labels that a kubelet may not set itself are
	// left out, see [Registrable].
	Labels map[string]string
	Taints []corev1.Taint
	// Kubelet is the node class's configuration. nil means the image's defaults.
	Kubelet *nodeclass.Kubelet
	// MaxPods is the planned number. nil leaves it to kubelet and image, which know no type newer
	// than the image.
	MaxPods *int32
	// RAID0 joins local disks into the ephemeral storage.
	RAID0 bool
	// ImageVersion is the version of the family's image: latest, or as AWS writes it. Empty means
	// unknown.
	ImageVersion string
	// Own is the user's own user data, in a format of the family.
	Own string
}

// Render returns the user data for a family, not yet in base64. The error joins what is wrong with
// cluster and node: labels and taints that no API server would accept, user data that cannot be
// merged, or that is larger than [MaxBytes]. Errors never quote user data.
func Render(family ec2.Family, c discovery.Cluster, n Node) (string, error) {
	if family == ec2.Custom {
		return sized(n.Own)
	}
	if err := errors.Join(validate(c, family), n.validate()); err != nil {
		return "", err
	}
	var text string
	var err error
	switch family {
	case ec2.AL2, ec2.Ubuntu:
		text, err = archive(n.Own, part{shellType, bootstrapScript(c, n)}, wrapShell)
	case ec2.AL2023, "":
		var config string
		if config, err = nodeConfig(c, n); err == nil {
			text, err = archive(n.Own, part{nodeConfigType, config}, wrapNodeConfig)
		}
	case ec2.Bottlerocket:
		text, err = settings(c, n)
	case ec2.Windows2019, ec2.Windows2022, ec2.Windows2025:
		text, err = powershell(c, n)
	default:
		_, err = ec2.ParseFamily(string(family))
		if err == nil {
			err = fmt.Errorf("userdata: no user data for family %q", family)
		}
	}
	if err != nil {
		return "", err
	}
	return sized(text)
}

func sized(text string) (string, error) {
	if len(text) > MaxBytes {
		return "", fmt.Errorf("userdata: %d bytes, and EC2 takes at most %d: "+
			"move scripts into the image, or have a short script fetch them", len(text), MaxBytes)
	}
	return text, nil
}

// dns returns the address of the cluster's DNS: the class's own choice, or the tenth address of the
// service network, as EKS assigns it. It is empty if neither is known.
func dns(c discovery.Cluster, k nodeclass.Kubelet) string {
	if len(k.ClusterDNS) > 0 {
		return k.ClusterDNS[0]
	}
	services, err := netip.ParsePrefix(c.ServiceCIDR)
	if err != nil {
		return ""
	}
	address := services.Masked().Addr()
	for range 10 {
		address = address.Next()
	}
	return address.String()
}

func validate(c discovery.Cluster, family ec2.Family) error {
	var errs []error
	need := func(field, value, why string) {
		if value == "" {
			errs = append(errs, fmt.Errorf("userdata: cluster.%s: missing: %s", field, why))
		}
	}
	for _, f := range []struct{ field, value string }{{"name", c.Name}, {"endpoint", c.Endpoint}, {"ca", c.CA}, {"serviceCIDR", c.ServiceCIDR}} {
		if !plain(f.value) {
			errs = append(errs, fmt.Errorf("userdata: cluster.%s: %q: want plain ASCII without spaces, quotes and dollar signs", f.field, f.value))
		}
	}
	need("name", c.Name, "want the name of the EKS cluster")
	need("endpoint", c.Endpoint, "want the address of the API server")
	if family == ec2.AL2023 || family == "" {
		need("ca", c.CA, "AL2023 does not look it up")
		need("serviceCIDR", c.ServiceCIDR, "AL2023 derives the address of the cluster's DNS from it; eks:DescribeCluster returns it")
	}
	return errors.Join(errs...)
}

// plain reports whether a text is ASCII without anything that a shell, PowerShell, a NodeConfig or
// TOML could take for the end of a quoted word.
func plain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("'\"`$\\<>", r) })
}

func (n Node) validate() error {
	var errs []error
	for _, address := range n.kubelet().ClusterDNS {
		if _, err := netip.ParseAddr(address); err != nil || !plain(address) {
			errs = append(errs, fmt.Errorf("userdata: kubelet.clusterDNS: %q: want an IP address", address))
		}
	}
	for _, s := range n.settings() {
		if by, ok := s.value.(map[string]string); ok {
			for _, key := range slices.Sorted(maps.Keys(by)) {
				if !plain(key) || !plain(by[key]) {
					errs = append(errs, fmt.Errorf("userdata: kubelet.%s: %q: %q: want plain ASCII without spaces, quotes and dollar signs", s.config, key, by[key]))
				}
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		for _, fault := range slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(n.Labels[key])) {
			errs = append(errs, fmt.Errorf("userdata: labels[%q]: %q: %s", key, n.Labels[key], fault))
		}
	}
	for i, t := range n.Taints {
		for _, fault := range slices.Concat(validation.IsQualifiedName(t.Key), validation.IsValidLabelValue(t.Value)) {
			errs = append(errs, fmt.Errorf("userdata: taints[%d]: %q: %s", i, t.ToString(), fault))
		}
		switch t.Effect {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		default:
			errs = append(errs, fmt.Errorf("userdata: taints[%d]: %q: want effect NoSchedule, PreferNoSchedule or NoExecute", i, t.ToString()))
		}
	}
	return errors.Join(errs...)
}

// Registrable reports whether a kubelet may register with the label. Keys in the domains
// kubernetes.io and k8s.io are reserved by the API server (its admission plugin NodeRestriction
// rejects them). Exceptions are keys that kubelets have always reported and the two sub-domains
// reserved for nodes.
func Registrable(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	if !ok {
		return true
	}
	within := func(parent string) bool { return domain == parent || strings.HasSuffix(domain, "."+parent) }
	if within("node.kubernetes.io") || within("kubelet.kubernetes.io") {
		return true
	}
	if !within("kubernetes.io") && !within("k8s.io") {
		return true
	}
	switch key {
	case corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelArchStable, corev1.LabelOSStable,
		corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion, corev1.LabelInstanceType, "beta.kubernetes.io/os", "beta.kubernetes.io/arch":
		return true
	}
	return false
}

// labels returns the registrable labels.
func (n Node) labels() map[string]string {
	out := maps.Clone(n.Labels)
	maps.DeleteFunc(out, func(key, _ string) bool { return !Registrable(key) })
	return out
}

// taints returns the taints in a canonical order, so that the order in a claim makes no new launch
// template.
func (n Node) taints() []corev1.Taint {
	out := slices.Clone(n.Taints)
	slices.SortFunc(out, func(a, b corev1.Taint) int { return strings.Compare(a.ToString(), b.ToString()) })
	return slices.CompactFunc(out, func(a, b corev1.Taint) bool { return a.ToString() == b.ToString() })
}

// kubelet returns the configuration with MaxPods set.
func (n Node) kubelet() nodeclass.Kubelet {
	var k nodeclass.Kubelet
	if n.Kubelet != nil {
		k = *n.Kubelet
	}
	if n.MaxPods != nil {
		k.MaxPods = n.MaxPods
	}
	return k
}
