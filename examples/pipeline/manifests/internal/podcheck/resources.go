package podcheck

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/internal/strictjson"
	"github.com/joinery-sdk/joinery/requirements"
)

func (c *Checker) resources(path string, r *corev1.ResourceRequirements) {
	for _, name := range sortedKeys(r.Limits) {
		at := path + ".limits" + strictjson.MapKey(string(name))
		c.resourceName(at, name)
		c.quantity(at, name, r.Limits[name])
	}
	for _, name := range sortedKeys(r.Requests) {
		at := path + ".requests" + strictjson.MapKey(string(name))
		request := r.Requests[name]
		c.resourceName(at, name)
		c.quantity(at, name, request)
		limit, ok := r.Limits[name]
		switch {
		case ok && request.Cmp(limit) > 0:
			c.add(at, "the request %s exceeds the limit %s", request.String(), limit.String())
		case ok && exact(name) && request.Cmp(limit) != 0: // without a limit the meaning is clear
			c.add(at, "the request %s differs from the limit %s, which %s does not allow", request.String(), limit.String(), name)
		}
	}
}

// exact reports whether a resource cannot be overcommitted, so that its request and limit must be
// equal.
func exact(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) || extended(name)
}

// extended reports whether a resource is one that devices and operators add.
func extended(name corev1.ResourceName) bool {
	domain, _, ok := strings.Cut(string(name), "/")
	return ok && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
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
		if text == "gpu" { // it is spelt more like cpu than like the intended name
			hint = " (did you mean \"nvidia.com/gpu\"?)"
		} else if near, ok := requirements.Nearest(text, known); ok {
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
	case extended(name) && q.MilliValue()%1000 != 0:
		c.add(path, "%s: %s comes in whole units", q.String(), name)
	}
}
