package binpack_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
)

// Other items of the same problem are packed as if compiled with it, whatever was packed before.
func TestOtherItemsAreAsIfCompiled(t *testing.T) {
	rng := rand.New(rand.NewPCG(71, 72))
	for range 100 {
		p, other := small(randomBytes(rng, 160)), small(randomBytes(rng, 160))
		if len(p.Resources) != len(other.Resources) {
			continue
		}
		q := p
		q.Items, q.Diversity = other.Items, other.Diversity
		want, err := binpack.Compile(q)
		require.NoError(t, err)
		in, err := binpack.Compile(p)
		require.NoError(t, err)
		before, err := in.Pack(t.Context(), nil)
		require.NoError(t, err)
		got, err := in.WithItems(q.Items, q.Diversity)
		require.NoError(t, err)
		back, err := got.WithItems(p.Items, p.Diversity)
		require.NoError(t, err)
		for _, x := range []struct{ want, got *binpack.Instance }{{want, got}, {in, back}} {
			require.Equal(t, x.want.Problem(), x.got.Problem())
			a, err := x.want.Pack(t.Context(), nil)
			require.NoError(t, err)
			b, err := x.got.Pack(t.Context(), nil)
			require.NoError(t, err)
			require.Equal(t, a, b)
			require.NoError(t, x.got.VerifyBound(b))
			for _, bin := range b.Bins {
				require.True(t, x.want.Labels(bin).Equal(x.got.Labels(bin)))
			}
		}
		after, err := in.Pack(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, before, after)
	}
}

func TestOtherItemsAreChecked(t *testing.T) {
	in, err := binpack.Compile(sample())
	require.NoError(t, err)
	item := binpack.Item{Name: "web", Count: 1, Size: []int64{1, 2}}
	_, err = in.WithItems([]binpack.Item{item}, nil)
	require.NoError(t, err)
	_, err = in.WithItems([]binpack.Item{item, item}, nil)
	assert.ErrorContains(t, err, `item "web" is listed twice`)
	_, err = in.WithItems([]binpack.Item{{Name: "web", Size: []int64{1}}}, nil)
	assert.ErrorContains(t, err, "has 1 resource, want 2")
	_, err = in.WithItems([]binpack.Item{item}, []binpack.Diversity{{Items: []binpack.Share{{Item: 1, Count: 1}}}})
	assert.ErrorContains(t, err, "there is no item 1")
}

func ExampleInstance_WithItems() {
	in, err := binpack.Compile(sample())
	if err != nil {
		fmt.Println(err)
		return
	}
	again, err := in.WithItems([]binpack.Item{{Name: "cache", Count: 3, Size: []int64{2, 8}}}, nil)
	fmt.Println(err, len(again.Problem().Types), again.Problem().Items[0].Name)
	// Output: <nil> 1 cache
}
