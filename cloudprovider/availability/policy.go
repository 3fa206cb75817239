package availability

import (
	"cmp"
	"strings"
	"time"
)

// Policy says for how long refusals count. The zero value means the defaults.
type Policy struct {
	// First is how long the first refusal withholds an offering, and Longest the most that any does. Each further refusal
	// doubles the time. 0 = 3 minutes and 1 hour.
	First, Longest time.Duration
	// Memory is for how long after a refusal has ended the next one still counts as a further one. 0 = 1 hour.
	Memory time.Duration
	// FamilyTypes is how many types of a family must be withheld at a time, in one zone at one capacity type, for the
	// family to be withheld there; ZoneFamilies how many families must be, for the zone at that capacity type.
	// 0 = 3 of each; negative = never. What was withheld as a whole is so again at the first refusal within Memory.
	FamilyTypes, ZoneFamilies int
	// Quota is how long a quota's first refusal blocks what it covers; it doubles in the same way. 0 = 5 minutes.
	Quota time.Duration
}

// WithDefaults replaces the zeros.
func (p Policy) WithDefaults() Policy {
	p.First = cmp.Or(p.First, 3*time.Minute)
	p.Longest = max(cmp.Or(p.Longest, time.Hour), p.First)
	p.Memory = cmp.Or(p.Memory, time.Hour)
	p.FamilyTypes = cmp.Or(p.FamilyTypes, 3)
	p.ZoneFamilies = cmp.Or(p.ZoneFamilies, 3)
	p.Quota = cmp.Or(p.Quota, 5*time.Minute)
	return p
}

// hold is how long the n-th refusal in a row counts, n from 1: first x 2^(n-1), at most Longest.
func (p Policy) hold(first time.Duration, strikes int) time.Duration {
	d := min(first, p.Longest)
	for range strikes - 1 {
		if d >= p.Longest-d {
			return p.Longest
		}
		d *= 2
	}
	return d
}

// Family is the part of a type's name that it shares with its larger and smaller siblings: up to the last dot or dash
// ("m5.large" is of m5, "n2-standard-4" of n2-standard), the whole name if there is neither.
func Family(typeName string) string {
	if i := strings.LastIndexAny(typeName, ".-"); i > 0 {
		return typeName[:i]
	}
	return typeName
}
