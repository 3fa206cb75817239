package instancetypes

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/joinery-sdk/joinery/requirements"
)

// MinValuesError says that a list of types has too few different values of a key.
type MinValuesError struct {
	Key        string
	Want, Have int
}

// Error says how many values are missing.
func (e *MinValuesError) Error() string {
	return fmt.Sprintf("instancetypes: minValues of %s: want %d different values, these types have %d", e.Key, e.Want, e.Have)
}

// MinValues returns the length of the shortest prefix of types that together can have at least minValues[key] different
// values of each key, as far as ask admits them. Without minValues that is 0. The error joins one [*MinValuesError] for
// each key that even the whole list does not satisfy, in ascending order of the keys; the length is then that of the list.
func MinValues(types []InstanceType, ask requirements.Set, minValues map[string]int) (int, error) {
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(minValues)), func(key string) bool { return minValues[key] <= 0 })
	if len(keys) == 0 {
		return 0, nil
	}
	seen := make([]map[string]bool, len(keys))
	missing := len(keys)
	for i := range seen {
		seen[i] = map[string]bool{}
	}
	for n, t := range types {
		for i, key := range keys {
			if len(seen[i]) >= minValues[key] {
				continue
			}
			values, _ := t.Requirements.Get(key).Intersect(ask.Get(key)).Values()
			for _, v := range values {
				seen[i][v] = true
			}
			if len(seen[i]) >= minValues[key] {
				missing--
			}
		}
		if missing == 0 {
			return n + 1, nil
		}
	}
	var errs []error
	for i, key := range keys {
		if len(seen[i]) < minValues[key] {
			errs = append(errs, &MinValuesError{Key: key, Want: minValues[key], Have: len(seen[i])})
		}
	}
	return len(types), errors.Join(errs...)
}

// Truncate returns the n cheapest types under ask, in the order of [ByPrice]. The error is that of [MinValues] if the
// types that are left do not have enough different values; the types are returned nevertheless.
func Truncate(types []InstanceType, n int, ask requirements.Set, minValues map[string]int) ([]InstanceType, error) {
	out := ByPrice(types, ask)
	if len(out) > max(n, 0) {
		out = slices.Clip(out[:max(n, 0)])
	}
	_, err := MinValues(out, ask, minValues)
	return out, err
}
