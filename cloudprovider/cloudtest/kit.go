package cloudtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Harness is a provider and what the kit may do to the cloud behind it. Only Provider is required. Functions that
// change the cloud return one that undoes it.
type Harness struct {
	Provider cloudprovider.Provider
	// Pool is the pool that types are asked for; zero = none in particular.
	Pool nodepool.NodePool
	// Prefix starts every name and token, so that runs on one account do not meet. Empty = random.
	Prefix string
	// Many is how many machines the case of long lists buys: more than fit a page of the cloud's. 0 = 12.
	Many int
	// Settle waits until everything that was asked for has happened and every reader knows it: instances that were deleted
	// are gone, not merely Terminating. nil = Delete ends an instance at once and readers never lag. A cloud whose machines
	// take time to stop needs it.
	Settle func(ctx context.Context) error
	// Exhaust leaves no machine of an offering.
	Exhaust func(ctx context.Context, offering cloudprovider.Candidate) (restore func(), err error)
	// Block sets a quota such that nothing more can be had.
	Block func(ctx context.Context) (restore func(), err error)
	// Reopen starts the provider anew, as after a crash: of what it knew only what the cloud, or its own storage, holds is left. The
	// case that asks for it goes on with the new one, Check with Provider: a function that reaches into a provider must reach both.
	Reopen func(ctx context.Context) (cloudprovider.Provider, error)
	// Foreign puts a machine into the cloud that Create has not made, and says whether it is still there.
	Foreign func(ctx context.Context) (id string, there func(ctx context.Context) (bool, error), err error)
	// LoseReply makes the next request that launches or ends something reach the cloud, and its reply get lost on the way to the provider;
	// [LosingTransport] does so for providers that speak HTTP.
	LoseReply func(ctx context.Context) (restore func(), err error)
	// Reboots says how often a machine was rebooted.
	Reboots func(ctx context.Context, id string) (int, error)
	// Interrupt makes the cloud announce that it takes the machine back.
	Interrupt func(ctx context.Context, id string) error
}

// Maker makes a fresh provider for one case. It registers what must be closed with t.Cleanup.
type Maker func(t *testing.T) Harness

// Run checks a provider: one subtest for each case, each with a provider of its own. Cases that need a function of the
// harness, or an optional interface, are skipped where it is missing, and the skip says what.
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

// Check runs all cases that a provider alone allows, and returns their violations joined, each a [*Violation]. It takes
// for granted that Delete ends an instance at once and that readers never lag; for any other cloud use [Harness.Check] with
// a Settle.
func Check(ctx context.Context, provider cloudprovider.Provider) error {
	return Harness{Provider: provider}.Check(ctx)
}

// Check runs all cases on the one provider of the harness, and returns their violations joined, each a [*Violation]. It
// stops early only if the context is done.
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

// Obligations are the sentences that the cases check, in the order of the cases, as the documentation of package
// cloudprovider has them. A new slice.
func Obligations() []string {
	var list []string
	for _, c := range cases() {
		list = append(list, c.obligation)
	}
	return list
}

// Violation says which obligation a provider breaks, and how that was seen.
type Violation struct {
	// Case is the name of the case, Obligation the sentence of the documentation.
	Case, Obligation string
	// Err is what was seen instead; errors of the provider are wrapped in it.
	Err error
}

// Error is the obligation and what was seen instead.
func (v *Violation) Error() string {
	return fmt.Sprintf("cloudtest: %s: broken obligation: %s Seen: %v", v.Case, v.Obligation, v.Err)
}

// Unwrap is what was seen.
func (v *Violation) Unwrap() error { return v.Err }

// testCase checks one obligation. Its function returns nil, a *skipped, or what it saw.
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

// skipped says that a case needs something that is not there.
type skipped struct{ need string }

func (s *skipped) Error() string { return "cloudtest: skipped: needs " + s.need }
