package market_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/market"
	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/instancetypes/ec2"
	"github.com/joinery-sdk/joinery/instancetypes/ec2/catalogue"
	"github.com/joinery-sdk/joinery/requirements"
)

func connect(t *testing.T, config awstest.Config) (*awstest.Cloud, *api.Clients) {
	t.Helper()
	awstest.Begin()
	cloud, err := awstest.New(config)
	require.NoError(t, err)
	clients, err := api.Connect(t.Context(), cloud.API())
	require.NoError(t, err)
	return cloud, clients
}

// What EC2 describes is the same as what is embedded, so that both agree on sizes; and only what EC2 has is left.
func TestRegion(t *testing.T) {
	for _, page := range []int{0, 3} {
		_, clients := connect(t, awstest.Config{Page: page})
		embedded, err := catalogue.Load("us-east-1")
		require.NoError(t, err)
		live, err := market.Region(t.Context(), clients, embedded)
		require.NoError(t, err)
		var names []string
		for _, o := range live.Offers {
			if len(o.Zones) > 0 {
				names = append(names, o.Name)
			}
		}
		assert.Len(t, names, 12)
		want, err := ec2.Types(embedded, ec2.Settings{})
		require.NoError(t, err)
		have, err := ec2.Types(live.Region, ec2.Settings{})
		require.NoError(t, err)
		sizes := map[string]string{}
		for _, it := range want {
			sizes[it.Name] = fmt.Sprint(it.Capacity.Cpu(), it.Capacity.Memory(), it.Capacity.Pods(), withoutIDs(it))
		}
		for _, it := range have {
			if len(it.Offerings) > 0 {
				assert.Equal(t, sizes[it.Name], fmt.Sprint(it.Capacity.Cpu(), it.Capacity.Memory(), it.Capacity.Pods(), withoutIDs(it)), it.Name)
			}
		}
	}
}

// withoutIDs is a type without the ids of zones, which are another account's in the catalogue, and which EC2 does not tell with types.
func withoutIDs(it instancetypes.InstanceType) requirements.Set {
	return it.Requirements.Without(requirements.KeysOf("topology.k8s.aws/zone-id"))
}

func TestOnDemand(t *testing.T) {
	for _, page := range []int{0, 3} {
		cloud, clients := connect(t, awstest.Config{Page: page})
		cloud.SetOnDemandPrice("m5.large", 0.123)
		list, err := market.OnDemand(t.Context(), clients)
		require.NoError(t, err)
		assert.InDelta(t, 0.123, list.OnDemand["m5.large"], 1e-9)
		assert.InDelta(t, 0.085, list.OnDemand["c5.large"], 1e-9)
		assert.NotContains(t, list.OnDemand, "m5.odd", "a row without a price costs the others nothing")
		assert.Equal(t, "EC2 on-demand us-east-1", list.From.Name)
		assert.Equal(t, time.Now().UTC().Format(time.DateOnly), list.From.Date)
	}
}

func TestSpot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, clients := connect(t, awstest.Config{Page: 7})
		cloud.SetSpotPrice("m5.large", "us-east-1b", 0.011)
		history, err := market.Spot(t.Context(), clients, time.Now())
		require.NoError(t, err)
		assert.True(t, history.Complete)
		assert.InDelta(t, 0.011, history.Zones["m5.large"]["us-east-1b"], 1e-9)
		assert.Equal(t, "2026-01-01", history.From.Date)
	})
}

func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, clients := connect(t, awstest.Config{})
		cloud.SetFault(func(awstest.Call) awstest.Fault { return awstest.Fault{Code: "AccessDenied", Message: "no"} })
		_, err := market.OnDemand(t.Context(), clients)
		require.ErrorIs(t, err, cloudprovider.ErrUnauthorized)
		require.ErrorContains(t, err, "pricing:GetProducts")
		_, err = market.Spot(t.Context(), clients, time.Now())
		require.ErrorContains(t, err, "ec2:DescribeSpotPriceHistory")
		_, err = market.Region(t.Context(), clients, catalogue.Region{})
		require.ErrorContains(t, err, "ec2:DescribeInstanceTypes")
	})
}

// Zones without subnets are left out, and zone ids are the account's.
func TestWithin(t *testing.T) {
	embedded, err := catalogue.Load("us-east-1")
	require.NoError(t, err)
	in := market.Within(embedded, map[string]string{"us-east-1a": "use1-az9", "us-east-1b": ""})
	require.Len(t, in.Zones, 2)
	assert.Equal(t, "use1-az9", in.Zones[0].ID)
	for _, o := range in.Offers {
		for _, z := range o.Zones {
			assert.Contains(t, []string{"us-east-1a", "us-east-1b"}, z.Name)
		}
	}
	assert.Greater(t, len(embedded.Zones), 2, "the argument is left as it is")
}

func ExampleSpot() {
	cloud, err := awstest.New(awstest.Config{})
	if err != nil {
		panic(err)
	}
	cloud.SetSpotPrice("m5.large", "us-east-1a", 0.0351)
	clients, err := api.Connect(context.Background(), cloud.API())
	if err != nil {
		panic(err)
	}
	history, err := market.Spot(context.Background(), clients, time.Now())
	if err != nil {
		panic(err)
	}
	fmt.Println(history.From.Name, history.Zones["m5.large"]["us-east-1a"])
	// Output: EC2 spot us-east-1 0.0351
}
