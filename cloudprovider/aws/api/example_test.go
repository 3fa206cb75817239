package api_test

import (
	"context"
	"fmt"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
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
