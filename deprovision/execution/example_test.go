package execution_test

import (
	"errors"
	"fmt"

	"github.com/joinery-sdk/joinery/deprovision"
	"github.com/joinery-sdk/joinery/deprovision/execution"
	"github.com/joinery-sdk/joinery/deprovision/plan"
)

// A replacement is bought, and only when it is there the old node is drained and given back.
func ExampleNew() {
	r := execution.New([]plan.Command{{
		Nodes: []deprovision.Candidate{{Name: "node-a"}}, NewNodes: []plan.NewNode{{Name: "default-0"}},
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
	r := execution.New([]plan.Command{{
		Nodes: []deprovision.Candidate{{Name: "node-a"}}, NewNodes: []plan.NewNode{{Name: "default-0"}, {Name: "default-1"}},
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

// An action is listed until an event says what came of it, so that a caller that was stopped can go on.
func ExampleAction() {
	r := execution.New([]plan.Command{{Nodes: []deprovision.Candidate{{Name: "node-a"}}, NewNodes: []plan.NewNode{{Name: "default-0", InstanceType: "m.large"}}}}, 1)
	for range 2 {
		first := r.Actions()[0]
		fmt.Println(first.Kind, first.New.InstanceType, "for command", first.Command)
	}
	// Output:
	// buy m.large for command 0
	// buy m.large for command 0
}

// A command waits for those before it; what is final needs nothing more.
func ExampleStatus() {
	r := execution.New([]plan.Command{{Nodes: []deprovision.Candidate{{Name: "node-a"}}}, {Nodes: []deprovision.Candidate{{Name: "node-b"}}}}, 1)
	r, _ = r.Tell(execution.Event{Fact: execution.Gone, Node: "node-a"})
	for i := range 2 {
		var s execution.Status
		s, _ = r.Status(i)
		fmt.Println(s, s.Final())
	}
	// Output:
	// done true
	// draining false
}

// An event without a matching action is an error, and changes nothing.
func ExampleUnexpectedError() {
	r := execution.New([]plan.Command{{Nodes: []deprovision.Candidate{{Name: "node-a"}}}}, 1)
	_, err := r.Tell(execution.Event{Fact: execution.Gone, Node: "node-z"})
	var unexpected *execution.UnexpectedError
	fmt.Println(errors.As(err, &unexpected), err)
	// Output: true execution: gone of node node-z, which no command of the plan names: report nothing about it; if it has died, make a new plan
}
