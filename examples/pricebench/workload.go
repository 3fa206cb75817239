package pricebench

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/requirements"
)

// Shape is what one pod asks for.
type Shape struct {
	MilliCPU, MiB int64
}

// Workload draws the pods of a benchmark: n of them from a seed, the same ones every time.
type Workload struct {
	Name string
	Draw func(n int, rng *rand.Rand) []Shape
}

// Workloads are those that need no outside data.
func Workloads() []Workload {
	return []Workload{{"mix", drawMix}, {"bimodal", drawBimodal}, {"distinct", drawDistinct}, {"thousand", drawThousand}, {"second mix", drawSecondMix}}
}

// Alibaba reads the pods without a GPU of the public trace's table; workloads draw from them with
// replacement.
func Alibaba(table io.Reader) (Workload, error) {
	rows, err := csv.NewReader(table).ReadAll()
	if err != nil {
		return Workload{}, fmt.Errorf("pricebench: %w", err)
	}
	var pods []Shape
	for i, row := range rows[1:] {
		if len(row) < 4 {
			return Workload{}, fmt.Errorf("pricebench: row %d has %d columns", i+2, len(row))
		}
		cpu, err1 := strconv.ParseInt(row[1], 10, 64)
		mib, err2 := strconv.ParseInt(row[2], 10, 64)
		if err1 != nil || err2 != nil {
			return Workload{}, fmt.Errorf("pricebench: row %d: %q and %q are not sizes", i+2, row[1], row[2])
		}
		if row[3] == "0" {
			pods = append(pods, Shape{cpu, mib})
		}
	}
	if len(pods) == 0 {
		return Workload{}, fmt.Errorf("pricebench: no pod without a GPU")
	}
	return Workload{"alibaba", func(n int, rng *rand.Rand) []Shape {
		out := make([]Shape, n)
		for i := range out {
			out[i] = pods[rng.IntN(len(pods))]
		}
		return out
	}}, nil
}

func drawMix(n int, rng *rand.Rand) []Shape {
	shapes := []Shape{
		{50, 64},
		{100, 128},
		{100, 256},
		{100, 512},
		{250, 256},
		{250, 512},
		{250, 1024},
		{500, 512},
		{500, 1024},
		{500, 2048},
		{500, 4096},
		{1000, 1024},
		{1000, 2048},
		{1000, 4096},
		{1000, 8192},
		{2000, 2048},
		{2000, 4096},
		{2000, 8192},
		{2000, 16384},
		{4000, 8192},
		{4000, 16384},
		{4000, 32768},
		{8000, 16384},
		{750, 1536},
		{300, 3072},
		{1500, 6144},
		{3000, 5120},
		{200, 2048},
	}
	weights := make([]float64, len(shapes))
	for i, s := range shapes {
		weights[i] = math.Pow(float64(s.MilliCPU), -0.6)
	}
	out := make([]Shape, n)
	for i := range out {
		out[i] = shapes[weighted(weights, rng)]
	}
	return out
}

func drawBimodal(n int, rng *rand.Rand) []Shape {
	light := []Shape{{500, 512}, {1000, 1024}, {2000, 2560}, {4000, 4096}, {1500, 1024}}
	heavy := []Shape{{250, 2048}, {500, 4096}, {1000, 8192}, {2000, 14336}, {400, 6144}}
	out := make([]Shape, n)
	for i := range out {
		if rng.Float64() < 0.6 {
			out[i] = light[rng.IntN(len(light))]
		} else {
			out[i] = heavy[rng.IntN(len(heavy))]
		}
	}
	return out
}

func drawDistinct(n int, rng *rand.Rand) []Shape {
	out := make([]Shape, n)
	for i := range out {
		cpu := min(max(math.Exp(math.Log(500)+1.1*rng.NormFloat64()), 20), 16000)
		mib := min(max(cpu*math.Exp(math.Log(3.5)+0.7*rng.NormFloat64())*1.024, 32), 60000)
		out[i] = Shape{int64(cpu), int64(mib)}
	}
	return out
}

// drawThousand draws from a thousand shapes, which it draws first.
func drawThousand(n int, rng *rand.Rand) []Shape {
	shapes := drawDistinct(1000, rng)
	out := make([]Shape, n)
	for i := range out {
		out[i] = shapes[rng.IntN(len(shapes))]
	}
	return out
}

func drawSecondMix(n int, rng *rand.Rand) []Shape {
	cpus := []int64{50, 100, 250, 500, 1000, 2000, 4000}
	weights := []float64{6, 8, 8, 7, 5, 3, 1}
	out := make([]Shape, n)
	for i := range out {
		cpu := cpus[weighted(weights, rng)]
		out[i] = Shape{cpu, cpu * 1024 / 1000 << rng.IntN(4)}
	}
	return out
}

func weighted(weights []float64, rng *rand.Rand) int {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	at := rng.Float64() * sum
	for i, w := range weights {
		if at -= w; at < 0 {
			return i
		}
	}
	return len(weights) - 1
}

// Problem packs the shapes into the types, one item for each distinct shape. Shapes that fit no
// type are dropped; kept is how many pods remain.
func Problem(shapes []Shape, types []binpack.Type) (p binpack.Problem, kept int) {
	p = binpack.Problem{
		Resources: []string{"cpu", "memory", "pods"},
		Pools:     []binpack.Pool{{Name: "default"}},
		Types:     types,
	}
	index := map[Shape]int{}
	for _, s := range shapes {
		if i, ok := index[s]; ok {
			if i >= 0 {
				p.Items[i].Count++
				kept++
			}
			continue
		}
		size := []int64{s.MilliCPU, s.MiB, 1}
		if !fitsAny(size, types) {
			index[s] = -1
			continue
		}
		index[s] = len(p.Items)
		p.Items = append(p.Items, binpack.Item{
			Name: fmt.Sprintf("%dm-%dMi", s.MilliCPU, s.MiB), Count: 1, Size: size, Requires: requirements.AnyOf(requirements.Set{}),
		})
		kept++
	}
	return p, kept
}

func fitsAny(size []int64, types []binpack.Type) bool {
	for _, t := range types {
		fits := true
		for r := range size {
			fits = fits && size[r] <= t.Capacity[r]
		}
		if fits {
			return true
		}
	}
	return false
}
