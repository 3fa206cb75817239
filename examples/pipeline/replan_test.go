package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/examples/pipeline"
	"github.com/joinery-sdk/joinery/examples/pipeline/manifests"
	"github.com/joinery-sdk/joinery/examples/plan"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

func cluster(t *testing.T, market *pipeline.Market, text string) scheduling.Snapshot {
	t.Helper()
	m, err := manifests.Parse([]manifests.File{{Name: "test.yaml", Data: []byte(text)}}, nil)
	require.NoError(t, err)
	s, _, err := pipeline.Snapshot(m, market)
	require.NoError(t, err)
	return s
}

func offeringOf(t *testing.T, expr string) requirements.Set {
	t.Helper()
	set, err := requirements.Parse(expr)
	require.NoError(t, err)
	return set
}

func buyer(p cloudprovider.Creator, clock *memcloud.Clock) *pipeline.Buyer {
	number := 0
	return &pipeline.Buyer{
		Provider: p,
		Plan:     func(s scheduling.Snapshot) (*plan.Plan, error) { return plan.Make(context.Background(), s, nil) }, //nolint:forbidigo // the buyer has no context for it
		Now:      clock.Now,
		Wait: func(ctx context.Context, d time.Duration) error {
			clock.Advance(d)
			return ctx.Err()
		},
		Token: func(node string) string { number++; return fmt.Sprintf("token-%d-of-%s", number, node) },
	}
}

// oneByOne hides that the cloud can create many at a time.
type oneByOne struct{ cloudprovider.Creator }

// A cloud that has run out of the cheapest offerings is asked for the next cheapest plan, node after node, in one call or
// in many; the bound of the first plan is one of what was paid.
func TestRefusedOfferingsArePlannedAround(t *testing.T) {
	market := catalogue(t, "a.4 4 zone-a on-demand 0.2", "a.8 8 zone-a on-demand 0.4", "b.4 4 zone-a on-demand 0.3", "b.4 4 zone-b on-demand 0.31", "c.4 4 zone-a on-demand 0.9")
	s := cluster(t, market, anyPool+deployment("web", 6, container("3")))
	for _, batch := range []bool{true, false} {
		cloud, err := memcloud.New(memcloud.Config{Types: pipeline.Offered(s), Pools: []memcloud.Pool{
			{Type: "a.4", Offering: offeringOf(t, "topology.kubernetes.io/zone in (zone-a), karpenter.sh/capacity-type in (on-demand)"), Free: 2},
			{Type: "a.8", Offering: offeringOf(t, "topology.kubernetes.io/zone in (zone-a), karpenter.sh/capacity-type in (on-demand)"), Free: 0},
			{Type: "b.4", Offering: offeringOf(t, "topology.kubernetes.io/zone in (zone-a), karpenter.sh/capacity-type in (on-demand)"), Free: 1},
		}})
		require.NoError(t, err)
		var provider cloudprovider.Creator = cloud
		if !batch {
			provider = oneByOne{cloud}
		}
		got, err := buyer(provider, cloud.Clock()).Buy(t.Context(), s)
		require.NoError(t, err)
		require.Empty(t, got.Last.Unplaced())
		var bought []string
		pods, paid := 0, 0.0
		for _, n := range got.Nodes {
			bought = append(bought, fmt.Sprintf("%s %s %s %d", n.Name, n.InstanceType.Name, n.Zone, len(n.Pods)))
			pods += len(n.Pods)
			paid += n.PricePerHour
		}
		assert.Equal(t, []string{
			"default-0 a.4 zone-a 1", "default-1 a.4 zone-a 1", "default-2 b.4 zone-a 1",
			"default-3 b.4 zone-b 1", "default-4 b.4 zone-b 1", "default-5 b.4 zone-b 1",
		}, bought, "batch %v", batch)
		assert.Equal(t, 6, pods)
		assert.InDelta(t, 2*0.2+0.3+3*0.31, paid, 1e-9)
		assert.LessOrEqual(t, got.First.Packing.Bound.Price.Dollars(), paid)
		assert.Len(t, got.Last.Bindings(), 6)
		var refused []string
		for _, r := range got.Refused {
			refused = append(refused, r.Name)
			assert.True(t, r.Until.After(r.Since))
		}
		assert.Equal(t, []string{"a.8", "a.4", "b.4"}, refused)
		assert.Len(t, cloud.Truth(), 6)
	}
}

