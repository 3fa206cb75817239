package interpod

import (
	"maps"
	"slices"
)

// table counts by value of a key.
type table struct {
	dense  []int32
	sparse map[int32]int32
	live   int32 // values with a count above zero
	turns  int32 // changes of live
}

// manyValues is the most values that are counted in a slice. A cluster has a few zones and
// thousands of hostnames.
const manyValues = 64

func newTable(values int) table {
	if values > manyValues {
		return table{sparse: map[int32]int32{}}
	}
	return table{}
}

func (t *table) clone() table {
	return table{slices.Clone(t.dense), maps.Clone(t.sparse), t.live, t.turns}
}

func (t *table) get(v int32) int32 {
	if t.sparse != nil {
		return t.sparse[v]
	}
	if int(v) < len(t.dense) {
		return t.dense[v]
	}
	return 0
}

func (t *table) add(v, d int32) {
	before := t.get(v)
	switch {
	case before <= 0 && before+d > 0:
		t.live++
		t.turns++
	case before > 0 && before+d <= 0:
		t.live--
		t.turns++
	}
	if t.sparse == nil {
		for int(v) >= len(t.dense) {
			t.dense = append(t.dense, 0)
		}
		t.dense[v] += d
		return
	}
	if n := before + d; n == 0 {
		delete(t.sparse, v)
	} else {
		t.sparse[v] = n
	}
}

// least returns the smallest count over the values with a positive count in domains, and a lower
// bound on how many of them have it.
func (t *table) least(domains *table) (least, have int32) {
	if domains.live == 0 {
		return 0, 0
	}
	if t.sparse != nil && int32(len(t.sparse)) < domains.live {
		return 0, 1
	}
	least = 1 << 30
	see := func(v, nodes int32) {
		switch n := t.get(v); {
		case nodes <= 0 || n > least:
		case n < least:
			least, have = n, 1
		default:
			have++
		}
	}
	for v, n := range domains.dense {
		see(int32(v), n)
	}
	for v, n := range domains.sparse {
		see(v, n)
	}
	return least, have
}
