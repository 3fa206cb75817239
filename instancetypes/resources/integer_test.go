package resources_test

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/instancetypes/resources"
)

func TestRounding(t *testing.T) {
	for _, c := range []struct {
		name          corev1.ResourceName
		in            string
		request, room int64
	}{
		{"cpu", "0", 0, 0},
		{"cpu", "1", 1000, 1000},
		{"cpu", "1930m", 1930, 1930},
		{"cpu", "0.5", 500, 500},
		{"cpu", "100u", 1, 0},
		{"cpu", "1500u", 2, 1},
		{"cpu", "-1500u", -1, -2},
		{"cpu", "9223372036854775807", math.MaxInt64, math.MaxInt64},
		{"cpu", "9223372036854775.5", math.MaxInt64, math.MaxInt64},
		{"cpu", "-9223372036854775807", math.MinInt64, math.MinInt64},
		{"memory", "6903Mi", 6903 << 20, 6903 << 20},
		{"memory", "1500m", 2, 1},
		{"memory", "-1500m", -1, -2},
		{"memory", "1e30", math.MaxInt64, math.MaxInt64},
		{"memory", "8Ei", math.MaxInt64, math.MaxInt64},
		{"pods", "29", 29, 29},
		{"nvidia.com/gpu", "100m", 1, 0},
	} {
		q := resource.MustParse(c.in)
		assert.Equal(t, c.request, resources.Request(c.name, q), "request %s %s", c.name, c.in)
		assert.Equal(t, c.room, resources.Capacity(c.name, q), "capacity %s %s", c.name, c.in)
		want := resource.MustParse(c.in)
		assert.Equal(t, want.String(), q.String(), "the argument stays as it was")
	}
}

// The oracle is rational arithmetic over the quantity's decimal text.
func FuzzRounding(f *testing.F) {
	for _, s := range []string{"0", "1930m", "6903Mi", "1500u", "-3n", "9e18", "8Ei", "1.5Gi", "-7.25", "0.0001m"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q, err := resources.Parse(s)
		if err != nil {
			t.Skip("not a quantity")
		}
		exact, ok := new(big.Rat).SetString(q.AsDec().String())
		require.True(t, ok)
		q = resource.MustParse(s)
		for name, per := range map[corev1.ResourceName]int64{"cpu": 1000, "memory": 1} {
			v := new(big.Rat).Mul(exact, big.NewRat(per, 1))
			floor := new(big.Int).Div(v.Num(), v.Denom())
			ceil := new(big.Int).Set(floor)
			if !v.IsInt() {
				ceil.Add(ceil, big.NewInt(1))
			}
			assertNear(t, clamp(ceil), resources.Request(name, q), s)
			assertNear(t, clamp(floor), resources.Capacity(name, q), s)
		}
	})
}

// assertNear is equality, but for the last few counts before saturation, where whole cores decide.
func assertNear(t *testing.T, want, got int64, s string) {
	t.Helper()
	if want > math.MaxInt64-1000 || want < math.MinInt64+1000 {
		assert.InDelta(t, float64(want), float64(got), 2000, s)
		return
	}
	assert.Equal(t, want, got, s)
}

func clamp(n *big.Int) int64 {
	switch {
	case n.IsInt64():
		return n.Int64()
	case n.Sign() > 0:
		return math.MaxInt64
	}
	return math.MinInt64
}

func TestParse(t *testing.T) {
	for in, want := range map[string]string{"4": "4", "500m": "500m", "8Gi": "8Gi", "1e3": "1e3", "1E": "1E", "7Ei": "7Ei", "-2": "-2", "1e-9": "1e-9"} {
		q, err := resources.Parse(in)
		require.NoError(t, err, in)
		assert.Equal(t, want, q.String(), in)
	}
	for _, in := range []string{"", "four", "1e-99999999", "1e99999999", "1e101", "1e--3", "1Gib", strings.Repeat("9", 65), "NaN", "1e+-3"} {
		_, err := resources.Parse(in)
		assert.ErrorContains(t, err, "resources: ", in)
	}
}

func TestHumane(t *testing.T) {
	for _, c := range []struct {
		name corev1.ResourceName
		in   int64
		want string
	}{
		{"cpu", 1930, "1930m"},
		{"cpu", 4000, "4"},
		{"cpu", 0, "0"},
		{"memory", 6903 << 20, "6903Mi"},
		{"memory", 17 << 30, "17Gi"},
		{"memory", 0, "0"},
		{"memory", 1, "1"},
		{"memory", -(5 << 20), "-5Mi"},
		{"ephemeral-storage", 937_000_000_000, "937G"},
		{"ephemeral-storage", 20 << 30, "20Gi"},
		{"hugepages-2Mi", 1 << 30, "1Gi"},
		{"pods", 29, "29"},
		{"nvidia.com/gpu", 1000, "1k"},
	} {
		assert.Equal(t, c.want, resources.Humane(c.name, c.in), "%s %d", c.name, c.in)
		assert.Equal(t, c.in, resources.Request(c.name, resources.Quantity(c.name, c.in)), "round trip %s %d", c.name, c.in)
		assert.Equal(t, c.in, resources.Capacity(c.name, resources.Quantity(c.name, c.in)), "round trip %s %d", c.name, c.in)
	}
}

func TestConversionDoesNotAllocate(t *testing.T) {
	q := resource.MustParse("1930m")
	var got int64
	assert.Zero(t, testing.AllocsPerRun(100, func() { got = resources.Request(corev1.ResourceCPU, q) }))
	assert.Equal(t, int64(1930), got)
}

func BenchmarkRequest(b *testing.B) {
	q := resource.MustParse("1930m")
	require.Equal(b, int64(1930), resources.Request(corev1.ResourceCPU, q))
	for b.Loop() {
		resources.Request(corev1.ResourceCPU, q)
	}
}
