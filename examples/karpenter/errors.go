package karpenter

import (
	"errors"
	"fmt"

	karp "sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/joinery-sdk/joinery/cloudprovider"
)

// reasons are those of the claim's condition Launched, while Karpenter asks again.
var reasons = []struct {
	code   error
	reason string
}{
	{cloudprovider.ErrUnauthorized, "Unauthorized"},
	{cloudprovider.ErrUnsupported, "Unsupported"},
	{cloudprovider.ErrInvalidSpec, "InvalidSpec"},
	{cloudprovider.ErrNotReady, "NotReady"},
	{cloudprovider.ErrThrottled, "Throttled"},
}

// createError is an error of Create in Karpenter's terms; see the package documentation for the
// table.
func createError(err error) error {
	for _, r := range reasons {
		if errors.Is(err, r.code) {
			return karp.NewCreateError(err, r.reason, err.Error())
		}
	}
	if cloudprovider.Advise(err).Unknown {
		return fmt.Errorf("karpenter: the outcome is unknown: %w", err)
	}
	return karp.NewInsufficientCapacityError(err) // Karpenter deletes the claim and plans anew
}

// found is an error of a method that takes the id of an instance, in Karpenter's terms; nil stays
// nil.
func found(err error) error {
	if errors.Is(err, cloudprovider.ErrNotFound) {
		return karp.NewNodeClaimNotFoundError(err)
	}
	return err
}
