package requirements

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Pod is what one pod asks of the labels of its node.
type Pod struct {
	// Required holds the OR-terms: the node must satisfy one of them. Each includes the pod's node selector.
	Required Alternatives
	// Preferred holds the soft terms, heaviest first; terms of one weight keep the order of the manifest.
	Preferred []Preference
}

// Preference is a soft term: a node that satisfies it is worth Weight (1 to 100) more.
type Preference struct {
	Weight int32
	Nodes  Set
}

// FromPod reads node selector and node affinity. A pod without either may go anywhere. The error joins one
// [*InvalidError] for each fault, with paths from the pod ("spec.affinity.nodeAffinity...").
func FromPod(spec *corev1.PodSpec) (Pod, error) {
	const affinity = "spec.affinity.nodeAffinity."
	base := FromLabels(spec.NodeSelector)
	out := Pod{Required: AnyOf(base)}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return out, nil
	}
	var errs []error
	na := spec.Affinity.NodeAffinity
	if sel := na.RequiredDuringSchedulingIgnoredDuringExecution; sel != nil {
		terms, err := FromNodeSelector(sel)
		if err != nil {
			errs = append(errs, under(affinity+"requiredDuringSchedulingIgnoredDuringExecution.", err))
		}
		out.Required = terms.Intersect(out.Required)
	}
	for i, p := range na.PreferredDuringSchedulingIgnoredDuringExecution {
		at := fmt.Sprintf("%spreferredDuringSchedulingIgnoredDuringExecution[%d].", affinity, i)
		if p.Weight < 1 || p.Weight > 100 {
			errs = append(errs, &InvalidError{at + "weight", fmt.Sprintf("%d: want 1 to 100", p.Weight)})
		}
		if len(p.Preference.MatchExpressions) == 0 && len(p.Preference.MatchFields) == 0 {
			continue // an empty preferred term prefers every node alike
		}
		s, err := fromTerm("preference.", p.Preference)
		if err != nil {
			errs = append(errs, under(at, err))
			continue
		}
		out.Preferred = append(out.Preferred, Preference{p.Weight, s})
	}
	slices.SortStableFunc(out.Preferred, func(a, b Preference) int { return cmp.Compare(b.Weight, a.Weight) })
	return out, errors.Join(errs...)
}

// under puts a prefix before the path of every InvalidError that err joins.
func under(prefix string, err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, e := range joined.Unwrap() {
			errs = append(errs, under(prefix, e))
		}
		return errors.Join(errs...)
	}
	if invalid, ok := errors.AsType[*InvalidError](err); ok {
		return &InvalidError{prefix + invalid.Path, invalid.Detail}
	}
	return err
}
