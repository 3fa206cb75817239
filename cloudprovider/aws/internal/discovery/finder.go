// Package discovery finds what node classes select: subnets, security groups, images, capacity
// reservations and placement groups. It also finds what a node must know about its cluster. Answers
// are remembered for a while, and simultaneous requests for the same thing share one call.
//
// All answers are in a fixed order and belong to the caller.
package discovery

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/nodeclass"
)

// How long answers are remembered: a compromise between calls to AWS and how late a change is
// noticed.
const (
	networkTTL  = time.Minute     // subnets and security groups
	imageTTL    = 5 * time.Minute // images and parameters
	clusterTTL  = 5 * time.Minute
	capacityTTL = time.Minute // capacity reservations and placement groups
	shiftTTL    = 30 * time.Second
)

// Finder asks AWS and remembers the answers. It is safe for concurrent use. Make one with
// [NewFinder].
type Finder struct {
	clients   *api.Clients
	addresses *Addresses
	answers   *Cache[any]
}

// NewFinder returns a Finder that uses the clients.
func NewFinder(clients *api.Clients) *Finder {
	return &Finder{clients: clients, addresses: newAddresses(), answers: NewCache[any](imageTTL)}
}

// remembered returns the remembered answer to a question, or the result of ask.
func remembered[V any](ctx context.Context, f *Finder, ttl time.Duration, question string, ask func(context.Context) (V, error)) (V, error) {
	answer, err := f.answers.get(ctx, question, ttl, func(ctx context.Context) (any, error) { return ask(ctx) })
	v, _ := answer.(V) // the zero value if there is an error
	return v, err
}

// selected returns what a selector finds, each once and by id, in a new slice. Without terms it
// finds nothing.
func selected[T any](ctx context.Context, f *Finder, ttl time.Duration, what string, terms []nodeclass.Term, id func(T) string, ask func(context.Context) ([]T, error)) ([]T, error) {
	if len(terms) == 0 {
		return nil, nil
	}
	found, err := remembered(ctx, f, ttl, key(what, terms), func(ctx context.Context) ([]T, error) {
		list, err := ask(ctx)
		slices.SortStableFunc(list, func(a, b T) int { return strings.Compare(id(a), id(b)) })
		return slices.CompactFunc(list, func(a, b T) bool { return id(a) == id(b) }), err
	})
	return slices.Clone(found), err
}

// Addresses returns the free addresses of the subnets that were found.
func (f *Finder) Addresses() *Addresses { return f.addresses }

// Forget makes the next call of each method ask AWS again. It is for callers that learned that
// something is gone.
func (f *Finder) Forget() { f.answers.Forget() }
