package simulate_test

import (
	"context"
	"fmt"

	giveback "github.com/joinery-sdk/joinery/deprovision/plan"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate"
	"github.com/joinery-sdk/joinery/examples/pipeline/simulate/fragment"
)

// The seam in a few lines: a snapshot is compiled to a simulator, and package deprovision asks it.
func ExampleNew() {
	c, err := fragment.Generate(fragment.Options{Nodes: 6, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	sim, nominated, err := simulate.New(c.Snapshot)
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := giveback.Make(context.Background(), simulate.Cluster(c.Manifests, c.Snapshot, nominated, fragment.Now()), sim, nil)
	if err != nil {
		panic(err)
	}
	s := c.Snapshot
	for i := range r.Commands {
		if s, err = simulate.Apply(s, &r.Commands[i], fragment.Now()); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Printf("%d nodes at $%.2f an hour become %d at $%.2f; %d pods stay %d\n",
		len(c.Snapshot.Nodes), r.PricePerHour.Dollars(), len(s.Nodes), r.PricePerHourAfter.Dollars(), len(c.Snapshot.Pods), len(s.Pods))
	// Output: 6 nodes at $12.00 an hour become 4 at $4.86; 157 pods stay 157
}
