package controller

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
	"github.com/joinery-sdk/joinery/deprovision"
)

// noticeAnnotation holds the cloud's warning about a claim's machine, as JSON of an interruption.Event. It is written before the event is
// acknowledged, so that no restart loses it.
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
