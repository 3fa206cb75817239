// Provision reads manifests and prints which nodes to buy for the pods that have none, what these
// nodes cost, which pod goes where, and why a pod can't be placed. It needs neither a cluster nor
// credentials.
package main

import (
	"os"

	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/provision/program"
)

func main() { os.Exit(inputs.End(os.Stderr, program.Command(os.Stdin).Execute())) }
