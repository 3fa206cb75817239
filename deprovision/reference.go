package deprovision

import (
	"fmt"
	"slices"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
)

// referencePass is one round of the reference's search: the first method that finds something ends it.
func (p *planner) referencePass() {
	if p.prefixes() {
		return
	}
	// One candidate of each pool in turn.
	byPool := map[string][]*member{}
	var pools []string
	for _, m := range p.candidates() {
		if byPool[m.Pool] == nil {
			pools = append(pools, m.Pool)
		}
		byPool[m.Pool] = append(byPool[m.Pool], m)
	}
	slices.Sort(pools)
	for k, found := 0, true; found; k++ {
		found = false
		for _, pool := range pools {
			if k >= len(byPool[pool]) || p.ended {
				continue
			}
			found = true
			m := byPool[pool][k]
			if p.overBudget(m, eligibility.Consolidation, reason(m)) {
				continue
			}
			p.seen[m.Name] = true
			set := []*member{m}
			if a, _, ok := p.try(set, 1); ok {
				p.commit(eligibility.Consolidation, set, a, "a cheaper node, or other nodes, hold its pods")
				return
			}
		}
	}
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
