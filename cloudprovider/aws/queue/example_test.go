package queue_test

import (
	"context"
	"fmt"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/queue"
)

// Somebody who only looks sees messages with what they announce, or why they cannot be read, and takes none away.
func ExampleMessage() {
	clock := awstest.NewClock()
	cloud, err := awstest.New(awstest.Config{Clock: clock.API()})
	if err != nil {
		panic(err)
	}
	defer cloud.Close()
	ctx := context.Background()
	clients, err := api.Connect(ctx, cloud.API())
	if err != nil {
		panic(err)
	}
	q, err := queue.Open(ctx, clients, clock.API(), "harbour", "reader-1")
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
	// "hello": queue: the message is no event of EventBridge
	// 2 still there
}
