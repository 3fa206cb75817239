package execution_test

import (
	"fmt"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/execution"
)

// A replacement is bought, and only when it is there the old node is drained and given back.
func ExampleNew() {
	r := execution.New([]deprovision.Command{{
		Nodes: []deprovision.Candidate{{Name: "node-a"}}, NewNodes: []deprovision.NewNode{{Name: "default-0"}},
	}}, 1)
	for !r.Finished() {
		for _, a := range r.Actions() {
			fmt.Println(a.Kind, a.Node)
			fact, told := map[execution.Kind]execution.Fact{execution.Buy: execution.Ready, execution.Drain: execution.Empty, execution.GiveBack: execution.Gone}[a.Kind]
			if told {
				r, _ = r.Tell(execution.Event{Fact: fact, Node: a.Node})
			}
		}
	}
	fmt.Println(r.Status(0))
	// Output:
	// buy default-0
	// cordon node-a
	// drain node-a
	// give-back node-a
	// done
}

// What a command has bought before it failed is taken back.
func ExampleRun_Tell() {
	r := execution.New([]deprovision.Command{{
		Nodes: []deprovision.Candidate{{Name: "node-a"}}, NewNodes: []deprovision.NewNode{{Name: "default-0"}, {Name: "default-1"}},
	}}, 1)
	r, _ = r.Tell(execution.Event{Fact: execution.Ready, Node: "default-0"})
	r, _ = r.Tell(execution.Event{Fact: execution.Failed, Node: "default-1", Why: "no capacity"})
	for _, a := range r.Actions() {
		fmt.Println(a.Kind, a.Node)
	}
	status, why := r.Status(0)
	fmt.Println(status, "because of", why)
	// Output:
	// give-back default-0
	// uncordon node-a
	// reverting because of node default-1: no capacity
}
