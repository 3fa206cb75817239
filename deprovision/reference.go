package deprovision

import (
	"fmt"
	"slices"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
)

// reference is the reference's search: round after round the first that is found, sets before single nodes. It asks about no
// single node again until all others have been asked, for the reference's way to start over in each round asks mostly what
// was just answered; it ends when nothing is found for any.
func (p *planner) reference() {
	p.settle()
	asked, changed := map[string]bool{}, 0
	for n := 0; p.o.Passes == 0 || n < p.o.Passes; n++ {
		found := p.prefixes() || p.singles(asked)
		switch {
		case p.ended:
			return
		case found:
			changed++
			if changed%stale == 0 {
				p.settle()
			}
			continue
		case changed == 0:
			return
		}
		p.settle()
		clear(asked)
		changed = 0
	}
}

// stale is after how many commands the reference's search has the state put in order.
const stale = 16

// singles gives back the first node that was not asked about and that one other at most can replace: one candidate of each
// pool in turn.
func (p *planner) singles(asked map[string]bool) bool {
	byPool := map[string][]*member{}
	var pools []string
	for _, m := range p.candidates() {
		if byPool[m.Pool] == nil {
			pools = append(pools, m.Pool)
		}
		byPool[m.Pool] = append(byPool[m.Pool], m)
	}
	slices.Sort(pools)
	for k, more := 0, true; more; k++ {
		more = false
		for _, pool := range pools {
			if k >= len(byPool[pool]) || p.ended {
				continue
			}
			more = true
			m := byPool[pool][k]
			if asked[m.Name] || p.overBudget(m, eligibility.Consolidation, reason(m)) {
				continue
			}
			p.seen[m.Name], asked[m.Name] = true, true
			set := []*member{m}
			if a, _, ok := p.try(set, 1); ok {
				p.commit(eligibility.Consolidation, set, a, "a cheaper node, or other nodes, hold its pods")
				return true
			}
		}
	}
	return false
}

// mostPrefix is the longest prefix that the reference tries.
const mostPrefix = 100

// prefixes looks for the longest prefix of the ranking that one node at most can replace, by halving, and takes it.
func (p *planner) prefixes() bool {
	ledger := p.ledger
	var list []*member
	for _, m := range p.candidates() {
		if len(list) == mostPrefix {
			break
		}
		if ledger.Left(m.Pool, reason(m)) > 0 {
			ledger = ledger.Take(m.Pool, 1)
			list = append(list, m)
		}
	}
	var best Answer
	var set []*member
	for lo, hi := 2, len(list); lo <= hi && !p.ended; {
		mid := (lo + hi) / 2
		if a, used, ok := p.try(slices.Clone(list[:mid]), 1); ok {
			best, set, lo = a, used, mid+1
		} else {
			hi = mid - 1
		}
	}
	if len(set) == 0 {
		return false
	}
	p.commit(eligibility.Consolidation, set, best, together(&best, set))
	return true
}

// together says in words what takes the place of several nodes.
func together(a *Answer, set []*member) string {
	switch len(a.NewNodes) {
	case 0:
		if len(set) == 1 {
			return "its pods fit on other nodes"
		}
		return "their pods fit on other nodes"
	case 1:
		if len(set) == 1 {
			return "a cheaper node holds its pods"
		}
		return fmt.Sprintf("one new node does the work of %d", len(set))
	}
	if len(set) == 1 {
		return "smaller nodes hold its pods for less"
	}
	return fmt.Sprintf("%d new nodes do the work of %d", len(a.NewNodes), len(set))
}
