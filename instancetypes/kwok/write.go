package kwok

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
)

// file is one entry of the file.
type file struct {
	Name             string                           `json:"name"`
	Architecture     string                           `json:"architecture"`
	OperatingSystems []string                         `json:"operatingSystems"`
	Resources        corev1.ResourceList              `json:"resources"`
	Overhead         corev1.ResourceList              `json:"overhead,omitempty"`
	Requirements     []corev1.NodeSelectorRequirement `json:"requirements,omitempty"`
	Retired          bool                             `json:"retired,omitempty"`
	Offerings        []offering                       `json:"offerings"`
}

type offering struct {
	Price               float64
	Available           bool
	ReservationCapacity *int    `json:",omitempty"`
	Commitment          string  `json:",omitempty"`
	CommittedPerHour    float64 `json:",omitempty"`
	CommitmentRate      float64 `json:",omitempty"`
	Requirements        []corev1.NodeSelectorRequirement
}

// Write writes a catalogue that [Read] can read. Names, requirements, offerings, capacity and the
// sum of the overheads are preserved. These are not preserved: how the overhead is divided, the
// List of an offering, and Full of a sold-out stock (of a full reservation it is preserved). The
// error names a type whose requirements cannot be written as a list of operators.
func Write(types []instancetypes.InstanceType) ([]byte, error) {
	out := make([]file, 0, len(types))
	for _, t := range types {
		f := file{Name: t.Name, Resources: t.Capacity, Overhead: t.Overhead.Total(), Retired: t.Retired}
		f.Architecture, _ = t.Requirements.Get(corev1.LabelArchStable).Single()
		f.OperatingSystems, _ = t.Requirements.Get(corev1.LabelOSStable).Values()
		var err error
		own := requirements.KeysOf(corev1.LabelInstanceTypeStable, corev1.LabelArchStable, corev1.LabelOSStable)
		if f.Requirements, err = expressions(t.Requirements.Without(own)); err != nil {
			return nil, fmt.Errorf("kwok: %q: requirements: %w", t.Name, err)
		}
		f.Offerings = make([]offering, 0, len(t.Offerings))
		for i, o := range t.Offerings {
			w := offering{Price: o.Price, Available: o.Available, Commitment: o.Commitment, CommittedPerHour: o.CommittedPerHour, CommitmentRate: o.CommitmentRate}
			full := o.Full && o.CapacityType() == instancetypes.CapacityTypeReserved // Karpenter writes it as available, with no capacity
			if w.Available = o.Available || full; o.ReservationCount > 0 || full {
				w.ReservationCapacity = &o.ReservationCount
			}
			if w.Requirements, err = expressions(o.Requirements); err != nil {
				return nil, fmt.Errorf("kwok: %q: offerings[%d]: %w", t.Name, i, err)
			}
			f.Offerings = append(f.Offerings, w)
		}
		out = append(out, f)
	}
	data, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("kwok: %w", err)
	}
	return append(data, '\n'), nil
}

func expressions(s requirements.Set) ([]corev1.NodeSelectorRequirement, error) {
	out, ok := kube.Expressions(s)
	if !ok {
		return nil, fmt.Errorf("%q cannot be written as operators and values", s)
	}
	return out, nil
}
