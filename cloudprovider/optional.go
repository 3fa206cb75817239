package cloudprovider

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// BatchCreator is implemented by providers that buy many instances more cheaply at once than one
// after the other. Callers use [CreateAll], which falls back to Create.
type BatchCreator interface {
	// CreateMany does for each claim what Create does.
	CreateMany(ctx context.Context, claims []NodeClaim) []Result
}

// Result is the result for one claim of a batch: a launch if Err is nil.
type Result struct {
	Launch Launch
	Err    error
}

// CreateAll creates an instance for each claim and returns one result for each, in their order. It
// makes one call if p is a [BatchCreator], otherwise one call after the other. Once the context is
// done, the remaining claims fail with its error; nothing was requested for them. If a batch
// returns a wrong number of results, every claim fails with an error outside the closed list,
// because it is then unknown what was made.
func CreateAll(ctx context.Context, p Creator, claims []NodeClaim) []Result {
	if batch, ok := p.(BatchCreator); ok {
		results := batch.CreateMany(ctx, slices.Clone(claims))
		if len(results) == len(claims) {
			return results
		}
		err := fmt.Errorf("cloudprovider: %d results for %d claims", len(results), len(claims))
		return slices.Repeat([]Result{{Err: err}}, len(claims))
	}
	results := make([]Result, len(claims))
	for i, claim := range claims {
		if err := ctx.Err(); err != nil {
			results[i].Err = fmt.Errorf("cloudprovider: claim %q was not asked for: %w", claim.Name, err)
			continue
		}
		results[i].Launch, results[i].Err = p.Create(ctx, claim)
	}
	return results
}

// RegistrationHook is implemented by providers that have work to do once a machine has joined the
// cluster, such as attaching it to a load balancer.
type RegistrationHook interface {
	// Registered is called when the instance's node has joined, and again until it succeeds. Until
	// then the node does not count as initialized. Registered must not change the node.
	Registered(ctx context.Context, id string, node *corev1.Node) error
}
