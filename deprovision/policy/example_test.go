package policy_test

import (
	"fmt"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/policy"
)

// Two nodes cost the same to empty, and one of them is about to expire anyway: its pods will move soon in any case, so that
// it goes first.
func ExampleLifetime() {
	var ranker deprovision.Ranker = policy.Lifetime{}
	young := deprovision.Candidate{Name: "young", CostPerHour: deprovision.Dollars(0.4), Disruption: 8, Lifetime: 1}
	old := deprovision.Candidate{Name: "old", CostPerHour: deprovision.Dollars(0.4), Disruption: 8, Lifetime: 0}
	fmt.Println(ranker.Rank(young), ranker.Rank(old))
	// Output: 0.05 0.4
}

// A ranker without state is a function: here cheap nodes go first.
func ExampleFunc() {
	var ranker deprovision.Ranker = policy.Func(func(c deprovision.Candidate) float64 { return -c.PricePerHour.Dollars() })
	fmt.Println(ranker.Rank(deprovision.Candidate{PricePerHour: deprovision.Dollars(0.4)}))
	// Output: -0.4
}
