// Package upkeep does for any provider what Karpenter's core leaves to each: it gives back machines
// that no claim owns, such as those of a claim that was deleted while its launch was unknown,
// deletes the claims of machines that the cloud takes back, and lets the provider finish a node
// before it counts as registered.
package upkeep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karp "sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
	"github.com/joinery-sdk/joinery/cloudprovider/lifecycle"
)

// Keeper looks after machines. Client and Provider are required; the other fields have defaults.
type Keeper struct {
	// Client is the client of Karpenter's manager.
	Client client.Client
	// Provider is asked for its machines, and for interruptions if it is an interruption.Source.
	Provider cloudprovider.Provider
	// Refuse is called with what the cloud has run out of, for example CloudProvider.Refuse; nil
	// makes no call.
	Refuse func(...cloudprovider.Refusal)
	// Timeouts.Orphan is the age at which a machine without a claim is given back. The other
	// timeouts are ignored, because Karpenter has its own.
	Timeouts lifecycle.Timeouts
	// Poll is how often to look; 0 means 10 seconds.
	Poll time.Duration
}

// Start gives back machines that no claim owns, and acts on interruptions, until the context ends.
// It is a manager.Runnable: add it to Karpenter's manager, which runs it on the leader only. Errors
// are logged, and what they prevented is done after the next Poll.
func (k Keeper) Start(ctx context.Context) error {
	ticker := time.NewTicker(cmp.Or(k.Poll, 10*time.Second))
	defer ticker.Stop()
	cursor := ""
	for {
		next, err := k.interruptions(ctx, cursor)
		if cursor = next; ctx.Err() != nil {
			return nil
		}
		if err = errors.Join(err, k.collect(ctx)); err != nil {
			log.FromContext(ctx).Error(err, "looking after machines")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// collect deletes instances that no claim owns. Those of a claim that is being deleted are its own.
func (k Keeper) collect(ctx context.Context) error {
	instances, err := k.Provider.List(ctx)
	if err != nil {
		return err
	}
	var list karpv1.NodeClaimList // read after the instances, so that each claim is seen whose instance is
	if err := k.Client.List(ctx, &list); err != nil {
		return err
	}
	claims := make([]lifecycle.Claim, 0, len(list.Items))
	for _, n := range list.Items {
		claims = append(claims, lifecycle.Claim{Name: n.Name, Token: string(n.UID), Created: n.CreationTimestamp.Time, Instance: n.Status.ProviderID})
	}
	decisions, _ := lifecycle.Review(claims, instances, k.Timeouts, time.Now())
	var errs []error
	for _, d := range decisions {
		if d.Verdict != lifecycle.Orphaned && d.Verdict != lifecycle.Surplus {
			continue // claims are Karpenter's
		}
		log.FromContext(ctx).Info("deleting a machine without a claim", "provider-id", d.Instance, "claim", d.Claim, "why", d.Detail)
		if err := k.Provider.Delete(ctx, d.Instance); !errors.Is(err, cloudprovider.ErrNotFound) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// interruptions deletes the claims of machines that the cloud takes back. Karpenter drains them
// until the deadline, if there is one, and by force then. It returns the cursor for the next call,
// which confirms the events that were acted on.
func (k Keeper) interruptions(ctx context.Context, cursor string) (string, error) {
	source, ok := k.Provider.(interruption.Source)
	if !ok {
		return "", nil
	}
	events, next, err := source.Interruptions(ctx, cursor)
	if err != nil {
		return cursor, err
	}
	var list karpv1.NodeClaimList
	if err := k.Client.List(ctx, &list); err != nil {
		return cursor, err
	}
	var errs []error
	for _, e := range events {
		for i := range list.Items {
			if list.Items[i].Status.ProviderID == e.Instance {
				errs = append(errs, k.interrupted(ctx, &list.Items[i], e))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return cursor, err
	}
	return next, nil
}

// interrupted acts on one event about the machine of one claim.
func (k Keeper) interrupted(ctx context.Context, claim *karpv1.NodeClaim, e interruption.Event) error {
	log.FromContext(ctx).Info("the cloud takes a machine", "provider-id", e.Instance, "claim", claim.Name, "kind", e.Kind)
	if e.Kind.Refuses() && k.Refuse != nil {
		if i, err := k.Provider.Get(ctx, e.Instance); err == nil {
			k.Refuse(cloudprovider.Refusal{Type: i.Type, Offering: i.Offering, Detail: string(e.Kind)})
		}
	}
	end := e.Deadline
	switch e.Kind.Respond() {
	case interruption.Ignore:
		return nil
	case interruption.Force:
		end = time.Now()
	case interruption.Drain:
	}
	if !end.IsZero() && claim.Annotations[karpv1.NodeClaimTerminationTimestampAnnotationKey] == "" {
		before := claim.DeepCopy()
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, karpv1.NodeClaimTerminationTimestampAnnotationKey, end.Format(time.RFC3339))
		if err := k.Client.Patch(ctx, claim, client.MergeFrom(before)); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	return client.IgnoreNotFound(k.Client.Delete(ctx, claim))
}

// Hooks are what Karpenter's controllers are to wait for before a node counts as registered:
// nothing, or the provider's RegistrationHook. Hand each to controllers.WithRegistrationHook.
func (k Keeper) Hooks() []karp.NodeLifecycleHook {
	if registrar, ok := k.Provider.(cloudprovider.RegistrationHook); ok {
		return []karp.NodeLifecycleHook{hook{k, registrar}}
	}
	return nil
}

// hook has a name for Karpenter's metrics.
type hook struct {
	Keeper
	registrar cloudprovider.RegistrationHook
}

// Name is one for all providers: there is one hook.
func (hook) Name() string { return "joinery" }

// Registered calls the provider's hook with the claim's node. Karpenter asks again if it fails.
func (h hook) Registered(ctx context.Context, claim *karpv1.NodeClaim) (karp.NodeLifecycleHookResult, error) {
	var nodes corev1.NodeList
	err := h.Client.List(ctx, &nodes, client.MatchingFields{"spec.providerID": claim.Status.ProviderID}) // Karpenter's index
	if err == nil && len(nodes.Items) != 1 {
		err = fmt.Errorf("upkeep: claim %q has %d nodes instead of one", claim.Name, len(nodes.Items))
	}
	if err == nil {
		err = h.registrar.Registered(ctx, claim.Status.ProviderID, &nodes.Items[0])
	}
	return karp.NodeLifecycleHookResult{}, err
}
