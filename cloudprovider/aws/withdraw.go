package aws

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/profile"
)

// own is what this provider has made besides instances and launch templates.
type own struct {
	mu       sync.Mutex
	profiles []string
}

func (p *Provider) madeProfile(name string) {
	p.own.mu.Lock()
	defer p.own.mu.Unlock()
	if !slices.Contains(p.own.profiles, name) {
		p.own.profiles = append(p.own.profiles, name)
	}
}

// Withdraw takes back what came of the claims with these tokens, and the launch templates and instance profiles that this provider has made:
// for callers that were interrupted and want nothing of it to stay. Where an answer of EC2 was lost it waits until what was launched must show. No
// other call may be under way, and the provider is of no more use afterwards. It returns the instances that it ended, and can be repeated
// until it succeeds.
func (p *Provider) Withdraw(ctx context.Context, tokens []string) ([]string, error) {
	var ended []string
	for _, b := range p.memory.opens() {
		ours := slices.ContainsFunc(b.claims, func(c cloudprovider.NodeClaim) bool { return slices.Contains(tokens, c.Token) })
		if !ours {
			continue
		}
		wait := p.memory.sentAt(b).Add(p.options.Lag + time.Millisecond).Sub(p.clock.Time())
		if err := p.clock.Wait(ctx, wait); err != nil {
			return ended, err
		}
		if err := p.settleByReading(ctx, b); err != nil {
			return ended, api.Outcome("withdraw", p.options.Cluster, err)
		}
	}
	for _, token := range tokens {
		i, ok := p.memory.instance(token)
		if !ok {
			continue
		}
		if err := p.deletePatiently(ctx, i.ID); err != nil {
			return ended, err
		}
		ended = append(ended, i.ID)
	}
	if err := p.ReleaseTemplates(ctx); err != nil {
		return ended, err
	}
	p.own.mu.Lock()
	profiles := slices.Clone(p.own.profiles)
	p.own.mu.Unlock()
	for _, name := range profiles {
		if err := profile.Delete(ctx, p.clients, name); err != nil {
			return ended, api.Outcome("withdraw", name, err)
		}
	}
	return ended, nil
}

// deletePatiently deletes an instance that EC2 may not know everywhere yet.
func (p *Provider) deletePatiently(ctx context.Context, id string) error {
	for deadline := p.clock.Time().Add(p.options.Lag + time.Minute); ; {
		err := p.Delete(ctx, id)
		switch {
		case err == nil || errors.Is(err, cloudprovider.ErrNotFound):
			return nil
		case cloudprovider.Advise(err).Retry != cloudprovider.RetrySame || p.clock.Time().After(deadline):
			return err
		}
		if err := p.clock.Wait(ctx, time.Second); err != nil {
			return err
		}
	}
}

// ReleaseTemplates deletes the launch templates that this provider has made and no launch is using. Machines do not need their template, and
// the next launch makes it again.
func (p *Provider) ReleaseTemplates(ctx context.Context) error {
	for _, name := range p.templates.mine() {
		if _, err := p.templates.collect(ctx, name, 0); err != nil {
			return api.Outcome("release", name, err)
		}
	}
	return nil
}

// mine are the names of the templates that this provider made, in ascending order.
func (t *templates) mine() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for _, name := range sortedKeys(t.used) {
		if t.used[name].made {
			names = append(names, name)
		}
	}
	return names
}
