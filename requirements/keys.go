package requirements

import (
	"iter"
	"slices"
)

// Keys is a set of label keys, such as those that a node yet to be bought leaves open. The zero value is empty. It is
// an immutable value, safe for concurrent use.
type Keys struct {
	sorted []string
}

// KeysOf collects keys; order and duplicates do not matter.
func KeysOf(keys ...string) Keys {
	sorted := slices.Clone(keys)
	slices.Sort(sorted)
	return Keys{slices.Compact(sorted)}
}

// Contains reports whether key is one of them. It allocates nothing and costs O(log n).
func (k Keys) Contains(key string) bool {
	_, ok := slices.BinarySearch(k.sorted, key)
	return ok
}

// All yields the keys in order.
func (k Keys) All() iter.Seq[string] { return slices.Values(k.sorted) }

// Len is the number of keys.
func (k Keys) Len() int { return len(k.sorted) }

// Union holds the keys of both.
func (k Keys) Union(o Keys) Keys { return Keys{mergeLists(k.sorted, o.sorted)} }
