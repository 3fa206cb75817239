package cloudtest

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
)

func optionalCases() []testCase {
	return []testCase{
		{"batch", "CreateMany returns one result for each claim, in the order of the claims, and one failure does not spoil the rest.", batch},
		{"repair", "RepairPolicies are valid: each combination of condition, status and reason occurs once, and no time is negative.", repair},
		{"reboot", "Reboot keeps the instance, reboots once for each operation, also after the provider is restarted, and fails with ErrNotFound for an id that does not exist.", reboot},
		{"interruptions", "Interruptions delivers every event at least once. It repeats an event until the caller passes back the cursor that came with it, and does not deliver it after that.", interruptions},
	}
}

func batch(ctx context.Context, p *probe) error {
	creator, ok := p.h.Provider.(cloudprovider.BatchCreator)
	if !ok {
		return &skipped{"cloudprovider.BatchCreator"}
	}
	var claims []cloudprovider.NodeClaim
	for range 3 {
		claim, err := p.claim(ctx)
		if err != nil {
			return err
		}
		claims = append(claims, claim)
	}
	claims[1].Candidates = nil
	results := creator.CreateMany(ctx, claims)
	for _, r := range results {
		p.note(r.Launch.ID)
	}
	if len(results) != len(claims) {
		return fmt.Errorf("%d results for %d claims", len(results), len(claims))
	}
	if err := mustBe("the claim without candidates", results[1].Err, cloudprovider.ErrInvalidSpec); err != nil {
		return err
	}
	for _, i := range []int{0, 2} {
		if results[i].Err != nil {
			return fmt.Errorf("claim %d failed beside one that is not valid: %w", i, results[i].Err)
		}
		if results[i].Launch.Token != claims[i].Token {
			return fmt.Errorf("the result of claim %d has the token %q instead of %q", i, results[i].Launch.Token, claims[i].Token)
		}
		again, err := p.create(ctx, claims[i])
		if err != nil || again.ID != results[i].Launch.ID {
			return fmt.Errorf("Create of claim %d returned %q after CreateMany had made %q, error %w", i, again.ID, results[i].Launch.ID, orNil(err))
		}
	}
	return nil
}

func repair(_ context.Context, p *probe) error {
	adviser, ok := p.h.Provider.(cloudprovider.RepairAdviser)
	if !ok {
		return &skipped{"cloudprovider.RepairAdviser"}
	}
	type about struct {
		condition corev1.NodeConditionType
		status    corev1.ConditionStatus
		reason    string
	}
	seen := map[about]bool{}
	for i, policy := range adviser.RepairPolicies() {
		if err := policy.Validate(); err != nil {
			return fmt.Errorf("policy %d is not valid: %w", i, err)
		}
		key := about{policy.Condition, policy.Status, policy.Reason}
		if seen[key] {
			return fmt.Errorf("policy %d has the condition, status and reason of an earlier one: %+v", i, policy)
		}
		seen[key] = true
	}
	return nil
}

func reboot(ctx context.Context, p *probe) error {
	rebooter, ok := p.h.Provider.(cloudprovider.Rebooter)
	if !ok {
		return &skipped{"cloudprovider.Rebooter"}
	}
	_, launch, err := p.launch(ctx)
	if err != nil {
		return err
	}
	if err := p.settle(ctx); err != nil {
		return err
	}
	for i, operation := range []string{"first", "first", "second"} {
		if i == 1 && p.h.Reopen != nil {
			if err := p.reopen(ctx); err != nil {
				return err
			}
			if rebooter, ok = p.h.Provider.(cloudprovider.Rebooter); !ok {
				return errors.New("the provider that the harness reopened cannot reboot")
			}
		}
		if err := p.retry(ctx, func() error { return rebooter.Reboot(ctx, launch.ID, p.h.Prefix+"-"+operation) }); err != nil {
			return fmt.Errorf("call %d of Reboot failed: %w", i+1, err)
		}
		if err := p.settle(ctx); err != nil {
			return err
		}
		same, err := p.get(ctx, launch.ID)
		if err != nil || same.State == cloudprovider.Terminating {
			return fmt.Errorf("Get of the instance that was rebooted returned the state %q, error %w", same.State, orNil(err))
		}
		if p.h.Reboots == nil {
			continue
		}
		n, err := p.h.Reboots(ctx, launch.ID)
		if err != nil {
			return fmt.Errorf("the harness cannot say how often the machine was rebooted: %w", err)
		}
		if want := 1 + i/2; n != want {
			return fmt.Errorf("after %d calls for the operations first, first, second the machine was rebooted %d times instead of %d", i+1, n, want)
		}
	}
	return mustBe("Reboot of an id that does not exist", rebooter.Reboot(ctx, launch.ID+"-no-such", p.h.Prefix+"-third"), cloudprovider.ErrNotFound)
}

func interruptions(ctx context.Context, p *probe) error {
	source, ok := p.h.Provider.(interruption.Source)
	if !ok {
		return &skipped{"interruption.Source"}
	}
	if p.h.Interrupt == nil {
		return &skipped{"Harness.Interrupt"}
	}
	_, launch, err := p.launch(ctx)
	if err != nil {
		return err
	}
	if err := p.settle(ctx); err != nil {
		return err
	}
	if err := p.h.Interrupt(ctx, launch.ID); err != nil {
		return fmt.Errorf("the harness did not interrupt: %w", err)
	}
	if err := p.settle(ctx); err != nil {
		return err
	}
	cursor := ""
	for _, when := range []string{"the first time", "without a confirmation of it"} {
		events, next, err := source.Interruptions(ctx, "")
		if err != nil {
			return fmt.Errorf("the source failed: %w", err)
		}
		if err := announces(events, launch.ID); err != nil {
			return fmt.Errorf("%s: %w", when, err)
		}
		cursor = next
	}
	for range 2 {
		events, next, err := source.Interruptions(ctx, cursor)
		if err != nil {
			return fmt.Errorf("the source failed: %w", err)
		}
		if announces(events, launch.ID) == nil {
			return errors.New("an event came again after it was confirmed")
		}
		cursor = next
	}
	return nil
}

// announces fails unless one of the events is about the instance and has the required content.
func announces(events []interruption.Event, id string) error {
	for _, e := range events {
		if e.Instance != id {
			continue
		}
		if e.ID == "" || e.Kind == "" || e.At.IsZero() {
			return fmt.Errorf("an event lacks its id, kind or time: %+v", e)
		}
		return nil
	}
	return fmt.Errorf("no event says that %q is interrupted", id)
}
