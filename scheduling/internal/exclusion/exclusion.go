// Package exclusion says which requirements of a pod and its node pool exclude an instance type.
package exclusion

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/taints"
)

// Exclusion is what keeps a pod from every offering of a type: without all of these requirements,
// the type holds the pod. The zero value is nothing.
type Exclusion struct {
	// Each are requirements that each exclude every offering.
	Each []Cause
	// Together exclude the offerings that Each alone do not: each excludes some of them.
	Together []Cause
}

// Cause is a requirement of the pod, or else of the node pool.
type Cause struct {
	Pod bool
	requirements.Requirement
}

func (c Cause) compare(o Cause) int {
	if c.Pod != o.Pod {
		if o.Pod {
			return -1
		}
		return 1
	}
	return strings.Compare(c.Key(), o.Key())
}

func (c Cause) equal(o Cause) bool { return c.Pod == o.Pod && c.Equal(o.Requirement) }

// offerings returns the distinct labels of a type's offerings under some keys. With available, only
// those count that can be bought. A type without offerings has one without labels.
func offerings(typ *instancetypes.InstanceType, keys requirements.Keys, available bool) []requirements.Set {
	if len(typ.Offerings) == 0 {
		return []requirements.Set{{}}
	}
	var out []requirements.Set
	for _, o := range typ.Offerings {
		if available && !(o.Available && o.Price >= 0 && !math.IsInf(o.Price, 1)) {
			continue
		}
		if labels := o.Requirements.Restrict(keys); typ.Requirements.Overlaps(labels) && !slices.ContainsFunc(out, labels.Equal) {
			out = append(out, labels)
		}
	}
	return out
}

// OfferingKeys returns the keys of the labels of a type's offerings.
func OfferingKeys(typ *instancetypes.InstanceType) requirements.Keys {
	var out requirements.Keys
	for i := range typ.Offerings {
		out = out.Union(typ.Offerings[i].Requirements.Keys())
	}
	return out
}

// of returns what excludes a pod from the offerings of a type. Of the alternatives that the pod
// requires, it takes the one with the fewest conflicts. pool is what the pool requires, and
// registered also has all other labels of its nodes. The second result is false if there is no
// offering, or if some offering is not excluded.
func of(required requirements.Alternatives, pool, registered, typ requirements.Set, offerings []requirements.Set) (Exclusion, bool) {
	var best Exclusion
	fewest := -1
	byPool := make([][]Cause, len(offerings))
	for i, o := range offerings {
		for r := range pool.All() {
			if have, ok := label(r.Key(), typ, o); ok && !have.Overlaps(r) {
				byPool[i] = append(byPool[i], Cause{false, r})
			}
		}
	}
	for alt := range required.All() {
		conflicts := 0
		by := make([][]Cause, len(offerings))
		for i, o := range offerings {
			by[i] = slices.Clone(byPool[i])
			for r := range alt.All() {
				if key := r.Key(); key != taints.Key && (!r.Overlaps(pool.Get(key)) || !r.Overlaps(node(key, registered, typ, o))) {
					by[i] = append(by[i], Cause{true, r})
				}
			}
			if len(by[i]) == 0 {
				return Exclusion{}, false
			}
			conflicts += len(by[i]) - len(byPool[i])
		}
		if fewest < 0 || conflicts < fewest {
			fewest, best = conflicts, merge(by)
		}
	}
	return best, fewest >= 0 && len(offerings) > 0
}

// label returns what a type and its offering say of a label; false if neither mentions it.
func label(key string, typ, offering requirements.Set) (requirements.Requirement, bool) {
	return typ.Get(key).Intersect(offering.Get(key)), typ.Has(key) || offering.Has(key)
}

// node returns what a label of the node can be. If pool and type contradict each other, the type
// decides, because the contradiction is the pool's.
func node(key string, registered, typ, offering requirements.Set) requirements.Requirement {
	have, ok := label(key, typ, offering)
	switch {
	case !ok && !registered.Has(key):
		return requirements.DoesNotExist(key)
	case have.Overlaps(registered.Get(key)):
		return have.Intersect(registered.Get(key))
	}
	return have
}

