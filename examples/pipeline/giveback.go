package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/scheduling/gang"
)

// GiveBack deletes every instance of the provider that one of the claims made. It reports whether
// none remains, except instances that are already terminating. Use it when a purchase is given up.
// It finds the instances with List, because an answer may have been lost. If the provider's list
// lags behind, call it again.
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

// member reports whether a pod belongs to one of the groups.
func (b *Buyer) member(pod *corev1.Pod) bool {
	return slices.ContainsFunc(b.Groups, func(g gang.Group) bool { return g.Member(pod) })
}

// giveBack deletes the nodes for which the last plan has no pod, and reports whether there were
// any.
func (b *Buyer) giveBack(ctx context.Context, out *Purchase) (bool, error) {
	provider, ok := b.Provider.(cloudprovider.Deleter)
	if !ok {
		return false, nil
	}
	var kept []Bought
	var failed error
	before := len(out.Returned)
	for i := range out.Nodes {
		n := &out.Nodes[i]
		if len(n.Pods) == 0 && failed == nil {
			err := b.until(ctx, func() error { return provider.Delete(ctx, n.Launch.ID) })
			if err == nil || errors.Is(err, cloudprovider.ErrNotFound) {
				out.Returned = append(out.Returned, *n)
				continue
			}
			failed = fmt.Errorf("pipeline: node %s is not given back: %w", n.Name, err)
		}
		kept = append(kept, *n)
	}
	out.Nodes = kept
	return len(out.Returned) > before, failed
}
