// Launch plans the nodes that pending pods need with what EC2 has for sale, and buys them after
// asking. It is a program of its own because it needs credentials and EC2's SDK; provision plans
// without either.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
)

func main() {
	cmd := command(os.Stdin)
	// A launch that is interrupted has to give back what it bought.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := inputs.End(os.Stderr, cmd.ExecuteContext(ctx))
	stop()
	os.Exit(code)
}

// options say how to plan, whether and where to buy the plan, and whether to ask first.
type options struct {
	inputs.Flags
	planning                   inputs.Planning
	dryRun, yes                bool
	showUserData               bool
	cluster, endpoint, profile string
	lag                        time.Duration
}

// dearer is by how much more than planned a node may cost before planning again is preferred.
const dearer = 0.1

// formats are the values of --output: the table has no wider form.
func formats() []string { return []string{"table", "json", "yaml"} }

func command(stdin io.Reader) *cobra.Command {
	var o options
	cmd := inputs.Command(&cobra.Command{
		Use:   "launch -f FILE... --cluster NAME",
		Short: "buy on EC2 the nodes that pending pods need",
		Long: `Launch plans like provision, with what EC2 has for sale now, and buys the plan. It uses the credentials of the environment.
It shows the plan and asks before it buys, plans again around what EC2 refuses, asks again if that is dearer, and gives
everything back if it is interrupted.

Exit codes: 0 all pods have a node, 1 failed, and nothing that was bought is left, 2 bad usage or input, 3 some pod has no node,
or the answer was no.`,
		Example: `  launch -f cluster/ --cluster prod --dry-run    # print the requests that would buy the plan
  launch -f cluster/ --cluster prod              # buy it; asks first
  launch -f cluster/ --cluster prod --yes -o json`,
	}, func(cmd *cobra.Command, out io.Writer) error { return o.run(cmd, out, stdin) })
	o.Register(cmd.Flags())
	o.planning.Register(cmd)
	f := cmd.Flags()
	for _, name := range []string{"instance-types", "describe-instance-types", "aws"} { // they are refused, because EC2 is asked
		if err := f.MarkHidden(name); err != nil {
			panic(err)
		}
	}
	f.BoolVar(&o.dryRun, "dry-run", false, "print the requests to EC2 as JSON, and change nothing; it asks EC2 what is for sale, so it needs credentials, too")
	f.BoolVar(&o.yes, "yes", false, "answer every question with yes")
	f.BoolVar(&o.showUserData, "show-user-data", false, "with --dry-run, print user data in full instead of its length and hash")
	f.StringVar(&o.cluster, "cluster", "", "the EKS cluster that the nodes join")
	f.StringVar(&o.endpoint, "endpoint", "", "address of an emulator of AWS instead of AWS itself")
	f.StringVar(&o.profile, "instance-profile", "", "instance profile of node classes that name neither profile nor role")
	f.DurationVar(&o.lag, "lag", 20*time.Second, "how long EC2 may take to show what was launched; launch waits that long before it gives nodes back")
	f.Lookup("output").Usage = "output format: " + strings.Join(formats(), ", ")
	inputs.Complete(cmd, "output", formats()...)
	return cmd
}

func (o *options) check(flags *pflag.FlagSet) error {
	if err := o.Check(); err != nil {
		return err
	}
	if err := inputs.OneOf("output", o.Output, formats()...); err != nil {
		return err
	}
	// --dry-run goes with the flags of a launch, so that it can be added to the command of one.
	if err := inputs.Combined(flags, inputs.Combination{Flag: "show-user-data", Does: "is about the requests", With: []string{"dry-run"}}); err != nil {
		return err
	}
	switch {
	case len(o.Files) == 0:
		return inputs.Bad(errors.New("want -f with the manifests whose pods need nodes: launch does not buy the sample"))
	case o.cluster == "":
		return inputs.Bad(errors.New("want --cluster, the name of the EKS cluster that the nodes join"))
	case o.InstanceTypes != "" || o.Describe != "" || len(o.Answers) > 0:
		return inputs.Bad(errors.New("launch asks EC2 what it has: leave out --instance-types, --describe-instance-types and --aws"))
	case o.lag < 0:
		return inputs.Bad(fmt.Errorf("--lag %v: want a duration such as 20s, at least 0", o.lag))
	case !o.dryRun && !o.yes && slices.Contains(o.Files, "-"):
		return inputs.Bad(errors.New("launch asks on standard input, but -f - reads manifests from it: add --yes to buy without being asked"))
	}
	_, err := o.planning.Options()
	return err
}

func (o *options) run(cmd *cobra.Command, out io.Writer, stdin io.Reader) error {
	if err := o.check(cmd.Flags()); err != nil {
		return err
	}
	return o.shop(cmd, out, stdin)
}

// read is what the flags name, with the nodes that static pools are yet to get.
func (o *options) read(cmd *cobra.Command, stdin io.Reader) (*inputs.Cluster, error) {
	c, err := o.Read("", stdin, cmd.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	s, notes := pipeline.Static(c.Snapshot)
	c.Snapshot = s
	inputs.Note(cmd.ErrOrStderr(), notes...)
	return c, nil
}
