// Package spelling says which label key or value was probably meant by one that nothing has.
package spelling

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/requirements"
)

// Likely returns the known label key that was probably meant. It is the one with the nearest name in
// the same domain, or else the nearest key. If both keys are of clouds, it may also be one of the
// same name in another domain, for example Karpenter's for EKS's.
func Likely(key string, known []string, cloud bool) (string, bool) {
	name := key[max(0, strings.IndexByte(key, '/')):]
	domain := key[:len(key)-len(name)]
	var names, others []string
	for _, k := range known {
		if n, ok := strings.CutPrefix(k, domain+"/"); ok && domain != "" {
			names = append(names, n)
		} else {
			others = append(others, k)
		}
	}
	if near, ok := requirements.Nearest(strings.TrimPrefix(name, "/"), names); ok {
		return domain + "/" + near, true
	}
	if near, ok := requirements.Nearest(key, others); ok {
		return near, true
	}
	if !cloud && !strings.HasPrefix(name, "/instance-") {
		return "", false
	}
	at := slices.IndexFunc(known, func(k string) bool {
		return strings.HasSuffix(k, name) && strings.IndexByte(k, '/') == len(k)-len(name)
	})
	if at < 0 {
		return "", false
	}
	return known[at], true
}

// Offered names the value that is spelt most like an asked one, or all values if they are
// few.
func Offered(asked requirements.Requirement, values map[string]bool) string {
	there := slices.Sorted(maps.Keys(values))
	list, _ := asked.Values()
	for _, v := range list {
		if hint := Hint(v, there); hint != "" {
			return hint
		}
	}
	if len(there) > 0 && len(there) <= 12 {
		return " (offered: " + strings.Join(there, ", ") + ")"
	}
	return ""
}

// Allowed asks whether an allowed value was meant by an asked one that nothing has. It is empty if
// none is near.
func Allowed(asked, allowed requirements.Requirement, values map[string]bool) string {
	words, _ := asked.Values()
	candidates, _ := allowed.Values()
	for _, word := range words {
		if hint := Hint(word, candidates); hint != "" && !values[word] {
			return hint
		}
	}
	return ""
}

// Hint asks whether the nearest of the candidates was meant; it is empty if none is near.
func Hint(word string, candidates []string) string {
	if near, ok := requirements.Nearest(word, candidates); ok {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}
