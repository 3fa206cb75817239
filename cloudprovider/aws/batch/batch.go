// Package batch makes one call of many that are made at the same time.
package batch

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
)

// Window says how long calls are collected. Zeros mean the defaults.
type Window struct {
	// Idle ends a batch when nobody has joined for so long. 0 = 35 milliseconds; negative = at once.
	Idle time.Duration
	// Longest ends it in any case. 0 = 1 second.
	Longest time.Duration
	// Most is how many calls are one batch at most. 0 = 500.
	Most int
}

// Result is what became of one call of a batch.
type Result[O any] struct {
	Value O
	Err   error
}

// Caller collects calls under a key and makes them together. The first caller of a batch waits for others and then makes the call
// for all, in its own goroutine: nothing outlives the calls. It is safe for concurrent use; make one by [NewCaller].
type Caller[I, O any] struct {
	clock  api.Clock
	window Window
	run    func(ctx context.Context, key string, in []I) []Result[O]

	mu   sync.Mutex
	open map[string]*group[I, O]
}

// group is one batch. Its fields are guarded by the caller's lock until done is closed, and do not change afterwards.
type group[I, O any] struct {
	in      []I
	gone    []bool // callers that gave up while it was open
	lead    chan struct{}
	done    chan struct{}
	full    chan struct{}
	results []Result[O]
	err     error // the leader's context ended in mid-call: each of the others asks again
}

// NewCaller makes calls by run, which returns one result for each input, in their order.
func NewCaller[I, O any](clock api.Clock, window Window, run func(ctx context.Context, key string, in []I) []Result[O]) *Caller[I, O] {
	window.Idle, window.Longest, window.Most = cmp.Or(window.Idle, 35*time.Millisecond), cmp.Or(window.Longest, time.Second), cmp.Or(window.Most, 500)
	return &Caller[I, O]{clock: clock, window: window, run: run, open: map[string]*group[I, O]{}}
}

// Do makes one call, together with others of the same key. If the context of whoever makes the call for all ends in the middle, the
// others ask again: run must allow it.
func (c *Caller[I, O]) Do(ctx context.Context, key string, in I) (O, error) {
	for {
		value, err, again := c.once(ctx, key, in)
		if !again {
			return value, err
		}
	}
}

func (c *Caller[I, O]) once(ctx context.Context, key string, in I) (value O, err error, again bool) {
	if err := ctx.Err(); err != nil {
		return value, err, false
	}
	c.mu.Lock()
	g, ok := c.open[key]
	if !ok {
		g = &group[I, O]{lead: make(chan struct{}, 1), done: make(chan struct{}), full: make(chan struct{})}
		g.lead <- struct{}{}
		c.open[key] = g
	}
	at := len(g.in)
	g.in, g.gone = append(g.in, in), append(g.gone, false)
	if len(g.in) >= c.window.Most {
		delete(c.open, key)
		close(g.full)
	}
	c.mu.Unlock()

	select {
	case <-g.done:
	case <-ctx.Done():
		c.leave(g, at)
		return value, ctx.Err(), false
	case <-g.lead:
		c.leadOn(ctx, key, g, at)
	}
	select {
	case <-g.done:
	default: // the leader gave up before the call, somebody else leads now
		return value, ctx.Err(), false
	}
	if g.err != nil {
		if err := ctx.Err(); err != nil {
			return value, err, false
		}
		return value, nil, true
	}
	return g.results[at].Value, g.results[at].Err, false
}

// leave takes a caller out of a batch that has not been called yet.
func (c *Caller[I, O]) leave(g *group[I, O], at int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g.gone[at] = true
}

// leadOn waits for the end of the window and makes the call, or passes the lead on.
func (c *Caller[I, O]) leadOn(ctx context.Context, key string, g *group[I, O], at int) {
	if err := c.collect(ctx, g); err != nil {
		c.leave(g, at)
		g.lead <- struct{}{}
		c.mu.Lock()
		defer c.mu.Unlock()
		// If nobody is left to lead, the batch must not stay open for others to join.
		for _, gone := range g.gone {
			if !gone {
				return
			}
		}
		if c.open[key] == g {
			delete(c.open, key)
		}
		return
	}
	c.mu.Lock()
	if c.open[key] == g {
		delete(c.open, key)
	}
	var in []I
	var who []int
	for i, item := range g.in {
		if !g.gone[i] {
			in, who = append(in, item), append(who, i)
		}
	}
	g.results = make([]Result[O], len(g.in))
	c.mu.Unlock()
	results := c.run(ctx, key, in)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, r := range results {
		g.results[who[i]] = r
	}
	if ctx.Err() != nil {
		for _, r := range results {
			if errors.Is(r.Err, context.Canceled) || errors.Is(r.Err, context.DeadlineExceeded) {
				g.err = ctx.Err()
			}
		}
	}
	close(g.done)
}

// collect waits until nobody joins any more.
func (c *Caller[I, O]) collect(ctx context.Context, g *group[I, O]) error {
	start := c.clock.Time()
	for size := 0; ; {
		c.mu.Lock()
		now := len(g.in)
		c.mu.Unlock()
		if now == size || now >= c.window.Most || c.clock.Time().Sub(start) >= c.window.Longest {
			return ctx.Err()
		}
		size = now
		if err := c.clock.Wait(ctx, c.window.Idle); err != nil {
			return err
		}
	}
}
