package binpack_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/binpack"
)

// optimum returns the lowest price for what the layout places, by brute force: each copy goes to each node, each open bin, or a
// new bin of each offering. Rules on the whole layout are checked at the end. ok is false if the search was given up.
func optimum(p *binpack.Problem, of binpack.Layout) (best binpack.Price, ok bool) {
	var copies []int
	count := func(shares []binpack.Share) {
		for _, s := range shares {
			copies = append(copies, slices.Repeat([]int{s.Item}, s.Count)...)
		}
	}
	for _, shares := range of.Nodes {
		count(shares)
	}
	for _, b := range of.Bins {
		count(b.Shares)
	}
	slices.Sort(copies)
	if len(copies) > 6 {
		return 0, false
	}
	s := &search{p: p, copies: copies, best: math.MaxInt64, steps: 200_000}
	s.layout.Nodes = make([][]binpack.Share, len(p.Nodes))
	s.place(0, 0)
	return s.best, s.steps > 0
}

type search struct {
	p      *binpack.Problem
	copies []int
	layout binpack.Layout
	best   binpack.Price
	steps  int
}

func (s *search) place(i int, cost binpack.Price) {
	s.steps--
	if s.steps <= 0 || cost >= s.best {
		return
	}
	if i == len(s.copies) {
		if dumbCheck(s.p, s.layout) == nil {
			s.best = cost
		}
		return
	}
	share := binpack.Share{Item: s.copies[i], Count: 1}
	for n, node := range s.p.Nodes {
		old := s.layout.Nodes[n]
		s.layout.Nodes[n] = append(slices.Clip(old), share)
		if dumbHolds(s.p, node.Free, node.Provides, node.Tags, node.Limits, s.layout.Nodes[n]) == nil {
			s.place(i+1, cost)
		}
		s.layout.Nodes[n] = old
	}
	for b := range s.layout.Bins {
		bin := &s.layout.Bins[b]
		old := bin.Shares
		bin.Shares = append(slices.Clip(old), share)
		if dumbChoice(s.p, bin.Type, bin.Offering, bin.Shares) == nil {
			s.place(i+1, cost)
		}
		s.layout.Bins[b].Shares = old
	}
	for t, typ := range s.p.Types {
		for j, o := range typ.Offerings {
			if dumbChoice(s.p, t, j, []binpack.Share{share}) == nil {
				s.layout.Bins = append(s.layout.Bins, binpack.Bin{Type: t, Offering: j, Shares: []binpack.Share{share}})
				s.place(i+1, cost+cmp.Or(o.Objective, o.Price))
				s.layout.Bins = s.layout.Bins[:len(s.layout.Bins)-1]
			}
		}
	}
}

func TestBoundOptimumAndCostStandInOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	searched, optimal, tight := 0, 0, 0
	for range rounds(t, 600, 10_000) {
		p := small(randomBytes(rng, 200))
		for _, by := range []binpack.Strategy{binpack.FirstFitDecreasing{}, wasteful{}, nil} {
			in, plan := lawfulBy(t, p, &binpack.Options{Strategy: by, Effort: binpack.EffortFast})
			best, ok := optimum(in.Problem(), plan.Layout)
			if !ok || len(plan.Bins) == 0 {
				continue
			}
			require.LessOrEqual(t, plan.Bound.Price, best, "the bound %+v of %+v", plan.Bound, p)
			require.LessOrEqual(t, best, plan.Objective, "the objective of %+v", p)
			searched++
			if best == plan.Objective {
				optimal++
			}
			if best == plan.Bound.Price {
				tight++
			}
		}
	}
	require.Greater(t, searched, 100)
	t.Logf("%d plans: %d optimal, bound tight in %d", searched, optimal, tight)
}

// most returns the largest number of copies that some layout places, by brute force over all choices of copies of each item, if
// that is more than placed. ok is false if the search was given up.
func most(p *binpack.Problem, placed int) (n int, ok bool) {
	total := 0
	for _, it := range p.Items {
		total += it.Count
	}
	if total > 7 {
		return 0, false
	}
	ok = true
	for n = total; n > placed; n-- {
		found := false
		var choose func(item, left int, copies []int)
		choose = func(item, left int, copies []int) {
			switch {
			case found:
			case left == 0:
				s := &search{p: p, copies: copies, best: math.MaxInt64, steps: 100_000}
				s.layout.Nodes = make([][]binpack.Share, len(p.Nodes))
				s.place(0, 0)
				found = s.best < math.MaxInt64
				ok = ok && (found || s.steps > 0)
			case item < len(p.Items):
				for k := min(left, p.Items[item].Count); k >= 0; k-- {
					choose(item+1, left-k, slices.Concat(copies, slices.Repeat([]int{item}, k)))
				}
			}
		}
		if choose(0, n, nil); found {
			break
		}
	}
	return n, ok
}

