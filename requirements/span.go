package requirements

import (
	"math"
	"slices"
)

// span is a closed interval of integers, 0 <= lo <= hi. A set of integers is a slice of spans that
// are sorted, disjoint and not adjacent. That form is unique, so two sets are equal if their slices
// are.
type span struct{ lo, hi int64 }

// allInts returns a fresh slice each time, so that no package-level variable is handed out.
func allInts() []span { return []span{{0, math.MaxInt64}} }

func isAllInts(a []span) bool { return len(a) == 1 && a[0].lo == 0 && a[0].hi == math.MaxInt64 }

func spansContain(a []span, n int64) bool {
	lo, hi := 0, len(a)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		switch {
		case n < a[mid].lo:
			hi = mid
		case n > a[mid].hi:
			lo = mid + 1
		default:
			return true
		}
	}
	return false
}

func intersectSpans(a, b []span) []span {
	var out []span
	for i, j := 0, 0; i < len(a) && j < len(b); {
		lo, hi := max(a[i].lo, b[j].lo), min(a[i].hi, b[j].hi)
		if lo <= hi {
			out = append(out, span{lo, hi})
		}
		if a[i].hi < b[j].hi {
			i++
		} else {
			j++
		}
	}
	return out
}

func spansOverlap(a, b []span) bool {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if max(a[i].lo, b[j].lo) <= min(a[i].hi, b[j].hi) {
			return true
		}
		if a[i].hi < b[j].hi {
			i++
		} else {
			j++
		}
	}
	return false
}

func unionSpans(a, b []span) []span {
	all := slices.Concat(a, b)
	return normalizeSpans(all)
}

// normalizeSpans sorts and merges spans. It may reorder its argument, which the caller must own.
func normalizeSpans(all []span) []span {
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(x, y span) int {
		switch {
		case x.lo < y.lo:
			return -1
		case x.lo > y.lo:
			return 1
		}
		return 0
	})
	out := all[:1]
	for _, s := range all[1:] {
		last := &out[len(out)-1]
		// Adjacent spans merge too; the first test keeps last.hi+1 from overflowing.
		if last.hi == math.MaxInt64 || s.lo <= last.hi+1 {
			last.hi = max(last.hi, s.hi)
			continue
		}
		out = append(out, s)
	}
	return out
}

func complementSpans(a []span) []span {
	var out []span
	next := int64(0)
	for _, s := range a {
		if s.lo > next {
			out = append(out, span{next, s.lo - 1})
		}
		if s.hi == math.MaxInt64 {
			return out
		}
		next = s.hi + 1
	}
	return append(out, span{next, math.MaxInt64})
}

// tooMany reports whether a has more than listLimit integers.
func tooMany(a []span) bool {
	left := int64(listLimit)
	for _, s := range a {
		width := s.hi - s.lo // one less than the count, so that it cannot overflow
		if width >= left {
			return true
		}
		left -= width + 1
	}
	return false
}

// canonicalInt reads an integer in its one canonical spelling. It allocates nothing.
func canonicalInt(s string) (int64, bool) {
	if s == "" || len(s) > 19 || (s[0] == '0' && len(s) > 1) {
		return 0, false
	}
	var n int64
	for i := range len(s) {
		d := int64(s[i]) - '0'
		if d < 0 || d > 9 || n > (math.MaxInt64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}
