package topology

import "sync"

// memo remembers what every settlement of a problem would work out again: it follows from the problem alone. It is safe
// for concurrent use.
type memo struct {
	mu        sync.Mutex
	parts     map[[2]int]Part
	universes map[int]universe
}

func newMemo() *memo { return &memo{parts: map[[2]int]Part{}, universes: map[int]universe{}} }

func (m *memo) part(key [2]int, make func() Part) Part { return remembered(m, m.parts, key, make) }

func (m *memo) universe(group int, make func() universe) universe {
	return remembered(m, m.universes, group, make)
}

// remembered makes what is not there yet. Two callers at once may both make it; it is the same.
func remembered[K comparable, V any](m *memo, of map[K]V, key K, make func() V) V {
	m.mu.Lock()
	v, ok := of[key]
	m.mu.Unlock()
	if ok {
		return v
	}
	v = make()
	m.mu.Lock()
	of[key] = v
	m.mu.Unlock()
	return v
}
