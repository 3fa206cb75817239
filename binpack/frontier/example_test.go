package frontier_test

import (
	"context"
	"fmt"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/binpack/frontier"
	"github.com/joinery-sdk/joinery/requirements"
)

// The cost of having fewer nodes.
func ExamplePoint() {
	p := binpack.Problem{
		Resources: []string{"cpu"}, Pools: []binpack.Pool{{Name: "default"}},
		Items: []binpack.Item{{Name: "web", Count: 12, Size: []int64{1}, Requires: requirements.AnyOf(requirements.Set{})}},
		Types: []binpack.Type{
			{Name: "small", Capacity: []int64{2}, Offerings: []binpack.Offering{{Price: binpack.Dollars(0.2)}}},
			{Name: "medium", Capacity: []int64{6}, Offerings: []binpack.Offering{{Price: binpack.Dollars(0.66)}}},
			{Name: "large", Capacity: []int64{12}, Offerings: []binpack.Offering{{Price: binpack.Dollars(1.6)}}},
		},
	}
	points, err := frontier.Of(context.Background(), p, nil)
	for _, p := range points {
		fmt.Println(p.Count, "nodes cost", p.Objective)
	}
	fmt.Println(err)
	// Output:
	// 6 nodes cost $1.20
	// 2 nodes cost $1.32
	// 1 nodes cost $1.60
	// <nil>
}
