package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/joinery-sdk/joinery/cloudprovider"
)

// GiveBack deletes every instance of the provider that one of the claims made, and reports whether there is none left
// that is not on its way out: what a caller does that gives up. It asks List, for an answer may have been lost, so call
// it again if the provider lists late.
func GiveBack(ctx context.Context, p interface {
	cloudprovider.Lister
	cloudprovider.Deleter
}, claims []cloudprovider.NodeClaim,
) (gone bool, err error) {
	tokens := map[string]bool{}
	for _, c := range claims {
		tokens[c.Token] = true
	}
	list, err := p.List(ctx)
	if err != nil {
		return false, err
	}
	gone = true
	for _, i := range list {
		if !tokens[i.Token] || i.State == cloudprovider.Terminating {
			continue
		}
		gone = false
		if failed := p.Delete(ctx, i.ID); failed != nil && !errors.Is(failed, cloudprovider.ErrNotFound) {
			err = errors.Join(err, fmt.Errorf("pipeline: instance %s of claim %s: %w", i.ID, i.Claim, failed))
		}
	}
	return gone, err
}
