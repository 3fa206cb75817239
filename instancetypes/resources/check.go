package resources

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/requirements"
)

// Meant returns the resource that a misspelt name probably means, out of the known ones. It is empty
// if the name is known, or near none of them.
func Meant(name corev1.ResourceName, known ...string) string {
	if name == "gpu" { // it is spelt more like cpu than like the resource of any device
		return "nvidia.com/gpu"
	}
	if slices.Contains(known, string(name)) {
		return ""
	}
	near, _ := requirements.Nearest(string(name), known)
	return near
}

// IsExtended reports whether a resource is one that devices and operators add to nodes.
func IsExtended(name corev1.ResourceName) bool {
	domain, _, ok := strings.Cut(string(name), "/")
	return ok && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}

// WrongRequest says why an API server refuses the request of a resource beside its limit; empty if
// it does not. A request is at most its limit. Huge pages and extended resources cannot be
// overcommitted, so their request equals their limit. Before it compares them, an API server rounds
// both up to thousandths.
func WrongRequest(name corev1.ResourceName, r *corev1.ResourceRequirements) string {
	request, asked := rounded(r.Requests, name)
	limit, limited := rounded(r.Limits, name)
	exact := strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) || IsExtended(name)
	switch {
	case !asked || !limited: // without a limit the meaning is clear
	case request.Cmp(limit) > 0:
		return fmt.Sprintf("the request %s exceeds the limit %s", request.String(), limit.String())
	case exact && request.Cmp(limit) != 0:
		return fmt.Sprintf("the request %s differs from the limit %s, which %s does not allow", request.String(), limit.String(), name)
	}
	return ""
}

func rounded(list corev1.ResourceList, name corev1.ResourceName) (resource.Quantity, bool) {
	q, ok := list[name]
	q = q.DeepCopy()
	q.RoundUp(resource.Milli)
	return q, ok
}
