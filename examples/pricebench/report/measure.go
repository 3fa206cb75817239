package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/pricebench"
	"github.com/joinery-sdk/joinery/requirements"
)

// workloads are those of the package, and the public trace where it is there.
func workloads(data string) []pricebench.Workload {
	out := pricebench.Workloads()
	f, err := os.Open(filepath.Join(data, "alibaba-gpu-v2023", "openb_pod_list_cpu300.csv"))
	if err != nil {
		return out
	}
	defer f.Close()
	if w, err := pricebench.Alibaba(f); err == nil {
		out = append(out, w)
	}
	return out
}

// measure packs the row several times if that is quick, and gives the plan and the median time.
func measure(r request) (measured, error) {
	m := measured{request: r}
	all := workloads(r.Data)
	i := slices.IndexFunc(all, func(w pricebench.Workload) bool { return w.Name == r.Workload })
	if i < 0 {
		return m, fmt.Errorf("there is no workload %q", r.Workload)
	}
	types, err := pricebench.Types(r.MaxCPU)
	if err != nil {
		return m, err
	}
	p, kept := pricebench.Problem(all[i].Draw(r.Pods, rand.New(rand.NewPCG(r.Seed, uint64(r.Pods)))), types)
	for _, v := range pricebench.Variants() {
		if v.Name == r.Variant {
			p = v.Apply(p, rand.New(rand.NewPCG(r.Seed, 7)))
		}
	}
	m.Kept, m.Shapes = kept, len(p.Items)
	var plan *binpack.Plan
	var in *binpack.Instance
	var times []float64
	for total := 0.0; len(times) < 25 && (len(times) == 0 || total < 0.5); total += times[len(times)-1] {
		start := time.Now()
		if in, err = binpack.Compile(p); err != nil {
			return m, err
		}
		if plan, err = in.Pack(context.Background(), &binpack.Options{Effort: binpack.Effort(r.Effort)}); err != nil {
			return m, err
		}
		times = append(times, time.Since(start).Seconds())
	}
	slices.SortFunc(times, cmp.Compare[float64])
	m.Seconds = times[len(times)/2]
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err == nil {
		m.MB = float64(usage.Maxrss) / 1024 // Linux counts KiB
	}
	for i, left := range plan.Unplaced {
		if left > 0 {
			return m, fmt.Errorf("%s, %d pods: %d of %s are left", r.Workload, r.Pods, left, p.Items[i].Name)
		}
	}
	m.Bins, m.Cost, m.Bound, m.Gap, m.Kind = len(plan.Bins), plan.Objective.Dollars(), plan.Bound.Price.Dollars(), plan.GapPercent(), string(plan.Bound.Kind)
	if plan.Bound.Price == plan.Objective {
		m.Gap = 0
	}
	m.Verified = in.VerifyBound(plan) == nil
	ffd, err := in.Pack(context.Background(), &binpack.Options{Strategy: binpack.FirstFitDecreasing{}, Draft: true})
	if err != nil {
		return m, err
	}
	m.FFD = ffd.Objective.Dollars()
	return m, nil
}

// solved is what became of OR-Library's instances of one-dimensional bin packing.
type solved struct {
	instances, optimal, ffd, above int
	seconds, slowest               float64
}

// orLibrary packs the instances of Falkenauer, whose optima are known. It is nil where the data is
// not there.
func orLibrary(data, effort string) *solved {
	optima := map[string]int{}
	f, err := os.Open(filepath.Join(data, "orlib-binpack", "optima.csv"))
	if err != nil {
		return nil
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil
	}
	for _, row := range rows[1:] {
		optima[strings.TrimPrefix(row[0], "Falkenauer_")], _ = strconv.Atoi(row[1])
	}
	out := &solved{}
	for file := range 4 {
		f, err := os.Open(filepath.Join(data, "orlib-binpack", fmt.Sprintf("binpack%d.txt", file+1)))
		if err != nil {
			return nil
		}
		defer f.Close()
		words := bufio.NewScanner(f)
		words.Split(bufio.ScanWords)
		next := func() string {
			words.Scan()
			return words.Text()
		}
		number := func() int64 {
			n, _ := strconv.ParseInt(next(), 10, 64)
			return n
		}
		for range number() {
			name, capacity, n := next(), number(), number()
			number() // the best known of old; some are one too high
			p := binpack.Problem{
				Resources: []string{"size"}, Pools: []binpack.Pool{{Name: "bins"}},
				Types: []binpack.Type{{Name: "bin", Capacity: []int64{capacity}, Offerings: []binpack.Offering{{Price: binpack.PerDollar}}}},
			}
			for i := range n {
				p.Items = append(p.Items, binpack.Item{
					Name: fmt.Sprintf("%04d", i), Count: 1, Size: []int64{number()}, Requires: requirements.AnyOf(requirements.Set{}),
				})
			}
			out.add(p, optima[name], effort)
		}
	}
	return out
}

func (s *solved) add(p binpack.Problem, optimum int, effort string) {
	start := time.Now()
	plan, err := binpack.Pack(context.Background(), p, &binpack.Options{Effort: binpack.Effort(effort)})
	if err != nil {
		return
	}
	took := time.Since(start).Seconds()
	s.instances, s.seconds, s.slowest = s.instances+1, s.seconds+took, max(s.slowest, took)
	if len(plan.Bins) == optimum {
		s.optimal++
	}
	if plan.Bound.Price > binpack.Price(optimum)*binpack.PerDollar {
		s.above++
	}
	if ffd, err := binpack.Pack(context.Background(), p, &binpack.Options{Strategy: binpack.FirstFitDecreasing{}, Draft: true}); err == nil && len(ffd.Bins) == optimum {
		s.ffd++
	}
}
