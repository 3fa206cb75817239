package whatif

// table counts by value of a label. Keys with many values, such as the hostname, are counted sparsely.
type table struct {
	dense  []int32
	sparse map[int32]int32
}

// manyValues is from how many values on a key is counted sparsely.
const manyValues = 64

func newTable(values int) table {
	if values > manyValues {
		return table{sparse: map[int32]int32{}}
	}
	return table{dense: make([]int32, values)}
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
	if t.sparse == nil {
		for int(v) >= len(t.dense) {
			t.dense = append(t.dense, 0)
		}
		t.dense[v] += d
		return
	}
	if n := t.sparse[v] + d; n == 0 {
		delete(t.sparse, v)
	} else {
		t.sparse[v] = n
	}
}

// least is the smallest count over the values that domains counts above zero; live is how many those are.
func (t *table) least(domains *table, live int32) int32 {
	if live == 0 {
		return 0
	}
	if t.sparse != nil {
		if int32(len(t.sparse)) < live {
			return 0
		}
		least, seen := int32(1<<30), int32(0)
		for v, n := range t.sparse {
			if domains.get(v) > 0 {
				least, seen = min(least, n), seen+1
			}
		}
		if seen < live {
			return 0
		}
		return least
	}
	least := int32(1 << 30)
	for v := range domains.live() {
		least = min(least, t.get(v))
	}
	return least
}

// live yields the values whose count is above zero.
func (t *table) live() func(func(int32) bool) {
	return func(yield func(int32) bool) {
		for v, n := range t.dense {
			if n > 0 && !yield(int32(v)) {
				return
			}
		}
		for v, n := range t.sparse {
			if n > 0 && !yield(v) {
				return
			}
		}
	}
}
