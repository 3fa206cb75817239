package binpack_test

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
)

// orlib is an instance of OR-Library's one-dimensional bin packing: integer sizes, bins of one capacity.
type orlib struct {
	name     string
	capacity int64
	sizes    []int64
	optimum  int
}

// sharedData is the folder of external test data, next to the repository.
func sharedData(t *testing.T, elem ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{"..", "..", "shared", "data"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not there: nothing to compare with", path)
	}
	return path
}

func readOrlib(t *testing.T) []orlib {
	t.Helper()
	optima := map[string]int{}
	text, err := os.ReadFile(sharedData(t, "orlib-binpack", "optima.csv"))
	require.NoError(t, err)
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	require.NoError(t, err)
	for _, row := range rows[1:] {
		require.Equal(t, row[1], row[2], "a proven optimum")
		optima[strings.TrimPrefix(row[0], "Falkenauer_")], err = strconv.Atoi(row[1])
		require.NoError(t, err)
	}
	var out []orlib
	for i := range 4 {
		data, err := os.ReadFile(sharedData(t, "orlib-binpack", fmt.Sprintf("binpack%d.txt", i+1)))
		require.NoError(t, err)
		words := bufio.NewScanner(bytes.NewReader(data))
		words.Split(bufio.ScanWords)
		next := func() string {
			require.True(t, words.Scan(), "the file is cut off")
			return words.Text()
		}
		number := func() int64 {
			n, err := strconv.ParseInt(next(), 10, 64)
			require.NoError(t, err)
			return n
		}
		for range number() {
			o := orlib{name: next(), capacity: number()}
			n := number()
			number() // the best known at the time; some are one too high
			for range n {
				o.sizes = append(o.sizes, number())
			}
			var ok bool
			o.optimum, ok = optima[o.name]
			require.True(t, ok, o.name)
			out = append(out, o)
		}
	}
	return out
}

func (o orlib) problem() binpack.Problem {
	p := binpack.Problem{
		Resources: []string{"size"},
		Pools:     []binpack.Pool{{Name: "bins"}},
		Types:     []binpack.Type{{Name: "bin", Capacity: []int64{o.capacity}, Offerings: []binpack.Offering{{Price: binpack.PerDollar}}}},
	}
	for i, size := range o.sizes {
		p.Items = append(p.Items, binpack.Item{Name: fmt.Sprintf("%04d", i), Count: 1, Size: []int64{size}, Requires: anywhere()})
	}
	return p
}

// On 80 instances with proven optima no plan is better than the optimum, and no bound exceeds it.
func TestOrlibNeverBelowTheOptimum(t *testing.T) {
	instances := readOrlib(t)
	require.Len(t, instances, 80)
	bins, best, bound := 0, 0, 0
	if testing.Short() {
		instances = instances[:8]
	}
	for _, o := range instances {
		_, plan := lawful(t, o.problem())
		for _, left := range plan.Unplaced {
			require.Zero(t, left, o.name)
		}
		require.GreaterOrEqual(t, len(plan.Bins), o.optimum, o.name)
		require.Equal(t, binpack.Price(len(plan.Bins))*binpack.PerDollar, plan.Cost)
		least := binpack.Price(o.optimum) * binpack.PerDollar
		require.LessOrEqual(t, plan.Bound.Price, least, o.name)
		require.GreaterOrEqual(t, plan.Bound.Price, least*97/100, "%s: the coverage bound is near on this class", o.name)
		require.LessOrEqual(t, len(plan.Bins)*100, o.optimum*103, "%s: first fit decreasing is near on this class", o.name)
		bins, best = bins+len(plan.Bins), best+o.optimum
		bound += int(plan.Bound.Price / binpack.PerDollar)
	}
	t.Logf("%d bins, optimum %d, bound %d", bins, best, bound)
}
