package interpod

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/scheduling/internal/podclass"
	"github.com/joinery-sdk/joinery/scheduling/internal/quota"
)

// ratio is a group of pods that are divided over the values of its key; see
// [podclass.RatioAnnotation]. Its pods share the annotation and the namespace.
type ratio struct {
	group  int32
	shares map[string]int
	most   map[string]int // by value, how many pods it may have
}

func ratioKey(pod *corev1.Pod) string {
	return podclass.Namespace(pod) + "|" + pod.Annotations[podclass.RatioAnnotation]
}

// readRatio returns the group of a pod's ratio, a new one if it is not known; false if it has none.
func (x *Index) readRatio(pod *corev1.Pod) (int32, bool, error) {
	text, ok := pod.Annotations[podclass.RatioAnnotation]
	if !ok {
		return 0, false, nil
	}
	if r, known := x.ratios[ratioKey(pod)]; known {
		return r.group, true, nil
	}
	key, shares, err := quota.ParseShares(text)
	if err != nil {
		return 0, false, fmt.Errorf("metadata.annotations[%s]: %w", podclass.RatioAnnotation, err)
	}
	g := x.Custom(key, "pods of ratio "+text, "ratio "+ratioKey(pod))
	x.groups.list[g].Ratio = text
	x.ratios[ratioKey(pod)] = &ratio{group: g, shares: shares}
	return g, true, nil
}

// RatioOf returns the group of a pod's ratio. It is false if the pod has none, or if no pod with
// this ratio was read.
func (x *Index) RatioOf(pod *corev1.Pod) (int32, bool) {
	if len(x.ratios) == 0 || pod.Annotations == nil {
		return 0, false
	}
	if r, known := x.ratios[ratioKey(pod)]; known {
		return r.group, true
	}
	return 0, false
}

// Divide sets the total number of pods of each ratio, by group, and thereby how many of them each
// value may have; see [quota.Apportion]. States that were made before do not change.
func (x *Index) Divide(total map[int32]int) {
	for _, r := range x.ratios {
		r.most = quota.Apportion(total[r.group], r.shares)
	}
}

// most returns how many pods of each ratio the values may have, by group and value.
func (x *Index) most(values *Values) map[int32]map[int32]int32 {
	out := map[int32]map[int32]int32{}
	for _, r := range x.ratios {
		out[r.group] = map[int32]int32{}
		for value, n := range r.most {
			out[r.group][values.Of(x.groups.list[r.group].Key, value)] = int32(n)
		}
	}
	return out
}

// memberOfRatio returns the groups with that of a pod's ratio added, ascending.
func (x *Index) memberOfRatio(groups []int32, pod *corev1.Pod) []int32 {
	g, ok := x.RatioOf(pod)
	if !ok {
		return groups
	}
	at, found := slices.BinarySearch(groups, g)
	if found {
		return groups
	}
	return slices.Insert(slices.Clone(groups), at, g)
}
