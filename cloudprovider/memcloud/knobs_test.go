package memcloud_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/availability"
	"github.com/joinery-sdk/joinery/cloudprovider/interruption"
	"github.com/joinery-sdk/joinery/cloudprovider/memcloud"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/nodepool"
)

func newCloud(t *testing.T, config memcloud.Config) *memcloud.Cloud {
	t.Helper()
	config.Types = catalogue()
	cloud, err := memcloud.New(config)
	require.NoError(t, err)
	return cloud
}

func ask(name, typeName, capacityType string, zones ...string) cloudprovider.NodeClaim {
	claim := cloudprovider.NodeClaim{Name: name, Token: name + "-token"}
	for _, zone := range zones {
		claim.Candidates = append(claim.Candidates, cloudprovider.Candidate{Type: typeName, Offering: offering(zone, capacityType)})
	}
	return claim
}

func TestInvalidConfig(t *testing.T) {
	bad := catalogue()
	bad[0].Offerings[0].Requirements = requirements.MustParse("topology.kubernetes.io/zone=a")
	bad[1].Offerings[0].Price = math.NaN()
	_, err := memcloud.New(memcloud.Config{
		Types: bad, Pools: []memcloud.Pool{
			{Type: "m.smal", Offering: offering("a", "spot")},
			{Type: "m.large", Offering: offering("q", "spot")},
			{Type: "m.large", Offering: offering("a", "spot"), Free: -1},
			{Type: "m.large", Offering: offering("a", "spot")},
		},
		Quotas:  []memcloud.Quota{{Limit: -1}},
		Latency: -1,
	})
	for _, text := range []string{
		"memcloud: types: ", `types[0].offerings[0]: exactly one value of "karpenter.sh/capacity-type" is required`,
		`pools[0]: no type "m.smal", did you mean "m.small"?`, `pools[1]: type "m.large" has no offering`, "pools[2].free: -1 is negative",
		"pools[3]: there is another pool", "quotas[0].name", "quotas[0].limit: -1 is negative", "latency: -1ns is negative",
	} {
		require.ErrorContains(t, err, text)
	}
}

func TestPoolsAndQuotas(t *testing.T) {
	cloud := newCloud(t, memcloud.Config{
		Pools:  []memcloud.Pool{{Type: "m.large", Offering: offering("a", "spot"), Free: 1}},
		Quotas: []memcloud.Quota{{Name: "cores", Resource: "cpu", Covers: requirements.MustParse("node.kubernetes.io/instance-type=m.large"), Limit: 9000}},
	})
	first, err := cloud.Create(t.Context(), ask("1", "m.large", "spot", "a", "b"))
	require.NoError(t, err)
	assert.Equal(t, "a", first.Labels["topology.kubernetes.io/zone"])
	second, err := cloud.Create(t.Context(), ask("2", "m.large", "spot", "a", "b"))
	require.NoError(t, err)
	assert.Equal(t, "b", second.Labels["topology.kubernetes.io/zone"])
	require.Len(t, second.Refused, 1)

	_, err = cloud.Create(t.Context(), ask("3", "m.large", "spot", "a", "b"))
	require.ErrorIs(t, err, cloudprovider.ErrQuota)
	var detail *cloudprovider.Error
	require.ErrorAs(t, err, &detail)
	require.Len(t, detail.Quotas, 1)
	assert.Equal(t, int64(8000), detail.Quotas[0].Used)

	// What is deleted is free again.
	require.NoError(t, cloud.Delete(t.Context(), first.ID))
	third, err := cloud.Create(t.Context(), ask("3", "m.large", "spot", "a", "b"))
	require.NoError(t, err)
	assert.Equal(t, "a", third.Labels["topology.kubernetes.io/zone"])

	// A limit below what runs stops nothing that runs.
	cloud.SetQuota(memcloud.Quota{Name: "cores", Resource: "cpu", Limit: 1000})
	assert.Len(t, cloud.Truth(), 2)
	_, err = cloud.Create(t.Context(), ask("4", "m.small", "spot", "a"))
	require.ErrorIs(t, err, cloudprovider.ErrQuota)
	require.Error(t, cloud.SetCapacity("no", offering("a", "spot"), 1))
}

func TestTimeAndLag(t *testing.T) {
	clock := memcloud.NewClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	cloud := newCloud(t, memcloud.Config{Clock: clock, Boot: time.Minute, Shutdown: time.Minute, Lag: 10 * time.Second, Latency: time.Millisecond, Seed: 9})
	launch, err := cloud.Create(t.Context(), ask("1", "m.large", "spot", "a"))
	require.NoError(t, err)
	assert.Equal(t, cloudprovider.Pending, launch.State)
	_, err = cloud.Get(t.Context(), launch.ID)
	require.ErrorIs(t, err, cloudprovider.ErrNotFound, "readers lag")
	assert.Len(t, cloud.Truth(), 1)
	clock.Advance(time.Minute)
	got, err := cloud.Get(t.Context(), launch.ID)
	require.NoError(t, err)
	assert.Equal(t, cloudprovider.Running, got.State)
	require.NoError(t, cloud.Delete(t.Context(), launch.ID))
	got, err = cloud.Get(t.Context(), launch.ID)
	require.NoError(t, err)
	assert.Equal(t, cloudprovider.Terminating, got.State)
	cloud.Settle()
	_, err = cloud.Get(t.Context(), launch.ID)
	require.ErrorIs(t, err, cloudprovider.ErrNotFound)
	assert.Equal(t, clock.Now(), clock.Advance(-time.Hour), "time does not run backwards")
}

