package status_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/status"
)

// everything is a fleet that owns every machine.
type everything struct{}

func (everything) Owns(_ context.Context, ids []string) (map[string]string, error) {
	out := map[string]string{}
	for _, id := range ids {
		out[id] = "aws:///us-east-1a/" + id
	}
	return out, nil
}

func (everything) Reserved() map[string]string { return nil }

// nothing owns none.
type nothing struct{ everything }

func (nothing) Owns(context.Context, []string) (map[string]string, error) { return nil, nil }

// launched are so many machines, by id.
func launched(cloud *awstest.Cloud, clients *api.Clients, n int32) ([]string, error) {
	ctx := exampleContext()
	_, err := clients.EC2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("nodes"), LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: aws.String("ami-al2023x86")},
	})
	if err != nil {
		return nil, err
	}
	_, err = clients.EC2.CreateFleet(ctx, &ec2.CreateFleetInput{
		Type: types.FleetTypeInstant, ClientToken: aws.String("t"),
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{TotalTargetCapacity: aws.Int32(n), DefaultTargetCapacityType: types.DefaultTargetCapacityTypeOnDemand},
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: aws.String("nodes"), Version: aws.String("1")},
			Overrides:                   []types.FleetLaunchTemplateOverridesRequest{{InstanceType: "m5.large", SubnetId: aws.String("subnet-00")}},
		}},
	})
	var ids []string
	for _, m := range cloud.Truth() {
		ids = append(ids, m.ID)
	}
	return ids, err
}

func exampleContext() context.Context { return context.Background() } //nolint:forbidigo // Examples have no test to take it from

// Many at once come page by page, each once, and are not asked for again within a minute.
func TestWatch(t *testing.T) {
	clock := awstest.NewClock()
	cloud, err := awstest.New(awstest.Config{Clock: clock.API(), Page: 4})
	require.NoError(t, err)
	t.Cleanup(cloud.Close)
	clients, err := api.Connect(t.Context(), cloud.API())
	require.NoError(t, err)
	ids, err := launched(cloud, clients, 10)
	require.NoError(t, err)
	for _, id := range ids {
		cloud.FailCheck(id, "system")
		cloud.FailCheck(id, "instance")
		cloud.Schedule(id, "instance-stop", "The instance is to be stopped", clock.Now().Add(time.Hour))
	}
	clock.Advance(status.Impaired)
	w := status.New(clients, clock.API())
	events, serial, err := w.Look(t.Context(), 0, everything{})
	require.NoError(t, err)
	require.Len(t, events, 20)
	calls := cloud.Calls("EC2.DescribeInstanceStatus")
	assert.Equal(t, 9, calls, "three pages of each of three questions")
	again, _, err := w.Look(t.Context(), 0, everything{})
	require.NoError(t, err)
	assert.Equal(t, events, again)
	assert.Equal(t, calls, cloud.Calls("EC2.DescribeInstanceStatus"))
	rest, _, err := w.Look(t.Context(), serial, everything{})
	require.NoError(t, err)
	assert.Empty(t, rest)
	none, _, err := status.New(clients, clock.API()).Look(t.Context(), 0, nothing{})
	require.NoError(t, err)
	assert.Empty(t, none, "machines of others")
	cloud.SetFault(func(awstest.Call) awstest.Fault { return awstest.Fault{Code: "UnauthorizedOperation", Message: "no"} })
	clock.Advance(time.Minute)
	_, _, err = w.Look(t.Context(), 0, everything{})
	require.ErrorContains(t, err, "allow ec2:DescribeInstanceStatus")
}

func ExampleWatch() {
	clock := awstest.NewClock()
	cloud, err := awstest.New(awstest.Config{Clock: clock.API()})
	if err != nil {
		panic(err)
	}
	defer cloud.Close()
	clients, err := api.Connect(exampleContext(), cloud.API())
	if err != nil {
		panic(err)
	}
	ids, err := launched(cloud, clients, 1)
	if err != nil {
		panic(err)
	}
	cloud.FailCheck(ids[0], "system")
	clock.Advance(3 * time.Minute)
	events, _, err := status.New(clients, clock.API()).Look(exampleContext(), 0, everything{})
	if err != nil {
		panic(err)
	}
	for _, e := range events {
		fmt.Println(e.Kind, e.Kind.Respond(), e.At.Format("15:04:05"))
	}
	// Output: InstanceImpaired Force 00:00:00
}
