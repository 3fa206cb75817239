package cloudtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Harness is a provider and what the kit may do to the cloud behind it. Only Provider is required.
// Functions that change the cloud return a function that undoes the change.
type Harness struct {
	Provider cloudprovider.Provider
	// Pool is the pool for which types are requested. The zero value means no particular pool.
	Pool nodepool.NodePool
	// Prefix starts every name and token, so that runs on one account do not collide. Empty means
	// random.
	Prefix string
	// Many is how many machines the case of long lists buys: more than fit on a page of the cloud.
	// 0 means 12.
	Many int
	// Now is the clock of the cloud, if it is a simulation with a clock of its own. nil means
	// time.Now.
	Now func() time.Time
	// Settle waits until everything requested has happened and every reader knows it: deleted
	// instances are gone, not merely Terminating, and new ones are Running. nil means that Delete
	// ends an instance at once, that a new one runs at once, and that readers never lag. A cloud
	// whose machines take time to start or to stop needs it.
	Settle func(ctx context.Context) error
	// Exhaust uses up all machines of an offering.
	Exhaust func(ctx context.Context, offering cloudprovider.Candidate) (restore func(), err error)
	// Block sets a quota so that nothing more can be bought.
	Block func(ctx context.Context) (restore func(), err error)
	// Withdraw takes an offering out of the catalogue, as if the cloud no longer sold it.
	Withdraw func(ctx context.Context, offering cloudprovider.Candidate) (restore func(), err error)
	// Reopen starts the provider again, as after a crash: only what the cloud or its own storage
	// holds is left. A case that calls Reopen continues with the provider that Reopen returns, and
	// Check runs all other cases with Provider. So a function of the harness that changes the
	// provider itself must change both the provider in Provider and the one that Reopen returned.
	Reopen func(ctx context.Context) (cloudprovider.Provider, error)
	// Foreign adds a machine to the cloud that Create has not made. there reports whether it still
	// exists.
	Foreign func(ctx context.Context) (id string, there func(ctx context.Context) (bool, error), err error)
	// LoseReply lets the next request that launches or ends a machine reach the cloud, but loses
	// its reply on the way to the provider, or replaces it by an internal error. Reboots need not
	// be included. [LosingTransport] does so for providers that use HTTP.
	LoseReply func(ctx context.Context) (restore func(), err error)
	// LoseRead makes one read-only request fail, as if its reply had been lost: the n-th from now,
	// counted from 1. [LosingTransport] can do so.
	LoseRead func(ctx context.Context, n int) (restore func(), err error)
	// Reboots returns how often a machine was rebooted.
	Reboots func(ctx context.Context, id string) (int, error)
	// Interrupt makes the cloud announce that it takes the machine back.
	Interrupt func(ctx context.Context, id string) error

	// anyClock skips what needs the clock of the cloud.
	anyClock bool
}

// Maker makes a new provider for one case. It registers what must be closed with t.Cleanup.
type Maker func(t *testing.T) Harness

// Run checks a provider with one subtest for each case, each with a provider of its own. Cases that
// need a missing function of the harness or a missing optional interface are skipped, and the skip
// names it.
func Run(t *testing.T, maker Maker) {
	t.Helper()
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			err := c.run(t.Context(), maker(t))
			if skip, ok := errors.AsType[*skipped](err); ok {
				t.Skip(skip.Error())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// Check runs all cases for which a provider alone is enough, and returns their violations joined,
// each a [*Violation]. It skips clocks, shortages, quotas, restarts, lost replies and machines of
// others. The last five are where providers go wrong. It assumes that instances run and end at once
// and that readers never lag. To test these too, use [Run] or [Harness.Check].
func Check(ctx context.Context, provider cloudprovider.Provider) error {
	return Harness{Provider: provider, anyClock: true}.Check(ctx)
}

// Check runs all cases on the one provider of the harness, and returns their violations joined,
// each a [*Violation]. It stops early only if the context is done.
func (h Harness) Check(ctx context.Context) error {
	var errs []error
	for _, c := range cases() {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, fmt.Errorf("cloudtest: stopped before %s: %w", c.name, err))...)
		}
		err := c.run(ctx, h)
		var skip *skipped
		if err != nil && !errors.As(err, &skip) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Obligations returns the sentences that the cases check, in the order of the cases, as in the
// documentation of package cloudprovider. The slice is new.
func Obligations() []string {
	var list []string
	for _, c := range cases() {
		list = append(list, c.obligation)
	}
	return list
}

// Violation says which obligation a provider breaks, and what was observed.
type Violation struct {
	// Case is the name of the case, and Obligation the sentence of the documentation.
	Case, Obligation string
	// Err is what was observed instead. It wraps errors of the provider.
	Err error
}

// Error returns the obligation and what was observed instead.
func (v *Violation) Error() string {
	return fmt.Sprintf("cloudtest: %s: broken obligation: %s Seen: %v", v.Case, v.Obligation, v.Err)
}

// Unwrap returns what was observed.
func (v *Violation) Unwrap() error { return v.Err }

// testCase checks one obligation. Its function returns nil, a *skipped, or what it observed.
type testCase struct {
	name, obligation string
	check            func(ctx context.Context, p *probe) error
}

func cases() []testCase {
	return append(append(append(catalogueCases(), createCases()...), readCases()...), append(generalCases(), optionalCases()...)...)
}

func (c testCase) run(ctx context.Context, h Harness) error {
	if h.Provider == nil {
		return errors.New("cloudtest: the harness has no provider")
	}
	if h.Prefix == "" {
		h.Prefix = "cloudtest-" + rand.Text()
	}
	if h.Many == 0 {
		h.Many = 12
	}
	p := &probe{h: h, name: c.name}
	defer p.clean(ctx)
	err := c.check(ctx, p)
	var skip *skipped
	if err == nil || errors.As(err, &skip) {
		return err
	}
	return &Violation{Case: c.name, Obligation: c.obligation, Err: err}
}

// skipped says that a case needs something that is missing.
type skipped struct{ need string }

func (s *skipped) Error() string { return "cloudtest: skipped: needs " + s.need }
