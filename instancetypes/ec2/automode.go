package ec2

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/label"
	"github.com/joinery-sdk/joinery/requirements"
)

// EKS Auto Mode buys EC2 machines and uses its own group for their labels.
const (
	// AutoGroup is the API group of its node classes and the domain of its labels.
	AutoGroup = "eks.amazonaws.com"
	// LabelComputeType is "auto" on its nodes.
	LabelComputeType = AutoGroup + "/compute-type"
)

// autoPods is the maximum number of pods on its nodes.
const autoPods = 110

// AutoSettings returns s as EKS Auto Mode runs its nodes: with prefix delegation and at most 110
// pods.
func AutoSettings(s Settings) Settings {
	s.PrefixDelegation = true
	pods := int32(autoPods)
	s.Kubelet.MaxPods = &pods
	return s
}

// AutoMode returns the types as EKS Auto Mode has them. Labels of karpenter.k8s.aws become labels
// of [AutoGroup], [LabelComputeType] is auto, and its own driver attaches volumes. Types with one
// vCPU or of the sizes nano, micro and small are not for sale. Prices are those of EC2, without the
// fee that AWS adds. The types are new.
func AutoMode(types []instancetypes.InstanceType) []instancetypes.InstanceType {
	names := map[string]string{}
	for key := range label.Keys().All() {
		if rest, ok := strings.CutPrefix(key, label.Group+"/"); ok {
			names[key] = AutoGroup + "/" + rest
		}
	}
	aliases := requirements.NewAliases(names)
	auto := requirements.MustOf(requirements.In(LabelComputeType, "auto"))
	out := make([]instancetypes.InstanceType, 0, len(types))
	for _, t := range types {
		size := t.Name[strings.LastIndexByte(t.Name, '.')+1:]
		if cpu := t.Capacity[corev1.ResourceCPU]; cpu.Value() < 2 || slices.Contains([]string{"nano", "micro", "small"}, size) {
			continue
		}
		renamed, _ := aliases.Set(t.Requirements) // no type has both keys
		t.Requirements, _ = renamed.Intersect(auto)
		offerings := slices.Clone(t.Offerings)
		for i := range offerings {
			offerings[i].Requirements, _ = aliases.Set(offerings[i].Requirements)
		}
		t.Offerings = offerings
		t.Capacity = maps.Clone(t.Capacity)
		t.Capacity[ResourceAutoEBSVolumes] = t.Capacity[ResourceEBSVolumes]
		delete(t.Capacity, ResourceEBSVolumes)
		out = append(out, t)
	}
	return out
}