// The next plan keeps the constraints of the whole: what was bought counts.
func TestPlanningAgainKeepsSpreads(t *testing.T) {
	market := catalogue(t, "a.4 4 zone-a on-demand 0.2", "a.4 4 zone-b on-demand 0.2", "b.4 4 zone-b on-demand 0.5")
	s := cluster(t, market, anyPool+deployment("web", 6, spreadBy(zoneKey)+container("3")))
	cloud, err := memcloud.New(memcloud.Config{Types: pipeline.Offered(s), Pools: []memcloud.Pool{
		{Type: "a.4", Offering: offeringOf(t, "topology.kubernetes.io/zone in (zone-b), karpenter.sh/capacity-type in (on-demand)"), Free: 1},
	}})
	require.NoError(t, err)
	got, err := buyer(cloud, cloud.Clock()).Buy(t.Context(), s)
	require.NoError(t, err)
	count := map[string]int{}
	for _, n := range got.Nodes {
		count[n.InstanceType.Name+" "+n.Zone] += len(n.Pods)
	}
	assert.Equal(t, map[string]int{"a.4 zone-a": 3, "a.4 zone-b": 1, "b.4 zone-b": 2}, count)
	assert.Len(t, got.Last.Bindings(), 6, "one order for all, for kube-scheduler to accept")
}

// Where nothing is left to buy, the pods stay pending and the refusal says until when.
func TestNothingLeftToBuy(t *testing.T) {
	market := catalogue(t, "a.4 4 zone-a on-demand 0.2")
	s := cluster(t, market, anyPool+deployment("web", 2, container("3")))
	cloud, err := memcloud.New(memcloud.Config{Types: pipeline.Offered(s), Pools: []memcloud.Pool{
		{Type: "a.4", Offering: offeringOf(t, "topology.kubernetes.io/zone in (zone-a), karpenter.sh/capacity-type in (on-demand)"), Free: 1},
	}})
	require.NoError(t, err)
	got, err := buyer(cloud, cloud.Clock()).Buy(t.Context(), s)
	require.NoError(t, err)
	assert.Len(t, got.Nodes, 1)
	require.Len(t, got.Last.Unplaced(), 1)
	assert.Len(t, got.Last.Unplaced()[0].Pods, 1)
	require.Len(t, got.Refused, 1)
}

// A quota ends what it covers at once.
func TestQuotaIsPlannedAround(t *testing.T) {
	market := catalogue(t, "a.4 4 zone-a spot 0.1", "b.4 4 zone-a spot 0.11", "a.4 4 zone-a on-demand 0.2")
	s := cluster(t, market, anyPool+deployment("web", 4, container("3")))
	cloud, err := memcloud.New(memcloud.Config{
		Types:  pipeline.Offered(s),
		Quotas: []memcloud.Quota{{Name: "spot machines", Covers: offeringOf(t, "karpenter.sh/capacity-type in (spot)"), Limit: 2}},
	})
	require.NoError(t, err)
	got, err := buyer(cloud, cloud.Clock()).Buy(t.Context(), s)
	require.NoError(t, err)
	count := map[string]int{}
	for _, n := range got.Nodes {
		count[n.CapacityType]++
	}
	assert.Equal(t, map[string]int{"spot": 2, "on-demand": 2}, count)
	assert.Equal(t, 2, got.Plans-1, "one plan without what the quota covers, one that has nothing left to buy")
}

// shaky fails by chance: every other call is throttled, or made and then lost.
type shaky struct {
	cloudprovider.Creator
	calls int
}

