package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/inputs"
	"github.com/joinery-sdk/joinery/examples/pipeline/purchase"
	"github.com/joinery-sdk/joinery/examples/pipeline/terminal"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/resources"
	"github.com/joinery-sdk/joinery/internal/strictjson"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// rehearsal is the file of --rehearse: what the cloud in memory has. What no entry matches is there
// without end.
type rehearsal struct {
	// Capacity bounds how many machines there are of each offering that matches; of several entries
	// the last one counts.
	Capacity []struct {
		Match string `json:"match"`
		Free  *int   `json:"free"`
	} `json:"capacity"`
	// Quotas bound what the nodes that match use together.
	Quotas []struct {
		Name     string             `json:"name"`
		Match    string             `json:"match"`
		Resource string             `json:"resource"`
		Limit    *resource.Quantity `json:"limit"`
	} `json:"quotas"`
}

// readRehearsal reads the file; every fault is told with its field.
func readRehearsal(name string) (*rehearsal, []requirements.Set, []memcloud.Quota, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, nil, nil, inputs.Bad(fmt.Errorf("--rehearse: %w", err))
	}
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, nil, nil, inputs.Bad(fmt.Errorf("%s: %w", name, err))
	}
	root, err := strictjson.Parse(text)
	if err != nil {
		return nil, nil, nil, inputs.Bad(fmt.Errorf("%s: %w", name, err))
	}
	var out rehearsal
	var faults []error
	fail := func(path, format string, args ...any) {
		if path != "" { // it is empty for the whole file
			path = ": " + path
		}
		faults = append(faults, fmt.Errorf("%s%s: %s", name, path, fmt.Sprintf(format, args...)))
	}
	for _, p := range (&strictjson.Decoder{}).Decode(&root, &out) {
		fail(p.Path, "%s", p.Detail)
	}
	if len(faults) > 0 {
		return nil, nil, nil, inputs.Bad(errors.Join(faults...))
	}
	if len(out.Capacity)+len(out.Quotas) == 0 {
		fail("capacity", "the file limits nothing; want entries of capacity {match, free} or quotas {name, match, resource, limit}")
	}
	match := func(path, text string) requirements.Set {
		set, err := requirements.Parse(text)
		if err != nil {
			fail(path, "%v", err)
		}
		return set
	}
	var matches []requirements.Set
	for i, c := range out.Capacity {
		at := fmt.Sprintf("capacity[%d]", i)
		matches = append(matches, match(at+".match", c.Match))
		if c.Free == nil || *c.Free < 0 {
			fail(at+".free", "want the number of machines left, 0 or more")
		}
	}
	var quotas []memcloud.Quota
	for i, q := range out.Quotas {
		at := fmt.Sprintf("quotas[%d]", i)
		quota := memcloud.Quota{Name: q.Name, Covers: match(at+".match", q.Match), Resource: corev1.ResourceName(q.Resource)}
		if q.Name == "" {
			fail(at+".name", "want a name, which refusals mention")
		}
		switch {
		case q.Limit == nil || q.Limit.Sign() < 0:
			fail(at+".limit", "want a quantity, such as 64")
		case q.Resource == "":
			quota.Limit = q.Limit.Value()
		default:
			quota.Limit = resources.Capacity(quota.Resource, *q.Limit)
		}
		quotas = append(quotas, quota)
	}
	if len(faults) > 0 {
		return nil, nil, nil, inputs.Bad(errors.Join(faults...))
	}
	return &out, matches, quotas, nil
}

// start returns the time at which the rehearsal begins.
func (o *options) start() (time.Time, error) {
	if o.now == "" {
		return time.Now(), nil
	}
	now, err := time.Parse(time.RFC3339, o.now)
	if err != nil {
		return now, inputs.Bad(fmt.Errorf("--now %q: want a time such as 2026-01-31T12:00:00Z", o.now))
	}
	return now, nil
}

// rehearse plans and buys from a cloud in memory that has what the file says, planning again around
// what it refuses.
func (o *options) rehearse(cmd *cobra.Command, out io.Writer, stdin io.Reader) error {
	file, matches, quotas, err := readRehearsal(o.rehearsal)
	if err != nil {
		return err
	}
	now, err := o.start()
	if err != nil {
		return err
	}
	s, market, read, err := o.snapshot(cmd, stdin)
	if err != nil {
		return err
	}
	cloud, err := memcloud.New(memcloud.Config{
		Types: pipeline.Offered(s), Quotas: quotas, Clock: memcloud.NewClock(now), Pools: file.pools(pipeline.Offered(s), matches),
	})
	if err != nil {
		return err
	}
	var compile, solve time.Duration
	tokens := 0
	buyer := pipeline.Buyer{
		Provider: cloud, Groups: o.groups,
		Plan: func(s scheduling.Snapshot) (*plan.Plan, error) {
			packed, compiled, solved, err := o.pack(context.Background(), io.Discard, s)
			compile, solve = compile+compiled, solve+solved
			return packed, err
		},
		Now: cloud.Clock().Now,
		Wait: func(_ context.Context, d time.Duration) error {
			cloud.Clock().Advance(d)
			return nil
		},
		Token: func(node string) string { tokens++; return fmt.Sprintf("%s-%d", node, tokens) },
	}
	done := terminal.Progress(cmd.ErrOrStderr(), "buying")
	bought, err := buyer.Buy(cmd.Context(), s)
	done()
	if err != nil {
		return err
	}
	r := newPurchaseReport(market, bought, o.fixes)
	r.sample = o.Sample()
	if len(o.buffers) > 0 {
		if _, err := r.addBuffers(cmd.Context(), bought.Last, o.buffers); err != nil {
			return err
		}
		inputs.Note(cmd.ErrOrStderr(), "the nodes of CapacityBuffers are planned after the purchase, without what was refused by then; they are not bought")
	}
	if !o.NoTiming {
		r.addTiming(read, compile, solve)
	}
	if err := o.print(cmd, out, r); err != nil {
		return err
	}
	if r.Summary.Unschedulable > 0 {
		return &inputs.ExitError{Code: inputs.ExitNotAll}
	}
	return nil
}

// pools are the offerings that an entry matches, with what is left of each.
func (f *rehearsal) pools(types []instancetypes.InstanceType, matches []requirements.Set) []memcloud.Pool {
	var out []memcloud.Pool
	for _, t := range types {
		for _, offering := range t.Offerings {
			node, err := t.Requirements.Intersect(offering.Requirements)
			if err != nil {
				continue
			}
			for i, match := range slices.Backward(matches) {
				if match.Compatible(node, requirements.Keys{}) {
					out = append(out, memcloud.Pool{Type: t.Name, Offering: offering.Requirements, Free: *f.Capacity[i].Free})
					break
				}
			}
		}
	}
	return out
}

// newPurchaseReport describes what was bought, with changes that would help the pods without a
// place.
func newPurchaseReport(market *pipeline.Market, bought *pipeline.Purchase, fixes string) *report {
	r, of := newReport(market, bought.Last, fixes), purchase.Of(market, bought)
	nodes := purchase.Nodes(bought)
	r.NewNodes = make([]newNode, 0, len(nodes))
	for i := range nodes {
		r.NewNodes = append(r.NewNodes, describeNode(&nodes[i].NewNode))
	}
	r.ExistingNodes, r.Summary.Summary, r.Refused, r.bought = of.ExistingNodes, of.Summary, of.Refused, &of
	return r
}
