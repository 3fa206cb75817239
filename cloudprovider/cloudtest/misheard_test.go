package cloudtest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/cloudtest"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

// misheard are providers that take a reply that never came for an answer of the cloud.
func misheard() []breakage {
	var list []breakage
	add := func(is, noticedBy string, wrap func(c *memcloud.Cloud) cloudprovider.Provider) {
		list = append(list, breakage{is, noticedBy, memcloud.Config{}, wrap})
	}
	unread := func(c *memcloud.Cloud) bool { _, lost := lostReads.Load(c); return lost }
	as := func(code error) error { return &cloudprovider.Error{Code: code, Err: cloudtest.ErrLostReply} }
	for _, code := range cloudprovider.Codes() {
		add("takes a lost catalogue for "+code.Error(), "lost-read", func(c *memcloud.Cloud) cloudprovider.Provider {
			return &broken{provider: c, types: func(ctx context.Context, pool nodepool.NodePool) ([]instancetypes.InstanceType, error) {
				if unread(c) {
					return nil, as(code)
				}
				return c.InstanceTypes(ctx, pool)
			}}
		})
		add("takes a lost list for "+code.Error(), "lost-read", func(c *memcloud.Cloud) cloudprovider.Provider {
			return &broken{provider: c, list: func(ctx context.Context) ([]cloudprovider.Instance, error) {
				if unread(c) {
					return nil, as(code)
				}
				return c.List(ctx)
			}}
		})
		add("takes a lost machine for "+code.Error(), "lost-read", func(c *memcloud.Cloud) cloudprovider.Provider {
			return &broken{provider: c, get: func(ctx context.Context, id string) (cloudprovider.Instance, error) {
				if unread(c) {
					return cloudprovider.Instance{}, as(code)
				}
				return c.Get(ctx, id)
			}}
		})
		add("takes a lost comparison for "+code.Error(), "lost-read", func(c *memcloud.Cloud) cloudprovider.Provider {
			return &broken{provider: c, drifted: func(ctx context.Context, id string) (cloudprovider.Drift, error) {
				if unread(c) {
					return cloudprovider.Drift{}, as(code)
				}
				return c.Drifted(ctx, id)
			}}
		})
		add("takes a lost look before it deletes for "+code.Error(), "lost-read", func(c *memcloud.Cloud) cloudprovider.Provider {
			return &broken{provider: c, delete: func(ctx context.Context, id string) error {
				if unread(c) {
					return as(code)
				}
				return c.Delete(ctx, id)
			}}
		})
		add("takes a lost look before it launches for "+code.Error(), "lost-read", func(c *memcloud.Cloud) cloudprovider.Provider {
			return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
				if unread(c) {
					return cloudprovider.Launch{}, as(code)
				}
				return c.Create(ctx, claim)
			}}
		})
		add("takes a lost search for its token for "+code.Error(), "lost-read", func(c *memcloud.Cloud) cloudprovider.Provider {
			var unanswered sync.Map // by token
			return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
				if _, again := unanswered.Load(claim.Token); again && unread(c) {
					return cloudprovider.Launch{}, as(code)
				}
				launch, err := c.Create(ctx, claim)
				if _, lose := losing.LoadAndDelete(c); lose && err == nil {
					unanswered.Store(claim.Token, true)
					return cloudprovider.Launch{}, cloudtest.ErrLostReply
				}
				return launch, err
			}}
		})
	}
	add("takes a lost reply for a throttle", "lost-reply", func(c *memcloud.Cloud) cloudprovider.Provider {
		return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
			launch, err := c.Create(ctx, claim)
			if _, lose := losing.LoadAndDelete(c); lose && err == nil {
				return cloudprovider.Launch{}, as(cloudprovider.ErrThrottled)
			}
			return launch, err
		}}
	})
	add("launches although it could not look for its token", "lost-read", func(c *memcloud.Cloud) cloudprovider.Provider {
		var unanswered, moved sync.Map // by token
		return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
			if _, again := unanswered.Load(claim.Token); again && unread(c) {
				moved.Store(claim.Token, true)
			}
			token := claim.Token
			if _, ok := moved.Load(token); ok {
				claim.Token += "-again"
			}
			launch, err := c.Create(ctx, claim)
			if _, lose := losing.LoadAndDelete(c); lose && err == nil {
				unanswered.Store(claim.Token, true)
				return cloudprovider.Launch{}, cloudtest.ErrLostReply
			}
			launch.Token = token
			return launch, err
		}}
	})
	add("uses a token up when it could not read", "lost-read", func(c *memcloud.Cloud) cloudprovider.Provider {
		var burnt sync.Map
		return &broken{provider: c, create: func(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
			if _, ok := burnt.Load(claim.Token); ok {
				return cloudprovider.Launch{}, as(cloudprovider.ErrNotFound)
			}
			if unread(c) {
				burnt.Store(claim.Token, true)
				return cloudprovider.Launch{}, errors.New("connection reset")
			}
			return c.Create(ctx, claim)
		}}
	})
	slices.SortFunc(list, func(a, b breakage) int { return strings.Compare(a.is, b.is) })
	return list
}
