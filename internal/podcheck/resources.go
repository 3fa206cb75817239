package podcheck

import (
	"fmt"
	"maps"
	"slices"
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
		} else if request := r.Requests[name]; exact && !limited {
			c.add(at, "%s needs a limit of the same amount, %s; a limit alone is enough", name, request.String())
		}
	}
}

// whole checks what a pod asks for as a whole, beside what its containers ask for.
func (c *Checker) whole(path string, s *corev1.PodSpec) {
	r := s.Resources
	c.resources(path, r)
	c.hugePages(path, r)
	bare := &corev1.Pod{Spec: corev1.PodSpec{Containers: defaulted(s.Containers), InitContainers: defaulted(s.InitContainers)}}
	sum := resources.OfPod(bare, false)
	for _, list := range []struct {
		at string
		corev1.ResourceList
	}{{path + ".limits", r.Limits}, {path + ".requests", r.Requests}} {
		for _, name := range sortedKeys(list.ResourceList) {
			at, q := list.at+strictjson.MapKey(string(name)), list.ResourceList[name]
			if name != corev1.ResourceCPU && name != corev1.ResourceMemory && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
				c.add(at, "a pod as a whole has no %s, only cpu, memory and huge pages", strictjson.Quote(string(name)))
				continue
			}
			if asked, ok := sum[name]; ok && asked.Cmp(q) > 0 {
				c.add(at, "%s: the containers request %s", q.String(), asked.String())
			}
		}
	}
	for i := range s.Containers {
		for _, name := range sortedKeys(r.Limits) {
			most := r.Limits[name]
			if limit, ok := s.Containers[i].Resources.Limits[name]; ok && limit.Cmp(most) > 0 {
				c.add(path+".limits"+strictjson.MapKey(string(name)), "%s: container %d has a limit of %s", most.String(), i, limit.String())
			}
		}
	}
}

// defaulted returns containers whose requests are their limits where they have none, as an API
// server stores them.
func defaulted(containers []corev1.Container) []corev1.Container {
	out := slices.Clone(containers)
	for i := range out {
		r := &out[i].Resources
		requests := maps.Clone(r.Limits)
		if requests == nil {
			requests = corev1.ResourceList{}
		}
		maps.Copy(requests, r.Requests)
		r.Requests = requests
	}
	return out
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
		msgs := c.keyFaults(text)
		if len(msgs) == 0 && strings.HasPrefix(text, corev1.DefaultResourceRequestsPrefix) {
			msgs = []string{"ResourceQuotas have names that begin with requests., and containers do not"}
		}
		for _, msg := range msgs {
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
	page := int64(1)
	if size, huge := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix); huge {
		if parsed, err := strictjson.ParseQuantity(size); err == nil {
			page = max(parsed.Value(), 1)
		}
	}
	switch {
	case q.Sign() < 0:
		c.add(path, "%s: must not be negative", q.String())
	case q.Value()%page != 0:
		c.add(path, "%s: want a multiple of the size of a page", q.String())
	case q.CmpInt64(absurd) > 0:
		c.add(path, "%s: no node will ever have as much", q.String())
	case resources.IsExtended(name) && q.MilliValue()%1000 != 0:
		c.add(path, "%s: %s comes in whole units", q.String(), name)
	}
}
