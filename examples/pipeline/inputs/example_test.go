package inputs_test

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
)

// The flags that all programs share: registered, read, and checked for slips.
func ExampleFlags() {
	var f inputs.Flags
	set := pflag.NewFlagSet("plan", pflag.ContinueOnError)
	f.Register(set)
	for _, args := range [][]string{{"-f", "pods.yaml", "--region", "eu-west-1"}, {"-o", "jsno"}} {
		if err := set.Parse(args); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(f.Files, f.Region, f.Check())
	}
	// Output:
	// [pods.yaml] eu-west-1 <nil>
	// [pods.yaml] eu-west-1 --output "jsno": want one of table, wide, json, yaml (did you mean "json"?)
}

// A program that has printed its answer, and the answer is "not all", has nothing more to say: its exit code does.
func ExampleExitError() {
	fmt.Println(inputs.End(os.Stdout, &inputs.ExitError{Code: inputs.ExitNotAll}))
	fmt.Println(inputs.End(os.Stdout, nil))
	// Output:
	// 3
	// 0
}