func TestSpotIsTakenBack(t *testing.T) {
	cloud := newCloud(t, memcloud.Config{SpotLife: time.Hour, Seed: 4})
	for i := range 50 {
		_, err := cloud.Create(t.Context(), ask(fmt.Sprint(i), "m.small", []string{"spot", "on-demand"}[i%2], "a"))
		require.NoError(t, err)
	}
	cloud.Clock().Advance(time.Hour)
	left := len(cloud.Truth())
	assert.Greater(t, left, 25)
	assert.Less(t, left, 45, "about 9 of 25 spot machines outlive the mean")
	events, _, err := cloud.Interruptions(t.Context(), "")
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(events), 50-left)
	for _, e := range events {
		assert.Equal(t, interruption.SpotInterrupted, e.Kind)
		assert.Equal(t, 2*time.Minute, e.Deadline.Sub(e.At))
	}
	cloud.Clock().Advance(1000 * time.Hour)
	assert.Len(t, cloud.Truth(), 25, "on-demand machines stay")
}

func TestInterrupt(t *testing.T) {
	cloud := newCloud(t, memcloud.Config{})
	launch, err := cloud.Create(t.Context(), ask("1", "m.large", "spot", "a"))
	require.NoError(t, err)
	require.NoError(t, cloud.Interrupt(launch.ID, interruption.RebalanceRecommended, 0))
	assert.Len(t, cloud.Truth(), 1, "a recommendation takes nothing")
	require.NoError(t, cloud.Interrupt(launch.ID, interruption.SpotInterrupted, time.Minute))
	assert.Len(t, cloud.Truth(), 1)
	cloud.Clock().Advance(time.Minute)
	assert.Empty(t, cloud.Truth())
	require.ErrorIs(t, cloud.Interrupt(launch.ID, interruption.SpotInterrupted, 0), cloudprovider.ErrNotFound)
	_, _, err = cloud.Interruptions(t.Context(), "7")
	require.ErrorIs(t, err, cloudprovider.ErrInvalidSpec)
	events, cursor, err := cloud.Interruptions(t.Context(), "1")
	require.NoError(t, err)
	assert.Len(t, events, 1)
	assert.Equal(t, "2", cursor)
}

func TestDriftAndPrices(t *testing.T) {
	cloud := newCloud(t, memcloud.Config{Image: "v1"})
	launch, err := cloud.Create(t.Context(), ask("1", "m.large", "spot", "a"))
	require.NoError(t, err)
	cloud.SetImage("v2")
	drift, err := cloud.Drifted(t.Context(), launch.ID)
	require.NoError(t, err)
	assert.Equal(t, cloudprovider.Drift{Reason: "ImageDrift", Detail: `boots "v1" instead of "v2"`}, drift)

	cloud.Reprice(double{})
	types, err := cloud.InstanceTypes(t.Context(), nodepool.NodePool{})
	require.NoError(t, err)
	assert.InDelta(t, 0.2, types[0].Offerings[0].Price, 1e-9)
}

// double is a layer of prices.
type double struct{}

func (double) Quotes(_ instancetypes.PriceQuery, below []instancetypes.Quote) []instancetypes.Quote {
	return []instancetypes.Quote{{Price: 2 * below[0].Price}}
}

func ExampleNew() {
	cloud, err := memcloud.New(memcloud.Config{
		Types: catalogue(),
		Pools: []memcloud.Pool{{Type: "m.small", Offering: offering("a", "spot"), Free: 0}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The loop of a launch: what was refused is taken out of the catalogue, and the next claim is made without it.
	var ledger availability.Ledger
	for i := range 2 {
		types := ledger.Apply(catalogue(), cloud.Clock().Now())
		claim := cloudprovider.NodeClaim{
			Name: "node-1", Token: fmt.Sprintf("node-1-%d", i),
			Candidates: cloudprovider.CandidatesOf(types, requirements.Set{}, nil, requirements.Keys{})[:1],
		}
		launch, err := cloud.Create(context.Background(), claim)
		if errors.Is(err, cloudprovider.ErrInsufficientCapacity) {
			ledger = ledger.Learn(err, cloud.Clock().Now())
			for _, r := range ledger.Active(cloud.Clock().Now()) {
				fmt.Println("refused:", r)
			}
			continue
		}
		fmt.Println("launched:", launch.Type, launch.Offering)
	}
	// Output:
	// refused: Offering m.small (karpenter.sh/capacity-type in (spot), topology.kubernetes.io/zone in (a)) until 2026-01-01T00:03:00Z (strike 1)
	// launched: m.small karpenter.sh/capacity-type in (spot), topology.kubernetes.io/zone in (b)
}

func ExampleNewClock() {
	clock := memcloud.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	clock.Advance(90 * time.Second)
	fmt.Println(clock.Now().Format(time.TimeOnly))
	// Output: 00:01:30
}

func ExampleCloud_Interrupt() {
	cloud, err := memcloud.New(memcloud.Config{Types: catalogue()})
	if err != nil {
		fmt.Println(err)
		return
	}
	launch, err := cloud.Create(context.Background(), ask("node-1", "m.large", "spot", "a"))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := cloud.Interrupt(launch.ID, interruption.SpotInterrupted, 2*time.Minute); err != nil {
		fmt.Println(err)
		return
	}
	events, _, err := cloud.Interruptions(context.Background(), "")
	fmt.Println(events[0].Kind, events[0].Kind.Respond(), err)
	// Output: SpotInterrupted Drain <nil>
}
