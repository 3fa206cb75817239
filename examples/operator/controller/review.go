package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
	"github.com/joinery-sdk/joinery/cloudprovider/lifecycle"
	"github.com/joinery-sdk/joinery/deprovision"
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

// review gives back orphaned machines and overdue claims, as package lifecycle decides. As that
// package demands, it reads the cloud first, and the claims from the API server instead of the
// cache.
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
		initialized := since(c, karpv1.ConditionTypeInitialized)
		if is(karpv1.ConditionTypeRebooting)(c) { // a reboot has a time limit of its own
			initialized = since(c, karpv1.ConditionTypeRebooting)
		}
		node, err := o.nodeOf(ctx, c)
		if err != nil {
			return err
		}
		claims = append(claims, lifecycle.Claim{
			Name: c.Name, Token: string(c.UID), Created: begun.(time.Time), Instance: c.Status.ProviderID, Ready: node != nil && isReady(node),
			Launched: since(c, karpv1.ConditionTypeLaunched), Registered: since(c, karpv1.ConditionTypeRegistered), Initialized: initialized,
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
	return errors.Join(append(errs, drifted...)...)
}

// isReady reports whether a node says that it is ready.
func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
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

// driftRounds spreads the questions for drift, which may cost a request a claim, over so many
// reviews.
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

// noticeAnnotation holds the cloud's warning about a claim's machine, as JSON of an
// interruption.Event. It is written before the event is acknowledged, so that no restart loses it.
const noticeAnnotation = "joinery-sdk.dev/interruption"

// noticeLoop reads the cloud's interruption events.
func (o *Operator) noticeLoop(ctx context.Context) error {
	source, ok := o.options.Provider.(interruption.Source)
	if !ok {
		return nil
	}
	cursor := ""
	for ctx.Err() == nil {
		events, next, err := source.Interruptions(ctx, cursor)
		for _, e := range events {
			if err == nil {
				err = o.notice(ctx, e)
			}
		}
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "interruptions")
		} else {
			cursor = next
		}
		if len(events) == 0 || err != nil { // a source that does not block is polled once a second
			pause(ctx, time.Second)
		}
	}
	return nil
}

// notice writes an event into the claim of its machine.
func (o *Operator) notice(ctx context.Context, e interruption.Event) error {
	machine, err := o.options.Provider.Get(ctx, e.Instance)
	if notFoundIsFine(err) != nil {
		return err
	}
	claims, err := list[*karpv1.NodeClaim](ctx, o.client, &karpv1.NodeClaimList{})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(claims, func(c *karpv1.NodeClaim) bool { // a claim may not have its provider id yet
		return c.Status.ProviderID == e.Instance || string(c.UID) == machine.Token
	})
	if i < 0 {
		return nil // another owner's, or terminated
	}
	claim := claims[i]
	o.events.Eventf(claim, nil, corev1.EventTypeWarning, string(e.Kind), "Interrupt", "the cloud says so; at the earliest %s", e.Deadline.Format(time.RFC3339))
	interruptions.WithLabelValues(string(e.Kind)).Inc()
	if e.Kind.Refuses() && machine.Type != "" {
		refusal := cloudprovider.Refusal{Type: machine.Type, Offering: machine.Offering, Detail: string(e.Kind)}
		o.locked(func(now time.Time) { o.ledger = o.ledger.Refuse(now, refusal) })
	}
	if e.Kind.Respond() == interruption.Ignore || claim.DeletionTimestamp != nil {
		return nil
	}
	if !claim.StatusConditions().IsTrue(karpv1.ConditionTypeRegistered) { // there is nothing to drain
		return o.giveUp(ctx, claim, string(e.Kind), "the cloud takes its machine back before it has joined")
	}
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("the cloud takes a machine back", "claim", claim.Name, "kind", e.Kind, "deadline", e.Deadline)
	return client.IgnoreNotFound(o.write(ctx, claim, func() { metav1.SetMetaDataAnnotation(&claim.ObjectMeta, noticeAnnotation, string(text)) }))
}

// noticeOf returns the interruption that a claim's annotation holds.
func noticeOf(node string, claim *karpv1.NodeClaim) (deprovision.Interruption, bool) {
	var e interruption.Event
	if text := claim.Annotations[noticeAnnotation]; text == "" || json.Unmarshal([]byte(text), &e) != nil {
		return deprovision.Interruption{}, false
	}
	return deprovision.Interruption{Node: node, Deadline: e.Deadline, Force: e.Kind.Respond() == interruption.Force, Why: string(e.Kind)}, true
}
