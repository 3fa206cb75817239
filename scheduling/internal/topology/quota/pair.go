package quota

import (
	"cmp"
	"math"
	"slices"
)

// pair divides over exactly two keys, exactly: each spot joins a value of the first key to one of the second, so that the
// numbers are a flow from first to second values whose cost, the squares of the counts, is convex. Each pod takes the
// cheapest way through what is there, moving others where that helps, which keeps the whole the cheapest for its number
// of pods (successive shortest paths; R. Busacker and P. Gowen, 1961).
type pair struct {
	spots []Spot
	given []int
	ends  [][2]int   // of each spot, its value of either key
	have  [2][]int   // counts by value, what is there already included
	at    [2][][]int // spots by value of either key
}

// dividePair is what each of the spots gets. It costs O(want x values x spots) at worst, O(want x spots) usually.
func dividePair(want int, spots []Spot, counts []map[string]int) []int {
	p := pair{spots: spots, given: make([]int, len(spots)), ends: make([][2]int, len(spots))}
	for k := range counts {
		number := map[string]int{}
		for i := range spots {
			v := spots[i].Values[k]
			n, ok := number[v]
			if !ok {
				n = len(number)
				number[v] = n
				p.have[k] = append(p.have[k], counts[k][v])
				p.at[k] = append(p.at[k], nil)
			}
			p.ends[i][k] = n
			p.at[k][n] = append(p.at[k][n], i)
		}
	}
	for range want {
		if !p.add() {
			break
		}
	}
	return p.given
}

// add lets one more pod in, and reports whether there was a way.
func (p *pair) add() bool {
	rows := make([]int, len(p.have[0]))
	for u := range rows {
		rows[u] = u
	}
	slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(p.have[0][a], p.have[0][b]) })
	least := slices.Min(p.have[1])
	best, from, to := math.MaxInt, -1, -1
	var ways []int
	for _, u := range rows {
		if p.have[0][u]+least >= best {
			break
		}
		reached := p.reach(u)
		for v, spot := range reached[:len(p.have[1])] {
			if spot >= 0 && p.have[0][u]+p.have[1][v] < best {
				best, from, to, ways = p.have[0][u]+p.have[1][v], u, v, reached
			}
		}
	}
	if from < 0 {
		return false
	}
	p.have[0][from]++
	p.have[1][to]++
	for v := to; ; { // back along the way: one more in the spot by which v was reached, one fewer where that came from
		spot := ways[v]
		p.given[spot]++
		u := p.ends[spot][0]
		if u == from {
			return true
		}
		spot = ways[len(p.have[1])+u]
		p.given[spot]--
		v = p.ends[spot][1]
	}
}

// reach is, for each value of the second key and then for each of the first, the spot by which a pod that comes to the
// value u of the first key can get there: through a spot with room, or by taking the place of a pod that moves on. -1 is
// for those out of reach.
func (p *pair) reach(u int) []int {
	columns := len(p.have[1])
	by := slices.Repeat([]int{-1}, columns+len(p.have[0]))
	seen := make([]bool, len(p.have[0]))
	seen[u] = true
	for queue := []int{u}; len(queue) > 0; queue = queue[1:] {
		for _, spot := range p.at[0][queue[0]] {
			v := p.ends[spot][1]
			if by[v] >= 0 || p.given[spot] >= p.spots[spot].Most {
				continue
			}
			by[v] = spot
			for _, other := range p.at[1][v] {
				if w := p.ends[other][0]; !seen[w] && p.given[other] > 0 {
					seen[w] = true
					by[columns+w] = other
					queue = append(queue, w)
				}
			}
		}
	}
	return by
}
