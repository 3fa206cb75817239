package policy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/policy"
)

func TestLifetime(t *testing.T) {
	c := deprovision.Candidate{CostPerHour: deprovision.Dollars(1), Disruption: 11, Lifetime: 1}
	young := policy.Lifetime{}.Rank(c)
	c.Lifetime = 0.1
	assert.Greater(t, policy.Lifetime{}.Rank(c), young, "what is soon to go anyway goes first")
}

func ExampleAnySaving() {
	fmt.Println(policy.AnySaving().DisruptionPrice < 0)
	// Output: true
}

func ExampleBalanced() {
	fmt.Println(policy.Balanced(2).Balanced)
	// Output: 2
}

func ExamplePayback() {
	o := policy.Payback(deprovision.Dollars(0.05), 2*time.Hour)
	fmt.Printf("an eviction costs $%.2f, and a saving counts for %s\n", o.DisruptionPrice.Dollars(), o.Horizon)
	// Output: an eviction costs $0.05, and a saving counts for 2h0m0s
}
