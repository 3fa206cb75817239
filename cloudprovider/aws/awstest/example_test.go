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
