package api

import (
	"context"
	"time"
)

// Clock is the time as the provider knows it. The zero value is the machine's own clock.
type Clock struct {
	// Now is the time; nil = time.Now.
	Now func() time.Time
	// Sleep waits for a time, or until the context is done, whose error it then returns; nil = waits in real time.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Time is the time now.
func (c Clock) Time() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now() //nolint:forbidigo // the one place where the machine's clock is the default
}

// Wait sleeps; a duration that is not positive only looks at the context.
func (c Clock) Wait(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	if c.Sleep != nil {
		return c.Sleep(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
