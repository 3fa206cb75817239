package relax

import (
	"math"
	"slices"
)

// fractional solves the knapsack in fractions, max value.n with the parts of each dimension at most 1, by the simplex
// method on as many rows as there are dimensions. It gives what each dimension is worth.
type fractional struct {
	inverse, x, y, dir []float64
	perValue           []float64 // by candidate and dimension: the part of the bin that a unit of value takes
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
	f.perValue = slices.Grow(f.perValue[:0], len(size))[:len(size)]
	for i := range cand {
		per := 1 / cand[i].value
		for k, v := range size[i*d : i*d+d] {
			f.perValue[i*d+k] = v * per
		}
	}
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
					f.y[k] += float64(cand[b].value * f.inverse[i*d+k])
				}
			}
		}
		enter := f.entering(len(cand), d)
		if enter == math.MinInt {
			break
		}
		for i := range d {
			f.dir[i] = 0
			for k := range d {
				if enter >= 0 {
					f.dir[i] += float64(f.inverse[i*d+k] * size[enter*d+k])
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

// entering is the candidate whose room costs the least part of its value, or the Slack of a dimension, if that pays.
func (f *fractional) entering(n, d int) int {
	best, least := math.MinInt, 1-1e-11
	if d == 3 { // cpu, memory and pods
		y0, y1, y2 := f.y[0], f.y[1], f.y[2]
		part := f.perValue[:3*n]
		for i := 0; len(part) >= 3; i++ {
			if room := float64(part[0]*y0) + float64(part[1]*y1) + float64(part[2]*y2); room < least {
				best, least = i, room
			}
			part = part[3:]
		}
	} else {
		for i := range n {
			room := 0.0
			for k, v := range f.perValue[i*d : i*d+d] {
				room += float64(v * f.y[k])
			}
			if room < least {
				best, least = i, room
			}
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
			f.x[i] = max(0, f.x[i]-float64(ratio*f.dir[i]))
		}
	}
	f.x[leave] = ratio
	for k := range d {
		f.inverse[leave*d+k] /= f.dir[leave]
	}
	for i := range d {
		if i != leave {
			for k := range d {
				f.inverse[i*d+k] -= float64(f.dir[i] * f.inverse[leave*d+k])
			}
		}
	}
	f.basis[leave] = enter
}
