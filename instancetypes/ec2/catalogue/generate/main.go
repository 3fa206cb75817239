// Command generate writes the embedded EC2 catalogue from packages that a package client can
// download. Descriptions and zones come from the moto wheel, branch-interface limits from the VPC
// resource controller's module, prices and bandwidth from the AWS provider's module, older prices
// and spot figures from a module of the 2025 instance list. It takes facts, not code, and writes
// its own format. Run it with `go generate` in package catalogue.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	out := flag.String("out", "data", "folder to write to")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *out); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}
