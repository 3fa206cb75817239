package scheduling

import (
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/requirements"
)

// cell is all offerings that no pod of the problem can tell apart by labels: one set of labels, and the sizes to be had.
type cell struct {
	labels requirements.Set
	rooms  [][]int64 // what shapes leave for pods, none covered by another
	unit   []float64 // least price of a unit of each resource
}

// compileCells groups the offerings. It costs O(offerings) texts of labels, which are short, for they mention only what
// pods ask about.
func (p *Problem) compileCells() {
	byText := map[string]int{}
	for s := range p.Shapes {
		shape := &p.Shapes[s]
		text := shape.Labels.String()
		for _, o := range shape.Offerings {
			key := text + "|" + o.Labels.String()
			id, ok := byText[key]
			if !ok {
				set, err := shape.Labels.Intersect(o.Labels)
				if err != nil {
					continue
				}
				id = len(p.cells)
				byText[key] = id
				p.cells = append(p.cells, cell{labels: set, unit: slices.Repeat([]float64{1e30}, len(p.Resources))})
			}
			p.cells[id].add(shape.Room, o.Price)
		}
	}
}

func (c *cell) add(room []int64, price float64) {
	for r, v := range room {
		if v > 0 {
			c.unit[r] = min(c.unit[r], price/float64(v))
		}
	}
	covers := func(a, b []int64) bool {
		for r := range a {
			if a[r] < b[r] {
				return false
			}
		}
		return true
	}
	for _, have := range c.rooms {
		if covers(have, room) {
			return
		}
	}
	c.rooms = slices.DeleteFunc(c.rooms, func(have []int64) bool { return covers(room, have) })
	c.rooms = append(c.rooms, room)
}

// holds reports whether some shape of the cell has room for one pod.
func (c *cell) holds(requests []int64) bool {
	for _, room := range c.rooms {
		if within(requests, room) {
			return true
		}
	}
	return false
}

func within(requests, room []int64) bool {
	for r, q := range requests {
		if q > room[r] && q > 0 {
			return false
		}
	}
	return true
}

// price estimates what one pod costs in the cell: its dearest resource at the least price.
func (c *cell) price(requests []int64) float64 {
	most := 0.0
	for r, q := range requests {
		if q > 0 {
			most = max(most, float64(q)*c.unit[r])
		}
	}
	return most
}

// domain is a combination of values of label keys that pods of a class can be placed in.
type domain struct {
	values []string // by the class's keys
	price  float64
	room   int // how many pods of the class existing nodes there could hold
	fresh  bool
}

func (d *domain) text() string { return strings.Join(d.values, "/") }

// domains enumerates where one pod with these requirements and requests can be, by the values of keys.
func (p *Problem) domains(required requirements.Alternatives, requests []int64, keys []string, tags []string, limits []Limit) []domain {
	byText := map[string]int{}
	var out []domain
	at := func(values []string) *domain {
		text := strings.Join(values, "\x00")
		id, ok := byText[text]
		if !ok {
			id = len(out)
			byText[text] = id
			out = append(out, domain{values: slices.Clone(values), price: 1e30})
		}
		return &out[id]
	}
	for i := range p.cells {
		c := &p.cells[i]
		if !required.Compatible(c.labels, requirements.Keys{}) || !c.holds(requests) {
			continue
		}
		price := c.price(requests)
		p.combinations(c.labels, required, keys, func(values []string) {
			d := at(values)
			d.price, d.fresh = min(d.price, price), true
		})
	}
	for i := range p.Rooms {
		r := &p.Rooms[i]
		n := copies(r.Free, requests)
		if n == 0 || !required.Compatible(r.Labels, requirements.Keys{}) {
			continue
		}
		p.combinations(r.Labels, required, keys, func(values []string) { at(values).room += n })
	}
	slices.SortFunc(out, func(a, b domain) int { return slices.Compare(a.values, b.values) })
	return out
}

func copies(free, requests []int64) int {
	n := 1 << 30
	for r, q := range requests {
		if q > 0 {
			n = min(n, int(max(0, free[r])/q))
		}
	}
	return n
}

// combinations yields every combination of values that a node with these labels may have for the keys and the pod
// accepts. A key with infinitely many values takes those that the pod asks for; a node without one of the keys is
// outside of every domain.
func (p *Problem) combinations(labels requirements.Set, required requirements.Alternatives, keys []string, yield func([]string)) {
	values := make([]string, len(keys))
	var walk func(int)
	walk = func(k int) {
		if k == len(keys) {
			yield(values)
			return
		}
		if f := p.filters[keys[k]]; f != nil {
			for _, v := range f.values(labels, required) {
				values[k] = v
				walk(k + 1)
			}
			return
		}
		r := labels.Get(keys[k])
		if !labels.Has(keys[k]) || r.AllowsAbsent() {
			return
		}
		for alt := range required.All() {
			list, finite := r.Intersect(alt.Get(keys[k])).Values()
			if !finite {
				continue
			}
			for _, v := range list {
				values[k] = v
				walk(k + 1)
			}
		}
	}
	walk(0)
}
