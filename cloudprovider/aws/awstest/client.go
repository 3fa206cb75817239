package awstest

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
)

// The credentials that calls of [Cloud.API] are signed with. They open nothing.
const (
	AccessKeyID     = "AKIAEXAMPLEEXAMPLE00"
	SecretAccessKey = "example/secret/access/key/of/nobody/0000"
)

// API says how to reach the cloud with the real SDK, with limits and a clock like the cloud's own.
func (c *Cloud) API() api.Config {
	return api.Config{
		Region: c.region.Name, Endpoint: c.URL(), Clock: c.config.Clock, Buckets: api.NewBuckets(c.config.Limits),
		Credentials: credentials.NewStaticCredentialsProvider(AccessKeyID, SecretAccessKey, ""),
		HTTPClient:  &http.Client{Transport: &http.Transport{DialContext: c.connections.dial}},
	}
}

// Clock is a time that moves only when it is told to, or when somebody sleeps, and nobody holds it. It is safe for concurrent use; make one by
// [NewClock].
type Clock struct {
	mu    sync.Mutex
	free  sync.Cond // nobody holds the clock
	now   time.Time
	holds int
}

// NewClock starts with the year 2026.
func NewClock() *Clock {
	c := &Clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	c.free.L = &c.mu
	return c
}

// Hold stops the time until it is released: whoever wants to move it waits. It is a [Config.Hold].
func (c *Clock) Hold() (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.holds--; c.holds == 0 {
			c.free.Broadcast()
		}
	}
}

// Now is the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the time, once nobody holds it.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.holds > 0 {
		c.free.Wait()
	}
	c.now = c.now.Add(max(d, 0))
}

// API is the clock as callers of AWS have it: sleeping moves it and takes no time.
func (c *Clock) API() api.Clock {
	return api.Clock{Now: c.Now, Sleep: func(ctx context.Context, d time.Duration) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.Advance(d)
		return ctx.Err()
	}}
}
