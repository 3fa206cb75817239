package relax

import (
	"math"
	"slices"

	"github.com/joinery-sdk/joinery/binpack/internal/lp"
)

// sorts are the kinds of a model by which classes may go into them. A unit of a resource is worth more in a sort that
// classes must go into than in one that is cheap but open to few of them, so each sort has prices of its own.
type sorts struct {
	m     *Model
	of    []int32   // by kind, its sort, -1 where nothing may go
	kinds [][]int32 // by sort
	group []int32   // by class: those of a group ask most of the same and may go to the same kinds, each of which has all of it
	into  [][]int32 // by group, its sorts
	parts [][]int32 // sorts that share groups with no others
}

func (m *Model) sorts() *sorts {
	s := &sorts{m: m, group: make([]int32, len(m.Classes)), of: make([]int32, len(m.Kinds))}
	having := make([][]uint64, m.Dims) // by dimension, the kinds that have any of it
	largest := make([]float64, m.Dims)
	for r := range having {
		having[r] = make([]uint64, (len(m.Kinds)+63)/64)
		for k := range m.Kinds {
			if c := m.Kinds[k].Capacity[r]; c > 0 {
				having[r][k/64] |= 1 << (k % 64)
				largest[r] = max(largest[r], float64(c))
			}
		}
	}
	var sets [][]uint64 // by group
	var most []int      // by group, the dimension that they ask most of
	for i := range m.Classes {
		set := slices.Clone(m.Classes[i].Kinds)
		for r, size := range m.Classes[i].Size {
			for w := range set {
				if size > 0 {
					set[w] &= having[r][w]
				}
			}
		}
		d := m.asksMost(&m.Classes[i], largest)
		g := 0
		for g < len(sets) && (most[g] != d || !slices.Equal(sets[g], set)) {
			g++
		}
		if g == len(sets) {
			sets, most = append(sets, set), append(most, d)
		}
		s.group[i] = int32(g)
	}
	s.into = make([][]int32, len(sets))
	known := map[string]int32{}
	key := make([]byte, (len(sets)+7)/8)
	for k := range m.Kinds {
		clear(key)
		any := false
		for g, set := range sets {
			if has(set, k) {
				key[g/8] |= 1 << (g % 8)
				any = true
			}
		}
		if s.of[k] = -1; !any {
			continue
		}
		at, ok := known[string(key)]
		if !ok {
			at = int32(len(s.kinds))
			known[string(key)] = at
			s.kinds = append(s.kinds, nil)
			for g, set := range sets {
				if has(set, k) {
					s.into[g] = append(s.into[g], at)
				}
			}
		}
		s.of[k] = at
		s.kinds[at] = append(s.kinds[at], int32(k))
	}
	s.divide()
	return s
}

// asksMost is the dimension of which a thing of the class takes the largest part.
func (m *Model) asksMost(c *Class, largest []float64) int {
	at, most := 0, 0.0
	for r, size := range c.Size {
		if part := float64(size) / max(largest[r], 1); part > most {
			at, most = r, part
		}
	}
	return at
}

// divide finds the parts.
func (s *sorts) divide() {
	part := make([]int32, len(s.kinds))
	for i := range part {
		part[i] = int32(i)
	}
	for changed := true; changed; {
		changed = false
		for _, into := range s.into {
			least := int32(math.MaxInt32)
			for _, at := range into {
				least = min(least, part[at])
			}
			for _, at := range into {
				changed = changed || part[at] != least
				part[at] = least
			}
		}
	}
	number := map[int32]int{}
	for at, p := range part {
		n, ok := number[p]
		if !ok {
			n = len(s.parts)
			number[p] = n
			s.parts = append(s.parts, nil)
		}
		s.parts[n] = append(s.parts[n], int32(at))
	}
}

