package resources

import (
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// milli is the number of counts in one unit of cpu.
const milli = 1000

// perUnit returns how many counts make one unit of the resource: 1000 for cpu, 1 for everything
// else.
func perUnit(name corev1.ResourceName) int64 {
	if name == corev1.ResourceCPU {
		return milli
	}
	return 1
}

// Request converts a requested quantity to a count: milli for cpu, units for everything else,
// rounded up (towards +inf) and saturating at the ends of int64. The zero quantity is 0. It does
// not allocate for quantities that fit into an int64.
func Request(name corev1.ResourceName, q resource.Quantity) int64 {
	n, exact := count(name, q)
	if !exact && compare(name, n, q) < 0 {
		n++
	}
	return n
}

// Capacity converts an offered quantity to a count: milli for cpu, units for everything else,
// rounded down (towards -inf) and saturating at the ends of int64. The zero quantity is 0. It does
// not allocate for quantities that fit into an int64.
func Capacity(name corev1.ResourceName, q resource.Quantity) int64 {
	n, exact := count(name, q)
	if !exact && compare(name, n, q) > 0 {
		n--
	}
	return n
}

// count returns a count within one of the quantity. exact says that both ways of rounding would
// give it: it is exact or saturated.
func count(name corev1.ResourceName, q resource.Quantity) (n int64, exact bool) {
	per := perUnit(name)
	if whole, ok := q.AsInt64(); ok {
		switch {
		case whole > math.MaxInt64/per:
			return math.MaxInt64, true
		case whole < math.MinInt64/per:
			return math.MinInt64, true
		}
		return whole * per, true
	}
	// The value is a fraction or beyond int64. ScaledValue wraps silently, so the range is checked
	// first.
	switch {
	case q.CmpInt64(math.MaxInt64/per) >= 0:
		return math.MaxInt64, true
	case q.CmpInt64(math.MinInt64/per) <= 0:
		return math.MinInt64, true
	}
	if per == milli {
		return q.MilliValue(), false
	}
	return q.Value(), false
}

// compare compares a count with the exact quantity.
func compare(name corev1.ResourceName, n int64, q resource.Quantity) int {
	scale := resource.Scale(0)
	if perUnit(name) == milli {
		scale = resource.Milli
	}
	return resource.NewScaledQuantity(n, scale).Cmp(q)
}

// Quantity returns the count as a quantity in the most readable form: cores or milli-cores for cpu,
// binary or decimal prefixes for bytes (the shorter one, binary if equal), plain decimals for the
// rest. It is the exact inverse of [Request] and [Capacity].
func Quantity(name corev1.ResourceName, v int64) resource.Quantity {
	if perUnit(name) == milli {
		return *resource.NewMilliQuantity(v, resource.DecimalSI)
	}
	if !isBytes(name) {
		return *resource.NewQuantity(v, resource.DecimalSI)
	}
	// 6903Mi is not a round number of decimal megabytes, and a 937G disk is not a round number of
	// binary ones.
	if zeros(v, 1000) > zeros(v, 1024) {
		return *resource.NewQuantity(v, resource.DecimalSI)
	}
	return *resource.NewQuantity(v, resource.BinarySI)
}

// Humane returns the text of [Quantity]: "1930m" for cpu 1930, "6903Mi" for memory, "29" for pods.
func Humane(name corev1.ResourceName, v int64) string {
	q := Quantity(name, v)
	return q.String()
}

// isBytes reports whether the resource is measured in bytes.
func isBytes(name corev1.ResourceName) bool {
	return name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage || name == corev1.ResourceStorage ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// zeros returns how often v can be divided by base.
func zeros(v, base int64) int {
	n := 0
	for ; v != 0 && v%base == 0; v /= base {
		n++
	}
	return n
}
