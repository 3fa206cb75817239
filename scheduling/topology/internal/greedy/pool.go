package greedy

import (
	"slices"

	"github.com/joinery-sdk/joinery/requirements"
)

// pool is what a pool can buy as its limits run out.
type pool struct {
	of       []Cell
	left     []int64
	anything *form // of a node that nobody has asked anything of
}

func newPool(p Pool) pool {
	return pool{of: p.Cells, left: slices.Clone(p.Left), anything: newMarket(p.Cells, p.Left).form(requirements.Set{})}
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
		p.anything = newMarket(p.of, p.left).form(requirements.Set{})
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
