package scheduling

import "slices"

// crossed reports whether the part spreads itself over two keys or more at once. Choosing pod by pod then runs into
// corners where a combination of values is missing; counts by combination must be worked out first.
func (pt *part) crossed() bool {
	n := 0
	for _, k := range pt.keys {
		if pt.spreadsBy(k) {
			n++
		}
	}
	return n > 1
}

func (pt *part) spreadsBy(key string) bool {
	for _, sp := range pt.st.spreads {
		if sp.self && sp.key == key {
			return true
		}
	}
	return false
}

// quota divides what the part still wants over its domains so that every value of every spread key gets its even
// share, as far as combinations exist: it starts from nothing and always adds where the sums by value are lowest, then
// moves pods along chains of two domains while that evens the sums out.
func (s *settler) quota(pt *part) []int {
	q := make([]int, len(pt.domains))
	sums := make([]map[string]int, len(pt.keys))
	for k, key := range pt.keys {
		sums[k] = map[string]int{}
		for _, sp := range pt.st.spreads {
			if sp.key == key && sp.self {
				for v, n := range s.groups[sp.group].counts {
					sums[k][v] = n
				}
			}
		}
	}
	// load is the cost of a count: squares are least when even.
	load := func(d, change int) int {
		sum := 0
		for k := range pt.keys {
			if pt.spreadsBy(pt.keys[k]) {
				n := sums[k][pt.domains[d].values[k]]
				sum += (n+change)*(n+change) - n*n
			}
		}
		return sum
	}
	put := func(d, change int) {
		q[d] += change
		for k := range pt.keys {
			sums[k][pt.domains[d].values[k]] += change
		}
	}
	open := func(d int) bool { return pt.placed[d]+q[d] < s.capOf(pt, d) }
	for range pt.want {
		best := -1
		for d := range pt.domains {
			if open(d) && (best < 0 || load(d, 1) < load(best, 1)) {
				best = d
			}
		}
		if best < 0 {
			break
		}
		put(best, 1)
	}
	for range 4 * len(pt.domains) * (pt.want + 1) {
		from, to, gain := -1, -1, 0
		for a := range pt.domains {
			if q[a] == 0 {
				continue
			}
			out := load(a, -1)
			put(a, -1)
			for b := range pt.domains {
				if b != a && open(b) {
					if g := -(out + load(b, 1)); g > gain {
						from, to, gain = a, b, g
					}
				}
			}
			put(a, 1)
		}
		if from < 0 {
			break
		}
		put(from, -1)
		put(to, 1)
	}
	return slices.Clip(q)
}
