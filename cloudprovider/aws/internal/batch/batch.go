// Package batch combines many simultaneous calls into one.
package batch

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
)

// Window says how long calls are collected. Zeros mean the defaults.
type Window struct {
	// Idle ends a batch when no call has joined for this long. 0 means 35 milliseconds; negative
	// means at once.
	Idle time.Duration
	// Longest ends a batch in any case. 0 means 1 second.
	Longest time.Duration
	// Most is the maximum number of calls in a batch. 0 means 500.
	Most int
}

// Result is the result of one call of a batch.
type Result[O any] struct {
	Value O
	Err   error
}

// Caller collects calls under a key and makes them together. Each caller waits no longer than its
// context. A combined call continues until none of its callers waits any more. It is safe for
// concurrent use. Make one with [NewCaller].
type Caller[I, O any] struct {
	window Window
	run    func(ctx context.Context, key string, in []I) []Result[O]

	mu   sync.Mutex
	open map[string]*group[I, O]
}

// group is one batch. The caller's lock guards its fields until done is closed. After that they do
// not change.
type group[I, O any] struct {
	in      []I
	gone    []bool // callers that gave up
	waiting int
	cancel  context.CancelFunc // once no call waits
	done    chan struct{}
	results []Result[O]
}

// NewCaller returns a Caller that makes calls with run, which returns one result for each input, in
// their order.
func NewCaller[I, O any](window Window, run func(ctx context.Context, key string, in []I) []Result[O]) *Caller[I, O] {
	window.Idle, window.Longest, window.Most = cmp.Or(window.Idle, 35*time.Millisecond), cmp.Or(window.Longest, time.Second), cmp.Or(window.Most, 500)
	return &Caller[I, O]{window: window, run: run, open: map[string]*group[I, O]{}}
}

// Do makes one call, together with others of the same key.
func (c *Caller[I, O]) Do(ctx context.Context, key string, in I) (O, error) {
	var none O
	if err := ctx.Err(); err != nil {
		return none, err
	}
	g, at := c.join(ctx, key, in)
	select {
	case <-g.done:
		return g.results[at].Value, g.results[at].Err
	case <-ctx.Done():
		c.leave(key, g, at)
		return none, ctx.Err()
	}
}

func (c *Caller[I, O]) join(ctx context.Context, key string, in I) (*group[I, O], int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g, ok := c.open[key]
	if !ok {
		g = &group[I, O]{done: make(chan struct{})}
		ctx, g.cancel = context.WithCancel(context.WithoutCancel(ctx))
		c.open[key] = g
		go c.call(ctx, key, g)
	}
	g.in, g.gone = append(g.in, in), append(g.gone, false)
	g.waiting++
	if len(g.in) >= c.window.Most {
		delete(c.open, key)
	}
	return g, len(g.in) - 1
}

func (c *Caller[I, O]) leave(key string, g *group[I, O], at int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g.gone[at] = true
	if g.waiting--; g.waiting == 0 {
		g.cancel()
		if c.open[key] == g {
			delete(c.open, key)
		}
	}
}

// call collects a batch until no more calls join, and then makes the call.
func (c *Caller[I, O]) call(ctx context.Context, key string, g *group[I, O]) {
	defer g.cancel()
	defer close(g.done)
	for start, size, open := time.Now(), 1, true; open && time.Since(start) < c.window.Longest && api.Wait(ctx, c.window.Idle) == nil; {
		c.mu.Lock()
		open = c.open[key] == g && len(g.in) > size
		size = len(g.in)
		c.mu.Unlock()
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
	if len(in) == 0 {
		return
	}
	for i, r := range c.run(ctx, key, in) {
		g.results[who[i]] = r
	}
}
