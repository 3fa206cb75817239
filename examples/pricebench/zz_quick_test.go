package pricebench_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/pricebench"
)

func TestQuick(t *testing.T) {
	ws := pricebench.Workloads()
	if f, err := os.Open("../../../shared/data/alibaba-gpu-v2023/openb_pod_list_cpu300.csv"); err == nil {
		w, err := pricebench.Alibaba(f)
		if err != nil {
			t.Fatal(err)
		}
		ws = append(ws, w)
	}
	only := os.Getenv("W")
	for _, w := range ws {
		if only != "" && !strings.Contains(only, w.Name) {
			continue
		}
		for _, n := range []int{20, 50, 100, 500, 1000, 5000, 10000, 100000} {
			if e := os.Getenv("N"); e != "" && !strings.Contains(","+e+",", fmt.Sprintf(",%d,", n)) {
				continue
			}
			for _, maxCPU := range []int64{0, 64, 16} {
				types, err := pricebench.Types(maxCPU)
				if err != nil {
					t.Fatal(err)
				}
				p, kept := pricebench.Problem(w.Draw(n, rand.New(rand.NewPCG(1, uint64(n)))), types)
				start := time.Now()
				in, err := binpack.Compile(p)
				if err != nil {
					t.Fatal(err)
				}
				mid := time.Now()
				plan, err := in.Pack(&binpack.Options{Strategy: binpack.CostAware{}})
				if err != nil {
					t.Fatal(err)
				}
				fmt.Printf("%-10s n=%-6d max=%-3d types=%d items=%d compile %.3fs pack %.3fs cost %.3f bound %.3f %s gap %.2f%% bins %d left %d\n", w.Name, kept, maxCPU, len(types), len(p.Items), mid.Sub(start).Seconds(), time.Since(mid).Seconds(), plan.Cost.Dollars(), plan.Bound.Price.Dollars(), plan.Bound.Kind, plan.GapPercent(), len(plan.Bins), sum(plan.Left))
			}
		}
	}
}

func sum(v []int) int {
	s := 0
	for _, x := range v {
		s += x
	}
	return s
}
