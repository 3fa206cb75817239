package binpack_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
)

// heavier returns a layout in which contents of a light pool's bin are in a heavier pool, if there is one that keeps all rules:
// one copy of an item, or all of the bin, in a new bin or in one of those that there are.
func heavier(in *binpack.Instance, l binpack.Layout) (found binpack.Layout, ok bool) {
	p := in.Problem()
	weight := func(typ int) int { return p.Pools[p.Types[typ].Pool].Weight }
	for i, b := range l.Bins {
		parts := [][]binpack.Share{b.Shares}
		if len(b.Shares) > 1 || b.Shares[0].Count > 1 {
			for _, s := range b.Shares {
				parts = append(parts, []binpack.Share{{Item: s.Item, Count: 1}})
			}
		}
		for _, part := range parts {
			for k, into := range l.Bins {
				if weight(into.Type) > weight(b.Type) {
					moved := without(l, i, part)
					moved.Bins[k].Shares = joined(into.Shares, part)
					if moved.Bins = nonempty(moved.Bins); in.Check(moved) == nil {
						return moved, true
					}
				}
			}
			for t, typ := range p.Types {
				for j := range typ.Offerings {
					if weight(t) > weight(b.Type) {
						moved := without(l, i, part)
						moved.Bins = append(nonempty(moved.Bins), binpack.Bin{Type: t, Offering: j, Shares: part})
						if in.Check(moved) == nil {
							return moved, true
						}
					}
				}
			}
		}
	}
	return l, false
}

// without returns the layout without the part of its bin, which may be empty then.
func without(l binpack.Layout, bin int, part []binpack.Share) binpack.Layout {
	out := binpack.Layout{Nodes: l.Nodes, Bins: slices.Clone(l.Bins)}
	less := slices.Clone(part)
	for k := range less {
		less[k].Count = -less[k].Count
	}
	out.Bins[bin].Shares = joined(l.Bins[bin].Shares, less)
	return out
}

// joined returns the sum of the shares, in the order of a.
func joined(a, b []binpack.Share) []binpack.Share {
	out := slices.Clone(a)
	for _, s := range b {
		if k := slices.IndexFunc(out, func(x binpack.Share) bool { return x.Item == s.Item }); k >= 0 {
			out[k].Count += s.Count
		} else {
			out = append(out, s)
		}
	}
	return slices.DeleteFunc(out, func(s binpack.Share) bool { return s.Count == 0 })
}

func nonempty(bins []binpack.Bin) []binpack.Bin {
	return slices.DeleteFunc(bins, func(b binpack.Bin) bool { return len(b.Shares) == 0 })
}

// No item is in a light pool while a heavier one may buy a bin for it.
func TestNoItemIsInALightPoolInVain(t *testing.T) {
	rng := rand.New(rand.NewPCG(97, 98))
	light, broken := 0, map[string]int{}
	for range rounds(t, 1_000, 20_000) {
		p := small(randomBytes(rng, 200))
		for i := range p.Pools {
			p.Pools[i].Weight = i
		}
		for _, by := range []binpack.Strategy{binpack.FirstFitDecreasing{}, nil} {
			in, plan := lawfulBy(t, p, &binpack.Options{Strategy: by, Effort: binpack.EffortFast})
			for _, b := range plan.Bins {
				if in.Problem().Types[b.Type].Pool < len(p.Pools)-1 {
					light++
				}
			}
			if moved, ok := heavier(in, plan.Layout); ok {
				if broken[plan.Strategy]++; broken[plan.Strategy] == 1 {
					t.Errorf("%s: %+v\ncould be %+v\n%+v", plan.Strategy, plan.Layout, moved, p)
				}
			}
		}
	}
	require.Positive(t, light)
	t.Log(light, broken)
}
