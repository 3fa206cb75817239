package deprovision_test

import (
	"fmt"

	"github.com/joinery-sdk/joinery/deprovision"
)

func ExampleDollars() {
	fmt.Println(deprovision.Dollars(7.1), deprovision.Dollars(0.0058), deprovision.Dollars(0.096).Times(24))
	// Output: $7.10 $0.0058 $2.304
}
