package relax

import (
	"math"
	"math/bits"
)

// Reached is the rooms cut down to what sums of things can come to, resource by resource: whatever is packed, the rest stays
// empty. Sizes are usually round numbers and rooms are not, so that proofs get sharper. It costs O(classes x sums / 64), and
// leaves things alone where there are many classes or sums, which then come to almost anything.
func (m *Model) Reached(rooms [][]int64) [][]int64 {
	const mostClasses, mostSums = 256, 1 << 16
	if len(m.Classes) > mostClasses {
		return rooms
	}
	out, flat := make([][]int64, len(rooms)), make([]int64, 0, len(rooms)*m.Dims)
	for k := range rooms {
		flat = append(flat, rooms[k]...)
		out[k] = flat[len(flat)-len(rooms[k]):]
	}
	for r := range m.Dims {
		unit, room, all := int64(0), int64(0), int64(0)
		for i := range m.Classes {
			c := &m.Classes[i]
			for a, b := unit, c.Size[r]; ; a, b = b, a%b { // the greatest common divisor, after Euclid
				if b == 0 {
					unit = a
					break
				}
			}
			if c.Size[r] > 0 {
				all = saturated(all, c.Size[r], c.Count)
			}
		}
		for k := range rooms {
			room = max(room, rooms[k][r])
		}
		room = min(room, all)
		if unit == 0 || room/unit > mostSums {
			continue
		}
		sums := m.sums(r, unit, room/unit)
		for k := range out {
			if c := &out[k][r]; *c > 0 {
				*c = sums.below(*c/unit) * unit
			}
		}
	}
	return out
}

// saturated is a sum plus a product, or the largest number.
func saturated(sum, size, count int64) int64 {
	if count > (math.MaxInt64-sum)/size {
		return math.MaxInt64
	}
	return sum + size*count
}

// sumSet is a bitset of numbers.
type sumSet []uint64

// sums are the multiples of the unit, up to so many, that some things have together.
func (m *Model) sums(r int, unit, most int64) sumSet {
	s := make(sumSet, most/64+1)
	s[0] = 1
	for i := range m.Classes {
		size, left := m.Classes[i].Size[r]/unit, min(m.Classes[i].Count, m.Classes[i].Most)
		if size == 0 {
			continue
		}
		left = min(left, most/size)
		for n := int64(1); left > 0; n *= 2 { // 1, 2, 4... and the rest make up every number
			n = min(n, left)
			left -= n
			s.shift(n * size)
		}
	}
	return s
}

// shift adds to the set what its numbers and one more make.
func (s sumSet) shift(by int64) {
	words, rest := int(by/64), uint(by%64)
	for i := len(s) - 1; i >= words; i-- {
		v := s[i-words] << rest
		if rest > 0 && i > words {
			v |= s[i-words-1] >> (64 - rest)
		}
		s[i] |= v
	}
}

// below is the greatest of the set that is at most n.
func (s sumSet) below(n int64) int64 {
	if n >= int64(len(s))*64 {
		n = int64(len(s))*64 - 1
	}
	i := n / 64
	v := s[i] & (^uint64(0) >> (63 - uint(n%64)))
	for v == 0 {
		i--
		v = s[i]
	}
	return i*64 + 63 - int64(bits.LeadingZeros64(v))
}
