package cloudtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
)

func createCases() []testCase {
	return []testCase{
		{"create-candidate", "Create launches one of the candidates of the claim and nothing else.", createCandidate},
		{"create-idempotent", "Create with a token that was used before returns the instance that was made then and makes no second one.", createIdempotent},
		{"create-at-the-same-time", "Concurrent calls of Create with one token make one instance.", createAtTheSameTime},
		{"create-foreign-token", "Create with the token of another claim fails with ErrInvalidSpec.", createForeignToken},
		{"create-tokens", "Create distinguishes all tokens: up to 128 characters, capital and small letters, and every character that a token may have.", createTokens},
		{"create-dead-token", "Create with the token of an instance that was deleted fails with ErrNotFound and makes none.", createDeadToken},
		{"create-invalid", "Create refuses a claim that is not valid, or that has a candidate which is not in the catalogue, with ErrInvalidSpec.", createInvalid},
		{"create-no-capacity", "Create fails with ErrInsufficientCapacity only if every candidate was refused, and names each candidate without capacity.", createNoCapacity},
		{"create-quota", "Create fails with ErrQuota if a quota refused every candidate, and says which quota and what it blocks.", createQuota},
		{"create-next-candidate", "Create that succeeds on a later candidate reports the candidates that were refused before it.", createNextCandidate},
		{"create-failed-token", "Create that fails with an error of the closed list has made no instance in this call and has not used up the token.", createFailedToken},
		{"started-anew", "After the provider is restarted, Create still knows its tokens, and all methods still know the same instances.", startedAnew},
		{"lost-reply", "If a reply of the cloud was lost and Create is called again, it makes no second instance and returns the first one as if nothing had been lost.", lostReplies},
		{"create-labels", "The labels of an instance satisfy its claim: its requirements, its labels, the type and the offering.", createLabels},
		{"create-other-labels", "An instance has no other labels, except a hostname that no other instance has.", createOtherLabels},
		{"create-resources", "The resources of an instance are those that the catalogue promised for its type.", createResources},
		{"create-time", "The time of creation is that of the launch, wrong by at most a minute.", createTime},
	}
}

