package binpack_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
)

// heavier returns a layout in which one copy of a light pool's bin is in a new bin of a heavier pool, if there is one that keeps all rules.
func heavier(in *binpack.Instance, l binpack.Layout) (found binpack.Layout, ok bool) {
	p := in.Problem()
	for i, b := range l.Bins {
		for k, s := range b.Shares {
			for t, typ := range p.Types {
				if p.Pools[typ.Pool].Weight <= p.Pools[p.Types[b.Type].Pool].Weight {
					continue
				}
				for j := range typ.Offerings {
					moved := binpack.Layout{Nodes: l.Nodes, Bins: slices.Clone(l.Bins)}
					rest := &moved.Bins[i]
					rest.Shares = slices.Clone(b.Shares)
					if rest.Shares[k].Count--; rest.Shares[k].Count == 0 {
						rest.Shares = slices.Delete(rest.Shares, k, k+1)
					}
					if len(rest.Shares) == 0 {
						moved.Bins = slices.Delete(moved.Bins, i, i+1)
					}
					moved.Bins = append(moved.Bins, binpack.Bin{Type: t, Offering: j, Shares: []binpack.Share{{Item: s.Item, Count: 1}}})
					if in.Check(moved) == nil {
						return moved, true
					}
				}
			}
		}
	}
	return l, false
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
