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

// EKS Auto Mode buys EC2 machines and labels them in a group of its own.
const (
	// AutoGroup is the API group of its node classes and the domain of its labels.
	AutoGroup = "eks.amazonaws.com"
	// LabelComputeType is "auto" on its nodes.
	LabelComputeType = AutoGroup + "/compute-type"
)

// autoPods is how many pods its nodes take at most.
const autoPods = 110

// AutoSettings are s as EKS Auto Mode runs its nodes: with prefix delegation and no more than 110 pods.
func AutoSettings(s Settings) Settings {
	s.PrefixDelegation = true
	pods := int32(autoPods)
	s.Kubelet.MaxPods = &pods
	return s
}

// AutoMode is the types as EKS Auto Mode has them: labels of karpenter.k8s.aws are of [AutoGroup], [LabelComputeType] is auto, volumes
// are attached by its own driver, and types with one vCPU or of the sizes nano, micro and small are not for sale. Prices are EC2's;
// the fee that AWS adds is in no list of ours. The types are new.
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
		renamed, _ := aliases.Set(t.Requirements) // nothing has both keys
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
