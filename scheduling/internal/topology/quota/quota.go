// Package quota divides pods that spread over several keys at once. Choosing pod by pod runs into corners where a
// combination of values does not exist; working out counts for combinations first does not.
package quota

// Spot is a combination of values that pods can be in.
type Spot struct {
	// Values is one for each key.
	Values []string
	// Most is how many pods may come here; 0 or less for none.
	Most int
}

// Divide gives each spot a number of pods, want in all or as many as the spots take, so that the counts of every key's
// values come out as even as the spots allow. Counts is what is there already: one map for each key, from value to
// number. It adds pods one by one where the sums of squares grow least, then moves single pods while that makes them
// smaller; of equal choices the first spot wins. That is the best there is for one key, and nearly always for more; for
// two keys the best is worked out as well, and taken where it is better. It costs O(want x spots) to add, and O(spots
// squared) a move.
func Divide(want int, spots []Spot, counts []map[string]int) []int {
	d := divider{spots: spots, given: make([]int, len(spots)), sums: make([][]*int, len(spots))}
	byKey := make([]map[string]*int, len(counts))
	for k, have := range counts {
		byKey[k] = map[string]*int{}
		for i := range spots {
			v := spots[i].Values[k]
			if byKey[k][v] == nil {
				n := have[v]
				byKey[k][v] = &n
			}
			d.sums[i] = append(d.sums[i], byKey[k][v])
		}
	}
	for range want {
		if !d.add() {
			break
		}
	}
	for range 4 * len(spots) * (want + 1) {
		if !d.move() {
			break
		}
	}
	if len(counts) != 2 || len(spots) == 0 {
		return d.given
	}
	if exact := dividePair(want, spots, counts); unevenness(exact, spots, counts) < unevenness(d.given, spots, counts) {
		return exact
	}
	return d.given
}

// unevenness is the sum over the keys of the squares of their values' counts.
func unevenness(given []int, spots []Spot, counts []map[string]int) int {
	sum := 0
	for k := range counts {
		have := map[string]int{}
		for i, n := range given {
			v := spots[i].Values[k]
			if _, ok := have[v]; !ok {
				have[v] = counts[k][v]
			}
			have[v] += n
		}
		for _, n := range have {
			sum += n * n
		}
	}
	return sum
}

// divider is the state of dividing: what each spot has, and for each spot the sums of its values, shared by all spots
// with the value.
type divider struct {
	spots []Spot
	given []int
	sums  [][]*int
}

// change is by how much the sum of squares grows if a spot gets n pods more.
func (d *divider) change(spot, n int) int {
	sum := 0
	for _, have := range d.sums[spot] {
		sum += (*have+n)*(*have+n) - *have**have
	}
	return sum
}

func (d *divider) put(spot, n int) {
	d.given[spot] += n
	for _, have := range d.sums[spot] {
		*have += n
	}
}

func (d *divider) open(spot int) bool { return d.given[spot] < d.spots[spot].Most }

// add puts one pod where it makes counts least uneven.
func (d *divider) add() bool {
	best := -1
	for i := range d.spots {
		if d.open(i) && (best < 0 || d.change(i, 1) < d.change(best, 1)) {
			best = i
		}
	}
	if best >= 0 {
		d.put(best, 1)
	}
	return best >= 0
}

// move shifts the pod whose move evens out counts most, if there is one.
func (d *divider) move() bool {
	from, to, gain := -1, -1, 0
	for a := range d.spots {
		if d.given[a] == 0 {
			continue
		}
		out := d.change(a, -1)
		d.put(a, -1)
		for b := range d.spots {
			if b == a || !d.open(b) {
				continue
			}
			if g := -(out + d.change(b, 1)); g > gain {
				from, to, gain = a, b, g
			}
		}
		d.put(a, 1)
	}
	if from < 0 {
		return false
	}
	d.put(from, -1)
	d.put(to, 1)
	return true
}
