package record_test

import (
	"fmt"
	"maps"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/record"
)

// All machines of a fleet carry the list of claims, and a seal that says which machine is whose. A program that lists many machines
// reads each record once.
func ExampleNewReader() {
	batch, err := record.Batch{ID: "b-1", Claims: []record.Claim{{Name: "node-1", Token: "t-1"}, {Name: "node-2", Token: "t-2"}}}.Tags()
	if err != nil {
		fmt.Println(err)
		return
	}
	seal, err := record.Assign([]string{"i-b", "i-a"}).Tags()
	if err != nil {
		fmt.Println(err)
		return
	}
	tags := map[string]string{"team": "red"} // of every machine
	maps.Copy(tags, batch)
	maps.Copy(tags, seal)

	reader := record.NewReader(tags)
	for _, machine := range []string{"i-a", "i-b"} {
		b, _, err := reader.Batch(tags)
		if err != nil {
			fmt.Println(err)
			return
		}
		s, _, err := reader.Seal(b, tags)
		if err != nil {
			fmt.Println(err)
			return
		}
		for i, claim := range b.Claims {
			if s[i] == machine {
				fmt.Println(machine, "is", claim.Name)
			}
		}
	}
	// Output:
	// i-a is node-1
	// i-b is node-2
}
