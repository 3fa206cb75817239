package binpack

import (
	"math"
	"sync"

	"github.com/joinery-sdk/joinery/binpack/internal/few"
	"github.com/joinery-sdk/joinery/binpack/internal/relax"
)

// searched is up to how many things all sets of bins are looked through.
func (e Effort) searched() int {
	switch e {
	case EffortDefault:
	case EffortFast:
		return 30
	case EffortBest:
		return 300
	}
	return 110
}

// search is how many steps such a search may take: few things are worth a proof, more of them some milliseconds.
func (e Effort) search(things int) int {
	n := 1_000_000
	if things <= 50 {
		n = 100_000_000
	}
	switch e {
	case EffortDefault:
	case EffortFast:
		return n / 100
	case EffortBest:
		return n * 10
	}
	return n
}

// enough is by what part a plan may be above its bound to be left at that: more than a few things are worth some
// milliseconds, not the last percent.
func (e Effort) enough(things int) float64 {
	if things <= 50 || e == EffortBest {
		return 0
	}
	return 0.01
}

const (
	// quick is how many steps are tried in one go where there may be no need for more.
	quick = 1_000_000
	// hopeful is how many steps are taken in the hope of a proof that nothing is cheaper, where what is there is near enough.
	hopeful = 200_000
)

// Of fewer things a bin than coarse, and of no more sorts than fewKinds, fillings are so few that column generation is exact.
const coarse, fewKinds = 8, 16

// planFew packs few things, in ways that also show, often, that there is nothing cheaper.
func (p *planner) planFew(r *relaxation, first bool) []relax.Column {
	if p.in.things() > 50 {
		return p.planDozens(r, first)
	}
	model := r.model
	columns := model.Greedy(&relax.Budget{})
	things, steps := p.in.things(), p.effort.search(p.in.things())
	large := things < coarse*len(columns) && len(model.Classes) <= fewKinds
	most := min(steps, quick)
	if large { // not for long: column generation may do better
		most /= 4
	}
	columns, done := p.search(r, columns, model.Coverage(), first, most)
	if done {
		return columns
	}
	p.budget.Left = max(p.budget.Left, steps/10)
	m := p.generate(r)
	proof := p.prove(r, m, first)
	value := m.Values() // those of all things, not of what a dive has left
	columns = cheaper(model, columns, p.dive(r, m, value))
	search := func(steps int) func() ([]relax.Column, bool) {
		return func() ([]relax.Column, bool) { return p.search(r, columns, value, first, steps) }
	}
	shortest := func() ([]relax.Column, bool) { return p.shortest(r, columns, proof, 2*steps) }
	ways := []func() ([]relax.Column, bool){search(steps), shortest}
	if large {
		ways = []func() ([]relax.Column, bool){search(steps / 10), shortest, search(steps)}
	}
	for _, way := range ways {
		if columns, done = way(); done {
			break
		}
	}
	return columns
}

// planDozens packs more things than those in less time: a plan that is near enough to its bound stands.
func (p *planner) planDozens(r *relaxation, first bool) []relax.Column {
	const rounds, far = 2, 3 // for a first proof, and how many times as far as is enough the plan may be above that
	model, steps := r.model, p.effort.search(p.in.things())
	if len(model.Supply) > 0 { // no search among sets knows how often a kind may be bought
		m := p.generate(r)
		p.prove(r, m, first)
		return p.dive(r, m, m.Values())
	}
	if len(model.Classes) > fewKinds {
		columns, _ := p.search(r, nil, model.Coverage(), first, steps)
		return columns
	}
	columns := model.Greedy(&relax.Budget{})
	if p.in.things() >= coarse*len(columns) {
		columns, _ = p.search(r, columns, model.Coverage(), first, steps)
		return columns
	}
	p.budget.Left = steps / 2
	m := p.generate(r)
	value := m.Values()
	if len(model.Kinds) <= 2 {
		p.prove(r, m, first)
		columns = cheaper(model, columns, p.dive(r, m, value))
	} else {
		var side sync.WaitGroup
		var other []relax.Column
		early := p.floor(m) // a variable of its own: what is proved beside it must not sway it
		side.Go(func() { other = model.Pair(0, columns, value, early, steps/32) })
		p.proveNear(r, m, first, p.effort.enough(p.in.things())/2, rounds, p.budget.Left)
		floor := p.floor(m)
		whole := p.whole(model, m, columns)
		side.Wait()
		columns = model.Pair(1, cheaper(model, other, whole), value, floor, steps/32)
	}
	columns, _ = p.search(r, columns, value, first, steps/4)
	known := Price(0)
	for _, h := range p.hints {
		known = max(known, h.bound.Price)
	}
	if float64(known)*(1+far*p.effort.enough(p.in.things())) < model.Cost(columns) {
		p.prove(r, m, first)
	}
	return columns
}

