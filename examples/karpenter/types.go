package karpenter

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karp "sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/requirements/kube"
)

// attachable is the prefix of the resources by which a type says how many volumes of a CSI driver
// its nodes attach.
const attachable = "attachable-volumes-csi-"

// know tells Karpenter, which keeps such things in variables, the labels that nodes of these types
// may turn out to have, and by which of them reservations are told apart.
func know(types []instancetypes.InstanceType) {
	karp.ReservationIDLabel = instancetypes.LabelReservationID
	karp.ReservedCapacityLabels.Insert(instancetypes.LabelReservationID)
	karpv1.WellKnownLabels.Insert(keysOf(types)...)
}

// keysOf are the labels that a type or an offering speaks of, in order.
func keysOf(types []instancetypes.InstanceType) []string {
	keys := map[string]bool{corev1.LabelInstanceTypeStable: true}
	for _, t := range types {
		for r := range t.Requirements.All() {
			keys[r.Key()] = true
		}
		for _, o := range t.Offerings {
			for r := range o.Requirements.All() {
				keys[r.Key()] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// converted are the types as Karpenter has them. A label that is known of one type and not of
// another is absent there: Karpenter takes what it is not told for anything.
func converted(types []instancetypes.InstanceType) ([]*karp.InstanceType, error) {
	keys := keysOf(types)
	out := make([]*karp.InstanceType, 0, len(types))
	for _, t := range types {
		x, err := convert(t, keys)
		if err != nil {
			return nil, fmt.Errorf("karpenter: type %q: %w", t.Name, err)
		}
		out = append(out, x)
	}
	return out, nil
}

func convert(t instancetypes.InstanceType, keys []string) (*karp.InstanceType, error) {
	own, err := expressed(t.Requirements)
	if err != nil {
		return nil, err
	}
	own.Add(scheduling.NewRequirement(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, t.Name))
	out := &karp.InstanceType{Name: t.Name, Requirements: own, Capacity: t.Capacity.DeepCopy(), Overhead: &karp.InstanceTypeOverhead{
		KubeReserved: t.Overhead.KubeReserved.DeepCopy(), SystemReserved: t.Overhead.SystemReserved.DeepCopy(),
		EvictionThreshold: t.Overhead.EvictionThreshold.DeepCopy(),
	}}
	for name, quantity := range t.Capacity {
		if driver, ok := strings.CutPrefix(string(name), attachable); ok {
			if out.VolumeAttachmentLimits == nil {
				out.VolumeAttachmentLimits = map[string]int{}
			}
			out.VolumeAttachmentLimits[driver] = int(quantity.Value())
		}
	}
	byOffering := map[string][]string{} // the values of keys that offerings decide, of those that can be had
	for _, o := range distinct(t.Offerings) {
		asked, err := expressed(o.Requirements)
		if err != nil {
			return nil, err
		}
		_, reserved := o.Requirements.Get(instancetypes.LabelReservationID).Single()
		full := reserved && !o.Available && o.ReservationCount == 0 // Karpenter takes a full reservation for healthy
		out.Offerings = append(out.Offerings, &karp.Offering{
			Requirements: asked, Price: o.Price, Available: o.Available || full, ReservationCapacity: o.ReservationCount,
		})
		for key := range asked {
			values := byOffering[key]
			if value, ok := o.Requirements.Get(key).Single(); ok && o.Available {
				values = append(values, value)
			}
			byOffering[key] = values
		}
	}
	for key, values := range byOffering {
		delete(own, key) // whatever the type says
		fixed := true
		for _, o := range out.Offerings {
			if !o.Requirements.Has(key) {
				o.Requirements.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpDoesNotExist))
			}
			fixed = fixed && o.Requirements.Get(key).Operator() == corev1.NodeSelectorOpIn
		}
		if fixed { // otherwise no list of values says it, and the offerings alone decide
			own.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, values...))
		}
	}
	for _, key := range keys {
		if _, ok := byOffering[key]; !ok && !own.Has(key) {
			own.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpDoesNotExist))
		}
	}
	return out, nil
}

// distinct leaves one of the offerings that differ only by what was paid in advance, which
// Karpenter has no place for: the cheapest that can be had.
func distinct(offerings []instancetypes.Offering) []instancetypes.Offering {
	var out []instancetypes.Offering
	for _, o := range offerings {
		i := slices.IndexFunc(out, func(x instancetypes.Offering) bool { return x.Requirements.Equal(o.Requirements) })
		switch {
		case i < 0:
			out = append(out, o)
		case o.Available && (!out[i].Available || o.Price < out[i].Price):
			out[i] = o
		}
	}
	return out
}

// expressed is the set as Karpenter has it.
func expressed(set requirements.Set) (scheduling.Requirements, error) {
	list, ok := kube.Expressions(set)
	if !ok {
		return nil, fmt.Errorf("the requirements %q cannot be written in the form of the Kubernetes API", set)
	}
	return scheduling.NewNodeSelectorRequirements(list...), nil
}
