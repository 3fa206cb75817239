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
		HTTPClient:  &http.Client{Transport: &http.Transport{}},
	}
}

// Clock is a time that moves only when it is told to, or when somebody sleeps. It is safe for concurrent use; make one by [NewClock].
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock starts with the year 2026.
func NewClock() *Clock { return &Clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

// Now is the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the time.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
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
