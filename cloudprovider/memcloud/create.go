package memcloud

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/instancetypes"
)

// Create takes the first candidate that is available.
func (c *Cloud) Create(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
	now, err := c.begin(ctx, "create", claim.Name)
	if err != nil {
		return cloudprovider.Launch{}, err
	}
	defer c.mu.Unlock()
	fail := func(code, why error) (cloudprovider.Launch, error) {
		return cloudprovider.Launch{}, &cloudprovider.Error{Code: code, Op: "create", Subject: claim.Name, Err: why}
	}
	if err := claim.Validate(); err != nil {
		return fail(cloudprovider.ErrInvalidSpec, err)
	}
	if m, ok := c.tokens[claim.Token]; ok {
		switch {
		case !m.claim.Equal(claim):
			return fail(cloudprovider.ErrInvalidSpec, fmt.Errorf("token %q belongs to claim %q, or the claim was changed", claim.Token, m.claim.Name))
		case m.leaving:
			return fail(cloudprovider.ErrNotFound, fmt.Errorf("token %q led to %q, which was deleted", claim.Token, m.instance.ID))
		}
		return cloudprovider.Launch{Instance: c.view(m, now)}, nil
	}
	choices, err := c.choices(claim)
	if err != nil {
		return fail(cloudprovider.ErrInvalidSpec, err)
	}
	refusal := &cloudprovider.Error{Op: "create", Subject: claim.Name}
	for _, choice := range choices {
		if c.take(choice, refusal) {
			m := c.build(claim, choice, now)
			return cloudprovider.Launch{Instance: c.view(m, now), Refused: refusal.Refused, Quotas: refusal.Quotas}, nil
		}
	}
	refusal.Code = cloudprovider.ErrQuota
	if len(refusal.Refused) > 0 {
		refusal.Code = cloudprovider.ErrInsufficientCapacity
	}
	return cloudprovider.Launch{}, refusal
}

// CreateMany creates the instances one after the other.
func (c *Cloud) CreateMany(ctx context.Context, claims []cloudprovider.NodeClaim) []cloudprovider.Result {
	results := make([]cloudprovider.Result, len(claims))
	for i, claim := range claims {
		results[i].Launch, results[i].Err = c.Create(ctx, claim)
	}
	return results
}

// choice is a candidate that was found in the catalogue.
type choice struct {
	t      instancetypes.InstanceType
	o      instancetypes.Offering
	labels map[string]string
}

func (c *Cloud) choices(claim cloudprovider.NodeClaim) ([]choice, error) {
	var errs []error
	list := make([]choice, 0, len(claim.Candidates))
	for i, cand := range claim.Candidates {
		t, o, err := find(c.types, cand.Type, cand.Offering)
		if err != nil {
			errs = append(errs, fmt.Errorf("candidates[%d]: %w", i, err))
			continue
		}
		labels, err := cloudprovider.NodeLabels(claim, t, o.Requirements)
		if err != nil {
			errs = append(errs, fmt.Errorf("candidates[%d]: %w", i, err))
			continue
		}
		list = append(list, choice{t, o, labels})
	}
	return list, errors.Join(errs...)
}

// take takes the machine out of its pool, or adds to the refusal why it is not available.
func (c *Cloud) take(ch choice, refusal *cloudprovider.Error) bool {
	refuse := func(detail string) bool {
		refusal.Refused = append(refusal.Refused, cloudprovider.Refusal{Type: ch.t.Name, Offering: ch.o.Requirements, Detail: detail})
		return false
	}
	if !ch.o.Available {
		return refuse("not on offer")
	}
	blocked := false
	for i, q := range c.quotas {
		if w := q.weight(ch.labels, ch.t.Capacity); w > 0 && c.used[i]+w > q.Limit {
			blocked = true
			if !slices.ContainsFunc(refusal.Quotas, func(have cloudprovider.Quota) bool { return have.Name == q.Name }) {
				refusal.Quotas = append(refusal.Quotas, cloudprovider.Quota{Name: q.Name, Blocks: q.Covers, Used: c.used[i], Limit: q.Limit})
			}
		}
	}
	if blocked {
		return false
	}
	key := poolKey(ch.t.Name, ch.o.Requirements)
	if free, ok := c.pools[key]; ok {
		if free <= 0 {
			return refuse("the pool is empty")
		}
		c.pools[key] = free - 1
	}
	for i, q := range c.quotas {
		c.used[i] += q.weight(ch.labels, ch.t.Capacity)
	}
	return true
}

// build makes the machine that was taken.
func (c *Cloud) build(claim cloudprovider.NodeClaim, ch choice, now time.Time) *machine {
	c.made++
	chance := c.chance(c.made)
	m := &machine{
		claim: claim.Clone(),
		instance: cloudprovider.Instance{
			ID: fmt.Sprintf("memcloud://i-%08d", c.made), Claim: claim.Name, Pool: claim.Pool, Token: claim.Token,
			Type: ch.t.Name, Offering: ch.o.Requirements, Labels: ch.labels,
			Capacity: ch.t.Capacity.DeepCopy(), Allocatable: ch.t.Allocatable(), ImageID: c.image, Created: now,
		},
	}
	if c.config.Lag > 0 {
		m.lag = time.Duration(chance.Int64N(int64(c.config.Lag)))
	}
	if c.config.SpotLife > 0 && ch.o.CapacityType() == instancetypes.CapacityTypeSpot {
		m.warn = now.Add(decay(chance, c.config.SpotLife))
	}
	c.tokens[claim.Token], c.machines[m.instance.ID] = m, m
	c.expect(m)
	return m
}
