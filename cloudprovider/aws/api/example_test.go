package api_test

import (
	"context"
	"fmt"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
)

// Everything that decides where calls go is in one place: an emulator in this process takes AWS's.
func ExampleConfig() {
	cloud, err := awstest.New(awstest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	reach := cloud.API()
	clients, err := api.Connect(context.Background(), api.Config{
		Region: "eu-west-1", Credentials: reach.Credentials, HTTPClient: reach.HTTPClient,
		Buckets: api.NewBuckets(api.Published), // to be shared by providers of one account and region
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(clients.Region)
	// Output: eu-west-1
}
