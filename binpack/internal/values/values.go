// Package values counts the different values of labels that choices show, as bits, and finds choices
// that show enough of them.
package values

import (
	"math/bits"
	"slices"
)

// Minimum asks for Count different values of a label: bits of the words between two positions.
type Minimum struct{ Count, From, To int }

// Seen holds the values that choices show.
type Seen struct {
	minimums []Minimum
	words    []uint64
}

// Of returns the values that the choices show together.
func Of(minimums []Minimum, choices ...[]uint64) Seen {
	s := Seen{minimums: minimums}
	if n := len(minimums); n > 0 {
		s.words = make([]uint64, minimums[n-1].To)
	}
	for _, c := range choices {
		s.Add(c)
	}
	return s
}

// Add counts the values of a choice.
func (s Seen) Add(choice []uint64) {
	if len(s.words) > 0 {
		for i, w := range choice {
			s.words[i] |= w
		}
	}
}

// Lacks reports whether the choice shows a value that is not counted yet.
func (s Seen) Lacks(choice []uint64) bool {
	for i, w := range choice {
		if w&^s.words[i] != 0 {
			return true
		}
	}
	return false
}

// Met reports whether there are enough values of each key.
func (s Seen) Met() bool {
	for _, m := range s.minimums {
		for _, w := range s.words[m.From:m.To] {
			m.Count -= bits.OnesCount64(w)
		}
		if m.Count > 0 {
			return false
		}
	}
	return true
}

// Choose returns indexes of choices that show enough together with what own shows. It takes the
// first that show something new and are wanted. A first pass takes those for which cheap is true,
// of the first cheaps choices, and a second pass any. Then it leaves out those that the others make
// needless, from the last on. It returns false if all choices together show too little.
func Choose(minimums []Minimum, own []uint64, cheaps, choices int, shows func(int) []uint64, cheap, wanted func(int) bool) ([]int, bool) {
	seen, out := Of(minimums, own), []int(nil)
	met := seen.Met()
	for pass, n := range []int{cheaps, choices} {
		for i := 0; i < n && !met; i++ {
			if seen.Lacks(shows(i)) && (pass == 1 || cheap(i)) && wanted(i) {
				out = append(out, i)
				seen.Add(shows(i))
				met = seen.Met()
			}
		}
	}
	if !met {
		return nil, false
	}
	for k := range slices.Backward(out) {
		rest := Of(minimums, own)
		for j, i := range out {
			if j != k {
				rest.Add(shows(i))
			}
		}
		if rest.Met() {
			out = slices.Delete(out, k, k+1)
		}
	}
	return out, true
}
