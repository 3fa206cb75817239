package memcloud

import (
	"sync"
	"time"
)

// Clock is a time that moves only when it is told to. It is safe for concurrent use; make one by [NewClock].
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock is a clock that stands at a time.
func NewClock(start time.Time) *Clock { return &Clock{now: start} }

// Now is the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock forward and returns the new time; a duration that is not positive moves nothing.
func (c *Clock) Advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(max(d, 0))
	return c.now
}
