package awstest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
)

func connect(t *testing.T) (*awstest.Cloud, *api.Clients) {
	t.Helper()
	awstest.Begin()
	cloud, err := awstest.New(awstest.Config{})
	require.NoError(t, err)
	clients, err := api.Connect(t.Context(), cloud.API())
	require.NoError(t, err)
	return cloud, clients
}

func fleet(token string, target int32, spot bool, overrides ...types.FleetLaunchTemplateOverridesRequest) *ec2.CreateFleetInput {
	in := &ec2.CreateFleetInput{
		Type: types.FleetTypeInstant, ClientToken: aws.String(token),
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{TotalTargetCapacity: aws.Int32(target), DefaultTargetCapacityType: types.DefaultTargetCapacityTypeOnDemand},
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: aws.String("nodes"), Version: aws.String("1")}, Overrides: overrides,
		}},
	}
	if spot {
		in.TargetCapacitySpecification.DefaultTargetCapacityType = types.DefaultTargetCapacityTypeSpot
		in.SpotOptions = &types.SpotOptionsRequest{AllocationStrategy: types.SpotAllocationStrategyPriceCapacityOptimized}
	}
	return in
}

func override(typ string) types.FleetLaunchTemplateOverridesRequest {
	return types.FleetLaunchTemplateOverridesRequest{InstanceType: types.InstanceType(typ), SubnetId: aws.String("subnet-00")}
}

func template(t *testing.T, clients *api.Clients) {
	t.Helper()
	_, err := clients.EC2.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("nodes"), LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: aws.String("ami-al2023x86")},
	})
	require.NoError(t, err)
}

// The cheapest pool first, the next once it has run out, and the reason why.
func TestFleetsFallThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, clients := connect(t)
		template(t, clients)
		cloud.SetCapacity("c5.large", "us-east-1a", "on-demand", 2)
		out, err := clients.EC2.CreateFleet(t.Context(), fleet("a", 5, false, override("m5.large"), override("c5.large")))
		require.NoError(t, err)
		got := map[types.InstanceType]int{}
		for _, i := range out.Instances {
			got[i.InstanceType] += len(i.InstanceIds)
		}
		assert.Equal(t, map[types.InstanceType]int{"c5.large": 2, "m5.large": 3}, got)
		for _, i := range out.Instances { // as on EC2
			from := i.LaunchTemplateAndOverrides.LaunchTemplateSpecification
			assert.NotEmpty(t, aws.ToString(from.LaunchTemplateId))
			assert.Empty(t, aws.ToString(from.LaunchTemplateName))
		}
		require.Len(t, out.Errors, 1)
		assert.Equal(t, "InsufficientInstanceCapacity", aws.ToString(out.Errors[0].ErrorCode))
		again, err := clients.EC2.CreateFleet(t.Context(), fleet("a", 5, false, override("m5.large"), override("c5.large")))
		require.NoError(t, err)
		assert.Equal(t, out.FleetId, again.FleetId, "the same token, the same fleet")
		assert.Len(t, cloud.Truth(), 5)
		_, err = clients.EC2.CreateFleet(t.Context(), fleet("a", 6, false, override("m5.large")))
		assert.Equal(t, "IdempotentParameterMismatch", api.Reason(err))
	})
}

// Price-capacity-optimized prefers pools that are deep to one that is cheaper and nearly empty.
func TestSpotStrategy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, clients := connect(t)
		template(t, clients)
		cloud.SetSpotPrice("m5.large", "us-east-1a", 0.01)
		cloud.SetSpotPrice("m6a.large", "us-east-1a", 0.02)
		cloud.SetCapacity("m5.large", "us-east-1a", "spot", 3)
		out, err := clients.EC2.CreateFleet(t.Context(), fleet("a", 1, true, override("m5.large"), override("m6a.large")))
		require.NoError(t, err)
		assert.Equal(t, types.InstanceType("m6a.large"), out.Instances[0].InstanceType)
	})
}

func TestQuotasAndAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, clients := connect(t)
		template(t, clients)
		cloud.SetQuota("on-demand", 4)
		out, err := clients.EC2.CreateFleet(t.Context(), fleet("a", 3, false, override("m5.large")))
		require.NoError(t, err)
		require.Len(t, out.Errors, 1)
		assert.Equal(t, "VcpuLimitExceeded", aws.ToString(out.Errors[0].ErrorCode))
		assert.Len(t, cloud.Truth(), 2)
		cloud.SetQuota("on-demand", -1)
		cloud.SetFreeAddresses("subnet-00", 0)
		out, err = clients.EC2.CreateFleet(t.Context(), fleet("b", 1, false, override("m5.large")))
		require.NoError(t, err)
		assert.Equal(t, "InsufficientFreeAddressesInSubnet", aws.ToString(out.Errors[0].ErrorCode))
	})
}

// What the cloud does not know it refuses; it does not pretend.
func TestUnknownThingsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, clients := connect(t)
		_, err := clients.EC2.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{})
		assert.Equal(t, "InvalidAction", api.Reason(err))
		_, err = clients.EC2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{Filters: []types.Filter{{Name: aws.String("colour"), Values: []string{"red"}}}})
		assert.Equal(t, "InvalidParameterValue", api.Reason(err))
		_, err = awstest.New(awstest.Config{Types: []string{"m5.largest"}})
		require.ErrorContains(t, err, `"m5.largest"`)
	})
}

func ExampleNew() {
	cloud, err := awstest.New(awstest.Config{Types: []string{"m5.large"}})
	if err != nil {
		panic(err)
	}
	clients, err := api.Connect(context.Background(), cloud.API())
	if err != nil {
		panic(err)
	}
	out, err := clients.EC2.DescribeSubnets(context.Background(), &ec2.DescribeSubnetsInput{})
	if err != nil {
		panic(err)
	}
	fmt.Println(len(out.Subnets), "subnets in", cloud.Zones(), "after", cloud.Calls("EC2.DescribeSubnets"), "call")
	// Output: 6 subnets in [us-east-1a us-east-1b us-east-1c] after 1 call
}

func ExampleCloud_SetFault() {
	cloud, err := awstest.New(awstest.Config{})
	if err != nil {
		panic(err)
	}
	cloud.SetFault(func(c awstest.Call) awstest.Fault { return awstest.Fault{Code: "UnauthorizedOperation", Message: "no"} })
	clients, err := api.Connect(context.Background(), cloud.API())
	if err != nil {
		panic(err)
	}
	_, err = clients.EC2.DescribeSubnets(context.Background(), &ec2.DescribeSubnetsInput{})
	fmt.Println(api.Reason(err))
	// Output: UnauthorizedOperation
}
