package controller

import (
	"cmp"
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/lifecycle"
	"github.com/joinery-sdk/joinery/deprovision/budget"
	"github.com/joinery-sdk/joinery/deprovision/eligibility"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// reviewLoop compares machines with claims every Options.Poll.
func (o *Operator) reviewLoop(ctx context.Context) error {
	round := 0
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := o.review(ctx, round); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "review")
		}
		round++
	}, o.options.Poll)
	return nil
}

// review gives back orphaned machines, overdue claims and broken nodes, as package lifecycle decides. As that package demands, it reads the
// cloud first, and the claims from the API server instead of the cache.
func (o *Operator) review(ctx context.Context, round int) error {
	instances, err := o.options.Provider.List(ctx)
	if err != nil {
		return err
	}
	known, err := list[*karpv1.NodeClaim](ctx, o.api, &karpv1.NodeClaimList{})
	if err != nil {
		return err
	}
	byName := map[string]*karpv1.NodeClaim{}
	var claims []lifecycle.Claim
	now, hashes := time.Now(), map[karpv1.NodeClassReference]string{}
	for _, c := range known {
		byName[c.Name] = c
		if ref := c.Spec.NodeClassRef; ref != nil {
			if _, asked := hashes[*ref]; !asked {
				hashes[*ref], _ = o.classHash(ctx, ref)
			}
		}
		begun, tried := o.tried.Load(c.UID)
		if !tried { // among thousands it may wait longer for its turn than a launch may take
			begun = cmp.Or(since(c, karpv1.ConditionTypeLaunched), now)
		}
		claims = append(claims, lifecycle.Claim{
			Name: c.Name, Token: string(c.UID), Created: begun.(time.Time), Instance: c.Status.ProviderID,
			Launched: since(c, karpv1.ConditionTypeLaunched), Registered: since(c, karpv1.ConditionTypeRegistered), Initialized: since(c, karpv1.ConditionTypeInitialized),
		})
	}
	decisions, _ := lifecycle.Review(claims, instances, o.options.Timeouts, now)
	var errs []error
	for _, d := range decisions {
		if d.Verdict == lifecycle.Orphaned || d.Verdict == lifecycle.Surplus {
			log.FromContext(ctx).Info("deleting a machine", "verdict", d.Verdict, "provider-id", d.Instance, "detail", d.Detail)
			errs = append(errs, notFoundIsFine(o.options.Provider.Delete(ctx, d.Instance)))
			continue
		}
		errs = append(errs, o.giveUp(ctx, byName[d.Claim], string(d.Verdict), d.Detail))
	}
	drifted := make([]error, len(claims))
	workqueue.ParallelizeUntil(ctx, workers, len(claims), func(i int) {
		if i%driftRounds == round%driftRounds && !claims[i].Initialized.IsZero() && known[i].DeletionTimestamp == nil {
			drifted[i] = o.checkDrift(ctx, known[i], hashes)
		}
	})
	return errors.Join(append(append(errs, drifted...), o.repair(ctx, byName, now))...)
}

// since returns when a condition became true, or the zero time if it is not true.
func since(c *karpv1.NodeClaim, condition string) time.Time {
	if x := c.StatusConditions().Get(condition); x != nil && x.IsTrue() {
		return x.LastTransitionTime.Time
	}
	return time.Time{}
}

// giveUp deletes a claim, with an event that says why.
func (o *Operator) giveUp(ctx context.Context, claim *karpv1.NodeClaim, reason, detail string) error {
	if claim.DeletionTimestamp != nil {
		return nil
	}
	log.FromContext(ctx).Info("deleting a claim", "claim", claim.Name, "verdict", reason, "detail", detail)
	o.events.Eventf(claim, nil, corev1.EventTypeWarning, reason, "Delete", "%s", detail)
	return client.IgnoreNotFound(o.client.Delete(ctx, claim))
}

// repair replaces nodes with a condition that never ends, as the provider knows, within the budgets of their pools. Nodes that were never
// ready are in no budget.
func (o *Operator) repair(ctx context.Context, claims map[string]*karpv1.NodeClaim, now time.Time) error {
	adviser, ok := o.options.Provider.(cloudprovider.RepairAdviser)
	if !ok {
		return nil
	}
	listed, err := list[*karpv1.NodePool](ctx, o.client, &karpv1.NodePoolList{})
	errs, pools, byName := []error{err}, []nodepool.NodePool(nil), map[string]*nodepool.NodePool{}
	for _, p := range listed {
		pool, err := nodepool.DecodeObject(p)
		errs = append(errs, err)
		if err == nil {
			pools, byName[p.Name] = append(pools, pool), &pool
		}
	}
	var nodes []lifecycle.Node
	var known []eligibility.Node
	initialized := map[string]bool{}
	for _, c := range claims {
		node, err := o.nodeOf(ctx, c)
		errs = append(errs, err)
		if node != nil && c.StatusConditions().IsTrue(karpv1.ConditionTypeRegistered) { // it may never have been ready
			pool := c.Labels[karpv1.NodePoolLabelKey]
			one := eligibility.Node{Node: node, Pool: byName[pool], Claim: eligibility.Claim{Deleting: c.DeletionTimestamp != nil}}
			nodes = append(nodes, lifecycle.Node{Claim: c.Name, Pool: pool, Conditions: node.Status.Conditions, Since: node.CreationTimestamp.Time, Annotations: node.Annotations})
			known, initialized[c.Name] = append(known, one), one.Initialized()
		}
	}
	ledger := budget.New(pools, budget.Count(known), now)
	for _, d := range lifecycle.Repairs(nodes, adviser.RepairPolicies(), now) {
		claim := claims[d.Claim]
		if pool := claim.Labels[karpv1.NodePoolLabelKey]; initialized[d.Claim] && claim.DeletionTimestamp == nil {
			if ledger.Left(pool, nodepool.Unhealthy) == 0 {
				o.events.Eventf(claim, nil, corev1.EventTypeWarning, "NodeRepairBlocked", "Repair", "%s", cmp.Or(ledger.Why(pool, nodepool.Unhealthy), "its NodePool is gone or invalid"))
				continue
			}
			ledger = ledger.Take(pool, 1)
		}
		errs = append(errs, o.giveUp(ctx, claim, string(d.Verdict), d.Detail))
	}
	return errors.Join(errs...)
}

// driftRounds spreads the questions for drift, which may cost a request a claim, over so many reviews.
const driftRounds = 6

// checkDrift sets the condition Drifted if the machine is not what would be launched today.
func (o *Operator) checkDrift(ctx context.Context, claim *karpv1.NodeClaim, hashes map[karpv1.NodeClassReference]string) error {
	drift, err := o.options.Provider.Drifted(ctx, claim.Status.ProviderID)
	if err != nil && !errors.Is(err, cloudprovider.ErrNotFound) {
		return err
	}
	if have, ref := claim.Annotations[classHashAnnotation], claim.Spec.NodeClassRef; have != "" && drift.Reason == "" && ref != nil {
		if hash := hashes[*ref]; hash != "" && hash != have {
			drift = cloudprovider.Drift{Reason: "NodeClassDrift", Detail: "the node class was changed"}
		}
	}
	err = o.writeStatus(ctx, claim, func() {
		if drift.Reason != "" {
			claim.StatusConditions().SetTrueWithReason(karpv1.ConditionTypeDrifted, drift.Reason, drift.Detail)
		} else {
			_ = claim.StatusConditions().Clear(karpv1.ConditionTypeDrifted)
		}
	})
	return client.IgnoreNotFound(err)
}
