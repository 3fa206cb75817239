package kwok

import (
	"maps"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
)

// Labels that the KWOK provider gives its nodes. A file may override them in "requirements".
const (
	LabelSize   = "karpenter.kwok.sh/instance-size"
	LabelFamily = "karpenter.kwok.sh/instance-family"
	LabelCPU    = "karpenter.kwok.sh/instance-cpu"
	LabelMemory = "karpenter.kwok.sh/instance-memory"
)

// WellKnown returns the keys that are undecided for a node that is not bought yet, with such a
// catalogue: the usual ones, those of this package, and every key that a type or an offering of the
// catalogue mentions.
func WellKnown(types []instancetypes.InstanceType) requirements.Keys {
	keys := []string{LabelSize, LabelFamily, LabelCPU, LabelMemory}
	for _, t := range types {
		for r := range t.Requirements.All() {
			keys = append(keys, r.Key())
		}
		for _, o := range t.Offerings {
			for r := range o.Requirements.All() {
				keys = append(keys, r.Key())
			}
		}
	}
	return instancetypes.WellKnown().Union(requirements.KeysOf(keys...))
}

// sized matches the type names of AWS: family, dot, size.
var sized = regexp.MustCompile(`^[a-zA-Z0-9]+\.([a-zA-Z0-9-]+)$`)

// kwokLabels returns the labels that the KWOK provider derives from name and resources. The family
// is the name up to the first dot or dash, or its first letter. The size is the part after the dot
// of an AWS name, or the number of cores.
func kwokLabels(t instancetypes.InstanceType) map[string]string {
	if t.Name == "" {
		return nil
	}
	cpu, memory := t.Capacity[corev1.ResourceCPU], t.Capacity[corev1.ResourceMemory]
	out := map[string]string{LabelCPU: cpu.String(), LabelMemory: memory.String(), LabelSize: cpu.String(), LabelFamily: t.Name[:1]}
	if i := strings.IndexAny(t.Name, ".-"); i > 0 {
		out[LabelFamily] = t.Name[:i]
	}
	if m := sized.FindStringSubmatch(t.Name); m != nil {
		out[LabelSize] = m[1]
	}
	// A part of a name may end with a character that a label value must not end with.
	maps.DeleteFunc(out, func(_, value string) bool { return len(validation.IsValidLabelValue(value)) > 0 })
	return out
}

// places returns where and how the offerings together can be bought: the values of each key that
// every offering fixes to a finite list. So it is known that the type has no other values.
func places(offerings []instancetypes.Offering) []requirements.Requirement {
	var out []requirements.Requirement
	for _, key := range []string{corev1.LabelTopologyZone, instancetypes.LabelCapacityType} {
		var all []string
		for _, o := range offerings {
			values, finite := o.Requirements.Get(key).Values()
			if !finite || len(values) == 0 {
				all = nil
				break
			}
			all = append(all, values...)
		}
		if len(all) > 0 {
			out = append(out, requirements.In(key, all...))
		}
	}
	return out
}
