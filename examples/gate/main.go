// Command gate says in CI what a change of manifests does to the price of the nodes that they need, and fails where that is too much:
//
//	go run ./examples/gate -before main/deploy -after deploy -max-dearer 50
//
// Both folders are planned from the same prices, each as a cluster of its own, so the answer is about manifests, not about what runs
// today. It ends with 0 if the change may pass, 2 if something can't be read, 3 if pods that had a place or are new have none, and 4
// if a month would cost more than the limit allows. It is meant to be copied.
//
// With -survives zone,node the pods of the new manifests must all have places at once if any one zone or node is lost, and with -may-wait at least once
// nodes were bought for them; otherwise the change may not pass (3).
//
// With -check the plan of the new manifests must also convince a program that does not trust the planner, such as examples/check: it gets the plan with its
// proof on stdin, and if it ends with anything but 0 the change may not pass (3).
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/examples/plan/proof"
	"github.com/joinery-sdk/joinery/examples/plan/survive"
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
	checker := flags.String("check", "", "a program that must confirm the plan of -after, read from stdin, such as a build of examples/check")
	losses := flags.String("survives", "", "what the plan of -after must live through, one at a time: some of zone, spot-pool, reservation, node, instance-family")
	mayWait := flags.Bool("may-wait", false, "with -survives, pods may wait for nodes that are bought after the loss")
	if flags.Parse(args) != nil {
		return inputs.ExitInput
	}
	var kinds []survive.Kind
	if *losses != "" {
		var err error
		if kinds, err = survive.ParseKinds(*losses); err != nil {
			fmt.Fprintln(problems, err)
			return inputs.ExitInput
		}
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
	survived, err := survives(ctx, young, kinds, *mayWait, out)
	if err != nil {
		fmt.Fprintln(problems, err)
		return inputs.ExitInternal
	}
	if *checker != "" {
		if err := confirmed(ctx, *checker, young, out); err != nil {
			fmt.Fprintf(problems, "gate: the plan is not confirmed: %v\n", err)
			return inputs.ExitNotAll
		}
	}
	switch {
	case len(d.Lost) > 0 || !survived:
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
	return plan.Make(ctx, snapshot, &plan.Options{Groups: pipeline.Groups(read, snapshot.Pods)})
}

// survives rehearses the failures, and says which workloads do not live through one of them.
func survives(ctx context.Context, p *plan.Plan, kinds []survive.Kind, mayWait bool, out io.Writer) (bool, error) {
	by := p.Options()
	all, err := survive.Rehearse(ctx, p, &by, kinds)
	if err != nil {
		return false, err
	}
	held := true
	for _, o := range all {
		if len(o.Lost) > 0 {
			held = false
			fmt.Fprintf(out, "  the loss of %s leaves %d pods without a place, such as %s: %s\n", o.Failure, len(o.Lost), plan.WorkloadOf(o.Lost[0]), o.Why)
		}
		if len(o.Waiting) > 0 && !mayWait {
			held = false
			fmt.Fprintf(out, "  after the loss of %s %d pods wait for nodes, such as %s\n", o.Failure, len(o.Waiting), plan.WorkloadOf(o.Waiting[0]))
		}
	}
	return held, nil
}

// confirmed has the checker read the plan with its proof.
func confirmed(ctx context.Context, checker string, p *plan.Plan, out io.Writer) error {
	d, err := proof.Of(p)
	if err != nil {
		return err
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, checker)
	cmd.Stdin, cmd.Stdout = bytes.NewReader(text), out
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w\n%s", err, said.String())
	}
	return nil
}
