package pricebench_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/examples/pricebench"
)

// What do a hundred usual pods cost on types of at most 16 vCPU, and what at least?
func ExampleWorkload() {
	types, err := pricebench.Types(16)
	if err != nil {
		fmt.Println(err)
		return
	}
	mix := pricebench.Workloads()[0]
	shapes := mix.Draw(100, rand.New(rand.NewPCG(1, 100)))
	problem, kept := pricebench.Problem(shapes, types)
	plan, err := binpack.Pack(context.Background(), problem, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: %d pods, %d nodes, gap below 1%%: %v\n", mix.Name, kept, len(plan.Bins), plan.GapPercent() < 1)
	// Output: mix: 100 pods, 4 nodes, gap below 1%: true
}

// Shapes are what pods ask for; a workload of one's own is a list of them.
func ExampleShape() {
	types, err := pricebench.Types(16)
	if err != nil {
		fmt.Println(err)
		return
	}
	web, giant := pricebench.Shape{MilliCPU: 500, MiB: 1024}, pricebench.Shape{MilliCPU: 96_000, MiB: 1024}
	problem, kept := pricebench.Problem([]pricebench.Shape{web, giant, web}, types)
	fmt.Println(kept, "of 3 fit a type,", problem.Items[0].Count, "of them alike")
	// Output: 2 of 3 fit a type, 2 of them alike
}

// What real clusters add to plain pods: here a service of which a node takes one pod.
func ExampleVariant() {
	types, err := pricebench.Types(16)
	if err != nil {
		fmt.Println(err)
		return
	}
	plain, _ := pricebench.Problem(pricebench.Workloads()[0].Draw(100, rand.New(rand.NewPCG(1, 100))), types)
	for _, v := range pricebench.Variants() {
		p := v.Apply(plain, rand.New(rand.NewPCG(1, 7)))
		fmt.Println(v.Name, len(p.Nodes), len(p.Pools), len(p.Types) > len(plain.Types))
	}
	// Output:
	// nodes 4 1 false
	// limits 0 1 false
	// weights 0 2 true
	// labels 0 1 true
	// categories 0 1 false
	// diverse 0 1 false
}