// prices is what a unit of each dimension is worth, by sort, for so many things of each class: so much that no kind that never
// runs out offers its whole room for less.
func (s *sorts) prices(classes []Class) [][]float64 {
	demand := make([][]float64, len(s.into)) // by group
	for g := range demand {
		demand[g] = make([]float64, s.m.Dims)
	}
	for i := range classes {
		for r, size := range classes[i].Size {
			demand[s.group[i]][r] += float64(float64(size) * float64(classes[i].Count))
		}
	}
	out := make([][]float64, len(s.kinds))
	for _, part := range s.parts {
		s.price(part, demand, classes, out)
	}
	return out
}

// price is prices for the sorts of one part. Where the programme would be large, all of them have the same.
func (s *sorts) price(part []int32, demand [][]float64, classes []Class, out [][]float64) {
	m := s.m
	sum, things := make([]float64, m.Dims), int64(0)
	for i := range classes {
		things += classes[i].Count
	}
	var groups []int32
	for g, into := range s.into {
		if len(into) > 0 && slices.Contains(part, into[0]) {
			groups = append(groups, int32(g))
			for r, d := range demand[g] {
				sum[r] += d
			}
		}
	}
	var rows [][]float64
	var costs []float64
	for _, at := range part {
		for _, k := range s.kinds[at] {
			if m.Kinds[k].Supply < 0 {
				rows, costs = append(rows, m.Kinds[k].room()), append(costs, m.Kinds[k].Price)
			}
		}
	}
	same := lp.Coverage(rows, costs, sum)
	for _, at := range part {
		out[at] = same
	}
	if len(part) == 1 || float64(len(part)*m.Dims+len(groups)) > priceRows*math.Cbrt(float64(things)) {
		return
	}
	flows := lp.Flows{Demand: make([][]float64, len(groups)), Into: make([][]int, len(groups)), Rooms: make([][][]float64, len(part)), Prices: make([][]float64, len(part))}
	place := make(map[int32]int, len(part))
	for i, at := range part {
		place[at] = i
		for _, k := range s.kinds[at] {
			if m.Kinds[k].Supply < 0 {
				flows.Rooms[i], flows.Prices[i] = append(flows.Rooms[i], m.Kinds[k].room()), append(flows.Prices[i], m.Kinds[k].Price)
			}
		}
	}
	for i, g := range groups {
		flows.Demand[i] = demand[g]
		for _, at := range s.into[g] {
			flows.Into[i] = append(flows.Into[i], place[at])
		}
	}
	before := s.worth(groups, classes, out)
	for i, values := range flows.Values() {
		out[part[i]] = values
	}
	if s.worth(groups, classes, out) < before { // groups are of a mind only roughly
		for _, at := range part {
			out[at] = same
		}
	}
}

// worth is what all things of the groups are worth.
func (s *sorts) worth(groups []int32, classes []Class, prices [][]float64) float64 {
	sum := 0.0
	for i, g := range s.group {
		if slices.Contains(groups, g) {
			sum += float64(s.value(i, prices) * float64(classes[i].Count))
		}
	}
	return sum
}

// room is the capacity, as far as there is any.
func (k *Kind) room() []float64 {
	out := make([]float64, len(k.Capacity))
	for r, c := range k.Capacity {
		out[r] = float64(max(c, 0))
	}
	return out
}

// values is what one of each class is worth.
func (s *sorts) values(prices [][]float64) []float64 {
	out := make([]float64, len(s.m.Classes))
	for i := range out {
		out[i] = s.value(i, prices)
	}
	return out
}

// value is the least that the room of one thing of the class is worth in any sort that it may go into.
func (s *sorts) value(class int, prices [][]float64) float64 {
	least := 0.0
	for n, at := range s.into[s.group[class]] {
		worth := 0.0
		for r, size := range s.m.Classes[class].Size {
			worth += float64(float64(size) * prices[at][r])
		}
		if n == 0 || worth < least {
			least = worth
		}
	}
	return least
}

// Coverage is what one of each class is worth by the prices of resources.
func (m *Model) Coverage() []float64 {
	s := m.sorts()
	return s.values(s.prices(m.Classes))
}
