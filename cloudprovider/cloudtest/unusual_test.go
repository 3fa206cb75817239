package cloudtest_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/cloudtest"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
)

// selfWilled prefers the last candidate, as a cloud may that knows its capacity better than the caller does.
type selfWilled struct{ cloudprovider.Provider }

func (s selfWilled) Create(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
	claim = claim.Clone()
	slices.Reverse(claim.Candidates)
	return s.Provider.Create(ctx, claim)
}

// Providers that are right, but not as one is used to.
func TestRightButUnusual(t *testing.T) {
	for _, u := range []struct {
		name   string
		config memcloud.Config
		wrap   func(*memcloud.Cloud) cloudprovider.Provider
	}{
		{
			"slow",
			memcloud.Config{Latency: 20 * time.Second, Boot: 10 * time.Minute, Shutdown: 15 * time.Minute},
			func(c *memcloud.Cloud) cloudprovider.Provider {
				return cloudtest.Inject(c,
					cloudtest.Every(cloudtest.OpCreate, 3, cloudtest.Throttle()),
					cloudtest.Every(cloudtest.OpList, 2, cloudtest.Throttle()),
					cloudtest.Every(cloudtest.OpDelete, 4, cloudtest.Slow(time.Millisecond)))
			},
		},
		{
			"eventually consistent",
			memcloud.Config{Lag: 10 * time.Minute, Shutdown: time.Minute, Seed: 5},
			func(c *memcloud.Cloud) cloudprovider.Provider { return c },
		},
		{
			"self-willed",
			memcloud.Config{Reveal: true},
			func(c *memcloud.Cloud) cloudprovider.Provider { return selfWilled{c} },
		},
	} {
		t.Run(u.name, func(t *testing.T) {
			cloudtest.Run(t, func(t *testing.T) cloudtest.Harness { return harness(t, u.config, u.wrap) })
			require.NoError(t, harness(t, u.config, u.wrap).Check(t.Context()))
		})
	}
}
