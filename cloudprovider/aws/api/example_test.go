package api_test

import (
	"context"
	"fmt"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
)

// A clock of one's own makes waits free and times certain: tests of an hour of retries take no time.
func ExampleClock() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	clock := api.Clock{
		Now:   func() time.Time { return now },
		Sleep: func(_ context.Context, d time.Duration) error { now = now.Add(d); return nil },
	}
	err := clock.Wait(context.Background(), time.Hour)
	fmt.Println(clock.Time().Format(time.TimeOnly), err)
	// Output: 13:00:00 <nil>
}

// Everything that decides where calls go is in one place: an emulator in this process takes AWS's.
func ExampleConfig() {
	cloud, err := awstest.New(awstest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cloud.Close()
	reach := cloud.API()
	clients, err := api.Connect(context.Background(), api.Config{
		Region: "eu-west-1", Endpoint: reach.Endpoint, Credentials: reach.Credentials, HTTPClient: reach.HTTPClient,
		Buckets: api.NewBuckets(api.Published), // to be shared by providers of one account and region
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(clients.Region)
	// Output: eu-west-1
}
