package events_test

import (
	"context"
	"fmt"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/events"
)

// A program that only looks sees messages with what they announce, or why they cannot be read, and takes none away.
func ExampleMessage() {
	cloud, err := awstest.New(awstest.Config{})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	clients, err := api.Connect(ctx, cloud.API())
	if err != nil {
		panic(err)
	}
	q, err := events.Open(ctx, clients, events.Options{Queue: "harbour", Nonce: "reader-1"})
	if err != nil {
		panic(err)
	}
	cloud.InterruptSpot("i-1")
	cloud.Send("hello")
	messages, err := q.Peek(ctx, 10)
	if err != nil {
		panic(err)
	}
	for _, m := range messages {
		for _, e := range m.Events {
			fmt.Println(e.Instance, e.Kind)
		}
		if m.Err != nil {
			fmt.Printf("%q: %s\n", m.Body, m.Err)
		}
	}
	fmt.Println(cloud.Queued(), "still there")
	// Output:
	// i-1 SpotInterrupted
	// "hello": events: the message is not an event of EventBridge
	// 2 still there
}
