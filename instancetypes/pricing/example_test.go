package pricing_test

import (
	"errors"
	"fmt"

	"github.com/joinery-sdk/joinery/instancetypes/pricing"
)

// Two overlays of one weight that correct the same price are a mistake of whoever wrote them, and the error names both.
func ExampleConflictError() {
	_, err := pricing.NewOverlays(overlay("egress", 1, in("family", "m"), 0.2), overlay("licence", 1, in("family", "m", "c"), 0.3))
	if conflict, ok := errors.AsType[*pricing.ConflictError](err); ok {
		fmt.Println("give a weight to", conflict.First, "or", conflict.Second)
	}
	// Output: give a weight to egress or licence
}
