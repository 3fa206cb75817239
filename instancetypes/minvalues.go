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

// MinValues returns how many types, from the start of the list, are needed so that nodes of these
// types can have at least minValues[key] different values of each key. Only values that ask admits
// count. ask is compared key by key: a type that ask excludes by another key of its labels counts
// all the same. So pass only types that ask admits, see [Compatible]; planning does, as Karpenter
// does. A type has the values of its available offerings that ask admits; a type without any
// offering has the values of its labels. A label that no type or offering has, but only ask, has no
// values. The result is 0 if minValues requires nothing. If even the whole list does not satisfy a
// key, the error joins one [*MinValuesError] for each such key, in ascending order, and the length
// is that of the list.
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
			addValues(seen[i], &t, ask, key)
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

// addValues adds the values of a label that nodes of the type can have.
func addValues(to map[string]bool, t *InstanceType, ask requirements.Set, key string) {
	own := t.Requirements.Get(key).Intersect(ask.Get(key))
	add := func(r requirements.Requirement) {
		values, _ := r.Values()
		for _, v := range values {
			to[v] = true
		}
	}
	narrows := t.Requirements.Has(key) // a label that is not of the type says nothing about a choice of types
	if len(t.Offerings) == 0 && narrows {
		add(own)
	}
	for i := range t.Offerings {
		o := &t.Offerings[i]
		if !o.Available || !o.Requirements.Overlaps(ask) {
			continue
		}
		if o.Requirements.Has(key) {
			add(own.Intersect(o.Requirements.Get(key)))
		} else if narrows { // once is enough
			narrows = false
			add(own)
		}
	}
}

// Truncate returns the n cheapest types for a node which satisfies ask, in the order of [ByPrice].
// If these types do not have enough different values, it returns them together with the error of
// [MinValues].
func Truncate(types []InstanceType, n int, ask requirements.Set, minValues map[string]int) ([]InstanceType, error) {
	out := ByPrice(types, ask)
	if len(out) > max(n, 0) {
		out = slices.Clip(out[:max(n, 0)])
	}
	_, err := MinValues(out, ask, minValues)
	return out, err
}
