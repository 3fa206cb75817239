// Package selector writes label selectors in words.
package selector

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Text returns a selector of pods in words. Unlike its String method, the text has a word for the
// selectors of all pods and of none, and quotes the empty value.
func Text(s labels.Selector) string {
	requirements, selectable := s.Requirements()
	switch {
	case !selectable:
		return "no pods"
	case len(requirements) == 0:
		return "all pods"
	}
	out := make([]string, len(requirements))
	for i, r := range requirements {
		out[i] = r.String()
		switch {
		case !r.Values().Has(""):
		case strings.Contains(out[i], "("): // the empty value is the first one
			out[i] = strings.Replace(out[i], "(", `(""`, 1)
		default:
			out[i] += `""`
		}
	}
	return strings.Join(out, ",")
}

// TextOf is [Text] of a selector as manifests have it; nil selects no pods.
func TextOf(s *metav1.LabelSelector) string {
	parsed, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return "an invalid selector"
	}
	return Text(parsed)
}
