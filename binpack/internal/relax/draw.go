package relax

// Draw is a deterministic pseudo-random sequence (splitmix64, S. Vigna).
type Draw uint64

func (d *Draw) next() uint64 {
	*d += 0x9e3779b97f4a7c15
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Below returns a number from 0 to n-1.
func (d *Draw) Below(n int) int { return int(d.next() % uint64(n)) }

// Unit returns a number from 0 up to 1.
func (d *Draw) Unit() float64 { return float64(float64(d.next()>>11) / (1 << 53)) }
