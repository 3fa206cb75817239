package selector_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joinery-sdk/joinery/internal/selector"
)

func TestText(t *testing.T) {
	of := func(key string, op metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	for want, s := range map[string]*metav1.LabelSelector{
		"no pods":             nil,
		"all pods":            {},
		"app=web":             {MatchLabels: map[string]string{"app": "web"}},
		`app="",tier=web`:     {MatchLabels: map[string]string{"app": "", "tier": "web"}},
		`v in ("")`:           of("v", metav1.LabelSelectorOpIn, ""),
		`v in ("",a)`:         of("v", metav1.LabelSelectorOpIn, "a", ""),
		`v notin ("")`:        of("v", metav1.LabelSelectorOpNotIn, ""),
		"v in (a,b)":          of("v", metav1.LabelSelectorOpIn, "b", "a"),
		"v":                   of("v", metav1.LabelSelectorOpExists),
		"!v":                  of("v", metav1.LabelSelectorOpDoesNotExist),
		"an invalid selector": of("v", "Near", "a"),
	} {
		assert.Equal(t, want, selector.TextOf(s))
	}
}
