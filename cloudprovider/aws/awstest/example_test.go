package awstest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
)

// The truth is what a test compares with: machines as they are, although EC2 takes a minute to show them.
func ExampleMachine() {
	cloud, err := awstest.New(awstest.Config{Lag: time.Minute})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	clients, err := api.Connect(ctx, cloud.API())
	if err != nil {
		panic(err)
	}
	if _, err := clients.EC2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("nodes"), LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: aws.String("ami-al2023x86")},
	}); err != nil {
		panic(err)
	}
	if _, err := clients.EC2.CreateFleet(ctx, fleet("token-1", 1, false, override("m5.large"))); err != nil {
		panic(err)
	}
	for _, m := range cloud.Truth() {
		fmt.Println(m.Type, m.CapacityType, "boots", m.Image)
	}
	// Output: m5.large on-demand boots ami-al2023x86
}

// What a launch template says, as it was sent: fields by their names, user data decoded.
func ExampleTemplate() {
	cloud, err := awstest.New(awstest.Config{})
	if err != nil {
		panic(err)
	}
	cloud.AddTemplate("theirs", map[string]string{"ImageId": "ami-al2023x86", "MetadataOptions.HttpTokens": "required"})
	for _, t := range cloud.Templates() {
		fmt.Println(t.Name, t.Fields["ImageId"], "tokens:", t.Fields["MetadataOptions.HttpTokens"])
	}
	// Output: theirs ami-al2023x86 tokens: required
}

// What a cluster's account has before it is asked for anything is put there; putting it again changes it.
func ExampleCloud_Put() {
	cloud, err := awstest.New(awstest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	things := []awstest.Thing{
		awstest.Subnet{ID: "subnet-9", Zone: "us-east-1a", Free: 10},
		awstest.Group{ID: "sg-9", Name: "web"},
		awstest.Image{ID: "ami-9", Name: "ours", Arch: "arm64"},
		awstest.Reservation{ID: "cr-9", Type: "m5.large", Zone: "us-east-1a", Count: 1},
		awstest.PlacementGroup{ID: "pg-9", Name: "racks", Strategy: "spread"},
	}
	cloud.Put(things...)
	cloud.Put(awstest.PlacementGroup{ID: "pg-9", Name: "racks", Strategy: "cluster"})
	clients, err := api.Connect(context.Background(), cloud.API())
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := clients.EC2.DescribePlacementGroups(context.Background(), &ec2.DescribePlacementGroupsInput{GroupNames: []string{"racks"}})
	fmt.Println(len(out.PlacementGroups), out.PlacementGroups[0].Strategy, err)
	// Output: 1 cluster <nil>
}
