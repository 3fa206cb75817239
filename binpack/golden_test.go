package binpack_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/requirements"
)

// market returns three families of types in two zones, one of them cheaper.
func market() []binpack.Type {
	var out []binpack.Type
	for f, ratio := range []int64{2, 4, 8} {
		for size := range 6 {
			cpu := int64(2000) << size
			t := binpack.Type{Name: fmt.Sprintf("%c%d", "cmr"[f], 2<<size), Capacity: []int64{cpu - 150, cpu*ratio*1024/1000 - 600}}
			for z, zone := range []string{"z1", "z2"} {
				price := binpack.Price(cpu*(20_000+3_700*ratio)*int64(1000-size*7)/1000) + binpack.Price(z)*123_000
				t.Offerings = append(t.Offerings, binpack.Offering{Provides: requirements.MustParse("zone=" + zone), Price: price})
			}
			out = append(out, t)
		}
	}
	return out
}

// randomItems returns n copies in about n/3 items; a few need a zone or stand apart.
func randomItems(rng *rand.Rand, n int) []binpack.Item {
	var out []binpack.Item
	for left := n; left > 0; {
		it := item(fmt.Sprintf("i%04d", len(out)), 1+rng.IntN(min(left, 5)), int64(1+rng.IntN(40))*50, int64(1+rng.IntN(60))*128)
		left -= it.Count
		switch rng.IntN(10) {
		case 0:
			it.Requires = requirements.AnyOf(requirements.MustParse("zone=z2"))
		case 1:
			it.Tags, it.Limits = []string{it.Name}, []binpack.Limit{{Tag: it.Name, Max: 1}}
		}
		out = append(out, it)
	}
	return out
}

// written returns the plan as readable text.
func written(p *binpack.Problem, plan *binpack.Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "price %d, bound %d (%s), %d bins\n", plan.Objective, plan.Bound.Price, plan.Bound.Kind, len(plan.Bins))
	contents := func(shares []binpack.Share) {
		for _, s := range shares {
			fmt.Fprintf(&b, " %s*%d", p.Items[s.Item].Name, s.Count)
		}
		b.WriteByte('\n')
	}
	for n, shares := range plan.Nodes {
		fmt.Fprintf(&b, "%s:", p.Nodes[n].Name)
		contents(shares)
	}
	for _, bin := range plan.Bins {
		fmt.Fprintf(&b, "%s %s:", p.Types[bin.Type].Name, p.Types[bin.Type].Offerings[bin.Offering].Provides)
		contents(bin.Shares)
	}
	return b.String()
}

// Plans at the default effort have the same bytes on any number of cores and on every machine: the files hold for amd64 and
// arm64. JOINERY_GOLDEN=1 rewrites them.
func TestGoldenPlansOnAnyNumberOfCores(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	counts := []int{1, 2, 8}
	if testing.Short() {
		counts = []int{8}
	}
	for _, n := range []int{20, 60, 110, 600} {
		p := one([]string{"cpu", "memory"}, market(), randomItems(rand.New(rand.NewPCG(71, uint64(n))), n)...)
		p.Nodes = []binpack.Node{{Name: "old", Free: []int64{3000, 9000}, Provides: requirements.MustParse("zone=z1")}}
		file := filepath.Join("testdata", "golden", fmt.Sprintf("%d.txt", n))
		for _, cores := range counts {
			runtime.GOMAXPROCS(cores)
			in, err := binpack.Compile(p)
			require.NoError(t, err)
			plan, err := in.Pack(t.Context(), nil)
			require.NoError(t, err)
			require.False(t, plan.Stopped)
			got := written(in.Problem(), plan)
			if os.Getenv("JOINERY_GOLDEN") == "1" && cores == 1 {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), got, "%d copies on %d cores", n, cores)
			require.NoError(t, in.VerifyBound(plan))
		}
	}
}