// Without anything to buy, nodes take as many copies as they can, not the largest first.
func TestNodesAloneTakeAsManyAsTheyCan(t *testing.T) {
	for _, c := range []struct {
		free  int64
		sizes []int64
		want  int
	}{{4, []int64{1, 1, 1, 4, 4}, 3}, {6, []int64{6, 6, 3, 2, 2}, 2}, {4, []int64{4, 4, 2, 2, 2}, 2}, {6, []int64{4, 4, 4, 2, 2, 2}, 3}} {
		for _, pools := range [][]binpack.Pool{nil, {{Limits: []int64{2}}}} {
			p := binpack.Problem{Resources: []string{"cpu"}, Pools: pools, Nodes: []binpack.Node{{Name: "n", Free: []int64{c.free}}}}
			if pools != nil { // no bin is within the limit
				p.Types = []binpack.Type{typ("t", 10, 8)}
				p.Types[0].Usage = []int64{8}
			}
			for i, size := range c.sizes {
				p.Items = append(p.Items, item(fmt.Sprint("i", i), 1, size))
			}
			for _, effort := range []binpack.Effort{binpack.EffortFast, binpack.EffortDefault} {
				_, plan := lawfulBy(t, p, &binpack.Options{Effort: effort})
				placed := len(c.sizes)
				for _, n := range plan.Unplaced {
					placed -= n
				}
				require.Equal(t, c.want, placed, "%d free, %v, %s", c.free, c.sizes, effort)
			}
		}
	}
}

// Nearly always as many copies are placed as can be, on nodes and within budgets. The search is no proof: what it misses are
// objectives that differ from prices under a MaxPrice, and diversity.
func TestHardlyMoreCanBePlaced(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	searched, short, fewer := 0, 0, 0
	for range rounds(t, 500, 4_000) {
		p := small(randomBytes(rng, 200))
		total := 0
		for i := range p.Items {
			p.Items[i].Priority = 0
			total += p.Items[i].Count
		}
		in, plan := lawfulBy(t, p, nil)
		placed := total
		for _, n := range plan.Unplaced {
			placed -= n
		}
		if placed == total {
			continue
		}
		if n, ok := most(in.Problem(), placed); ok {
			searched++
			if n > placed {
				if fewer++; fewer < 4 {
					t.Logf("%d of %d copies are placed, could be %d: %+v\n%+v", placed, total, n, plan.Layout, p)
				}
			}
		}
		short++
	}
	t.Logf("%d plans are short, %d were searched, %d place too few", short, searched, fewer)
	require.Greater(t, searched, 100)
	require.LessOrEqual(t, fewer, searched/200)
}

// FuzzPack decodes bytes into a small problem, and checks the plan against all laws, the dumb judge and, if it is tiny, the
// optimum.
func FuzzPack(f *testing.F) {
	f.Add([]byte{})                                                           // the lowest choices
	f.Add([]byte("joinery packs bins"))                                       // any text is a problem
	f.Add(slices.Repeat([]byte{1}, 160))                                      // the second choices
	f.Add(slices.Repeat([]byte{3, 1, 2}, 60))                                 // minimums and alternatives
	f.Add([]byte{1, 0, 2, 3, 2, 9, 9, 0, 0, 1, 0, 0, 3, 5, 0, 7, 1, 1, 2, 2}) // a pool with minimums, two dimensions
	rng := rand.New(rand.NewPCG(7, 8))
	for range 5 {
		f.Add(randomBytes(rng, 160))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 400 {
			return
		}
		p := small(data)
		in, plan := lawful(t, p)
		require.NoError(t, dumbCheck(in.Problem(), plan.Layout))
		if best, ok := optimum(in.Problem(), plan.Layout); ok {
			require.LessOrEqual(t, plan.Bound.Price, best)
			require.LessOrEqual(t, best, plan.Objective)
		}
	})
}
