package cloudtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
)

// patience is how often a call is repeated that a correct provider may refuse for now.
const patience = 10

// probe is one case in progress: it calls the provider and cleans up afterwards.
type probe struct {
	h    Harness
	name string

	mu     sync.Mutex
	claims int
	made   []string
}

// patiently repeats a call as long as the answer is to try again later.
func patiently[T any](ctx context.Context, p *probe, call func() (T, error)) (T, error) {
	for try := 1; ; try++ {
		answer, err := call()
		advice := cloudprovider.Advise(err)
		if err == nil || try == patience || advice.Retry != cloudprovider.RetrySame || advice.Unknown {
			return answer, err
		}
		if err := p.settle(ctx); err != nil {
			return answer, err
		}
	}
}

// retry is patiently for calls that return only an error.
func (p *probe) retry(ctx context.Context, call func() error) error {
	_, err := patiently(ctx, p, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

func (p *probe) settle(ctx context.Context) error {
	if p.h.Settle == nil {
		return nil
	}
	if err := p.h.Settle(ctx); err != nil {
		return fmt.Errorf("the harness did not settle: %w", err)
	}
	return nil
}

func (p *probe) types(ctx context.Context) ([]instancetypes.InstanceType, error) {
	types, err := patiently(ctx, p, func() ([]instancetypes.InstanceType, error) {
		return p.h.Provider.InstanceTypes(ctx, p.h.Pool)
	})
	if err != nil {
		return nil, fmt.Errorf("InstanceTypes failed: %w", err)
	}
	if len(types) == 0 {
		return nil, errors.New("InstanceTypes lists nothing")
	}
	return types, nil
}

// candidates returns the n cheapest offerings, or as many as there are.
func (p *probe) candidates(ctx context.Context, n int) ([]cloudprovider.Candidate, error) {
	types, err := p.types(ctx)
	if err != nil {
		return nil, err
	}
	all := cloudprovider.CandidatesOf(types, requirements.Set{}, nil, requirements.Keys{})
	if len(all) == 0 {
		return nil, errors.New("InstanceTypes has no available offering")
	}
	return all[:min(n, len(all))], nil
}

// claim returns a new claim for some candidates; without candidates it uses the cheapest one.
func (p *probe) claim(ctx context.Context, candidates ...cloudprovider.Candidate) (cloudprovider.NodeClaim, error) {
	if len(candidates) == 0 {
		var err error
		if candidates, err = p.candidates(ctx, 1); err != nil {
			return cloudprovider.NodeClaim{}, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims++
	name := fmt.Sprintf("%s-%s-%d", strings.ToLower(p.h.Prefix), p.name, p.claims)
	return cloudprovider.NodeClaim{
		Name: name, Token: name + "-token", Pool: "cloudtest", NodeClass: p.h.Pool.NodeClass, Candidates: slices.Clone(candidates),
		Labels: map[string]string{"cloudtest.example.com/case": p.name},
	}, nil
}

func (p *probe) create(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
	launch, err := patiently(ctx, p, func() (cloudprovider.Launch, error) { return p.h.Provider.Create(ctx, claim) })
	p.note(launch.ID)
	return launch, err
}

func (p *probe) note(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id != "" {
		p.made = append(p.made, id)
	}
}

// launch makes one instance of the cheapest kind, which must succeed.
func (p *probe) launch(ctx context.Context) (cloudprovider.NodeClaim, cloudprovider.Launch, error) {
	claim, err := p.claim(ctx)
	if err != nil {
		return claim, cloudprovider.Launch{}, err
	}
	launch, err := p.create(ctx, claim)
	if err != nil {
		return claim, launch, fmt.Errorf("Create failed: %w", err)
	}
	if launch.ID == "" {
		return claim, launch, errors.New("Create returned an instance without an id")
	}
	return claim, launch, nil
}

func (p *probe) get(ctx context.Context, id string) (cloudprovider.Instance, error) {
	return patiently(ctx, p, func() (cloudprovider.Instance, error) { return p.h.Provider.Get(ctx, id) })
}

func (p *probe) delete(ctx context.Context, id string) error {
	return p.retry(ctx, func() error { return p.h.Provider.Delete(ctx, id) })
}

func (p *probe) drifted(ctx context.Context, id string) (cloudprovider.Drift, error) {
	return patiently(ctx, p, func() (cloudprovider.Drift, error) { return p.h.Provider.Drifted(ctx, id) })
}

// list returns the answer of List once the cloud has settled.
func (p *probe) list(ctx context.Context) ([]cloudprovider.Instance, error) {
	if err := p.settle(ctx); err != nil {
		return nil, err
	}
	all, err := patiently(ctx, p, func() ([]cloudprovider.Instance, error) { return p.h.Provider.List(ctx) })
	if err != nil {
		return nil, fmt.Errorf("List failed: %w", err)
	}
	return all, nil
}

// of returns the instances of one claim, by its token or its name, that are not terminating.
func (p *probe) of(ctx context.Context, claim cloudprovider.NodeClaim) ([]cloudprovider.Instance, error) {
	all, err := p.list(ctx)
	return slices.DeleteFunc(all, func(i cloudprovider.Instance) bool {
		return i.State == cloudprovider.Terminating || (claim.Token == "" || i.Token != claim.Token) && (claim.Name == "" || i.Claim != claim.Name)
	}), err
}

// count fails unless the claim has this many instances.
func (p *probe) count(ctx context.Context, claim cloudprovider.NodeClaim, want int) error {
	have, err := p.of(ctx, claim)
	if err != nil {
		return err
	}
	for _, i := range have {
		p.note(i.ID)
	}
	if len(have) != want {
		return fmt.Errorf("List shows %d instances of the claim %q instead of %d", len(have), claim.Name, want)
	}
	return nil
}

func (p *probe) exhaust(ctx context.Context, offering cloudprovider.Candidate) (func(), error) {
	if p.h.Exhaust == nil {
		return nil, &skipped{"Harness.Exhaust"}
	}
	restore, err := p.h.Exhaust(ctx, offering)
	if err != nil {
		return nil, fmt.Errorf("the harness did not exhaust %s: %w", offering, err)
	}
	return restore, nil
}

// clean deletes what the case made. It may fail, because other cases test Delete.
func (p *probe) clean(ctx context.Context) {
	if len(p.made) == 0 {
		return
	}
	slices.Sort(p.made)
	for _, id := range slices.Compact(p.made) {
		_ = p.delete(ctx, id)
	}
	_ = p.settle(ctx)
}

// mustBe fails unless err has the code.
func mustBe(what string, err, code error) error {
	switch {
	case err == nil:
		return fmt.Errorf("%s succeeded instead of failing with %q", what, code.Error())
	case !errors.Is(err, code):
		return fmt.Errorf("%s failed with another error than %q: %w", what, code.Error(), err)
	default:
		return nil
	}
}
