package pipeline

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
	"github.com/joinery-sdk/joinery/requirements"
)

// RegionOf returns the EC2 region of the manifests: that of the nodes, otherwise the one that pools
// and the status of node classes name. It is empty if nothing names a region. The error says that
// there are several.
func RegionOf(m *manifests.Snapshot) (string, error) {
	found := map[string]bool{}
	for _, n := range m.Nodes {
		found[regionOfNode(n)] = true
	}
	if region, err := onlyRegion(found, "nodes"); region != "" || err != nil {
		return region, err
	}
	for _, pool := range m.NodePools {
		if !cloudOf(pool).ec2 {
			continue
		}
		asked, err := requirements.KubernetesAliases().And(requirements.AgentAliases()).Set(pool.NodeRequirements())
		if err != nil {
			continue
		}
		for _, key := range []string{corev1.LabelTopologyRegion, corev1.LabelTopologyZone} {
			values, finite := asked.Get(key).Values()
			for _, v := range values {
				if finite && asked.Has(key) && asked.Get(key).Contains(v) {
					found[regionOfPlace(v)] = true
				}
			}
		}
		if class, ok := m.ClassOf(pool); ok {
			if decoded, ok := class.Value.(nodeclass.NodeClass); ok {
				for _, zone := range decoded.Zones() {
					found[regionOfPlace(zone)] = true
				}
				for _, r := range decoded.Status.Reservations {
					found[regionOfPlace(r.Zone)] = true
				}
			}
		}
	}
	return onlyRegion(found, "pools")
}

func onlyRegion(found map[string]bool, what string) (string, error) {
	delete(found, "")
	names := slices.Sorted(maps.Keys(found))
	switch {
	case len(names) > 1:
		return "", fmt.Errorf("the %s are in several regions: choose one of %s", what, strings.Join(names, ", "))
	case len(names) == 1:
		return names[0], nil
	}
	return "", nil
}

// regionOfNode returns the EC2 region of a node from its labels or its provider id. It is empty for
// other clouds.
func regionOfNode(n *corev1.Node) string {
	scheme, rest, _ := strings.Cut(n.Spec.ProviderID, "://")
	if scheme != "" && scheme != "aws" {
		return ""
	}
	labels := requirements.KubernetesAliases().Labels(n.Labels)
	zone, _, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	return cmp.Or(regionOfPlace(labels[corev1.LabelTopologyRegion]), regionOfPlace(labels[corev1.LabelTopologyZone]), regionOfPlace(zone))
}

// place matches the names of EC2 regions and zones, including local zones.
var place = regexp.MustCompile(`^((?:[a-z]{2}|us-gov|us-iso[a-z]?|eu-isoe)-(?:north|south|east|west|central|northeast|northwest|southeast|southwest)-[0-9]+)([a-z]|-[a-z]+-[0-9]+[a-z])?$`)

// regionOfPlace returns the region of a region or zone name. It is empty if the name does not look
// like one of EC2.
func regionOfPlace(name string) string {
	if match := place.FindStringSubmatch(name); match != nil {
		return match[1]
	}
	return ""
}

// DefaultRegion is the region of manifests that do not name one.
const DefaultRegion = "us-east-1"
