package podclass

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Namespace returns the namespace of an object. An API server puts an object without one into
// "default".
func Namespace(o metav1.Object) string { return cmp.Or(o.GetNamespace(), corev1.NamespaceDefault) }

// Name returns namespace/name.
func Name(p *corev1.Pod) string { return Namespace(p) + "/" + p.Name }

// Compare orders pods by namespace, then by name. Digits compare as numbers, so web-2 is before
// web-10.
func Compare(a, b *corev1.Pod) int {
	return cmp.Or(strings.Compare(Namespace(a), Namespace(b)), compareNatural(a.Name, b.Name), strings.Compare(a.Name, b.Name))
}

func compareNatural(a, b string) int {
	for a != "" && b != "" {
		da, db := digits(a), digits(b)
		if da > 0 && db > 0 {
			x, y := strings.TrimLeft(a[:da], "0"), strings.TrimLeft(b[:db], "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); c != 0 {
				return c
			}
			a, b = a[da:], b[db:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// Sort sorts a slice by [Compare]. A sorted one costs one pass.
func Sort(pods []*corev1.Pod) {
	if !slices.IsSortedFunc(pods, Compare) {
		slices.SortStableFunc(pods, Compare)
	}
}