func createCandidate(ctx context.Context, p *probe) error {
	all, err := p.candidates(ctx, 3)
	if err != nil {
		return err
	}
	for i := range all {
		for _, asked := range [][]cloudprovider.Candidate{all[i : i+1], all[i:]} {
			claim, err := p.claim(ctx, asked...)
			if err != nil {
				return err
			}
			launch, err := p.create(ctx, claim)
			if err != nil {
				return fmt.Errorf("Create failed: %w", err)
			}
			if err := ofClaim(claim, launch.Instance); err != nil {
				return err
			}
			if err := p.count(ctx, claim, 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// ofClaim fails unless an instance is one of the candidates of its claim, and says whose it is.
func ofClaim(claim cloudprovider.NodeClaim, i cloudprovider.Instance) error {
	if !slices.ContainsFunc(claim.Candidates, func(c cloudprovider.Candidate) bool { return c.Type == i.Type && c.Offering.Equal(i.Offering) }) {
		return fmt.Errorf("the instance is a %s (%s), which was not asked for", i.Type, i.Offering)
	}
	if i.Claim != claim.Name || i.Token != claim.Token || i.Pool != claim.Pool {
		return fmt.Errorf("the instance is of the claim %q, token %q, pool %q", i.Claim, i.Token, i.Pool)
	}
	return nil
}

func createIdempotent(ctx context.Context, p *probe) error {
	claim, err := p.richClaim(ctx)
	if err != nil {
		return err
	}
	launch, err := p.create(ctx, claim)
	if err != nil {
		return fmt.Errorf("Create failed: %w", err)
	}
	same, err := sameClaims(claim)
	if err != nil {
		return err
	}
	for _, claim := range append(same, claim) {
		again, err := p.create(ctx, claim)
		if err != nil {
			return fmt.Errorf("the same claim once more: %w", err)
		}
		if again.ID != launch.ID {
			return fmt.Errorf("the same claim led to %q and then to %q", launch.ID, again.ID)
		}
		if err := p.settle(ctx); err != nil {
			return err
		}
	}
	if err := p.count(ctx, claim, 1); err != nil {
		return err
	}
	return p.repeatObstructed(ctx)
}

// repeatObstructed repeats Create of a claim whose candidate can no longer be bought, in each way
// that the harness knows.
func (p *probe) repeatObstructed(ctx context.Context) error {
	claim, launch, err := p.launch(ctx)
	if err != nil {
		return err
	}
	for _, o := range []struct {
		how      string
		obstruct func() (func(), error)
		missing  bool
	}{
		{"its offering has left the catalogue", func() (func(), error) { return p.h.Withdraw(ctx, claim.Candidates[0]) }, p.h.Withdraw == nil},
		{"a quota is reached", func() (func(), error) { return p.h.Block(ctx) }, p.h.Block == nil},
		{"its offering has no more capacity", func() (func(), error) { return p.h.Exhaust(ctx, claim.Candidates[0]) }, p.h.Exhaust == nil},
	} {
		if o.missing {
			continue
		}
		restore, err := o.obstruct()
		if err != nil {
			return fmt.Errorf("the harness could not arrange that %s: %w", o.how, err)
		}
		again, err := p.create(ctx, claim)
		restore()
		if err != nil || again.ID != launch.ID {
			return fmt.Errorf("Create once more, when %s, returned %q instead of %q, error %w", o.how, again.ID, launch.ID, orNil(err))
		}
	}
	return p.count(ctx, claim, 1)
}

func createAtTheSameTime(ctx context.Context, p *probe) error {
	claim, err := p.claim(ctx)
	if err != nil {
		return err
	}
	launches, errs := make([]cloudprovider.Launch, 8), make([]error, 8)
	var group sync.WaitGroup
	for i := range launches {
		group.Go(func() { launches[i], errs[i] = p.create(ctx, claim.Clone()) })
	}
	group.Wait()
	id := ""
	for i, launch := range launches {
		// A provider may ask a caller to wait for another one.
		if errs[i] != nil && cloudprovider.Advise(errs[i]).Retry != cloudprovider.RetrySame {
			return fmt.Errorf("one of the calls failed: %w", errs[i])
		}
		if errs[i] == nil && id != "" && launch.ID != id {
			return fmt.Errorf("two calls led to %q and %q", id, launch.ID)
		}
		if errs[i] == nil {
			id = launch.ID
		}
	}
	if id == "" {
		return fmt.Errorf("none of the calls succeeded: %w", errs[0])
	}
	return p.count(ctx, claim, 1)
}

func createInvalid(ctx context.Context, p *probe) error {
	two, err := p.candidates(ctx, 2)
	if err != nil {
		return err
	}
	for _, spoil := range []struct {
		what  string
		spoil func(*cloudprovider.NodeClaim)
	}{
		{"a claim without a name", func(c *cloudprovider.NodeClaim) { c.Name = "" }},
		{"a claim without a token", func(c *cloudprovider.NodeClaim) { c.Token = "" }},
		{"a claim without candidates", func(c *cloudprovider.NodeClaim) { c.Candidates = nil }},
		{"an impossible claim", func(c *cloudprovider.NodeClaim) { c.Requirements = requirements.Impossible() }},
		{"a type that is not in the catalogue", func(c *cloudprovider.NodeClaim) { c.Candidates[0].Type = "cloudtest.no-such-type" }},
		{"a claim that contradicts its candidate", func(c *cloudprovider.NodeClaim) {
			c.Requirements = requirements.MustOf(requirements.In(corev1.LabelTopologyZone, "cloudtest-no-such-zone"))
		}},
		{"a claim with a token of another alphabet", func(c *cloudprovider.NodeClaim) { c.Token += " \n" }},
		{"an offering that is not in the catalogue", func(c *cloudprovider.NodeClaim) {
			c.Candidates[0].Offering = requirements.MustOf(requirements.In("cloudtest.example.com/no-such", "offering"))
		}},
		{"a good candidate beside one that is not in the catalogue", func(c *cloudprovider.NodeClaim) {
			c.Candidates = append(c.Candidates, cloudprovider.Candidate{Type: "cloudtest.no-such-type", Offering: two[0].Offering})
		}},
	} {
		claim, err := p.claim(ctx, two[0])
		if err != nil {
			return err
		}
		spoil.spoil(&claim)
		_, err = p.create(ctx, claim)
		if err := mustBe("Create of "+spoil.what, err, cloudprovider.ErrInvalidSpec); err != nil {
			return err
		}
		if err := p.count(ctx, claim, 0); err != nil {
			return fmt.Errorf("after Create of %s: %w", spoil.what, err)
		}
	}
	return nil
}

func createNoCapacity(ctx context.Context, p *probe) error {
	two, err := p.candidates(ctx, 2)
	if err != nil {
		return err
	}
	for _, c := range two {
		restore, err := p.exhaust(ctx, c)
		if err != nil {
			return err
		}
		defer restore()
	}
	claim, err := p.claim(ctx, two...)
	if err != nil {
		return err
	}
	_, err = p.create(ctx, claim)
	if err := mustBe("Create without capacity", err, cloudprovider.ErrInsufficientCapacity); err != nil {
		return err
	}
	var detail *cloudprovider.Error
	if !errors.As(err, &detail) {
		return fmt.Errorf("the error is not a *cloudprovider.Error: %w", err)
	}
	for _, c := range two {
		if !isRefused(detail.Refused, c) {
			return fmt.Errorf("%s is not among the refused: %w", c, err)
		}
	}
	return nil
}

func isRefused(refused []cloudprovider.Refusal, c cloudprovider.Candidate) bool {
	return slices.ContainsFunc(refused, func(r cloudprovider.Refusal) bool { return r.Type == c.Type && r.Offering.Equal(c.Offering) })
}

func createQuota(ctx context.Context, p *probe) error {
	if p.h.Block == nil {
		return &skipped{"Harness.Block"}
	}
	claim, err := p.claim(ctx)
	if err != nil {
		return err
	}
	restore, err := p.h.Block(ctx)
	if err != nil {
		return fmt.Errorf("the harness did not set a quota: %w", err)
	}
	defer restore()
	_, err = p.create(ctx, claim)
	if err := mustBe("Create beyond a quota", err, cloudprovider.ErrQuota); err != nil {
		return err
	}
	var detail *cloudprovider.Error
	if !errors.As(err, &detail) || len(detail.Quotas) == 0 || detail.Quotas[0].Name == "" {
		return fmt.Errorf("the error names no quota: %w", err)
	}
	types, err := p.types(ctx)
	if err != nil {
		return err
	}
	want := claim.Candidates[0]
	t := types[slices.IndexFunc(types, func(t instancetypes.InstanceType) bool { return t.Name == want.Type })]
	labels, err := cloudprovider.NodeLabels(claim, t, want.Offering)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(detail.Quotas, func(q cloudprovider.Quota) bool { return q.Blocks.Matches(labels) }) {
		return fmt.Errorf("no quota of the error blocks what was refused: %w", error(detail))
	}
	return nil
}

func createNextCandidate(ctx context.Context, p *probe) error {
	two, err := p.candidates(ctx, 2)
	if err != nil {
		return err
	}
	if len(two) < 2 {
		return &skipped{"two available offerings"}
	}
	// Only a cloud that follows the order of the claim must report the first candidate.
	for i, order := range [][]cloudprovider.Candidate{{two[0], two[1]}, {two[1], two[0]}} {
		claim, err := p.claim(ctx, order...)
		if err != nil {
			return err
		}
		launch, err := p.create(ctx, claim)
		if err != nil {
			return fmt.Errorf("Create failed: %w", err)
		}
		if launch.Type != two[i].Type || !launch.Offering.Equal(two[i].Offering) {
			return &skipped{"a cloud that takes the first candidate that is available"}
		}
	}
	restore, err := p.exhaust(ctx, two[0])
	if err != nil {
		return err
	}
	defer restore()
	claim, err := p.claim(ctx, two...)
	if err != nil {
		return err
	}
	launch, err := p.create(ctx, claim)
	if err != nil {
		return fmt.Errorf("Create failed although %s is available: %w", two[1], err)
	}
	if !isRefused(launch.Refused, two[0]) || isRefused(launch.Refused, two[1]) {
		return fmt.Errorf("%s was exhausted and %s launched, but refused are %v", two[0], two[1], launch.Refused)
	}
	return nil
}

func createLabels(ctx context.Context, p *probe) error {
	claim, err := p.claim(ctx)
	if err != nil {
		return err
	}
	claim.Requirements = requirements.MustParse("cloudtest.example.com/team=a, cloudtest.example.com/open in (a,b), cloudtest.example.com/not notin (a)")
	launch, err := p.create(ctx, claim)
	if err != nil {
		return fmt.Errorf("Create failed: %w", err)
	}
	return p.labelled(ctx, claim, launch.Instance)
}

// asPromised fails unless an instance is what its claim and the catalogue say.
func (p *probe) asPromised(ctx context.Context, claim cloudprovider.NodeClaim, i cloudprovider.Instance) error {
	if err := ofClaim(claim, i); err != nil {
		return err
	}
	if err := p.labelled(ctx, claim, i); err != nil {
		return err
	}
	return p.sized(ctx, i)
}

// labelled fails unless the labels of an instance satisfy its claim.
func (p *probe) labelled(ctx context.Context, claim cloudprovider.NodeClaim, launch cloudprovider.Instance) error {
	types, err := p.types(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(types, func(t instancetypes.InstanceType) bool { return t.Name == launch.Type })
	if i < 0 {
		return fmt.Errorf("the instance is of the type %q, which is not in the catalogue", launch.Type)
	}
	want, err := cloudprovider.NodeLabels(claim, types[i], launch.Offering)
	if err != nil {
		return err
	}
	for _, key := range sortedKeys(want) {
		have, ok := launch.Labels[key]
		if r := claim.Requirements.Get(key); ok && r.Contains(have) && !r.IsAnything() {
			continue // any value satisfies an undecided requirement
		}
		if !ok || have != want[key] {
			return fmt.Errorf("label %q is %q instead of %q", key, have, want[key])
		}
	}
	if !claim.Requirements.Matches(launch.Labels) || !launch.Offering.Matches(launch.Labels) {
		return fmt.Errorf("the labels %v do not satisfy %q and %q", launch.Labels, claim.Requirements, launch.Offering)
	}
	return nil
}

// createOtherLabels looks for labels on the node that neither its type nor its offering nor its
// claim has. No planner knows of these, so a pod that excludes one would be planned onto the node,
// but kube-scheduler would never bind it there.
func createOtherLabels(ctx context.Context, p *probe) error {
	types, err := p.types(ctx)
	if err != nil {
		return err
	}
	hosts := map[string]string{} // ids by hostname
	for range 2 {
		claim, launch, err := p.launch(ctx)
		if err != nil {
			return err
		}
		known := requirements.KeysOf(corev1.LabelHostname, corev1.LabelInstanceTypeStable, instancetypes.LabelNodePool)
		mention := func(set requirements.Set) {
			for r := range set.All() {
				known = known.Union(requirements.KeysOf(r.Key()))
			}
		}
		mention(claim.Requirements)
		mention(launch.Offering)
		mention(requirements.FromLabels(claim.Labels))
		for _, t := range types {
			if t.Name == launch.Type {
				mention(t.Requirements)
			}
		}
		for _, key := range sortedKeys(launch.Labels) {
			if !known.Contains(key) {
				return fmt.Errorf("the instance has the label %s=%s, which neither the claim nor the catalogue has", key, launch.Labels[key])
			}
		}
		host, ok := launch.Labels[corev1.LabelHostname]
		if other, taken := hosts[host]; ok && taken {
			return fmt.Errorf("%q and %q both have the hostname %q", other, launch.ID, host)
		}
		hosts[host] = launch.ID
	}
	return nil
}

func createTime(ctx context.Context, p *probe) error {
	if p.h.anyClock {
		return &skipped{"Harness.Now"}
	}
	now := p.h.Now
	if now == nil {
		now = time.Now //nolint:forbidigo // a real cloud has this clock
	}
	earliest := now().Add(-time.Minute)
	_, launch, err := p.launch(ctx)
	if err != nil {
		return err
	}
	if latest := now().Add(time.Minute); launch.Created.Before(earliest) || launch.Created.After(latest) {
		return fmt.Errorf("the instance was made between %s and %s, and says %s (Harness.Now is the clock of a simulated cloud)", earliest, latest, launch.Created)
	}
	return nil
}

func createResources(ctx context.Context, p *probe) error {
	_, launch, err := p.launch(ctx)
	if err != nil {
		return err
	}
	return p.sized(ctx, launch.Instance)
}

// sized fails unless an instance has the resources of its type.
func (p *probe) sized(ctx context.Context, launch cloudprovider.Instance) error {
	types, err := p.types(ctx)
	if err != nil {
		return err
	}
	for _, t := range types {
		if t.Name != launch.Type {
			continue
		}
		if want, have := describeList(t.Capacity), describeList(launch.Capacity); want != have {
			return fmt.Errorf("capacity is %s instead of %s", have, want)
		}
		if want, have := describeList(t.Allocatable()), describeList(launch.Allocatable); want != have {
			return fmt.Errorf("allocatable is %s instead of %s", have, want)
		}
		return nil
	}
	return fmt.Errorf("the instance is of the type %q, which is not in the catalogue", launch.Type)
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
