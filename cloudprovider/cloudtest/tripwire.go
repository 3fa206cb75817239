package cloudtest

import (
	"context"
	"sync"
	"time"
)

// tripwire is a context that is cancelled when it is checked for the n-th time. So it is cancelled
// at the same point of a call each time, without a clock.
type tripwire struct {
	mu    sync.Mutex
	inner context.Context
	stop  context.CancelFunc
	left  int
}

func newTripwire(ctx context.Context, looks int) *tripwire {
	inner, stop := context.WithCancel(ctx)
	return &tripwire{inner: inner, stop: stop, left: looks}
}

func (t *tripwire) look() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left--; t.left < 0 {
		t.stop()
	}
}

func (t *tripwire) Done() <-chan struct{}       { t.look(); return t.inner.Done() }
func (t *tripwire) Err() error                  { t.look(); return t.inner.Err() }
func (t *tripwire) Value(key any) any           { return t.inner.Value(key) }
func (t *tripwire) Deadline() (time.Time, bool) { return t.inner.Deadline() }
