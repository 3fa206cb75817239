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
