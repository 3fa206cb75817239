package relax

// Pair improves a packing, and one of its own, each in so many steps: among all kinds, and among those that are small against
// the whole, for large bins leave little choice in how much is bought, and small ones are a little dearer for what they
// hold. It gives the cheaper packing. The two run side by side. Another variation goes other ways. Without bins, the first
// is a greedy packing as well.
func (m *Model) Pair(variation int, bins []Column, value []float64, floor float64, steps int) []Column {
	run := func(m *Model, bins []Column) []Column {
		return m.improve(variation, bins, value, floor, &Budget{Left: steps})
	}
	begun := func() []Column {
		if bins == nil {
			return m.Greedy(&Budget{})
		}
		return bins
	}
	small, kinds := m.small(value)
	if small == nil {
		return run(m, begun())
	}
	second := make(chan []Column, 1)
	go func() { second <- run(small, small.Greedy(&Budget{})) }()
	best := run(m, begun())
	other := <-second
	for i := range other {
		other[i].Kind = kinds[other[i].Kind]
	}
	if m.Uncovered(best) || !m.Uncovered(other) && m.Cost(other) < m.Cost(best) {
		return other
	}
	return best
}

// small is the model with those kinds that cost a small part of what everything is worth, and for each class the cheapest
// that holds it, with their numbers; nil where that is all or nothing.
func (m *Model) small(value []float64) (*Model, []int) {
	const part = 8
	worth := 0.0
	for i := range m.Classes {
		worth += value[i] * float64(m.Classes[i].Count)
	}
	keep := make([]bool, len(m.Kinds))
	for i := range m.Classes {
		if k := m.cheapest(&m.Classes[i]); k >= 0 {
			keep[k] = true
		}
	}
	var kinds []int
	out := &Model{Dims: m.Dims, Supply: m.Supply, Classes: make([]Class, len(m.Classes))}
	for k := range m.Kinds {
		if keep[k] || m.Kinds[k].Supply >= 0 || m.Kinds[k].Price <= worth/part {
			kinds, out.Kinds = append(kinds, k), append(out.Kinds, m.Kinds[k])
		}
	}
	if len(kinds) == len(m.Kinds) {
		return nil, nil
	}
	for i := range m.Classes {
		c := m.Classes[i]
		c.Kinds = make([]uint64, (len(kinds)+63)/64)
		for n, k := range kinds {
			if has(m.Classes[i].Kinds, k) {
				c.Kinds[n/64] |= 1 << (n % 64)
			}
		}
		out.Classes[i] = c
	}
	return out, kinds
}
