package simulate_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
)

func TestZZMeasure(t *testing.T) {
	if os.Getenv("ZZ") == "" {
		t.Skip()
	}
	count, _ := strconv.Atoi(os.Getenv("ZZ"))
	var sum [3]float64
	for i := range count {
		n := []int{8, 30, 100}[i%3]
		o := fragment.Options{Nodes: n, Seed: 20000001 + uint64(i), Constrained: i%2 == 1}
		c, err := fragment.Generate(o)
		if err != nil {
			t.Fatal(err)
		}
		r := answer(t, c)
		fmt.Printf("%d nodes=%d after=%.4f evictions=%d commands=%d questions=%d\n", o.Seed, n, r.PricePerHourAfter.Dollars(), r.Evictions, len(r.Commands), r.Questions)
		sum[0] += r.PricePerHourAfter.Dollars()
		sum[1] += float64(r.Evictions)
		sum[2] += float64(r.Questions)
	}
	fmt.Printf("TOTAL %d clusters after=%.4f evictions=%.0f questions=%.0f\n", count, sum[0], sum[1], sum[2])
}
