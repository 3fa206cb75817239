package karpenter

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/awslabs/operatorpkg/object"
	"github.com/awslabs/operatorpkg/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karp "sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/availability"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
	"github.com/joinery-sdk/joinery/scheduling/nodepool/nodeclaim"
)

// Options are the choices that a provider does not make. The zero value has no node classes, so
// Karpenter manages no pool with it.
type Options struct {
	// Name is what Karpenter's metrics call the provider; empty means "joinery".
	Name string
	// Classes are the kinds of node class that pools of this provider refer to, the default first.
	Classes []status.Object
	// Client reads node classes; without one they count as ready.
	Client client.Reader
	// Policy says how long refusals count.
	Policy availability.Policy
	// Refresh is how long a catalogue is shown to Karpenter before the provider is asked again; 0
	// means 5 seconds. (Karpenter asks at every simulation.) What is refused is left out at once.
	Refresh time.Duration
	// Now returns the time; nil means time.Now.
	Now func() time.Time
}

// CloudProvider is a provider with Karpenter's interface. Make one by [AsKarpenter]; it is safe for
// concurrent use.
type CloudProvider struct {
	provider cloudprovider.Provider
	options  Options
	repairs  []karp.RepairPolicy

	mu     sync.Mutex
	ledger availability.Ledger
	asked  map[types.UID]ask // launches whose outcome is not known
	shown  map[string]shown  // by what the pool says
}

// shown is a catalogue, and when it was made. Karpenter shares types and does not change them.
type shown struct {
	types []*karp.InstanceType
	since time.Time
}

// ask is what the provider was asked for, and when at first.
type ask struct {
	claim cloudprovider.NodeClaim
	since time.Time
}

var _ karp.CloudProvider = (*CloudProvider)(nil)

// AsKarpenter makes Karpenter's interface from a provider. It reads the provider's catalogue and
// tells Karpenter its labels. Karpenter keeps them in global variables. So call AsKarpenter before
// Karpenter's controllers start, and not from two goroutines at once. The error is the provider's,
// or says which of its repair policies Karpenter cannot have.
func AsKarpenter(ctx context.Context, provider cloudprovider.Provider, options Options) (*CloudProvider, error) {
	all, err := provider.InstanceTypes(ctx, nodepool.NodePool{})
	if err != nil {
		return nil, fmt.Errorf("karpenter: %w", err)
	}
	repairs, err := repairPolicies(provider)
	if err != nil {
		return nil, fmt.Errorf("karpenter: %w", err)
	}
	know(all)
	options.Name, options.Refresh = cmp.Or(options.Name, "joinery"), cmp.Or(options.Refresh, 5*time.Second)
	if options.Now == nil {
		options.Now = time.Now
	}
	c := &CloudProvider{provider: provider, options: options, repairs: repairs, ledger: availability.New(options.Policy), asked: map[types.UID]ask{}}
	c.learn(func(l availability.Ledger, _ time.Time) availability.Ledger { return l })
	return c, nil
}

// learn changes the ledger, and what is shown with it.
func (c *CloudProvider) learn(change func(availability.Ledger, time.Time) availability.Ledger) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ledger, c.shown = change(c.ledger, c.options.Now()), map[string]shown{}
}

// Name returns the name of the options.
func (c *CloudProvider) Name() string { return c.options.Name }

// GetSupportedNodeClasses returns the classes of the options. Callers read objects into them, so
// they get copies.
func (c *CloudProvider) GetSupportedNodeClasses() []status.Object {
	var out []status.Object
	for _, class := range c.options.Classes {
		out = append(out, class.DeepCopyObject().(status.Object))
	}
	return out
}

