package binpack_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
)

// Whatever is opened, added, removed and taken back, in any order: the layout keeps all rules, holds what is not missing, and a copy stays
// as it was.
func TestEveryStateOfAFillingIsLegal(t *testing.T) {
	rng := rand.New(rand.NewPCG(61, 62))
	held := 0
	for range rounds(t, 400, 4_000) {
		p := small(randomBytes(rng, 160))
		in, err := binpack.Compile(p)
		require.NoError(t, err)
		p = *in.Problem()
		if len(p.Items) == 0 || len(p.Types) == 0 {
			continue
		}
		f := in.NewFilling()
		saved, before := f.Copy(), f.Layout()
		for range 12 {
			item, count := rng.IntN(len(p.Items)), rng.IntN(5)-1
			switch k := rng.IntN(8); {
			case k == 0 && f.Bins() > 0:
				f.Remove(rng.IntN(f.Bins()))
			case k == 1 && len(p.Nodes) > 0:
				f.Clear(rng.IntN(len(p.Nodes)))
			case k == 2 && len(p.Nodes) > 0:
				f.AddToNode(rng.IntN(len(p.Nodes)), item, count)
			case k == 3 && f.Bins() > 0:
				f.Add(rng.IntN(f.Bins()), item, count)
			case k == 4:
				require.Equal(t, before, saved.Layout(), "a copy stays as it was")
				f, saved = saved, f
				before = saved.Layout()
			case k == 5:
				saved, before = f.Copy(), f.Layout()
			default:
				c := binpack.Choice{Type: rng.IntN(len(p.Types)), Offering: rng.IntN(4)}
				n, err := f.Open(c, item, count)
				require.Equal(t, c.Offering >= len(p.Types[c.Type].Offerings), err != nil)
				held += n
			}
			l := f.Layout()
			require.NoError(t, in.Check(l), "%+v of %+v", l, p)
			require.NoError(t, dumbCheck(in.Problem(), l), "%+v of %+v", l, p)
			placed := make([]int, len(p.Items))
			for _, shares := range l.Nodes {
				for _, s := range shares {
					placed[s.Item] += s.Count
				}
			}
			require.Len(t, l.Bins, f.Bins())
			for _, b := range l.Bins {
				for _, s := range b.Shares {
					placed[s.Item] += s.Count
				}
			}
			for i, it := range p.Items {
				require.Equal(t, it.Count-placed[i], f.Missing(i))
			}
		}
	}
	require.Positive(t, held)
}
