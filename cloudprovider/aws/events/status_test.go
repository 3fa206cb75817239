package events_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/events"
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
	synctest.Test(t, func(t *testing.T) {
		awstest.Begin()
		cloud, err := awstest.New(awstest.Config{Page: 4})
		require.NoError(t, err)
		clients, err := api.Connect(t.Context(), cloud.API())
		require.NoError(t, err)
		ids, err := launched(cloud, clients, 10)
		require.NoError(t, err)
		for _, id := range ids {
			cloud.FailCheck(id, "system")
			cloud.FailCheck(id, "instance")
			cloud.Schedule(id, "instance-stop", "The instance is to be stopped", time.Now().Add(time.Hour))
		}
		time.Sleep(events.Impaired)
		w := watch(t, clients)
		r, err := w.Read(t.Context(), "", everything{})
		require.NoError(t, err)
		require.Len(t, r.Events, 20)
		calls := cloud.Calls("EC2.DescribeInstanceStatus")
		assert.Equal(t, 15, calls, "three pages of each of three questions, and two empty ones in between")
		again, err := w.Read(t.Context(), "", everything{})
		require.NoError(t, err)
		assert.Equal(t, r, again)
		assert.Equal(t, calls, cloud.Calls("EC2.DescribeInstanceStatus"))
		rest, err := w.Read(t.Context(), r.Cursor, everything{})
		require.NoError(t, err)
		assert.Empty(t, rest.Events)
		none, err := watch(t, clients).Read(t.Context(), "", nothing{})
		require.NoError(t, err)
		assert.Empty(t, none.Events, "machines of others")
		cloud.SetFault(func(awstest.Call) awstest.Fault { return awstest.Fault{Code: "UnauthorizedOperation", Message: "no"} })
		time.Sleep(time.Minute)
		_, err = w.Read(t.Context(), "", everything{})
		require.ErrorContains(t, err, "allow ec2:DescribeInstanceStatus")
	})
}

func watch(t *testing.T, clients *api.Clients) *events.Source {
	t.Helper()
	s, err := events.Open(t.Context(), clients, events.Options{StatusChecks: true, Nonce: "n"})
	require.NoError(t, err)
	return s
}

func ExampleSource_Checks() {
	cloud, err := awstest.New(awstest.Config{})
	if err != nil {
		panic(err)
	}
	clients, err := api.Connect(exampleContext(), cloud.API())
	if err != nil {
		panic(err)
	}
	ids, err := launched(cloud, clients, 1)
	if err != nil {
		panic(err)
	}
	cloud.Schedule(ids[0], "instance-retirement", "degraded hardware", time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	source, err := events.Open(exampleContext(), clients, events.Options{StatusChecks: true})
	if err != nil {
		panic(err)
	}
	list, err := source.Checks(exampleContext(), everything{})
	if err != nil {
		panic(err)
	}
	for _, e := range list {
		fmt.Println(e.Kind, e.Kind.Respond(), e.Deadline.Format(time.DateOnly))
	}
	// Output: MaintenanceScheduled Drain 2030-01-01
}
