package label_test

import (
	"fmt"

	"github.com/joinery-sdk/joinery/instancetypes/ec2/label"
)

func ExampleKeys() {
	fmt.Println(label.Keys().Contains(label.Category), label.Keys().Contains(label.NodeClass))
	// Output: true false
}
