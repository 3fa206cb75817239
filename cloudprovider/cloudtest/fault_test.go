package cloudtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/cloudtest"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

func newCloud(t *testing.T) *memcloud.Cloud {
	t.Helper()
	cloud, err := memcloud.New(memcloud.Config{Types: catalogue()})
	require.NoError(t, err)
	return cloud
}

func claim() cloudprovider.NodeClaim {
	return cloudprovider.NodeClaim{
		Name: "a", Token: "a-token", Candidates: []cloudprovider.Candidate{{Type: "small", Offering: offering("a", "on-demand")}},
	}
}

func TestFaults(t *testing.T) {
	boom := errors.New("boom")
	for _, test := range []struct {
		name  string
		fault cloudtest.Fault
		want  error
		made  int
	}{
		{"none", cloudtest.Fault{}, nil, 1},
		{"fail", cloudtest.Fail(boom), boom, 0},
		{"throttle", cloudtest.Throttle(), cloudprovider.ErrThrottled, 0},
		{"lost reply", cloudtest.LoseReply(), cloudtest.ErrLostReply, 1},
		{"cancel", cloudtest.Cancel(), context.Canceled, 0},
		{"slow", cloudtest.Slow(time.Millisecond), nil, 1},
		{"stale has no meaning for create", cloudtest.Stale(), nil, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			cloud := newCloud(t)
			p := cloudtest.Inject(cloud, cloudtest.Nth(cloudtest.OpCreate, 1, test.fault))
			_, err := p.Create(t.Context(), claim())
			require.ErrorIs(t, err, test.want)
			assert.Len(t, cloud.Truth(), test.made)
			// The second call goes right, and leads to the same instance.
			_, err = p.Create(t.Context(), claim())
			require.NoError(t, err)
			assert.Len(t, cloud.Truth(), 1)
		})
	}
}

func TestSlowEndsWithItsContext(t *testing.T) {
	p := cloudtest.Inject(newCloud(t), cloudtest.Every(cloudtest.OpGet, 0, cloudtest.Slow(time.Hour)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := p.Get(ctx, "x")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestStaleList(t *testing.T) {
	cloud := newCloud(t)
	p := cloudtest.Inject(cloud,
		cloudtest.Every(cloudtest.OpList, 2, cloudtest.Stale()), cloudtest.Every(cloudtest.OpInstanceTypes, 2, cloudtest.Stale()))
	list := func() int {
		all, err := p.List(t.Context())
		require.NoError(t, err)
		return len(all)
	}
	assert.Equal(t, 0, list())
	_, err := p.Create(t.Context(), claim())
	require.NoError(t, err)
	assert.Equal(t, 0, list(), "the second answer is the first one again")
	assert.Equal(t, 1, list())
	for range 3 {
		types, err := p.InstanceTypes(t.Context(), nodepool.NodePool{})
		require.NoError(t, err)
		assert.Len(t, types, 2)
	}
}

func TestPlans(t *testing.T) {
	hits := func(p cloudtest.Plan, op cloudtest.Op) (n int) {
		for i := range 1000 {
			if p(op, i+1) != (cloudtest.Fault{}) {
				n++
			}
		}
		return n
	}
	assert.Equal(t, 1, hits(cloudtest.Nth(cloudtest.OpGet, 5, cloudtest.Throttle()), cloudtest.OpGet))
	assert.Equal(t, 0, hits(cloudtest.Nth(cloudtest.OpGet, 5, cloudtest.Throttle()), cloudtest.OpList))
	assert.Equal(t, 100, hits(cloudtest.Every(cloudtest.OpGet, 10, cloudtest.Throttle()), cloudtest.OpGet))
	assert.InDelta(t, 300, hits(cloudtest.Sometimes(cloudtest.OpGet, 0.3, 1, cloudtest.Throttle()), cloudtest.OpGet), 60)
	assert.Equal(t, 0, hits(cloudtest.Sometimes(cloudtest.OpGet, 0, 1, cloudtest.Throttle()), cloudtest.OpGet))
	assert.Equal(t, 0, hits(cloudtest.Sometimes(cloudtest.OpGet, 1, 1, cloudtest.Throttle()), cloudtest.OpDelete))
}

func TestCheckStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, cloudtest.Check(ctx, newCloud(t)), context.Canceled)
}

func TestCheckWithoutProvider(t *testing.T) {
	require.ErrorContains(t, cloudtest.Harness{}.Check(t.Context()), "no provider")
}
