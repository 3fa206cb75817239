package discovery

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Cache remembers answers by key for a time. If several callers request one key at once, one of
// them asks and the others wait. It is safe for concurrent use. Make one with [NewCache]. Its
// contents are shared, so Get must return values that nobody changes.
type Cache[V any] struct {
	ttl time.Duration

	mu      sync.Mutex
	entries map[string]*entry[V]
}

type entry[V any] struct {
	turn  chan struct{} // holds one token: its holder asks
	value V
	until time.Time // zero means that there is no answer
}

// NewCache returns a cache that remembers answers for ttl.
func NewCache[V any](ttl time.Duration) *Cache[V] {
	return &Cache[V]{ttl: ttl, entries: map[string]*entry[V]{}}
}

// Get returns the remembered answer for key, or the result of ask. Errors are not remembered.
func (c *Cache[V]) Get(ctx context.Context, key string, ask func(context.Context) (V, error)) (V, error) {
	return c.get(ctx, key, c.ttl, ask)
}

// get is Get for an answer with a lifetime of its own.
func (c *Cache[V]) get(ctx context.Context, key string, ttl time.Duration, ask func(context.Context) (V, error)) (V, error) {
	e := c.entry(key)
	select {
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	case <-e.turn:
	}
	defer func() { e.turn <- struct{}{} }()
	c.mu.Lock()
	v, until := e.value, e.until
	c.mu.Unlock()
	if time.Now().Before(until) {
		return v, nil
	}
	return c.ask(ctx, e, ttl, ask)
}

func (c *Cache[V]) ask(ctx context.Context, e *entry[V], ttl time.Duration, ask func(context.Context) (V, error)) (V, error) {
	v, err := ask(ctx)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		e.value, e.until = v, time.Now().Add(ttl)
	}
	return v, err
}

// Renew asks for the key if its answer is older than age, without making anyone wait: until the new
// answer arrives, Get returns the old one. A key that was never requested is left to Get.
func (c *Cache[V]) Renew(ctx context.Context, key string, age time.Duration, ask func(context.Context) (V, error)) error {
	c.mu.Lock()
	e, ok := c.entries[key]
	old := ok && !e.until.IsZero() && time.Until(e.until) <= c.ttl-age
	c.mu.Unlock()
	if !old {
		return nil
	}
	_, err := c.ask(ctx, e, c.ttl, ask)
	return err
}

// Forget makes the next Get of the keys ask again; without keys it forgets every key.
func (c *Cache[V]) Forget(keys ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(keys) == 0 {
		clear(c.entries)
	}
	for _, key := range keys {
		delete(c.entries, key)
	}
}

// entry finds or makes the entry. Making one removes entries that have expired.
func (c *Cache[V]) entry(key string) *entry[V] {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if ok {
		return e
	}
	now := time.Now()
	maps.DeleteFunc(c.entries, func(_ string, o *entry[V]) bool { return !o.until.IsZero() && now.After(o.until) })
	e = &entry[V]{turn: make(chan struct{}, 1)}
	e.turn <- struct{}{}
	c.entries[key] = e
	return e
}
