package deprovision

import (
	"slices"

	"github.com/joinery-sdk/joinery/deprovision/eligibility"
)

// dearer is how much of the price before a plan may cost more than another to be taken for its fewer evictions.
const dearer = 0.02

// best is the best of several plans: this one, and the one that the reference's search gives, gone on with from there. No
// cluster is planned worse than by that search; and of plans that save about the same it is the one with the fewest evictions.
func (p *planner) best(other *planner) *planner {
	other.turns()
	reference := other.out.PricePerHourAfter
	plans := []*planner{p}
	if p.o.Passes > 0 {
		if p.out.PricePerHourAfter > reference+tiny {
			plans = []*planner{other, p}
		}
	} else {
		plans = append(plans, p.onFrom(other)...)
	}
	cheapest, questions, avoided := plans[0], 0, 0
	for _, x := range plans {
		questions, avoided = questions+x.out.Questions, avoided+x.out.Avoided
		if x.out.PricePerHourAfter < cheapest.out.PricePerHourAfter-tiny {
			cheapest = x
		}
	}
	out := cheapest
	if p.o.Passes == 0 {
		limit := min(reference+tiny, cheapest.out.PricePerHourAfter+dearer*p.out.PricePerHour)
		for _, x := range plans {
			if x.out.PricePerHourAfter <= limit && x.out.Evictions < out.out.Evictions {
				out = x
			}
		}
	}
	out.out.Questions, out.out.Avoided = questions, avoided
	return out
}

// onFrom are the plans that go on from the one of the reference's search: as it is, and tidied up.
func (p *planner) onFrom(other *planner) []*planner {
	other.o.Search = p.o.Search
	other.passes(other.pass)
	tidied := other.fork()
	other.turns()
	if slices.ContainsFunc(tidied.out.Commands[tidied.first:], func(c Command) bool { return c.Method != eligibility.Consolidation }) {
		return []*planner{other}
	}
	tidied.out.Questions, tidied.out.Avoided = 0, 0 // counted with the other
	begun := other.begun.fork()
	begun.o.Search = p.o.Search
	tidied.tidy(begun, tidied.first)
	tidied.turns()
	return []*planner{other, tidied}
}
