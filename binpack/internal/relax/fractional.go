package relax

import "math"

// fractional solves the knapsack in fractions, max value.n with the parts of each dimension at most 1, by the simplex
// method on as many rows as there are dimensions. It gives what each dimension is worth.
type fractional struct {
	inverse, x, y, dir []float64
	basis              []int
}

func (f *fractional) solve(cand []candidate, size []float64, d int, out []float64) []float64 {
	grow := func(v []float64, n int) []float64 {
		if cap(v) < n {
			return make([]float64, n)
		}
		v = v[:n]
		clear(v)
		return v
	}
	f.inverse, f.x, f.y, f.dir = grow(f.inverse, d*d), grow(f.x, d), grow(f.y, d), grow(f.dir, d)
	f.basis = f.basis[:0]
	for i := range d {
		f.inverse[i*d+i], f.x[i] = 1, 1
		f.basis = append(f.basis, -1-i)
	}
	for range 30 + 10*d {
		clear(f.y)
		for i, b := range f.basis {
			if b >= 0 {
				for k := range d {
					f.y[k] += cand[b].value * f.inverse[i*d+k]
				}
			}
		}
		enter := f.entering(cand, size, d)
		if enter == math.MinInt {
			break
		}
		for i := range d {
			f.dir[i] = 0
			for k := range d {
				if enter >= 0 {
					f.dir[i] += f.inverse[i*d+k] * size[enter*d+k]
				} else if k == -1-enter {
					f.dir[i] += f.inverse[i*d+k]
				}
			}
		}
		leave, ratio := -1, math.Inf(1)
		for i := range d {
			if f.dir[i] > 1e-12 {
				if q := f.x[i] / f.dir[i]; q < ratio {
					leave, ratio = i, q
				}
			}
		}
		if leave < 0 {
			break
		}
		f.pivot(enter, leave, ratio, d)
	}
	// Whatever the rounding, weights must be worth every thing: raise what is short.
	for _, y := range f.y {
		out = append(out, max(0, y))
	}
	return out
}

func (f *fractional) entering(cand []candidate, size []float64, d int) int {
	best, most := math.MinInt, 1e-11
	for i := range cand {
		room := 0.0
		for k := range d {
			room += size[i*d+k] * f.y[k]
		}
		if g := (cand[i].value - room) / cand[i].value; g > most {
			best, most = i, g
		}
	}
	if best != math.MinInt {
		return best
	}
	for k := range d {
		if f.y[k] < -1e-12 {
			return -1 - k
		}
	}
	return best
}

func (f *fractional) pivot(enter, leave int, ratio float64, d int) {
	for i := range d {
		if i != leave {
			f.x[i] = max(0, f.x[i]-ratio*f.dir[i])
		}
	}
	f.x[leave] = ratio
	for k := range d {
		f.inverse[leave*d+k] /= f.dir[leave]
	}
	for i := range d {
		if i != leave {
			for k := range d {
				f.inverse[i*d+k] -= f.dir[i] * f.inverse[leave*d+k]
			}
		}
	}
	f.basis[leave] = enter
}
