package resources

import (
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Add returns the sum of two lists as a new list. A resource that one list lacks counts as 0 there.
// Sums saturate at the range of [Request]. The sum of two empty lists is an empty list, not nil.
func Add(a, b corev1.ResourceList) corev1.ResourceList {
	sum := clone(a, len(b))
	add(sum, b)
	return sum
}

// add adds b to sum in place.
func add(sum, b corev1.ResourceList) {
	for name, q := range b {
		have := sum[name]
		have.Add(q)
		sum[name] = saturate(name, have)
	}
}

// Sub returns a minus b as a new list with the resources of both. A resource that one list lacks
// counts as 0 there, so a result may be negative. Differences saturate as in [Add].
func Sub(a, b corev1.ResourceList) corev1.ResourceList {
	rest := clone(a, len(b))
	for name, q := range b {
		have := rest[name]
		if _, ok := a[name]; !ok {
			have.Format = q.Format
		}
		have.Sub(q)
		rest[name] = saturate(name, have)
	}
	return rest
}

// Max returns a new list with the greater quantity of each resource. A resource that one list lacks
// is copied from the other, negative or not.
func Max(a, b corev1.ResourceList) corev1.ResourceList {
	most := clone(a, len(b))
	for name, q := range b {
		if have, ok := most[name]; !ok || q.Cmp(have) > 0 {
			most[name] = q.DeepCopy()
		}
	}
	return most
}

// Names returns the names of a list in ascending order. Use it to iterate when the order affects
// the result.
func Names(list corev1.ResourceList) []corev1.ResourceName {
	return slices.Sorted(maps.Keys(list))
}

// clone copies a list with its quantities, which may hold pointers, and leaves room for more.
func clone(list corev1.ResourceList, room int) corev1.ResourceList {
	out := make(corev1.ResourceList, max(len(list), room))
	for name, q := range list {
		out[name] = q.DeepCopy()
	}
	return out
}

// saturate brings a quantity into the range of a count.
func saturate(name corev1.ResourceName, q resource.Quantity) resource.Quantity {
	per := perUnit(name)
	switch {
	case q.CmpInt64(math.MaxInt64/per) > 0:
		return Quantity(name, math.MaxInt64)
	case q.CmpInt64(math.MinInt64/per) < 0:
		return Quantity(name, math.MinInt64)
	}
	return q
}
