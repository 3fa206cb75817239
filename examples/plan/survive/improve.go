package survive

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling"
)

// effort limits the work of improving headroom. It counts pods that are planned again, plus a fixed
// cost for each plan. It is the same on every machine.
const (
	effort    = 30_000
	eachStart = 50
)

// improve gives spares back, and replaces one or two of them with a cheaper one, as long as every
// failure still holds, within all limits, and the price is not close to the lower bound. It does not try what would
// cost less than the bound.
func (r *rehearsal) improve(ctx context.Context, short []Outcome, lower float64) error {
	if priceOf(r.spare) <= lower*closeEnough {
		return nil
	}
	offers, err := r.offers()
	if err != nil {
		return err
	}
	limits, err := r.allowance(r.snapshot)
	if err != nil {
		return err
	}
	order := slices.Clone(short) // a failure that was not met is tried first the next time
	budget := effort
	for better := true; better && budget > 0 && priceOf(r.spare) > lower*closeEnough; {
		better = false
		slices.SortStableFunc(r.spare, func(a, b Spare) int { return cmp.Compare(b.PricePerHour, a.PricePerHour) })
		for _, out := range candidates(len(r.spare)) {
			kept, price := split(r.spare, out)
			for k := -1; k < len(offers); k++ {
				if k >= 0 && offers[k].PricePerHour > price-1e-9 {
					break // they are sorted by price
				}
				if len(out) == 2 && k < 0 || budget <= 0 {
					continue // single spares were tried already
				}
				if k < 0 && priceOf(kept) < lower-1e-9 || k >= 0 && priceOf(kept)+offers[k].PricePerHour < lower-1e-9 {
					continue
				}
				next := rehearsal{snapshot: r.snapshot, spare: kept, next: r.next, by: r.by, sale: r.sale, hints: r.hints}
				if k >= 0 {
					next.add(offers[k])
				}
				left, err := r.allowance(next.cluster())
				if err != nil {
					return err
				}
				if left.exceeds(limits) {
					budget -= eachStart
					continue
				}
				ok, err := next.met(ctx, order, &budget)
				if err != nil {
					return err
				}
				if ok {
					*r, better = next, true
					break
				}
			}
			if better {
				break
			}
		}
	}
	return nil
}

func priceOf(all []Spare) (sum float64) {
	for i := range all {
		sum += all[i].PricePerHour
	}
	return sum
}

// candidates returns the spares to remove, by index: each alone, then each pair.
func candidates(n int) [][]int {
	var out [][]int
	for i := range n {
		out = append(out, []int{i})
	}
	for i := range n {
		for k := i + 1; k < n; k++ {
			out = append(out, []int{i, k})
		}
	}
	return out
}

// split returns the spares without some of them, and the price of those.
func split(all []Spare, out []int) (kept []Spare, price float64) {
	for i := range all {
		if slices.Contains(out, i) {
			price += all[i].PricePerHour
		} else {
			kept = append(kept, all[i])
		}
	}
	return kept, price
}

// met reports whether no failure lets pods wait that have a place with other headroom.
func (r *rehearsal) met(ctx context.Context, order []Outcome, budget *int) (bool, error) {
	for i := range order {
		s, displaced := order[i].after(r.cluster())
		*budget -= eachStart + len(displaced)
		now, err := r.atOnce(ctx, order[i].Failure, s)
		if err != nil {
			return false, err
		}
		if len(now.waiting) > len(order[i].Lost) {
			first := order[i]
			copy(order[1:i+1], order[:i])
			order[0] = first
			return false, nil
		}
	}
	return true, nil
}

// offers returns the nodes that pools can buy as spares, cheapest first. Within a pool and domain
// it leaves out nodes that are no larger than a cheaper one.
func (r *rehearsal) offers() ([]Spare, error) {
	p, err := scheduling.Compile(r.snapshot, r.by.Scheduling)
	if err != nil {
		return nil, fmt.Errorf("survive: %w", err)
	}
	var out []Spare
	for i := range p.Shapes {
		for k, so := range p.Shapes[i].Offerings {
			if so.Count > 0 { // only a plan knows how many of these can be bought
				continue
			}
			if spare, ok := spareOffer(p, i, k, requirements.Set{}); ok {
				out = append(out, spare)
			}
		}
	}
	slices.SortFunc(out, func(a, b Spare) int {
		return cmp.Or(cmp.Compare(a.PricePerHour, b.PricePerHour), strings.Compare(a.InstanceType, b.InstanceType), strings.Compare(a.Zone, b.Zone),
			strings.Compare(a.CapacityType, b.CapacityType), strings.Compare(a.Pool, b.Pool))
	})
	var front []Spare
	for i := range out {
		if slices.ContainsFunc(front, func(f Spare) bool { return f.covers(&out[i]) }) {
			continue
		}
		s, ok := r.sale.promised(out[i])
		if ok && (!s.isFlexible() || !slices.ContainsFunc(front, func(f Spare) bool { return f.covers(&s) })) {
			front = append(front, s)
		}
	}
	return front, nil
}

// covers reports whether a spare is as good as another one everywhere, and in the same domains.
func (s *Spare) covers(other *Spare) bool {
	if s.Pool != other.Pool || s.Zone != other.Zone || s.CapacityType != other.CapacityType || s.family != other.family {
		return false
	}
	for name, q := range other.free {
		if mine, ok := s.free[name]; !ok || mine.Cmp(q) < 0 {
			return false
		}
	}
	return true
}
