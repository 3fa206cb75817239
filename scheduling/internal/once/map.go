// Package once keeps values that many callers need and that are computed from their keys.
package once

import "sync"

// Map keeps computed values. The zero value is empty. It is safe for concurrent use.
type Map[K comparable, V any] struct {
	mu    sync.Mutex
	known map[K]V
}

// Of returns the value of the key. If it is missing, make computes it. Two concurrent callers may
// both compute it.
func (c *Map[K, V]) Of(key K, make func() V) V {
	c.mu.Lock()
	v, ok := c.known[key]
	c.mu.Unlock()
	if ok {
		return v
	}
	v = make()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[K]V{}
	}
	c.known[key] = v
	return v
}
