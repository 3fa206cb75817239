package main

import (
	"bufio"
	"context"
	"encoding/json"
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

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/scheduling"
)

// launchFlags say whether the plan is bought, where, and who agrees.
type launchFlags struct {
	launch, dryRun, yes        bool
	showUserData               bool
	cluster, endpoint, profile string
	lag                        time.Duration
}

// dearer is by how much more than planned a node may cost before planning again is preferred.
const dearer = 0.1

// registerLaunch adds the flags that spend money, or would.
func (o *options) registerLaunch(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.buy.launch, "launch", false, "buy the plan on EC2, with the credentials of the environment; asks first, plans again around what EC2 refuses, and gives everything back when interrupted")
	f.BoolVar(&o.buy.dryRun, "dry-run", false, "print the requests to EC2 that --launch would send, as JSON, and change nothing")
	f.BoolVar(&o.buy.yes, "yes", false, "answer every question of --launch with yes")
	f.BoolVar(&o.buy.showUserData, "show-user-data", false, "with --dry-run, print user data in full instead of its length and hash")
	f.StringVar(&o.buy.cluster, "cluster", "", "the EKS cluster that nodes of --launch and --dry-run join")
	f.StringVar(&o.buy.endpoint, "endpoint", "", "address of an emulator of AWS instead of AWS itself")
	f.StringVar(&o.buy.profile, "instance-profile", "", "instance profile of node classes that name neither profile nor role")
	f.DurationVar(&o.buy.lag, "lag", 20*time.Second, "how long EC2 may take to show what was launched: so long --launch waits when it is interrupted before it gives back")
	// A launch that is interrupted has something left to do.
	cmd.PreRun = func(cmd *cobra.Command, _ []string) {
		if o.buy.launch {
			ctx, _ := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM) // until the program ends
			cmd.SetContext(ctx)
		}
	}
}

func (o *options) checkLaunch() error {
	switch {
	case !o.buy.launch && !o.buy.dryRun:
		if o.buy.yes || o.buy.cluster != "" || o.buy.endpoint != "" {
			return inputs.Bad(errors.New("--yes, --cluster and --endpoint say how to buy: add --launch, or --dry-run"))
		}
		return nil
	case o.buy.cluster == "":
		return inputs.Bad(errors.New("--launch and --dry-run: want --cluster, the name of the EKS cluster that the nodes join"))
	case o.explain != "" || o.diff != "" || o.assert != "" || o.rehearsal != "":
		return inputs.Bad(errors.New("--launch and --dry-run buy one whole plan: leave out --explain, --diff, --assert and --rehearse"))
	case o.InstanceTypes != "" || o.Describe != "":
		return inputs.Bad(errors.New("--launch and --dry-run ask EC2 what it has: leave out --instance-types and --describe-instance-types"))
	case o.buy.launch && !o.buy.dryRun && !o.buy.yes && slices.Contains(o.Files, "-"):
		return inputs.Bad(errors.New("--launch asks on standard input, which -f - takes: add --yes to buy without being asked"))
	}
	return nil
}

// shop plans with what EC2 has, and buys the plan or says how.
func (o *options) shop(cmd *cobra.Command, out io.Writer, stdin io.Reader) error {
	ctx := cmd.Context()
	m, s, market, err := o.read(cmd, stdin)
	if err != nil {
		return err
	}
	adjust, err := pipeline.Correction(m)
	if err != nil {
		return inputs.Bad(err)
	}
	classes, s, err := launchClasses(m, s)
	if err != nil {
		return inputs.Bad(err)
	}
	provider, err := aws.New(ctx, aws.Options{
		Cluster: o.buy.cluster, Classes: classes, Region: o.Region, Endpoint: o.buy.endpoint, InstanceProfile: o.buy.profile, Global: m.Settings,
		Adjust: adjust, DryRun: o.buy.dryRun, Undecided: aws.NoHistory, Lag: o.buy.lag, // the tokens are new: nobody has ever launched with them
	})
	if err != nil {
		return err
	}
	t := &till{Provider: provider, prices: map[string]float64{}, in: bufio.NewReader(stdin), out: cmd.ErrOrStderr(), yes: o.buy.yes}
	done := terminal.Progress(cmd.ErrOrStderr(), "asking EC2 what it has")
	live, err := t.stock(ctx, &s, market)
	done()
	if err != nil {
		return t.giveBack(ctx, err)
	}
	if o.buy.dryRun {
		return o.rehearseLaunch(ctx, out, t, s)
	}
	if err := o.buyPlan(cmd, out, live, t, s); err != nil {
		return t.giveBack(ctx, err)
	}
	return nil
}

// stock puts what the provider sells into the pools, and returns the market with the date of its prices.
func (t *till) stock(ctx context.Context, s *scheduling.Snapshot, market *pipeline.Market) (*pipeline.Market, error) {
	live := *market
	live.Notes = nil // those of the embedded prices
	s.Pools = slices.Clone(s.Pools)
	for i := range s.Pools {
		types, err := t.InstanceTypes(ctx, s.Pools[i].NodePool)
		if err != nil {
			return nil, err
		}
		s.Pools[i].Types = types
		for _, it := range types {
			for _, offering := range it.Offerings {
				t.prices[it.Name+" "+offering.Requirements.String()] = offering.Price
				if l := offering.List; l != nil && l.Date > live.Date {
					live.Date = l.Date
				}
			}
		}
	}
	for _, n := range t.Notes() {
		fmt.Fprintln(t.out, "note:", n)
	}
	return &live, nil
}

