package binpack_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
)

// A nil argument or an index that does not exist is named, and is no panic of the runtime.
func TestMisuseIsNamed(t *testing.T) {
	p := one([]string{"cpu"}, []binpack.Type{typ("x", 10, 4)}, item("i", 2, 1))
	in, err := binpack.Compile(p)
	require.NoError(t, err)
	const noContext = "binpack: the context is nil; pass context.Background() for none"
	_, err = binpack.Pack(nil, p, nil) //nolint:staticcheck // the context is nil on purpose
	require.EqualError(t, err, noContext)
	_, err = in.Pack(nil, nil) //nolint:staticcheck // likewise
	require.EqualError(t, err, noContext)
	_, err = in.Prove(nil, &binpack.Plan{}, nil) //nolint:staticcheck // likewise
	require.EqualError(t, err, noContext)
	_, err = in.Prove(t.Context(), nil, nil)
	require.EqualError(t, err, "binpack: the plan is nil")
	for _, s := range []binpack.Strategy{binpack.CostAware{}, binpack.FirstFitDecreasing{}} {
		_, err = s.Pack(nil, in) //nolint:staticcheck // likewise
		require.EqualError(t, err, noContext)
	}
	require.EqualError(t, in.VerifyBound(nil), "binpack: the plan is nil")
	require.Equal(t, "the problem has no item 99", in.Misfit(99))
	require.Equal(t, "the problem has no item -1", in.Misfit(-1))
	require.True(t, in.Labels(binpack.Bin{Type: 7}).IsImpossible())
	require.True(t, in.Labels(binpack.Bin{Offering: -1}).IsImpossible())

	f := in.NewFilling()
	for want, misuse := range map[string]func(){
		"binpack: there is no bin 5; there are 0":    func() { f.Add(5, 0, 1) },
		"binpack: there is no bin -1; there are 0":   func() { f.Remove(-1) },
		"binpack: there is no node 0; there are 0":   func() { f.AddToNode(0, 0, 1) },
		"binpack: there is no node 1; there are 0":   func() { f.Clear(1) },
		"binpack: there is no item 9; there are 1":   func() { f.Missing(9) },
		"binpack: there is no item 10; there are 1":  func() { _, _ = f.Open(binpack.Choice{}, 10, 1) },
		"binpack: there is no item -10; there are 1": func() { _, _ = f.Open(binpack.Choice{}, -10, 1) },
	} {
		require.PanicsWithValue(t, want, misuse)
	}
}