// shortest looks for something cheaper than the columns by what is left after each bin, where there are few things of few
// classes. done says that there is nothing better.
func (p *planner) shortest(r *relaxation, columns []relax.Column, proof relax.Proof, steps int) (better []relax.Column, done bool) {
	if len(r.model.Supply) > 0 || r.model.Uncovered(columns) || proof.Price == 0 {
		return columns, false
	}
	cost := int64(r.model.Cost(columns))
	if enough := 1 + p.effort.enough(p.in.things()); float64(p.in.roundUp(Price(proof.Price)))*enough >= float64(cost) {
		return columns, true
	}
	s := few.NewResidual(r.model, proof.Value, &relax.Budget{Left: steps})
	if s == nil {
		return columns, false
	}
	least, found := s.Below(cost)
	if found != nil {
		columns, cost = found, least
	}
	b := p.in.itemBound(r, proof)
	b.Price, b.Kind = Price(least), Exhaustive
	p.learn(b)
	return columns, least >= cost
}

// search looks through all sets of bins that cost less than the columns, where there are few things; without columns it
// makes some first. done says that there is nothing better.
func (p *planner) search(r *relaxation, columns []relax.Column, value []float64, first bool, steps int) (better []relax.Column, done bool) {
	const thresholds, levels = 8, 5
	const far = 1.045 // a plan so far above its bound is worth some more time
	enough := 1 + p.effort.enough(p.in.things())
	if len(r.model.Supply) > 0 || columns != nil && r.model.Uncovered(columns) {
		return columns, false
	}
	for _, h := range p.hints {
		if first && columns != nil && float64(p.in.roundUp(h.bound.Price))*enough >= r.model.Cost(columns)*(1-1e-12) {
			return columns, true
		}
	}
	whole := make([]float64, len(value))
	for i, v := range value {
		whole[i] = math.Floor(v)
	}
	var s *few.Search
	var side sync.WaitGroup
	side.Go(func() {
		s = few.NewSearch(r.model, whole, min(max(steps/5000, 200), few.Deepest), &relax.Budget{Left: steps})
	})
	many := p.in.things() > 50
	if many {
		columns = r.model.Pair(0, columns, value, 0, steps/16)
	} else {
		columns = few.Exchange(r.model, columns, 0, 20+steps/40_000, &relax.Budget{Left: steps})
	}
	side.Wait()
	if r.model.Uncovered(columns) {
		return columns, false
	}
	cost := r.model.Cost(columns)
	least := min(s.Root(), cost)
	good := func() bool { // the proof may still be near
		if s.Budget.Left > steps-hopeful {
			return least >= cost
		}
		return least*enough >= cost
	}
	sweep := func() {
		for s.Level = 0; s.Level < levels && !good() && s.Budget.Left > 0; s.Level++ {
			sure := true
			for from, k := least, 1; k <= thresholds && from < cost && !good() && s.Budget.Left > 0; k++ {
				limit := from + (cost-from)*float64(k)/thresholds
				low := s.Below(limit, false)
				if s.Found != nil && s.Cost < cost {
					columns, cost = s.Found, s.Cost
				}
				if sure {
					least = max(least, min(low, cost))
				}
				sure = sure && low >= min(limit, cost)
			}
		}
	}
	sweep()
	if many && least*far < cost {
		columns = r.model.Pair(1, columns, value, least, steps/2)
		if least*far < r.model.Cost(columns) {
			columns = few.Exchange(r.model, columns, least, 200, &relax.Budget{Left: steps / 2})
		}
		cost = r.model.Cost(columns)
		s.Budget.Left = steps
		sweep()
	}
	if !first {
		return columns, least*enough >= cost // what it proves does not hold for everything
	}
	b := Bound{Price: Price(math.Ceil(least * (1 - 1e-12))), Kind: Exhaustive, Items: make([]Price, len(p.in.problem.Items))}
	for c, members := range r.members {
		for _, i := range members {
			b.Items[i] = Price(whole[c])
		}
	}
	p.learn(b)
	return columns, least*enough >= cost
}
