package binpack_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/requirements"
)

// crowd returns n copies in n/25 items over 15 types, two zones and two pools without limits.
func crowd(n int) binpack.Problem {
	rng := rand.New(rand.NewPCG(29, 30))
	p := shop(rng, n/25)
	p.Nodes, p.Pools[1].MaxNodes = nil, nil
	left := n
	for i := range p.Items {
		p.Items[i].Count = left / (len(p.Items) - i)
		left -= p.Items[i].Count
		if len(p.Items[i].Limits) > 0 { // a few of each class need a bin each, like replicas of a service
			p.Items[i].Limits[0].Max = 8
		}
	}
	return p
}

func BenchmarkPack(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		p := crowd(n)
		b.Run(fmt.Sprintf("copies=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			var plan *binpack.Plan
			for b.Loop() {
				var err error
				if plan, err = binpack.Pack(b.Context(), p, nil); err != nil {
					b.Fatal(err)
				}
			}
			placed := 0
			for _, bin := range plan.Bins {
				for _, s := range bin.Shares {
					placed += s.Count
				}
			}
			require.Equal(b, n, placed)
			require.LessOrEqual(b, plan.Bound.Price, plan.Cost)
			b.ReportMetric(plan.GapPercent(), "gap-%")
			b.ReportMetric(float64(len(plan.Bins)), "bins")
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	p := crowd(100_000)
	b.ReportAllocs()
	for b.Loop() {
		in, err := binpack.Compile(p)
		if err != nil || len(in.Problem().Items) != 4000 {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	in, err := binpack.Compile(crowd(100_000))
	require.NoError(b, err)
	plan, err := in.Pack(b.Context(), nil)
	require.NoError(b, err)
	broken := plan.Layout
	broken.Bins = append(broken.Bins[:0:0], broken.Bins...)
	broken.Bins[0].Shares = nil
	require.Error(b, in.Check(broken))
	b.ReportAllocs()
	for b.Loop() {
		if err := in.Check(plan.Layout); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerifyBound(b *testing.B) {
	in, err := binpack.Compile(crowd(100_000))
	require.NoError(b, err)
	plan, err := in.Pack(b.Context(), nil)
	require.NoError(b, err)
	require.Positive(b, plan.Bound.Price)
	b.ReportAllocs()
	for b.Loop() {
		if err := in.VerifyBound(plan); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpenKeys packs items that narrow a label that every type leaves open, one team per class.
func BenchmarkOpenKeys(b *testing.B) {
	p := crowd(10_000)
	for i := range p.Types {
		p.Types[i].Provides = requirements.MustParse("team")
	}
	for i := range p.Items {
		p.Items[i].Requires = requirements.AnyOf(requirements.MustOf(requirements.In("team", fmt.Sprint("team-", i%20))))
	}
	b.ReportAllocs()
	for b.Loop() {
		plan, err := binpack.Pack(b.Context(), p, nil)
		if err != nil || len(plan.Bins) < 20 {
			b.Fatal(err)
		}
	}
}
