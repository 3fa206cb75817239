package binpack_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/joinery-sdk/joinery/binpack"
	"github.com/joinery-sdk/joinery/requirements"
)

// draw turns bytes into small choices. The same bytes give the same problem, and after the last byte every choice is 0.
type draw struct{ rest []byte }

func (d *draw) below(n int) int {
	if len(d.rest) == 0 {
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return int(b) % n
}

func (d *draw) one(texts ...string) string { return texts[d.below(len(texts))] }

func randomBytes(rng *rand.Rand, n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(rng.UintN(256))
	}
	return out
}

// vocabulary lists the keys and values of random problems; no requirement names the last value of a key.
func vocabulary() map[string][]string {
	return map[string][]string{"zone": {"z1", "z2", "z3"}, "team": {"a", "b", "c"}, "type": {"t0", "t1", "t9"}}
}

// small decodes bytes into a problem of a few items, types, pools and nodes with every feature.
func small(data []byte) binpack.Problem {
	d := &draw{data}
	p := binpack.Problem{Resources: []string{"cpu", "memory"}[:1+d.below(2)]}
	unit, beyond := int64(1), int64(0) // sizes may be near the largest number, and not all multiples of the unit
	if d.below(6) == 0 {
		unit, beyond = 1<<[]int{20, 31, 45, 52, 58}[d.below(5)], int64(d.below(2))
	}
	vector := func(n int) []int64 {
		v := make([]int64, len(p.Resources))
		for i := range v {
			if v[i] = int64(d.below(n)) * unit; v[i] > 0 {
				v[i] += beyond
			}
		}
		return v
	}
	limits := func() []binpack.Limit {
		switch d.below(5) {
		case 0:
			return []binpack.Limit{{Tag: d.one("x", "y"), Max: d.below(4)}}
		case 1:
			return []binpack.Limit{{Tag: "x", Max: d.below(5)}, {Tag: "y", Max: d.below(5)}}
		}
		return nil
	}
	tags := func() []string {
		return [][]string{nil, nil, {"x"}, {"y"}, {"x", "y"}, {"x", "x"}, {"y", "x", "y"}, {"x", "x", "x"}}[d.below(8)]
	}
	for i := range 1 + d.below(3) {
		pool := binpack.Pool{Name: fmt.Sprintf("pool-%d", i), Weight: d.below(2)}
		switch d.below(8) {
		case 0:
			pool.MaxNodes = new(d.below(3))
		case 1:
			pool.MaxPrice = new(binpack.Price(d.below(25)))
		case 2:
			pool.Limits = []int64{int64(d.below(9) - 1)}
		case 3:
			pool.MinValues = []binpack.MinValues{{Key: d.one("zone", "type", "team"), Count: 1 + d.below(3)}}
		case 4:
			pool.Limits, pool.MaxPrice = []int64{binpack.Unlimited}, new(binpack.Price(d.below(40)))
		}
		p.Pools = append(p.Pools, pool)
	}
	for range max(0, d.below(4)-1) {
		p.Budgets = append(p.Budgets, int64(d.below(8)))
	}
	for i := range 1 + d.below(4) {
		t := binpack.Type{Name: fmt.Sprintf("t%d", i), Pool: d.below(len(p.Pools)), Capacity: vector(12), Tags: tags(), Limits: limits()}
		if len(p.Pools[t.Pool].Limits) > 0 && d.below(4) > 0 {
			t.Usage = []int64{int64(d.below(4))}
		}
		var b requirements.Builder
		b.Add(requirements.In("type", t.Name))
		switch d.below(6) {
		case 0:
			b.Add(requirements.In("team", "a", "b"))
		case 1:
			b.Add(requirements.Exists("team"))
		case 2:
			b.Add(requirements.In("team", "a"))
		case 3:
			b.Add(requirements.NotIn("team", "a")) // absent, or any other
		}
		t.Provides, _ = b.Set()
		for range d.below(4) {
			o := binpack.Offering{Price: binpack.Price(d.below(12))}
			if d.below(8) == 0 {
				o.Objective = binpack.Price(1 + d.below(12))
			}
			o.Provides = requirements.MustOf(requirements.In("zone", d.one("z1", "z2")))
			if d.below(6) == 0 {
				o.Provides = requirements.MustOf(requirements.In("zone", "z1"), requirements.In("team", "b"))
			}
			if d.below(4) == 0 {
				o.Counted, o.Count, o.Reservation = true, d.below(3), d.one("", "r")
				if d.below(3) == 0 { // for example money
					o.Count, o.Takes = 5*o.Count, d.below(7)
				}
			}
			o.CapacityPool = d.one("", "", "p", "q")
			if len(p.Budgets) > 0 && d.below(4) > 0 {
				for range p.Budgets {
					o.Usage = append(o.Usage, int64(d.below(3)))
				}
			}
			t.Offerings = append(t.Offerings, o)
		}
		p.Types = append(p.Types, t)
	}
	alternative := func() requirements.Set {
		var b requirements.Builder
		for range d.below(3) {
			switch key := d.one("zone", "team", "team", "type"); d.below(5) {
			case 0, 1:
				b.Add(requirements.In(key, vocabulary()[key][d.below(2)]))
			case 2:
				b.Add(requirements.NotIn(key, vocabulary()[key][d.below(2)]))
			case 3:
				b.Add(requirements.Exists(key))
			case 4:
				b.Add(requirements.DoesNotExist(key))
			}
		}
		s, _ := b.Set()
		return s
	}
	for i := range d.below(5) {
		it := binpack.Item{Name: fmt.Sprintf("item-%d", i), Count: d.below(4), Size: vector(6), Tags: tags(), Limits: limits()}
		if i > 0 && d.below(3) == 0 { // alike but for count and tags
			it.Size, it.Requires, it.Priority = p.Items[i-1].Size, p.Items[i-1].Requires, p.Items[i-1].Priority
			p.Items = append(p.Items, it)
			continue
		}
		alts := []requirements.Set{alternative()}
		for d.below(3) == 0 && len(alts) < 3 {
			alts = append(alts, alternative())
		}
		it.Requires = requirements.AnyOf(alts...)
		it.Priority = int32(d.below(5) / 3)
		p.Items = append(p.Items, it)
	}
	for i := range d.below(3) {
		n := binpack.Node{Name: fmt.Sprintf("node-%d", i), Free: vector(9), Tags: tags(), Limits: limits()}
		n.Free[0]--
		labels := map[string]string{"zone": d.one("z1", "z2"), "type": d.one("t0", "t9")}
		if d.below(2) == 0 {
			labels["team"] = d.one("a", "b")
		}
		n.Provides = requirements.FromLabels(labels)
		n.CapacityPool = d.one("", "p")
		p.Nodes = append(p.Nodes, n)
	}
	for range d.below(3) {
		weight := []int{1, 1, 1000, 1_000_000_000}[d.below(4)]
		x := binpack.Diversity{Max: d.below(4) * weight}
		for i := range p.Items {
			if n := d.below(3); n > 0 {
				x.Items = append(x.Items, binpack.Share{Item: i, Count: n * weight})
			}
		}
		if d.below(3) == 0 {
			x.Placed = map[string]int{"p": d.below(3) * weight}
		}
		p.Diversity = append(p.Diversity, x)
	}
	return p
}
