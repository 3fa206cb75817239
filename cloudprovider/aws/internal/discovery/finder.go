// Package discovery finds what node classes select: subnets, security groups, images, capacity
// reservations and placement groups. It also finds what a node must know about its cluster. Answers
// are remembered for a while, and simultaneous requests for the same thing share one call.
//
// All answers are in a fixed order and belong to the caller.
package discovery

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

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
// finds nothing. read reads for one of the calls.
func selected[T, C any](
	ctx context.Context, f *Finder, ttl time.Duration, what string, terms []nodeclass.Term, calls []C,
	id func(T) string, read func(context.Context, C) ([]T, error),
) ([]T, error) {
	found, err := remembered(ctx, f, ttl, key(what, terms), func(ctx context.Context) (list []T, err error) {
		for _, call := range calls {
			some, err := read(ctx, call)
			if err != nil {
				return nil, err
			}
			list = append(list, some...)
		}
		slices.SortStableFunc(list, func(a, b T) int { return strings.Compare(id(a), id(b)) })
		return slices.CompactFunc(list, func(a, b T) bool { return id(a) == id(b) }), nil
	})
	return slices.Clone(found), err
}

// Addresses returns the free addresses of the subnets that were found.
func (f *Finder) Addresses() *Addresses { return f.addresses }

// Forget makes the next call of each method ask AWS again. It is for callers that learned that
// something is gone.
func (f *Finder) Forget() { f.answers.Forget() }

// Filters turns a selector into filters of EC2, with one list for each call. A resource is selected
// if all filters of one list match it. Terms that only name ids become one list, under the filter
// idName; names go under nameName. Wildcards in values are EC2's own, * and ?.
func Filters(terms []nodeclass.Term, idName, nameName string) [][]types.Filter {
	var ids []string
	var out [][]types.Filter
	for _, t := range terms {
		if len(t.IDs) > 0 && len(t.Names) == 0 && len(t.Tags) == 0 {
			ids = append(ids, t.IDs...)
			continue
		}
		var filters []types.Filter
		if len(t.IDs) > 0 {
			filters = append(filters, filter(idName, t.IDs...))
		}
		if len(t.Names) > 0 {
			filters = append(filters, filter(nameName, t.Names...))
		}
		for _, tag := range t.Tags {
			if len(tag.Values) == 0 || slices.Equal(tag.Values, []string{"*"}) {
				filters = append(filters, filter("tag-key", tag.Key))
				continue
			}
			filters = append(filters, filter("tag:"+tag.Key, tag.Values...))
		}
		if len(filters) > 0 {
			out = append(out, filters)
		}
	}
	if len(ids) > 0 {
		slices.Sort(ids)
		out = append([][]types.Filter{{filter(idName, slices.Compact(ids)...)}}, out...)
	}
	return out
}

func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: aws.String(name), Values: slices.Clone(values)}
}

// key returns a text that is equal for equal selectors.
func key(parts ...any) string {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "%+v\x00", p)
	}
	return b.String()
}