// GetInstanceTypes returns the catalogue for the pool. What the cloud refused recently is marked
// unavailable. A nil pool means no particular pool.
func (c *CloudProvider) GetInstanceTypes(ctx context.Context, pool *karpv1.NodePool) ([]*karp.InstanceType, error) {
	said := karpv1.NodePool{}
	if pool != nil {
		said.Name, said.Spec = pool.Name, pool.Spec
	}
	key, err := json.Marshal(&said)
	if err != nil {
		return nil, fmt.Errorf("karpenter: %w", err)
	}
	c.mu.Lock()
	known, ok := c.shown[string(key)]
	c.mu.Unlock()
	if ok && c.options.Now().Sub(known.since) < c.options.Refresh {
		return slices.Clone(known.types), nil
	}
	var ours nodepool.NodePool
	if pool != nil {
		if ours, err = nodepool.DecodeObject(&said); err != nil {
			return nil, fmt.Errorf("karpenter: %w", err)
		}
	}
	all, err := c.provider.InstanceTypes(ctx, ours)
	if err != nil {
		return nil, fmt.Errorf("karpenter: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	list, err := converted(c.ledger.Apply(all, c.options.Now()))
	if err == nil {
		c.shown[string(key)] = shown{list, c.options.Now()}
	}
	return slices.Clone(list), err
}

// Create launches the machine of a claim, or finds the one that it has launched before.
func (c *CloudProvider) Create(ctx context.Context, claim *karpv1.NodeClaim) (*karpv1.NodeClaim, error) {
	if err := c.classReady(ctx, claim.Spec.NodeClassRef); err != nil {
		return nil, err
	}
	asked, err := c.ask(ctx, claim)
	if err != nil {
		return nil, createError(err)
	}
	launch, err := c.provider.Create(ctx, asked)
	if errors.Is(err, cloudprovider.ErrInvalidSpec) { // an earlier process may have asked for it with other candidates
		list, _ := c.provider.List(ctx)
		for _, i := range list {
			if i.Token == asked.Token && i.Claim == asked.Name && i.State != cloudprovider.Terminating {
				launch, err = cloudprovider.Launch{Instance: i}, nil
			}
		}
	}
	if err == nil || cloudprovider.Advise(err).Retry != cloudprovider.RetrySame {
		c.mu.Lock()
		delete(c.asked, claim.UID)
		c.mu.Unlock()
	}
	if err != nil {
		c.learn(func(l availability.Ledger, now time.Time) availability.Ledger { return l.Learn(err, now) })
		return nil, createError(err)
	}
	c.learn(func(l availability.Ledger, now time.Time) availability.Ledger { return l.Launched(launch, now) })
	return c.claimOf(launch.Instance), nil
}

// classReady fails if the claim's node class is not there, or says that it is not ready.
func (c *CloudProvider) classReady(ctx context.Context, ref *karpv1.NodeClassReference) error {
	classes := c.GetSupportedNodeClasses()
	i := slices.IndexFunc(classes, func(class status.Object) bool { return ref != nil && object.GVK(class).GroupKind() == ref.GroupKind() })
	if c.options.Client == nil || i < 0 {
		return nil
	}
	err := c.options.Client.Get(ctx, client.ObjectKey{Name: ref.Name}, classes[i])
	if apierrors.IsNotFound(err) {
		return karp.NewNodeClassNotReadyError(err)
	}
	if ready := classes[i].StatusConditions().Get(status.ConditionReady); err == nil && ready.IsFalse() {
		return karp.NewNodeClassNotReadyError(fmt.Errorf("%s %q: %s", ref.Kind, ref.Name, ready.Message))
	}
	return err
}

// remembered is how long a launch without an answer is kept: longer than Karpenter asks for it.
const remembered = time.Hour

// ask is what to ask the provider for: the same as before for a claim whose launch has had no
// answer yet, otherwise all that can be had now. Labels that the catalogue does not know of are the
// claim's own to set.
func (c *CloudProvider) ask(ctx context.Context, claim *karpv1.NodeClaim) (cloudprovider.NodeClaim, error) {
	c.mu.Lock()
	known, ok := c.asked[claim.UID]
	c.mu.Unlock()
	if ok {
		return known.claim, nil
	}
	fail := func(code, err error) (cloudprovider.NodeClaim, error) {
		return cloudprovider.NodeClaim{}, &cloudprovider.Error{Code: code, Op: "create", Subject: claim.Name, Err: err}
	}
	n, err := nodeclaim.DecodeObject(claim)
	if err != nil {
		return fail(cloudprovider.ErrInvalidSpec, err)
	}
	all, err := c.provider.InstanceTypes(ctx, nodepool.NodePool{Name: n.Pool, NodeClass: n.NodeClass})
	if err != nil {
		return cloudprovider.NodeClaim{}, err
	}
	var open []string
	for r := range n.Requirements.All() {
		open = append(open, r.Key())
	}
	keys := keysOf(all)
	open = slices.DeleteFunc(open, func(key string) bool { return slices.Contains(keys, key) })
	now := c.options.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	out := cloudprovider.NodeClaim{
		Name: claim.Name, Token: string(claim.UID), Pool: n.Pool, NodeClass: n.NodeClass, Requirements: n.Requirements, Requests: n.Requests,
		Candidates: cloudprovider.CandidatesOf(c.ledger.Apply(all, now), n.Requirements, n.Requests, requirements.KeysOf(open...)),
		Labels:     n.Metadata.Labels, Taints: n.Taints, StartupTaints: n.StartupTaints,
	}
	if len(out.Candidates) == 0 {
		return fail(cloudprovider.ErrInsufficientCapacity, errors.New("nothing that is available satisfies the claim"))
	}
	maps.DeleteFunc(c.asked, func(_ types.UID, a ask) bool { return now.Sub(a.since) > remembered })
	c.asked[claim.UID] = ask{out, now}
	return out, nil
}

// claimOf is an instance as Karpenter has it: a claim of the same name and UID with what the
// machine really is.
func (c *CloudProvider) claimOf(i cloudprovider.Instance) *karpv1.NodeClaim {
	i = i.Clone()
	out := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: i.Claim, UID: types.UID(i.Token), Labels: i.Labels, CreationTimestamp: metav1.NewTime(i.Created),
	}}
	if i.Pool != "" {
		metav1.SetMetaDataLabel(&out.ObjectMeta, karpv1.NodePoolLabelKey, i.Pool)
	}
	if i.State == cloudprovider.Terminating {
		out.DeletionTimestamp = &metav1.Time{Time: c.options.Now()}
	}
	out.Status = karpv1.NodeClaimStatus{ProviderID: i.ID, ImageID: i.ImageID, Capacity: i.Capacity, Allocatable: i.Allocatable}
	return out
}

