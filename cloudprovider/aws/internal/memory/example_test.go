package memory_test

import (
	"fmt"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/memory"
)

// A token goes one way: it is asked for, is in doubt while an answer is lost, has an instance, and that instance ends.
func ExampleState() {
	m := memory.New[question]()
	e, _ := m.Begin("token-1", "web-1", "shape")
	states := []memory.State{e.State}
	look := func() {
		e, _ := m.Begin("token-1", "web-1", "shape")
		states = append(states, e.State)
	}
	m.Lost("token-1", question("fleet-1"))
	look()
	i := instance("token-1", "i-1", start)
	m.Launched("token-1", i, start)
	look()
	m.MarkTerminated("i-1", "terminated by a person", start)
	look()
	names := map[memory.State]string{memory.Asking: "asking", memory.Open: "open", memory.Live: "live", memory.Ended: "ended"}
	for _, s := range states {
		fmt.Print(names[s], " ")
	}
	// Output: asking open live ended
}

// An entry says what became of a token, and of an instance that has ended why.
func ExampleEntry() {
	m := memory.New[question]()
	m.Learn(instance("token-1", "i-1", start), "shape", start) // from the tags of an earlier process's machine
	m.MarkTerminated("i-1", "spot interruption", start)
	e, ok := m.Of("i-1")
	fmt.Println(ok, e.Name, e.State == memory.Ended, e.Why)
	// Output: true token-1 true spot interruption
}

// A fleet whose answer was lost is an open question: a caller with its token has to find out before asking anew.
func ExampleQuestion() {
	m := memory.New[question]()
	m.Begin("token-1", "web-1", "shape")
	lost := question("fleet-1")
	m.Lost("token-1", lost)
	e, _ := m.Token("token-1", start)
	fmt.Println("find out about", e.Question.ID(), "of", len(m.Opens()))
	m.Close(lost)
	fmt.Println("still open:", m.IsOpen("fleet-1"))
	// Output:
	// find out about fleet-1 of 1
	// still open: false
}
