package availability

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/joinery-sdk/joinery/cloudprovider"
)

// Policy says how long refusals count. The zero value means the defaults. No duration may be
// negative.
type Policy struct {
	// First is how long the first refusal withholds an offering. Each further refusal doubles the
	// time, up to Longest. 0 means 3 minutes and 1 hour. A Longest below First counts as First.
	First, Longest time.Duration
	// Memory is how long after the end of a refusal the next one still counts as a further one. 0
	// means 1 hour.
	Memory time.Duration
	// FamilyTypes is how many types of a family must be withheld at the same time, in one zone at
	// one capacity type, before the family is withheld there. ZoneFamilies is how many families
	// must be withheld before the zone is withheld at that capacity type. 0 means 3 of each; a
	// negative number means never. A family or a zone that was withheld before is withheld again at
	// the first refusal within Memory.
	FamilyTypes, ZoneFamilies int
	// Quota is how long a quota's first refusal blocks what it covers. Each further refusal doubles
	// the time, up to Longest. 0 means 5 minutes.
	Quota time.Duration
}

// Validate returns a [*cloudprovider.InvalidError] for each negative duration.
func (p Policy) Validate() error {
	var errs []error
	for _, x := range []struct {
		path string
		d    time.Duration
	}{{"policy.First", p.First}, {"policy.Longest", p.Longest}, {"policy.Memory", p.Memory}, {"policy.Quota", p.Quota}} {
		if x.d < 0 {
			errs = append(errs, &cloudprovider.InvalidError{Path: x.path, Detail: fmt.Sprintf("it is %v, must not be negative; 0 means the default", x.d)})
		}
	}
	return errors.Join(errs...)
}

// WithDefaults returns the policy with zeros replaced by the defaults.
func (p Policy) WithDefaults() Policy {
	p.First = cmp.Or(p.First, 3*time.Minute)
	p.Longest = max(cmp.Or(p.Longest, time.Hour), p.First)
	p.Memory = cmp.Or(p.Memory, time.Hour)
	p.FamilyTypes = cmp.Or(p.FamilyTypes, 3)
	p.ZoneFamilies = cmp.Or(p.ZoneFamilies, 3)
	p.Quota = cmp.Or(p.Quota, 5*time.Minute)
	return p
}

// hold returns how long the n-th refusal in a row counts, with n from 1: first x 2^(n-1), at most
// Longest.
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

// Family returns the part of a type's name before the last dot or dash, which its larger and
// smaller siblings share: "m5" of "m5.large", "n2-standard" of "n2-standard-4". It is the whole
// name if there is neither.
func Family(typeName string) string {
	if i := strings.LastIndexAny(typeName, ".-"); i > 0 {
		return typeName[:i]
	}
	return typeName
}