// rehearseLaunch prints the requests of the first plan.
func (o *options) rehearseLaunch(ctx context.Context, out io.Writer, t *till, s scheduling.Snapshot) error {
	shown := &recorder{}
	n := 0
	_, err := o.buyer(shown, func(node string) string { n++; return fmt.Sprintf("dry-run-%s-%d", node, n) }).Buy(ctx, s)
	if err != nil && !errors.Is(err, cloudprovider.ErrUnsupported) {
		return err
	}
	requests, err := t.DryRun(ctx, shown.claims)
	if err != nil {
		return err
	}
	list := []json.RawMessage{}
	for _, r := range requests {
		write := r.JSON
		if o.buy.showUserData {
			write = r.JSONWithUserData
		}
		input, err := write()
		if err != nil {
			return err
		}
		text, err := json.Marshal(struct {
			Service string          `json:"service"`
			Action  string          `json:"action"`
			Input   json.RawMessage `json:"input"`
		}{r.Service, r.Action, input})
		if err != nil {
			return err
		}
		list = append(list, text)
	}
	format := "json"
	if o.Output == "yaml" {
		format = o.Output
	}
	return encode(out, format, map[string]any{"requests": list})
}

// recorder is a provider that only remembers what it was asked for.
type recorder struct{ claims []cloudprovider.NodeClaim }

func (r *recorder) Create(_ context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
	r.claims = append(r.claims, claim)
	return cloudprovider.Launch{}, &cloudprovider.Error{Code: cloudprovider.ErrUnsupported}
}

func (r *recorder) CreateMany(ctx context.Context, claims []cloudprovider.NodeClaim) []cloudprovider.Result {
	results := make([]cloudprovider.Result, len(claims))
	for i, c := range claims {
		_, results[i].Err = r.Create(ctx, c)
	}
	return results
}

// buyer plans with the flags and asks a provider.
func (o *options) buyer(provider cloudprovider.Creator, token func(string) string) *pipeline.Buyer {
	return &pipeline.Buyer{
		Provider: provider, Token: token, Dearer: dearer,
		Plan: func(s scheduling.Snapshot) (*plan.Plan, error) {
			packed, _, _, err := o.pack(context.Background(), io.Discard, s)
			return packed, err
		},
	}
}

// buyPlan shows the plan, asks, and buys.
func (o *options) buyPlan(cmd *cobra.Command, out io.Writer, market *pipeline.Market, t *till, s scheduling.Snapshot) error {
	buyer := o.buyer(t, nil)
	planned := buyer.Plan
	buyer.Plan = func(s scheduling.Snapshot) (*plan.Plan, error) {
		packed, err := planned(s)
		if err == nil && !t.shown {
			t.shown = true
			err = o.show(cmd, market, packed)
		}
		return packed, err
	}
	buyer.Written = t.write
	t.where = fmt.Sprintf("cluster %q, %s", o.buy.cluster, t.Clients().Region)
	bought, err := buyer.Buy(cmd.Context(), s)
	if err != nil {
		return err
	}
	if err := t.ReleaseTemplates(cmd.Context()); err != nil {
		return err
	}
	r := newPurchaseReport(market, bought)
	launched := make([]launchedNode, 0, len(bought.Nodes))
	for _, n := range bought.Nodes {
		launched = append(launched, launchedNode{n.Name, n.Launch.ID, n.Launch.ImageID})
	}
	if o.Output == "json" || o.Output == "yaml" {
		err = encode(out, o.Output, struct {
			*report
			Launched []launchedNode `json:"launched"`
		}{r, launched})
	} else {
		style := terminal.StyleOf(cmd.OutOrStdout())
		if err = r.write(out, style, o.Output == "wide"); err == nil && len(launched) > 0 {
			fmt.Fprintln(out)
			table := terminal.NewTable(style, "LAUNCHED", "INSTANCE", "IMAGE")
			for _, l := range launched {
				table.Row(l.Name, l.Instance, l.Image)
			}
			err = table.Write(out)
		}
	}
	if err == nil && r.Summary.Unschedulable > 0 {
		return &inputs.ExitError{Code: inputs.ExitNotAll}
	}
	return err
}

// launchedNode is a node that was bought.
type launchedNode struct {
	Name     string `json:"name"`
	Instance string `json:"instance"`
	Image    string `json:"image"`
}

// show prints the first plan for people, on stderr: stdout is for what was bought.
func (o *options) show(cmd *cobra.Command, market *pipeline.Market, packed *plan.Plan) error {
	if o.buy.yes {
		return nil
	}
	r := newReport(market, packed, noFixes)
	var text strings.Builder
	if err := r.write(&text, terminal.StyleOf(cmd.ErrOrStderr()), o.Output == "wide"); err != nil {
		return err
	}
	_, err := io.WriteString(cmd.ErrOrStderr(), text.String())
	return err
}
