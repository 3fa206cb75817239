package greedy

// label is one that groups count by. Its values are numbered as they turn up.
type label struct {
	name   string
	values []string
	number map[string]int
}

// of is the number of a value.
func (l *label) of(value string) int {
	n, ok := l.number[value]
	if !ok {
		n = len(l.values)
		l.values, l.number[value] = append(l.values, value), n
	}
	return n
}

// all are the numbers of some values, in their order.
func (l *label) all(values []string) []int {
	out := make([]int, len(values))
	for i, v := range values {
		out[i] = l.of(v)
	}
	return out
}

// tally counts by the numbers of values.
type tally []int

// tally is a copy of counts to count on with.
func (l *label) tally(of map[string]int) tally {
	out := tally{}
	for v, n := range of {
		out.add(l.of(v), n)
	}
	return out
}

func (t tally) at(value int) int {
	if value < len(t) {
		return t[value]
	}
	return 0
}

func (t *tally) add(value, n int) {
	for len(*t) <= value {
		*t = append(*t, 0)
	}
	(*t)[value] += n
}
