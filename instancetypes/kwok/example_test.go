package kwok_test

import (
	"errors"
	"fmt"

	"github.com/joinery-sdk/joinery/instancetypes/kwok"
)

// Faults of a file come with their path and the type's name, all at once.
func ExampleFieldError() {
	_, err := kwok.Read([]byte(`[{"name": "c-4x", "architecture": "amd64", "resources": {"cpu": "four", "memory": "lots"}}]`))
	if fault, ok := errors.AsType[*kwok.FieldError](err); ok {
		fmt.Println(fault.Path, "of", fault.Type)
	}
	fmt.Println(err)
	// Output:
	// [0].resources[cpu] of c-4x
	// kwok: [0].resources[cpu] (c-4x): want a quantity such as 4, 500m or 8Gi, got "four"
	// kwok: [0].resources[memory] (c-4x): want a quantity such as 4, 500m or 8Gi, got "lots"
}