// Get is the machine with the provider id.
func (c *CloudProvider) Get(ctx context.Context, id string) (*karpv1.NodeClaim, error) {
	i, err := c.provider.Get(ctx, id)
	if err != nil {
		return nil, found(err)
	}
	return c.claimOf(i), nil
}

// List are all machines; those on their way out have a deletion time.
func (c *CloudProvider) List(ctx context.Context) ([]*karpv1.NodeClaim, error) {
	list, err := c.provider.List(ctx)
	var out []*karpv1.NodeClaim
	for _, i := range list {
		out = append(out, c.claimOf(i))
	}
	return out, err
}

// Delete gives the machine of a claim back. Quotas that it counted towards are worth trying again
// once it is gone.
func (c *CloudProvider) Delete(ctx context.Context, claim *karpv1.NodeClaim) error {
	err := c.provider.Delete(ctx, claim.Status.ProviderID)
	if errors.Is(err, cloudprovider.ErrNotFound) {
		c.learn(func(l availability.Ledger, _ time.Time) availability.Ledger {
			for _, r := range l.Records() {
				if r.Scope == availability.OfQuota && r.Where.Matches(claim.Labels) {
					l = l.Free(r.Name)
				}
			}
			return l
		})
	}
	return found(err)
}

// IsDrifted returns the reason why the machine is no longer what its node class asks for, or an
// empty text if it still is.
func (c *CloudProvider) IsDrifted(ctx context.Context, claim *karpv1.NodeClaim) (karp.DriftReason, error) {
	drift, err := c.provider.Drifted(ctx, claim.Status.ProviderID)
	return karp.DriftReason(drift.Reason), found(err)
}

// Refuse marks offerings unavailable that the cloud has run out of. Use it for what you learn from
// other sources than an error of Create, such as interruptions.
func (c *CloudProvider) Refuse(refused ...cloudprovider.Refusal) {
	c.learn(func(l availability.Ledger, now time.Time) availability.Ledger { return l.Refuse(now, refused...) })
}
