package cloudprovider

import (
	"context"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Provider is a cloud that sells nodes. The package documentation lists the obligations of its
// methods. All methods may be called concurrently.
type Provider interface {
	Catalogue
	Creator
	Getter
	Lister
	Deleter
	DriftDetector
}

// Catalogue says what can be bought.
type Catalogue interface {
	// InstanceTypes returns the types that nodes of the pool could have, available now or not. The
	// zero pool stands for no particular pool. A provider must apply the pool's node class and need
	// not apply its requirements. If the provider applies kubelet settings of the class or the pool
	// to its machines, Capacity and Overhead must already include the effect of these settings,
	// because callers do not adjust them. The slice, its offerings and its resource lists belong to
	// the caller. So a provider builds the catalogue for each answer, or keeps it as JSON and
	// decodes the JSON for each answer.
	InstanceTypes(ctx context.Context, pool nodepool.NodePool) ([]instancetypes.InstanceType, error)
}

// Creator buys instances.
type Creator interface {
	// Create launches one instance for the claim, or returns the instance that the claim's token
	// has already led to. It returns as soon as the instance has an id; Get says whether it has
	// booted.
	//
	// Create tests in this order: the context, NodeClaim.Validate, the token, the catalogue, quota,
	// capacity. So a repeated call succeeds even if the type has left the catalogue since. A used
	// token has one of three results:
	//
	//   - The token of another claim fails with ErrInvalidSpec.
	//   - The token of an instance for which Delete has succeeded fails with ErrNotFound, even
	//     while the instance is still Terminating. If Delete was called and has failed, Create may
	//     fail with ErrNotFound, too: a caller that gives an instance back calls Delete again.
	//   - Any other used token returns its instance. If the provider knows that the cloud has taken
	//     the machine, Create fails with ErrNotFound instead. The provider need not ask the cloud:
	//     Get and List say whether the instance still exists.
	//
	// If some candidates were refused for lack of capacity and others by a quota, the code is
	// ErrInsufficientCapacity. Error.Refused names the candidates without capacity, and
	// Error.Quotas the quotas that blocked the others.
	Create(ctx context.Context, claim NodeClaim) (Launch, error)
}

// Getter finds one instance.
type Getter interface {
	// Get returns the instance with the id that Create returned.
	Get(ctx context.Context, id string) (Instance, error)
}

// Lister finds all instances.
type Lister interface {
	// List returns all instances that Create made, including those being deleted, in ascending
	// order of their ids.
	List(ctx context.Context) ([]Instance, error)
}

// Deleter gives instances back.
type Deleter interface {
	// Delete requests the end of the instance and does not wait for it. A caller repeats it until
	// it fails with ErrNotFound, because the cloud may refuse at first, or the request may get
	// lost.
	Delete(ctx context.Context, id string) error
}

// DriftDetector compares instances with what would be launched now.
type DriftDetector interface {
	// Drifted says whether the instance still matches its node class. A cloud without such settings
	// returns the zero Drift.
	Drifted(ctx context.Context, id string) (Drift, error)
}

// Drift says how an instance differs from what would be launched now. The zero value means that it
// does not differ.
type Drift struct {
	// Reason is one word in camel case, such as "ImageDrift". It is empty if there is no drift.
	Reason string
	// Detail says, for people, what the instance has and what it should have.
	Detail string
}

// Launch is a successful result of Create.
type Launch struct {
	Instance
	// Refused are the candidates that were tried before and had no capacity. Quotas are the quotas
	// that refused candidates. Both are hints for the next plan. They are empty if the token had
	// already led to the instance.
	Refused []Refusal
	Quotas  []Quota
}
