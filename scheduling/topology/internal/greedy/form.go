package greedy

import (
	"encoding/binary"
	"slices"

	"github.com/joinery-sdk/joinery/requirements"
)

// market is what a node could be at first; an existing one is what it is.
type market struct {
	exists bool
	cells  []cell
	forms  map[string]*form // by what is asked
}

// cell is what there is under one set of labels: the room of each size that no other covers.
type cell struct {
	labels requirements.Set
	rooms  [][]int64
	sizes  []Size
}

// form is what a node can still be as far as labels say, whatever room it has: what its pods ask, and the cells that meet
// that. Nodes are many and forms few, so what follows from a form is worked out once.
type form struct {
	market *market
	set    requirements.Set
	cells  []*cell
	// asked are the forms with one thing more that pods ask, by its number, and narrowed those where a label has some of its
	// values only, as far as anybody asked.
	asked    map[int]*form
	narrowed map[string]*form
	// counted says whether a group counts its pods here, and values which of its values the label may have, by group, once that
	// is asked for.
	counted []byte
	values  [][]int
	// shut is the number of the last try that failed here, whichever node it was.
	shut int
}

// newMarket is what is for sale, as far as the limits leave it.
func newMarket(cells []Cell, left []int64) *market {
	m := &market{cells: make([]cell, len(cells)), forms: map[string]*form{}}
	for i, c := range cells {
		at := &m.cells[i]
		at.labels = c.Labels
		for _, size := range c.Sizes {
			if size.within(left) && !overfull(size.Room) {
				at.rooms, at.sizes = Widen(at.rooms, size.Room), append(at.sizes, size)
			}
		}
	}
	return m
}

// Widen adds a room to those of which none covers another, if it is not covered by one, and takes out those that it covers.
func Widen(rooms [][]int64, room []int64) [][]int64 {
	covers := func(a, b []int64) bool {
		for r := range a {
			if a[r] < b[r] {
				return false
			}
		}
		return true
	}
	for _, have := range rooms {
		if covers(have, room) {
			return rooms
		}
	}
	return append(slices.DeleteFunc(rooms, func(have []int64) bool { return covers(room, have) }), room)
}

// form is the one with these requirements.
func (m *market) form(set requirements.Set) *form {
	key := string(set.AppendKey(nil))
	if f, ok := m.forms[key]; ok {
		return f
	}
	f := &form{market: m, set: set, asked: map[int]*form{}, narrowed: map[string]*form{}}
	for i := range m.cells {
		if set.Compatible(m.cells[i].labels, requirements.Keys{}) {
			f.cells = append(f.cells, &m.cells[i])
		}
	}
	m.forms[key] = f
	return f
}

// nowhere is the form of a node that cannot be.
func (m *market) nowhere() *form { return m.form(requirements.Impossible()) }

// with is the form that meets these requirements as well, nowhere if that cannot be.
func (f *form) with(more requirements.Set) *form {
	both, err := f.set.Intersect(more)
	if err != nil {
		return f.market.nowhere()
	}
	return f.market.form(both)
}

// ask is the form with one thing more that pods ask, which has this number. Those of pods that ask nothing else, and so do not
// come back to an existing node that cannot hold them, are not kept there: nodes times pods may be very many.
func (f *form) ask(number int, more requirements.Set, only bool) *form {
	next, known := f.asked[number]
	if !known {
		if next = f.with(more); !f.market.exists || !only || len(next.cells) > 0 {
			f.asked[number] = next
		}
	}
	return next
}

// to is the form where the label of a number has these of its values only.
func (f *form) to(number int, l *label, list []int) *form {
	if len(list) == 0 {
		return f.market.nowhere()
	}
	var few [64]byte
	key := binary.AppendUvarint(few[:0], uint64(number))
	for _, v := range list {
		key = binary.AppendUvarint(key, uint64(v))
	}
	if next, ok := f.narrowed[string(key)]; ok {
		return next
	}
	values := make([]string, len(list))
	for i, v := range list {
		values[i] = l.values[v]
	}
	next := f.with(requirements.MustOf(requirements.In(l.name, values...)))
	f.narrowed[string(key)] = next
	return next
}

// counts reports whether a group counts pods on a node of the form. As in Karpenter a label that nobody has asked about yet
// counts as missing.
func (f *form) counts(number int, g *Group) bool {
	for len(f.counted) <= number {
		f.counted = append(f.counted, unknown)
	}
	if f.counted[number] == unknown {
		f.counted[number] = no
		if g.Filter.Len() == 0 || slices.ContainsFunc(slices.Collect(g.Filter.All()), f.meets) {
			f.counted[number] = yes
		}
	}
	return f.counted[number] == yes
}

// meets reports whether a node of the form meets requirements without being asked for more labels.
func (f *form) meets(asked requirements.Set) bool {
	for r := range asked.All() {
		if !f.set.Has(r.Key()) {
			if !r.AllowsAbsent() {
				return false
			}
		} else if r.Intersect(f.set.Get(r.Key())).IsImpossible() {
			return false
		}
	}
	return true
}

// holds reports whether a node of the form can have so much in use.
func (f *form) holds(used []int64) bool {
	return slices.ContainsFunc(f.cells, func(c *cell) bool { return c.holds(used) })
}

// holds reports whether some size of the cell has the room.
func (c *cell) holds(used []int64) bool {
	return slices.ContainsFunc(c.rooms, func(room []int64) bool { return fits(used, room) })
}

// overfull reports whether more is in use than there is. Karpenter lets nobody onto such a node, kube-scheduler those who ask
// nothing of what is short.
func overfull(room []int64) bool {
	return slices.ContainsFunc(room, func(free int64) bool { return free < 0 })
}

func fits(used, room []int64) bool {
	for r, q := range used {
		if q > room[r] && q > 0 {
			return false
		}
	}
	return true
}
