package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
)

// BenchmarkDiverseFast times what VERSUS.md calls fast: 5,000 pods of Karpenter's own mix, all of them placed.
func BenchmarkDiverseFast(b *testing.B) {
	in, err := newInput(b.Context(), families()[0], 5000)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		p, _, err := in.ours(binpack.EffortFast)
		if err != nil || len(p.Bindings()) != 5000 {
			b.Fatal(len(p.Bindings()), err)
		}
	}
}

// BenchmarkBesidePacking times the same pods, and more of them, without what package binpack takes: compiling, assigning, verifying
// and reading the result. The first fit of each round stands.
func BenchmarkBesidePacking(b *testing.B) {
	for _, pods := range []int{5000, 50000} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			in, err := newInput(b.Context(), families()[0], pods)
			if err != nil {
				b.Fatal(err)
			}
			packing := time.Duration(0)
			for b.Loop() {
				p, err := scheduling.Compile(in.snapshot, nil)
				if err != nil {
					b.Fatal(err)
				}
				k := &firstFit{}
				result, err := p.Solve(b.Context(), k)
				if err != nil || len(result.Bindings()) != pods || len(result.NewNodes()) == 0 {
					b.Fatal(err)
				}
				packing += k.took
			}
			b.ReportMetric((b.Elapsed()-packing).Seconds()*1e3/float64(b.N), "ms-beside-packing")
		})
	}
}

// firstFit packs and takes the time.
type firstFit struct {
	took time.Duration
	last scheduling.Outcome
}

func (k *firstFit) Pack(ctx context.Context, p *scheduling.Problem, r scheduling.Round) (scheduling.Outcome, error) {
	if r.Final {
		return k.last, nil
	}
	defer func(start time.Time) { k.took += time.Since(start) }(time.Now())
	in, err := binpack.Compile(plan.Problem(p, plan.Types(p), r.Items))
	if err != nil {
		return k.last, err
	}
	packed, err := in.Pack(ctx, &binpack.Options{Strategy: binpack.FirstFitDecreasing{}, Draft: true})
	if err == nil {
		k.last = plan.Outcome(in, packed)
	}
	return k.last, err
}
