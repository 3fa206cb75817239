// Command gate says in CI what a change of manifests does to the price of the nodes that they need, and fails where that is too much:
//
//	go run ./examples/gate -before main/deploy -after deploy -max-dearer 50
//
// Both folders are planned from the same prices, each as a cluster of its own, so the answer is about manifests, not about what runs
// today. It ends with 0 if the change may pass, 2 if something can't be read, 3 if pods that had a place or are new have none, and 4
// if a month would cost more than the limit allows. It is meant to be copied.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/plan"
)

const hours = 730.0 // of a month

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

func run(ctx context.Context, args []string, out, problems io.Writer) int {
	flags := flag.NewFlagSet("gate", flag.ContinueOnError)
	flags.SetOutput(problems)
	before := flags.String("before", "", "folder or file of manifests as they are, with pools")
	after := flags.String("after", "", "the same as they are to be")
	region := flags.String("region", "", "whose prices count; without it those of the region that the manifests name")
	limit := flags.Float64("max-dearer", 0, "how many dollars a month more may be spent")
	if flags.Parse(args) != nil {
		return inputs.ExitInput
	}
	old, err := planned(ctx, *region, *before)
	if err != nil {
		fmt.Fprintln(problems, err)
		return inputs.ExitInput
	}
	young, err := planned(ctx, *region, *after)
	if err != nil {
		fmt.Fprintln(problems, err)
		return inputs.ExitInput
	}
	d := plan.Diff(old, young)
	dearer := (d.After.PricePerHour - d.Before.PricePerHour) * hours
	fmt.Fprintf(out, "$%.2f -> $%.2f a month: %+.2f, the limit is %+.2f\n", d.Before.PricePerHour*hours, d.After.PricePerHour*hours, dearer, *limit)
	for _, w := range d.Workloads {
		fmt.Fprintf(out, "  %-40s $%9.2f -> $%9.2f\n", w.Workload, w.Before*hours, w.After*hours)
	}
	for _, u := range young.Unplaced() {
		fmt.Fprintf(out, "  no place for %d pods of %s: %s\n", len(u.Pods), plan.WorkloadOf(u.Pods[0]), u.Reasons()[0])
	}
	switch {
	case len(d.Lost) > 0:
		return inputs.ExitNotAll
	case dearer > *limit:
		return inputs.ExitDearer
	}
	return inputs.ExitOK
}

// planned reads a folder and plans it with what its region offers its pools.
func planned(ctx context.Context, region, folder string) (*plan.Plan, error) {
	flags := inputs.Flags{Files: []string{folder}, Region: region}
	read, err := flags.Manifests("", nil)
	if err != nil {
		return nil, err
	}
	market, err := flags.Market(read)
	if err != nil {
		return nil, err
	}
	snapshot, _, err := pipeline.Snapshot(read, market)
	if err != nil {
		return nil, err
	}
	snapshot, _ = pipeline.Static(snapshot)
	return plan.Make(ctx, snapshot, nil)
}