// merge splits the causes of all offerings into those that every list has and the others. The
// others exclude nothing if some list has none of them.
func merge(lists [][]Cause) Exclusion {
	all := slices.SortedFunc(slices.Values(slices.Concat(lists...)), Cause.compare)
	all = slices.CompactFunc(all, Cause.equal)
	var out Exclusion
	for _, c := range all {
		if slices.ContainsFunc(lists, func(list []Cause) bool { return !slices.ContainsFunc(list, c.equal) }) {
			out.Together = append(out.Together, c)
		} else {
			out.Each = append(out.Each, c)
		}
	}
	if slices.ContainsFunc(lists, func(list []Cause) bool { return len(list) == len(out.Each) }) {
		out.Together = nil
	}
	return out
}

// Count returns how many of the requirements are the pod's, and how many are the pool's.
func (e Exclusion) Count() (pod, pool int) {
	pod = len(e.PodKeys())
	return pod, len(e.Each) + len(e.Together) - pod
}

// PodKeys returns the keys of the pod's requirements.
func (e Exclusion) PodKeys() []string {
	var out []string
	for _, c := range slices.Concat(e.Each, e.Together) {
		if c.Pod {
			out = append(out, c.Key())
		}
	}
	return out
}

// String names the requirements: "the pool's a in (1) and the pod's b in (2)".
func (e Exclusion) String() string {
	by := texts(e.Each)
	if len(e.Together) > 0 {
		by = append(by, "its offerings, because none has both "+strings.Join(texts(e.Together), " and "))
	}
	return strings.Join(by, " and ")
}

func texts(causes []Cause) []string {
	var out []string
	for _, c := range causes {
		whose := "the pool's "
		if c.Pod {
			whose = "the pod's "
		}
		out = append(out, whose+c.String())
	}
	return out
}

// Known returns, by key, the values that a pool, its types and their offerings have. registered
// also has the labels that pool does not have. A key whose values cannot be listed has none.
func Known(pool, registered requirements.Set, types []instancetypes.InstanceType) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	see := func(s requirements.Set) {
		for r := range s.All() {
			if r.Key() == taints.Key || r.IsImpossible() {
				continue
			}
			if out[r.Key()] == nil {
				out[r.Key()] = map[string]bool{}
			}
			values, _ := r.Values()
			for _, v := range values {
				out[r.Key()][v] = true
			}
		}
	}
	see(registered)
	for i := range types {
		if !types[i].Requirements.Overlaps(pool) {
			continue
		}
		see(types[i].Requirements)
		for _, o := range types[i].Offerings {
			see(o.Requirements)
		}
	}
	return out
}

// Closest returns the first conflict with the pool and all values of its types. It takes the
// alternative with the fewest conflicts, and is nil if that has none. known is the result of [Known].
func Closest(required requirements.Alternatives, pool requirements.Set, types []instancetypes.InstanceType, known map[string]map[string]bool) *requirements.ConflictError {
	b, open := requirements.Builder{}, []string(nil)
	for key, values := range known { // the builder sorts
		if len(values) == 0 {
			open = append(open, key)
			continue
		}
		allowed := pool.Get(key)
		have := requirements.In(key, slices.Sorted(maps.Keys(values))...).Intersect(allowed)
		if lacks := func(t instancetypes.InstanceType) bool { return t.Requirements.Get(key).AllowsAbsent() }; have.IsImpossible() {
			have = allowed
		} else if !pool.Has(key) && slices.ContainsFunc(types, lacks) {
			have = have.Union(requirements.DoesNotExist(key))
		}
		b.Add(have)
	}
	node, err := b.Set()
	if err != nil {
		return nil
	}
	if best := fewestConflicts(required, node, requirements.KeysOf(open...)); len(best) > 0 {
		return best[0]
	}
	return nil
}

// fewestConflicts returns the conflicts of the alternative that has the fewest. Keys in open may
// have any value.
func fewestConflicts(required requirements.Alternatives, node requirements.Set, open requirements.Keys) []*requirements.ConflictError {
	var best []*requirements.ConflictError
	for alt := range required.All() {
		conflicts := alt.Conflicts(node, open)
		if len(conflicts) == 0 {
			return nil
		}
		if best == nil || len(conflicts) < len(best) {
			best = conflicts
		}
	}
	return best
}
