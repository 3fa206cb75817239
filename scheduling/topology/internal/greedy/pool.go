package greedy

import "slices"

// pool is what a pool can buy as its limits run out.
type pool struct {
	of       Pool
	left     []int64
	anything *form // of a node without pods
}

func newPool(p Pool) pool {
	return pool{of: p, left: slices.Clone(p.Left), anything: newMarket(p.Cells, p.Left).form(p.Asks)}
}

// charge counts a new node, with its first pod, against the limits: with the most that it may be. It stands so even if pods
// that come later leave only smaller choices.
func (p *pool) charge(n *node) {
	if len(p.left) == 0 {
		return
	}
	most := make([]int64, len(p.left))
	for _, c := range n.form.cells {
		for _, size := range c.sizes {
			if fits(n.used, size.Room) {
				for r := range min(len(most), len(size.Usage)) {
					most[r] = max(most[r], size.Usage[r])
				}
			}
		}
	}
	for r, q := range most {
		p.left[r] -= q
	}
	if p.exceeded() {
		p.anything = newMarket(p.of.Cells, p.left).form(p.of.Asks)
	}
}

// exceeded reports whether the market offers something that is not within the limits any more.
func (p *pool) exceeded() bool {
	return slices.ContainsFunc(p.anything.market.cells, func(c cell) bool {
		return slices.ContainsFunc(c.sizes, func(size Size) bool { return !size.within(p.left) })
	})
}

// within reports whether the limits leave room for a node of the size. What has none takes nothing of them.
func (s *Size) within(left []int64) bool {
	for r := range min(len(left), len(s.Usage)) {
		if s.Usage[r] > left[r] {
			return false
		}
	}
	return true
}
