package podcheck

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/internal/strictjson"
)

func (c *Checker) resources(path string, r *corev1.ResourceRequirements) {
	for _, name := range sortedKeys(r.Limits) {
		at := path + ".limits" + strictjson.MapKey(string(name))
		c.resourceName(at, name)
		c.quantity(at, name, r.Limits[name])
	}
	for _, name := range sortedKeys(r.Requests) {
		at := path + ".requests" + strictjson.MapKey(string(name))
		c.resourceName(at, name)
		c.quantity(at, name, r.Requests[name])
		_, limited := r.Limits[name]
		exact := strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) || resources.IsExtended(name)
		if wrong := resources.WrongRequest(name, r); wrong != "" {
			c.add(at, "%s", wrong)
		} else if request := r.Requests[name]; exact && !limited && !request.IsZero() {
			c.add(at, "%s needs a limit of the same amount, %s; a limit alone is enough", name, request.String())
		}
	}
}

// hugePages rejects a container with huge pages alone.
func (c *Checker) hugePages(path string, r *corev1.ResourceRequirements) {
	huge := false
	for _, list := range []corev1.ResourceList{r.Limits, r.Requests} {
		for name := range list {
			if name == corev1.ResourceCPU || name == corev1.ResourceMemory {
				return
			}
			huge = huge || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
		}
	}
	if huge {
		c.add(path, "huge pages need cpu or memory beside them")
	}
}

func (c *Checker) resourceName(path string, name corev1.ResourceName) {
	text := string(name)
	if strings.Contains(text, "/") {
		for _, msg := range c.keyFaults(text) {
			c.add(path, "%s: %s", strictjson.Quote(text), msg)
		}
		return
	}
	known := []string{"cpu", "memory", "ephemeral-storage"}
	switch {
	case text == known[0] || text == known[1] || text == known[2]:
	case strings.HasPrefix(text, corev1.ResourceHugePagesPrefix):
		if size, err := strictjson.ParseQuantity(text[len(corev1.ResourceHugePagesPrefix):]); err != nil || size.Sign() <= 0 {
			c.add(path, "%s: want a page size after %q, such as hugepages-2Mi", strictjson.Quote(text), corev1.ResourceHugePagesPrefix)
		}
	default:
		hint := "; an extended resource has a domain, such as example.com/" + text
		if len(text) > 63 || strings.ContainsAny(text, " \"\n") {
			hint = ""
		}
		if near := resources.Meant(name, known...); near != "" {
			hint = fmt.Sprintf(" (did you mean %q?)", near)
		}
		c.add(path, "containers have no resource %s%s", strictjson.Quote(text), hint)
	}
}

// quantity rejects amounts that no computer has, 2^53 of anything, because sums of such amounts
// would overflow.
func (c *Checker) quantity(path string, name corev1.ResourceName, q resource.Quantity) {
	const absurd = 1 << 53
	switch {
	case q.Sign() < 0:
		c.add(path, "%s: must not be negative", q.String())
	case q.CmpInt64(absurd) > 0:
		c.add(path, "%s: no node will ever have as much", q.String())
	case resources.IsExtended(name) && q.MilliValue()%1000 != 0:
		c.add(path, "%s: %s comes in whole units", q.String(), name)
	}
}