func (s *shaky) Create(ctx context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
	s.calls++
	switch s.calls % 4 {
	case 1:
		return cloudprovider.Launch{}, &cloudprovider.Error{Code: cloudprovider.ErrThrottled, Op: "Create", Subject: claim.Name}
	case 2:
		_, _ = s.Creator.Create(ctx, claim)
		return cloudprovider.Launch{}, errors.New("connection reset")
	}
	return s.Creator.Create(ctx, claim)
}

func TestCallsThatFailByChanceAreRepeated(t *testing.T) {
	market := catalogue(t, "a.4 4 zone-a on-demand 0.2")
	s := cluster(t, market, anyPool+deployment("web", 5, container("3")))
	cloud, err := memcloud.New(memcloud.Config{Types: pipeline.Offered(s)})
	require.NoError(t, err)
	got, err := buyer(&shaky{Creator: cloud}, cloud.Clock()).Buy(t.Context(), s)
	require.NoError(t, err)
	assert.Len(t, got.Nodes, 5)
	assert.Len(t, cloud.Truth(), 5)
}

// denied refuses everything for want of a permission.
type denied struct{ cloudprovider.Creator }

func (denied) Create(_ context.Context, claim cloudprovider.NodeClaim) (cloudprovider.Launch, error) {
	return cloudprovider.Launch{}, &cloudprovider.Error{Code: cloudprovider.ErrUnauthorized, Op: "Create", Subject: claim.Name, Err: errors.New("ec2:CreateFleet is not allowed")}
}

func TestWhatOnlyAPersonCanMendEndsThePurchase(t *testing.T) {
	market := catalogue(t, "a.4 4 zone-a on-demand 0.2")
	s := cluster(t, market, anyPool+deployment("web", 5, container("3")))
	got, err := buyer(denied{}, memcloud.NewClock(time.Unix(0, 0))).Buy(t.Context(), s)
	require.ErrorIs(t, err, cloudprovider.ErrUnauthorized)
	assert.ErrorContains(t, err, "node default-0: ")
	assert.Empty(t, got.Nodes)
	assert.NotNil(t, got.Last)
}

// Someone who gives up in the middle gives back everything, what a lost answer hides included.
func TestGivingUpGivesBack(t *testing.T) {
	market := catalogue(t, "a.4 4 zone-a on-demand 0.2")
	s := cluster(t, market, anyPool+deployment("web", 5, container("3")))
	cloud, err := memcloud.New(memcloud.Config{Types: pipeline.Offered(s)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var claims []cloudprovider.NodeClaim
	b := buyer(&shaky{Creator: cloud}, cloud.Clock())
	b.Written = func(c cloudprovider.NodeClaim) error {
		if claims = append(claims, c); len(claims) == 3 {
			cancel()
		}
		return nil
	}
	_, err = b.Buy(ctx, s)
	require.ErrorIs(t, err, context.Canceled)
	require.NotEmpty(t, cloud.Truth())
	for gone := false; !gone; {
		gone, err = pipeline.GiveBack(t.Context(), cloud, claims)
		require.NoError(t, err)
		cloud.Clock().Advance(time.Minute)
	}
	assert.Empty(t, cloud.Truth())
}

// A buyer needs a provider and nothing else.
func TestABuyerHasDefaults(t *testing.T) {
	s := read(t, catalogue(t, "a.4 4 zone-a on-demand 0.2"), anyPool+deployment("web", 6, container("1")))
	cloud, err := memcloud.New(memcloud.Config{Types: s.Pools[0].Types})
	require.NoError(t, err)
	bought, err := (&pipeline.Buyer{Provider: cloud}).Buy(t.Context(), s)
	require.NoError(t, err)
	require.Len(t, bought.Nodes, 2)
	assert.NotEqual(t, bought.Nodes[0].Claim.Token, bought.Nodes[1].Claim.Token)
	_, err = (&pipeline.Buyer{}).Buy(t.Context(), s)
	require.ErrorContains(t, err, "no provider")
}
