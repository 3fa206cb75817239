package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/batch"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/memory"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/profile"
)

// Delete ends an instance, together with others that are ended at the same time. It touches only
// instances that a provider made for the cluster.
func (p *Provider) Delete(ctx context.Context, id string) (err error) {
	defer func() { err = api.Outcome("delete", id, err) }()
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.options.DryRun {
		return dry()
	}
	bare := memory.Bare(id)
	if bare == "" {
		return &cloudprovider.Error{Code: cloudprovider.ErrNotFound, Err: errors.New("want an id such as aws:///us-east-1a/i-0123456789abcdef0")}
	}
	if err := p.checkZone(ctx, id); err != nil {
		return err
	}
	e, known := p.memory.Of(bare)
	if known && e.Instance.ID != id {
		return &cloudprovider.Error{Code: cloudprovider.ErrNotFound, Err: fmt.Errorf("the instance is %q", e.Instance.ID)}
	}
	if !known {
		f, err := p.get(ctx, id)
		if err != nil {
			return err
		}
		p.memory.Learn(f.instance, f.identity, time.Now())
	}
	asked := time.Now()
	before, err := p.deletes.Do(ctx, "", bare)
	now := time.Now()
	switch {
	case api.Reason(err) == "InvalidInstanceID.NotFound" && known && e.State == memory.Live && asked.Sub(e.Checked) <= p.options.Lag:
		return &cloudprovider.Error{Code: cloudprovider.ErrNotReady, RetryAfter: time.Second, Err: errors.New("EC2 does not know the new instance everywhere yet")}
	case api.Reason(err) == "InvalidInstanceID.NotFound":
		p.memory.MarkTerminated(bare, "", now)
		return &cloudprovider.Error{Code: cloudprovider.ErrNotFound}
	case err != nil:
		return err
	}
	p.memory.MarkTerminated(bare, "it was deleted", now)
	if before == string(types.InstanceStateNameTerminated) {
		return &cloudprovider.Error{Code: cloudprovider.ErrNotFound}
	}
	return nil
}

// terminate ends instances and returns their previous states. One unknown or protected instance
// makes a whole call fail. Then the call is repeated for halves until that instance is alone.
// Ending a machine twice does no harm.
func (p *Provider) terminate(ctx context.Context, _ string, ids []string) []batch.Result[string] {
	out := make([]batch.Result[string], len(ids))
	unique := slices.Compact(slices.Sorted(slices.Values(ids)))
	before := map[string]string{}
	failed := map[string]error{}
	var end func(list []string)
	end = func(list []string) {
		answer, err := p.clients.EC2.TerminateInstances(ctx, &sdk.TerminateInstancesInput{InstanceIds: list})
		reason := api.Reason(err)
		switch {
		case err == nil:
			for _, c := range answer.TerminatingInstances {
				if c.PreviousState != nil {
					before[aws.ToString(c.InstanceId)] = string(c.PreviousState.Name)
				}
			}
		case len(list) > 1 && (reason == "OperationNotPermitted" || strings.HasPrefix(reason, "InvalidInstanceID")):
			end(list[:len(list)/2])
			end(list[len(list)/2:])
		default:
			for _, id := range list {
				failed[id] = err
			}
		}
	}
	if len(unique) > 0 {
		end(unique)
	}
	for i, id := range ids {
		out[i] = batch.Result[string]{Value: before[id], Err: failed[id]}
	}
	return out
}

// giveBack ends machines without an owner. A failure shows in the next reading.
func (p *Provider) giveBack(ctx context.Context, ids []string) {
	for chunk := range slices.Chunk(ids, 500) {
		p.terminate(ctx, "", chunk)
	}
}

// Withdraw takes back what the claims with these tokens led to, and the launch templates and
// instance profiles that this provider has made. It is for callers that were interrupted and want
// nothing to remain. If an answer of EC2 was lost, it waits until what was launched must show. No
// other call may be in progress, and the provider must not be used afterwards. It returns the
// instances that it ended, and can be repeated until it succeeds.
func (p *Provider) Withdraw(ctx context.Context, tokens []string) ([]string, error) {
	var ended []string
	for _, b := range p.memory.Opens() {
		ours := slices.ContainsFunc(b.claims, func(c cloudprovider.NodeClaim) bool { return slices.Contains(tokens, c.Token) })
		if !ours {
			continue
		}
		wait := time.Until((*b.sent.Load()).Add(p.options.Lag + time.Millisecond))
		if err := api.Wait(ctx, wait); err != nil {
			return ended, err
		}
		if err := p.inTurn(ctx, b, p.reconcileByReading); err != nil {
			return ended, api.Outcome("withdraw", p.options.Cluster, err)
		}
	}
	for _, token := range tokens {
		e, ok := p.memory.Token(token, time.Now())
		if !ok || e.State != memory.Live {
			continue
		}
		if err := p.deletePatiently(ctx, e.Instance.ID); err != nil {
			return ended, err
		}
		ended = append(ended, e.Instance.ID)
	}
	if err := p.ReleaseTemplates(ctx); err != nil {
		return ended, err
	}
	for _, name := range p.ownProfiles.mine() {
		if err := profile.Delete(ctx, p.clients, name); err != nil {
			return ended, api.Outcome("withdraw", name, err)
		}
	}
	return ended, nil
}

// deletePatiently deletes an instance that not all of EC2 may know yet.
func (p *Provider) deletePatiently(ctx context.Context, id string) error {
	for deadline := time.Now().Add(p.options.Lag + time.Minute); ; {
		err := p.Delete(ctx, id)
		switch {
		case err == nil || errors.Is(err, cloudprovider.ErrNotFound):
			return nil
		case cloudprovider.Advise(err).Retry != cloudprovider.RetrySame || time.Now().After(deadline):
			return err
		}
		if err := api.Wait(ctx, time.Second); err != nil {
			return err
		}
	}
}

// ReleaseTemplates deletes the launch templates that this provider has made. Machines do not need
// their template, and the next launch makes it again.
func (p *Provider) ReleaseTemplates(ctx context.Context) error {
	for _, name := range p.ownTemplates.mine() {
		if err := p.deleteTemplate(ctx, name); err != nil {
			return api.Outcome("release", name, err)
		}
	}
	return nil
}

// endOf returns why an instance ended.
func endOf(i types.Instance) (string, bool) {
	if i.State == nil || i.State.Name != types.InstanceStateNameTerminated {
		return "", false
	}
	text := "terminated"
	if r := i.StateReason; r != nil {
		code, message := aws.ToString(r.Code), aws.ToString(r.Message)
		a := api.Find(api.State, code, message, 0)
		a.Code = code
		text += ": " + a.Describe(strings.TrimPrefix(strings.TrimPrefix(message, code), ": "), "")
	}
	return text, true
}
