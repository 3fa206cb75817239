package interruption_test

import (
	"fmt"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
)

// An event names the machine, what happens to it and when; the time that is left decides whether a new node can be waited
// for.
func ExampleEvent() {
	announced := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	e := interruption.Event{
		ID: "warning-7", Instance: "i-7", Kind: interruption.SpotInterrupted, At: announced, Deadline: announced.Add(2 * time.Minute),
	}
	left := e.Deadline.Sub(announced.Add(30 * time.Second))
	fmt.Printf("%s: %s, %s left: %s\n", e.Instance, e.Kind, left, e.Kind.Respond())
	// Output: i-7: SpotInterrupted, 1m30s left: Drain
}

// A response is an order of urgency: some announcements change nothing, and some machines do not answer any more.
func ExampleResponse() {
	urgency := map[interruption.Response][]interruption.Kind{}
	for _, k := range []interruption.Kind{interruption.SpotInterrupted, interruption.RebalanceRecommended, interruption.MaintenanceScheduled, interruption.InstanceTerminating, interruption.InstanceImpaired} {
		urgency[k.Respond()] = append(urgency[k.Respond()], k)
	}
	for _, r := range []interruption.Response{interruption.Ignore, interruption.Drain, interruption.Force} {
		fmt.Println(r, urgency[r])
	}
	// Output:
	// Ignore [RebalanceRecommended]
	// Drain [SpotInterrupted MaintenanceScheduled InstanceTerminating]
	// Force [InstanceImpaired]
}
