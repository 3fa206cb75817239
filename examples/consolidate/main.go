// Consolidate reads manifests of a cluster and prints which nodes to give back and in which order.
// It also prints what that saves, which pods move, and why every other node stays. It needs neither
// a cluster nor credentials.
package main

import (
	"os"

	"github.com/joinery-sdk/joinery/examples/consolidate/program"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
)

func main() { os.Exit(inputs.End(os.Stderr, program.Command(os.Stdin).Execute())) }
