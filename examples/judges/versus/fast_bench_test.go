package main

import (
	"testing"

	"github.com/joinery-sdk/joinery/binpack"
)

// BenchmarkDiverseFast times what VERSUS.md calls fast: 5,000 pods of Karpenter's own mix, all of them placed.
func BenchmarkDiverseFast(b *testing.B) {
	in, err := newInput(b.Context(), families()[0], 5000)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p, _, err := in.ours(binpack.EffortFast)
		if err != nil || len(p.Bindings()) != 5000 {
			b.Fatal(len(p.Bindings()), err)
		}
	}
}
