package cloudprovider

import (
	"context"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// Provider is a cloud that nodes can be bought from. The obligations of its methods are in the package documentation; all
// of them may be called concurrently.
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
	// InstanceTypes lists the types that nodes of the pool could be of, whether or not they are available now. The zero
	// pool stands for no pool in particular. The pool's requirements need not be applied; its node class must be. The slice,
	// its offerings and its resource lists are the caller's: a provider makes the catalogue anew for each answer, or keeps it as JSON
	// and decodes that.
	InstanceTypes(ctx context.Context, pool nodepool.NodePool) ([]instancetypes.InstanceType, error)
}

// Creator buys instances.
type Creator interface {
	// Create launches one instance for the claim, or returns the one that the claim's token has already led to. It returns
	// as soon as the instance has an id; whether it has booted is for Get to say.
	//
	// What is tested comes in this order: the context, NodeClaim.Validate, the token (that of another claim is
	// ErrInvalidSpec, that of an instance for which Delete has succeeded is ErrNotFound, also while it is still Terminating,
	// any other that was used gives its instance), the catalogue, quota, capacity. So asking again succeeds even if the
	// type has left the catalogue since. Where some candidates were refused for lack of capacity and others by a quota, the
	// code is ErrInsufficientCapacity; Error.Refused names the former, Error.Quotas what blocked the others.
	Create(ctx context.Context, claim NodeClaim) (Launch, error)
}

// Getter finds one instance.
type Getter interface {
	// Get returns the instance with the id that Create gave it.
	Get(ctx context.Context, id string) (Instance, error)
}

// Lister finds all instances.
type Lister interface {
	// List returns all instances that Create made, those that are being deleted included, in ascending order of their ids.
	List(ctx context.Context) ([]Instance, error)
}

// Deleter gives instances back.
type Deleter interface {
	// Delete asks for the end of the instance and does not wait for it.
	Delete(ctx context.Context, id string) error
}

// DriftDetector compares instances with what would be launched today.
type DriftDetector interface {
	// Drifted says whether the instance still is what its node class asks for. A cloud without such settings returns the
	// zero Drift.
	Drifted(ctx context.Context, id string) (Drift, error)
}

// Drift says in which way an instance is no longer what would be launched today. The zero value means that it still is.
type Drift struct {
	// Reason is one word in camel case, such as "ImageDrift"; empty means that there is none.
	Reason string
	// Detail is for people: what is, and what should be.
	Detail string
}

// Launch is a success of Create.
type Launch struct {
	Instance
	// Refused are the candidates that were tried before and refused; Quotas those that refused. Both are hints for the next
	// plan, and empty where the token had led to the instance before.
	Refused []Refusal
	Quotas  []Quota
}
