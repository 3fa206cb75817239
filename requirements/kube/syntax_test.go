package kube_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/joinery-sdk/joinery/requirements"
)

// Package requirements has the syntax of keys and values written down for itself; the API's own validation judges it.
func sameSyntax(t *testing.T, text string) {
	t.Helper()
	_, err := requirements.New(text, requirements.OpExists)
	require.Equal(t, len(validation.IsQualifiedName(text)) == 0, err == nil, "key %q: %v", text, err)
	_, err = requirements.New("k", requirements.OpIn, text)
	require.Equal(t, len(validation.IsValidLabelValue(text)) == 0, err == nil, "value %q: %v", text, err)
}

func TestSyntaxIsTheAPIs(t *testing.T) {
	for _, n := range []int{1, 62, 63, 64, 252, 253, 254} {
		long := strings.Repeat("x", n)
		for _, text := range []string{long, long + "/x", "x/" + long, long[1:] + "."} {
			sameSyntax(t, text)
		}
	}
	pieces := []string{"a", "Z", "0", "-", "_", ".", "/", "example.com/", "é", " ", "\n", "\x00", "\xff", "a.b", "a..b"}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		var b strings.Builder
		for range rng.IntN(6) {
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
		sameSyntax(t, b.String())
	}
}

func FuzzSyntaxIsTheAPIs(f *testing.F) {
	for _, text := range []string{"", "zone", "example.com/disk", "a/b/c", "-", "Example.com/x", "a_b.c-d"} {
		f.Add(text)
	}
	f.Fuzz(sameSyntax)
}
