package pricing

import (
	"cmp"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/instancetypes"
)

// counted returns the quotes with a count.
func counted(quotes []instancetypes.Quote) []instancetypes.Quote {
	var out []instancetypes.Quote
	for _, q := range quotes {
		if q.Count > 0 {
			out = append(out, q)
		}
	}
	return out
}

// unlimited returns the quote without a count.
func unlimited(quotes []instancetypes.Quote) (instancetypes.Quote, bool) {
	for _, q := range quotes {
		if q.Count == 0 {
			return q, true
		}
	}
	return instancetypes.Quote{}, false
}

// ordered merges quotes in ascending order of price, with those without a count last. Counted
// quotes that are no cheaper than these are useless, but they are kept because they say what was
// paid for.
func ordered(quotes []instancetypes.Quote, more ...instancetypes.Quote) []instancetypes.Quote {
	out := slices.Concat(quotes, more)
	slices.SortStableFunc(out, func(a, b instancetypes.Quote) int {
		if (a.Count == 0) != (b.Count == 0) {
			if a.Count == 0 {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(a.Price, b.Price), strings.Compare(a.Commitment, b.Commitment))
	})
	return out
}

// each returns the quotes with another price.
func each(quotes []instancetypes.Quote, price func(instancetypes.Quote) float64) []instancetypes.Quote {
	out := slices.Clone(quotes)
	for i := range out {
		out[i].Price = max(0, price(out[i]))
	}
	return ordered(out)
}
