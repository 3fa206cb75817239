package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling"
)

// shop plans with what EC2 has, and buys the plan or says how.
func (o *options) shop(cmd *cobra.Command, out io.Writer, stdin io.Reader) error {
	ctx := cmd.Context()
	c, err := o.read(cmd, stdin)
	if err != nil {
		return err
	}
	m, s, market := c.Manifests, c.Snapshot, c.Market
	how, err := o.planning.Options()
	if err != nil {
		return err
	}
	how.Groups = c.Groups // half a group is not worth its price
	adjust, err := corrections(m)
	if err != nil {
		return inputs.Bad(err)
	}
	classes, s, err := launchClasses(m, s)
	if err != nil {
		return inputs.Bad(err)
	}
	provider, err := aws.New(ctx, aws.Options{
		Cluster: o.cluster, Classes: classes, Region: o.Region, Endpoint: o.endpoint, InstanceProfile: o.profile, Global: m.Settings,
		Adjust: adjust, DryRun: o.dryRun, Undecided: aws.NoHistory, Lag: o.lag, // the tokens are new, so no launch was made with them
	})
	if err != nil {
		return err
	}
	t := &till{Provider: provider, prices: map[string]float64{}, paid: map[string]float64{}, in: bufio.NewReader(stdin), out: cmd.ErrOrStderr(), yes: o.yes}
	done := terminal.Progress(cmd.ErrOrStderr(), "asking EC2 what is for sale")
	live, err := t.stock(ctx, &s, market)
	done()
	switch {
	case err != nil && ctx.Err() != nil:
		return t.giveBack(ctx, err)
	case err != nil && o.dryRun:
		return fmt.Errorf("%w; a dry run asks EC2 what is for sale, too", err)
	case err != nil:
		return fmt.Errorf("%w; nothing was bought", err)
	}
	if o.dryRun {
		return o.printRequests(ctx, out, t, how, s)
	}
	if err := o.buy(cmd, out, live, t, how, s); err != nil {
		return t.giveBack(ctx, err)
	}
	return nil
}

// corrections returns what the NodeOverlays do to the types of each pool, or nil if there are none.
func corrections(m *manifests.Snapshot) (func(pool string, types []instancetypes.InstanceType) []instancetypes.InstanceType, error) {
	if len(m.NodeOverlays) == 0 {
		return nil, nil //nolint:nilnil // nil is a function that changes nothing
	}
	of := map[string]pipeline.Correction{}
	for _, pool := range m.NodePools {
		var err error
		if of[pool.Name], err = pipeline.CorrectionOf(m, pool); err != nil {
			return nil, err
		}
	}
	return func(pool string, types []instancetypes.InstanceType) []instancetypes.InstanceType {
		return of[pool].Apply(types)
	}, nil
}

// stock puts what the provider sells into the pools, and returns the market with the date of its
// prices.
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

// printRequests prints the requests of the first plan.
func (o *options) printRequests(ctx context.Context, out io.Writer, t *till, how *plan.Options, s scheduling.Snapshot) error {
	shown := &recorder{}
	n := 0
	_, err := buyer(how, shown, func(node string) string { n++; return fmt.Sprintf("dry-run-%s-%d", node, n) }).Buy(ctx, s)
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
		if o.showUserData {
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
	return inputs.Encode(out, format, map[string]any{"requests": list})
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

// buyer plans as the flags say and asks a provider.
func buyer(how *plan.Options, provider cloudprovider.Creator, token func(string) string) *pipeline.Buyer {
	return &pipeline.Buyer{
		Provider: provider, Token: token, Dearer: dearer, Groups: how.Groups,
		Plan: func(s scheduling.Snapshot) (*plan.Plan, error) { return plan.Make(context.Background(), s, how) },
	}
}

// buy shows the plan, asks, buys, and prints what was bought.
func (o *options) buy(cmd *cobra.Command, out io.Writer, market *pipeline.Market, t *till, how *plan.Options, s scheduling.Snapshot) error {
	buyer := buyer(how, t, nil)
	planned := buyer.Plan
	buyer.Plan = func(s scheduling.Snapshot) (*plan.Plan, error) {
		packed, err := planned(s)
		if err == nil && !t.shown {
			t.shown = true
			err = o.show(cmd.ErrOrStderr(), market, packed)
		}
		return packed, err
	}
	buyer.Written = t.write
	t.where = fmt.Sprintf("cluster %q, %s", o.cluster, t.Clients().Region)
	bought, err := buyer.Buy(cmd.Context(), s)
	if err != nil {
		return err
	}
	if err := t.ReleaseTemplates(cmd.Context()); err != nil {
		return err
	}
	b := billOf(market, bought)
	if o.Output == "json" || o.Output == "yaml" {
		err = inputs.Encode(out, o.Output, b)
	} else {
		err = b.write(out, terminal.StyleOf(cmd.OutOrStdout()))
	}
	if err == nil && b.Summary.Unschedulable > 0 {
		return &inputs.ExitError{Code: inputs.ExitNotAll}
	}
	return err
}

// show prints the first plan for people, on stderr: stdout is for what was bought.
func (o *options) show(stderr io.Writer, market *pipeline.Market, packed *plan.Plan) error {
	if o.yes {
		return nil
	}
	return planned(market, packed).write(stderr, terminal.StyleOf(stderr))
}
