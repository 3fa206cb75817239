package binpack

// split says how types with more offerings than a mask has bits are several compiled types. Callers see their own types only: layouts and
// choices are translated where they come in and go out. It is nil if no type is split.
type split []part

// part is a compiled type: the caller's type, the first of its offerings, and the first part of the type.
type part struct{ typ, offering, first int }

func splitTypes(p *Problem) ([]Type, split) {
	var out []Type
	var parts split
	for i, t := range p.Types {
		if t.Usage == nil {
			t.Usage = make([]int64, len(p.Pools[t.Pool].Limits))
		}
		all, first := t.Offerings, len(out)
		for from := 0; from == 0 || from < len(all); from += maxOfferings {
			t.Offerings = all[from:min(from+maxOfferings, len(all))]
			out, parts = append(out, t), append(parts, part{i, from, first})
		}
	}
	if len(out) == len(p.Types) {
		parts = nil
	}
	return out, parts
}

// in returns the compiled choice of a caller's. One that does not exist has the type -1.
func (s split) in(c Choice) Choice {
	if s == nil || c.Type < 0 || c.Offering < 0 {
		return c
	}
	for k, x := range s {
		if x.typ == c.Type && x.first == k {
			if at := k + c.Offering/maxOfferings; at < len(s) && s[at].typ == c.Type {
				return Choice{at, c.Offering % maxOfferings}
			}
		}
	}
	return Choice{-1, c.Offering}
}

// out returns the caller's choice of a compiled one.
func (s split) out(c Choice) Choice {
	if s == nil {
		return c
	}
	return Choice{s[c.Type].typ, s[c.Type].offering + c.Offering}
}

// layout returns the layout with each choice translated.
func (s split) layout(l Layout, by func(Choice) Choice) Layout {
	if s == nil {
		return l
	}
	bins := make([]Bin, len(l.Bins))
	for i, b := range l.Bins {
		c := by(Choice{b.Type, b.Offering})
		b.Type, b.Offering = c.Type, c.Offering
		bins[i] = b
	}
	l.Bins = bins
	return l
}
