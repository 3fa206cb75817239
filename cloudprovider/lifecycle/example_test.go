package lifecycle_test

import (
	"fmt"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/lifecycle"
)

// A decision says what to give back and why. One that is carried out twice does no harm, so it need not be remembered.
func ExampleDecision() {
	claims := []lifecycle.Claim{{Name: "a", Token: "a-1", Created: at(0), Instance: "i-1", Launched: at(1)}} // its node never joined
	instances := []cloudprovider.Instance{instance("i-1", "a-1", 1, cloudprovider.Running)}
	decisions, _ := lifecycle.Review(claims, instances, lifecycle.Timeouts{Register: 10 * time.Minute}, at(20*60))
	for _, d := range decisions {
		fmt.Printf("%s: give back claim %s with %s (since %s): %s\n", d.Verdict, d.Claim, d.Instance, d.Since.Format(time.TimeOnly), d.Detail)
	}
	// Output: NotRegistered: give back claim a with i-1 (since 00:10:00): no node has joined within 10m0s
}

// Verdicts tell machines without a claim from claims that came to nothing: the former are deleted, the latter made anew.
func ExampleVerdict() {
	claims := []lifecycle.Claim{{Name: "a", Token: "a-1", Created: at(0)}} // Create never succeeded
	instances := []cloudprovider.Instance{instance("i-9", "forgotten", 1, cloudprovider.Running)}
	decisions, _ := lifecycle.Review(claims, instances, lifecycle.Timeouts{}, at(3600))
	for _, d := range decisions {
		switch d.Verdict {
		case lifecycle.Orphaned, lifecycle.Surplus:
			fmt.Println("delete", d.Instance)
		default:
			fmt.Println("make claim", d.Claim, "anew:", d.Verdict)
		}
	}
	// Output:
	// delete i-9
	// make claim a anew: NotLaunched
}
