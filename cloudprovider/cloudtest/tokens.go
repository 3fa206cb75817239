package cloudtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/requirements"
)

// richClaim returns a claim that uses every field.
func (p *probe) richClaim(ctx context.Context) (cloudprovider.NodeClaim, error) {
	two, err := p.candidates(ctx, 2)
	if err != nil {
		return cloudprovider.NodeClaim{}, err
	}
	claim, err := p.claim(ctx, two...)
	claim.Requirements = requirements.MustParse("cloudtest.example.com/team in (a,b)")
	claim.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("1Mi")}
	claim.Taints = []corev1.Taint{
		{Key: "cloudtest.example.com/a", Value: "a", Effect: corev1.TaintEffectNoSchedule},
		{Key: "cloudtest.example.com/b", Value: "b", Effect: corev1.TaintEffectNoSchedule},
	}
	claim.StartupTaints = []corev1.Taint{{Key: "cloudtest.example.com/start", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
	return claim, err
}

// otherClaims are changes that each make a different claim of one, by what
// [cloudprovider.NodeClaim.Equal] compares.
var otherClaims = []struct {
	what   string
	change func(*cloudprovider.NodeClaim)
}{
	{"name", func(c *cloudprovider.NodeClaim) { c.Name += "-other" }},
	{"pool", func(c *cloudprovider.NodeClaim) { c.Pool += "-other" }},
	{"node class", func(c *cloudprovider.NodeClaim) { c.NodeClass.Name += "cloudtest-other" }},
	{"group of the node class", func(c *cloudprovider.NodeClaim) { c.NodeClass.Group += "cloudtest.example.com" }},
	{"kind of the node class", func(c *cloudprovider.NodeClaim) { c.NodeClass.Kind += "CloudtestOther" }},
	{"requirements", func(c *cloudprovider.NodeClaim) {
		c.Requirements = requirements.MustParse("cloudtest.example.com/team in (a,c)")
	}},
	{"lack of requirements", func(c *cloudprovider.NodeClaim) { c.Requirements = requirements.Set{} }},
	{"requests", func(c *cloudprovider.NodeClaim) { c.Requests[corev1.ResourceCPU] = resource.MustParse("2m") }},
	{"resources that it requests", func(c *cloudprovider.NodeClaim) { delete(c.Requests, corev1.ResourceMemory) }},
	{"order of candidates", func(c *cloudprovider.NodeClaim) { slices.Reverse(c.Candidates) }},
	{"first candidate", func(c *cloudprovider.NodeClaim) { c.Candidates = c.Candidates[1:] }},
	{"number of candidates", func(c *cloudprovider.NodeClaim) { c.Candidates = c.Candidates[:1] }},
	{"labels", func(c *cloudprovider.NodeClaim) { c.Labels["cloudtest.example.com/other"] = "label" }},
	{"value of a label", func(c *cloudprovider.NodeClaim) { c.Labels["cloudtest.example.com/case"] += "-other" }},
	{"number of taints", func(c *cloudprovider.NodeClaim) { c.Taints = c.Taints[:1] }},
	{"key of a taint", func(c *cloudprovider.NodeClaim) { c.Taints[1].Key += "-other" }},
	{"value of a taint", func(c *cloudprovider.NodeClaim) { c.Taints[1].Value = "other" }},
	{"effect of a taint", func(c *cloudprovider.NodeClaim) { c.Taints[1].Effect = corev1.TaintEffectNoExecute }},
	{"order of taints", func(c *cloudprovider.NodeClaim) { slices.Reverse(c.Taints) }},
	{"number of startup taints", func(c *cloudprovider.NodeClaim) { c.StartupTaints = nil }},
	{"key of a startup taint", func(c *cloudprovider.NodeClaim) { c.StartupTaints[0].Key += "-other" }},
	{"value of a startup taint", func(c *cloudprovider.NodeClaim) { c.StartupTaints[0].Value = "other" }},
	{"effect of a startup taint", func(c *cloudprovider.NodeClaim) { c.StartupTaints[0].Effect = corev1.TaintEffectNoExecute }},
}

func createForeignToken(ctx context.Context, p *probe) error {
	first, err := p.richClaim(ctx)
	if err != nil {
		return err
	}
	if err := p.foreignTokens(ctx, first); err != nil {
		return err
	}
	if p.h.Reopen == nil {
		return nil
	}
	// What tells claims apart must not be kept in memory only.
	if first, err = p.richClaim(ctx); err != nil {
		return err
	}
	if _, err = p.create(ctx, first); err != nil {
		return fmt.Errorf("Create failed: %w", err)
	}
	if err := p.reopen(ctx); err != nil {
		return err
	}
	if err := p.foreignTokens(ctx, first); err != nil {
		return fmt.Errorf("after a restart: %w", err)
	}
	return nil
}

// foreignTokens launches for the claim and then uses its token for others, which differ from it in
// one field each.
func (p *probe) foreignTokens(ctx context.Context, first cloudprovider.NodeClaim) error {
	launch, err := p.create(ctx, first)
	if err != nil {
		return fmt.Errorf("Create failed: %w", err)
	}
	for _, o := range otherClaims {
		second := first.Clone()
		if o.change(&second); len(second.Candidates) == 0 || second.Equal(first) {
			continue // there is only one candidate
		}
		_, err = p.create(ctx, second)
		if err := mustBe("Create with the token of a claim that differs in its "+o.what, err, cloudprovider.ErrInvalidSpec); err != nil {
			return err
		}
	}
	again, err := p.create(ctx, first)
	if err != nil || again.ID != launch.ID {
		return fmt.Errorf("after that, Create of the claim itself returned %q instead of %q, error %w", again.ID, launch.ID, orNil(err))
	}
	return p.count(ctx, first, 1)
}

// sameClaims returns the claim as a caller may have kept it: written and read again, and with the
// same amounts in other words.
func sameClaims(claim cloudprovider.NodeClaim) ([]cloudprovider.NodeClaim, error) {
	text, err := json.Marshal(claim)
	if err != nil {
		return nil, err
	}
	var read cloudprovider.NodeClaim
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, err
	}
	reworded := claim.Clone()
	for name, q := range reworded.Requests {
		reworded.Requests[name] = *resource.NewMilliQuantity(q.MilliValue(), resource.DecimalSI)
	}
	return []cloudprovider.NodeClaim{read, reworded}, nil
}

