package cloudprovider

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// BatchCreator is implemented by providers that buy many instances at less cost than one after the other. Callers use
// [CreateAll], which falls back to Create.
type BatchCreator interface {
	// CreateMany does for each claim what Create does.
	CreateMany(ctx context.Context, claims []NodeClaim) []Result
}

// Result is what became of one claim of many: a launch if Err is nil.
type Result struct {
	Launch Launch
	Err    error
}

// CreateAll creates an instance for each claim and returns one result for each, in their order: by one call if p is a
// [BatchCreator], otherwise one after the other. Once the context is done, the claims that are left fail with its error;
// nothing was asked for them. A batch with a wrong number of results makes every claim fail with an error outside of the
// closed list, for what was made is then unknown.
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

// RegistrationHook is implemented by providers that have something to do once a machine has joined the cluster, such as
// attaching it to a load balancer.
type RegistrationHook interface {
	// Registered is called when the instance's node has joined, and again until it succeeds; the node is not counted as
	// initialized before. It must not change the node.
	Registered(ctx context.Context, id string, node *corev1.Node) error
}
