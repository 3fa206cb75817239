// Interruption reads what EC2 announces about machines that it takes back, and prints which nodes
// would be drained and what would be bought for their pods. It changes nothing, neither in the
// cluster nor in the queue. Without a queue it reads messages from a file, or a built-in sample,
// and then needs neither a cluster nor credentials.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/events"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
)

//go:embed sample.yaml
var sample string

//go:embed sample-messages.jsonl
var sampleMessages string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := inputs.End(os.Stderr, command(os.Stdin).ExecuteContext(ctx))
	stop()
	os.Exit(code)
}

type options struct {
	inputs.Flags
	queue, endpoint, messages string
	checks                    bool
	most                      int
}

func command(stdin io.Reader) *cobra.Command {
	var o options
	cmd := inputs.Command(&cobra.Command{
		Use:   "interruption [-f FILE]... [--queue NAME | --messages FILE]",
		Short: "say which nodes EC2 takes back, and what would be bought for their pods",
		Long: `Interruption reads the SQS queue that EventBridge writes EC2's announcements to: spot warnings, rebalance recommendations,
changes of state, scheduled changes and the end of capacity reservations. For each it says which node is meant and what to do
about it, and plans the nodes that the pods of drained ones need. Messages stay in the queue.
With --status-checks it also asks EC2 for failing status checks, scheduled events, and capacity blocks that end.

Exit codes: 0 all is well, 1 failed, 2 bad usage or input, 3 some pod of a drained node has no place.`,
		Example: `  interruption                                              # the built-in sample
  kubectl get pods,nodes,daemonsets,pvc,pv,sc,csinodes,nodepools,ec2nodeclasses -A -o yaml |
    interruption -f - --queue prod
  interruption -f cluster/ --messages events.json -o json`,
	}, func(cmd *cobra.Command, out io.Writer) error { return o.run(cmd, out, stdin) })
	o.Register(cmd.Flags())
	cmd.Flags().StringVar(&o.queue, "queue", "", "name of the SQS queue, read with the credentials of the environment")
	cmd.Flags().BoolVar(&o.checks, "status-checks", false, "ask EC2 for failing status checks, scheduled events and ending capacity blocks of the nodes")
	cmd.Flags().StringVar(&o.endpoint, "endpoint", "", "address of an emulator of AWS instead of AWS itself")
	cmd.Flags().StringVar(&o.messages, "messages", "", "`FILE` with messages as the queue has them, or as 'aws sqs receive-message' prints them, instead of a queue")
	cmd.Flags().IntVar(&o.most, "most", 1000, "maximum number of messages to read")
	return cmd
}

func (o *options) run(cmd *cobra.Command, out io.Writer, stdin io.Reader) error {
	switch {
	case o.queue != "" && o.messages != "":
		return inputs.Bad(errors.New("--queue and --messages cannot be combined"))
	case o.endpoint != "" && o.queue == "" && !o.checks:
		return inputs.Bad(errors.New("--endpoint only says where to ask: add --queue or --status-checks"))
	case o.most < 1:
		return inputs.Bad(fmt.Errorf("--most %d: want 1 or more", o.most))
	}
	if err := o.Check(); err != nil {
		return err
	}
	if err := o.CheckStdin(stdin); err != nil {
		return err
	}
	c, err := o.Read(sample, stdin, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	messages, err := o.read(cmd.Context(), c.Snapshot)
	if err != nil {
		return err
	}
	start := time.Now()
	r, err := review(c.Snapshot, c.Groups, messages)
	if err != nil {
		return err
	}
	if !o.NoTiming {
		r.Summary.Seconds = map[string]float64{"plan": time.Since(start).Seconds()}
	}
	switch o.Output {
	case "json", "yaml":
		if err := inputs.Encode(out, o.Output, r); err != nil {
			return err
		}
	default:
		if text := o.Sample(); text != "" {
			fmt.Fprintln(out, terminal.StyleOf(cmd.OutOrStdout()).Dim(text))
		}
		if err := r.write(out, terminal.StyleOf(cmd.OutOrStdout())); err != nil {
			return err
		}
	}
	if len(r.Unschedulable) > 0 {
		return &inputs.ExitError{Code: inputs.ExitNotAll}
	}
	return nil
}

// read gets the messages from the queue and from EC2, or from the file or the sample.
func (o *options) read(ctx context.Context, s scheduling.Snapshot) ([]events.Message, error) {
	if o.queue != "" || o.checks {
		clients, err := api.Connect(ctx, api.Config{Region: o.Region, Endpoint: o.endpoint})
		if err != nil {
			return nil, err
		}
		source, err := events.Open(ctx, clients, events.Options{Queue: o.queue, StatusChecks: o.checks})
		if err != nil {
			return nil, api.Outcome("interruption", o.queue, err)
		}
		var list []events.Message
		if o.queue != "" {
			if list, err = source.Peek(ctx, o.most); err != nil {
				return nil, api.Outcome("interruption", o.queue, err)
			}
		}
		if o.checks {
			found, err := source.Checks(ctx, nodes(s.Nodes))
			if err != nil {
				return nil, api.Outcome("interruption", "status checks", err)
			}
			for _, e := range found {
				list = append(list, events.Message{ID: e.ID, Events: []interruption.Event{e}})
			}
		}
		return list, nil
	}
	text := []byte(sampleMessages)
	if o.messages != "" {
		var err error
		if text, err = os.ReadFile(o.messages); err != nil {
			return nil, inputs.Bad(fmt.Errorf("--messages: %w", err))
		}
	}
	list := readMessages(text, o.most)
	if len(list) > 0 && !slices.ContainsFunc(list, func(m events.Message) bool { return m.Err == nil }) {
		return nil, inputs.Bad(fmt.Errorf("%s: no part of it is a message: %s: %w", o.messages, list[0].ID, list[0].Err))
	}
	return list, nil
}

// nodes are the cluster's, as events.Fleet, under EC2's own ids as messages of the queue have them.
type nodes []*corev1.Node

// Owns are those that are nodes.
func (n nodes) Owns(_ context.Context, ids []string) (map[string]string, error) {
	out := map[string]string{}
	for _, node := range n {
		if id := bare(node); slices.Contains(ids, id) {
			out[id] = id
		}
	}
	return out, nil
}

// Reserved are those whose label names a reservation.
func (n nodes) Reserved() map[string]string {
	out := map[string]string{}
	for _, node := range n {
		if id := node.Labels[instancetypes.LabelReservationID]; id != "" {
			out[bare(node)] = id
		}
	}
	return out
}

func bare(n *corev1.Node) string {
	return n.Spec.ProviderID[strings.LastIndex(n.Spec.ProviderID, "/")+1:]
}