// createTokens launches for tokens of full length that differ in one character.
func createTokens(ctx context.Context, p *probe) error {
	first, err := p.claim(ctx)
	if err != nil {
		return err
	}
	long := (first.Token + "/a:b_c.d-" + strings.Repeat("aZ09", 32))[:127]
	tokens := []string{long + "a", long + "A", long, strings.Replace(long, "/a:", ":a:", 1), strings.Replace(long, "_c.", ".c.", 1)}
	ids := map[string]string{} // tokens by id
	for _, token := range tokens {
		claim, err := p.claim(ctx)
		if err != nil {
			return err
		}
		claim.Token = token
		launch, err := p.create(ctx, claim)
		switch {
		case err != nil:
			return fmt.Errorf("Create with the token %q failed: %w", token, err)
		case launch.Token != token:
			return fmt.Errorf("Create with the token %q returned an instance with the token %q", token, launch.Token)
		case ids[launch.ID] != "":
			return fmt.Errorf("the tokens %q and %q both have the instance %q", ids[launch.ID], token, launch.ID)
		}
		ids[launch.ID] = token
	}
	for _, token := range tokens {
		if err := p.count(ctx, cloudprovider.NodeClaim{Token: token}, 1); err != nil {
			return fmt.Errorf("token %q: %w", token, err)
		}
	}
	return nil
}

func createDeadToken(ctx context.Context, p *probe) error {
	claim, launch, err := p.launch(ctx)
	if err != nil {
		return err
	}
	if err := p.delete(ctx, launch.ID); err != nil {
		return fmt.Errorf("Delete failed: %w", err)
	}
	for _, when := range []string{"right after Delete", "long after Delete", "after another machine was launched", "after another machine was deleted"} {
		switch when {
		case "after another machine was launched":
			if _, launch, err = p.launch(ctx); err != nil {
				return err
			}
		case "after another machine was deleted":
			if err := p.delete(ctx, launch.ID); err != nil {
				return fmt.Errorf("Delete failed: %w", err)
			}
		}
		_, err = p.create(ctx, claim)
		if err := mustBe("Create "+when, err, cloudprovider.ErrNotFound); err != nil {
			return err
		}
		if err := p.count(ctx, claim, 0); err != nil {
			return err
		}
	}
	return deadLostToken(ctx, p)
}

// createFailedToken makes Create fail in each way that the harness knows, and then repeats it.
func createFailedToken(ctx context.Context, p *probe) error {
	if p.h.Exhaust == nil && p.h.Block == nil {
		return &skipped{"Harness.Exhaust or Harness.Block"}
	}
	first, err := p.candidates(ctx, 1)
	if err != nil {
		return err
	}
	if p.h.Exhaust != nil {
		shortage := func() (func(), error) { return p.exhaust(ctx, first[0]) }
		if err := p.failedToken(ctx, first[0], "without capacity", cloudprovider.ErrInsufficientCapacity, shortage); err != nil {
			return err
		}
	}
	if p.h.Block == nil {
		return nil
	}
	return p.failedToken(ctx, first[0], "beyond a quota", cloudprovider.ErrQuota, func() (func(), error) { return p.h.Block(ctx) })
}

func (p *probe) failedToken(ctx context.Context, candidate cloudprovider.Candidate, how string, code error, obstruct func() (func(), error)) error {
	claim, err := p.claim(ctx, candidate)
	if err != nil {
		return err
	}
	restore, err := obstruct()
	if err != nil {
		return err
	}
	_, err = p.create(ctx, claim)
	restore()
	if err := mustBe("Create "+how, err, code); err != nil {
		return err
	}
	if err := p.count(ctx, claim, 0); err != nil {
		return err
	}
	if _, err := p.create(ctx, claim); err != nil {
		return fmt.Errorf("Create %s failed, and so did the same claim when nothing was in its way: %w", how, err)
	}
	return p.count(ctx, claim, 1)
}
