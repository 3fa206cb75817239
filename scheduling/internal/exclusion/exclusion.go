// Package exclusion says which requirements of a pod and its node pool exclude an instance type.
package exclusion

import (
	"math"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
	"github.com/joinery-sdk/joinery/scheduling/internal/taints"
)

// Exclusion is what keeps a pod from every offering of a type. The zero value is nothing.
type Exclusion struct {
	// Pool and Pod are requirements of the node pool and of the pod that each exclude every
	// offering. If no requirement does so alone, Together is true, and they are all requirements
	// that exclude some offering.
	Pool, Pod []requirements.Requirement
	Together  bool
}

// Offerings returns the distinct labels of a type's offerings under some keys. With available, only
// those count that can be bought. A type without offerings has one without labels.
func Offerings(typ *instancetypes.InstanceType, keys requirements.Keys, available bool) []requirements.Set {
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

// Of returns what excludes a pod from the offerings of a type. Of the alternatives that the pod
// requires, it takes the one with the fewest conflicts. pool is what the pool requires, and
// registered also has all other labels of its nodes. The second result is false if there is no
// offering, or if some offering is not excluded.
func Of(required requirements.Alternatives, pool, registered, typ requirements.Set, offerings []requirements.Set) (Exclusion, bool) {
	var best Exclusion
	fewest := -1
	byPool := make([][]requirements.Requirement, len(offerings))
	for i, o := range offerings {
		for r := range pool.All() {
			if have, ok := label(r.Key(), typ, o); ok && !have.Overlaps(r) {
				byPool[i] = append(byPool[i], r)
			}
		}
	}
	for alt := range required.All() {
		conflicts := 0
		byPod := make([][]requirements.Requirement, len(offerings))
		for i, o := range offerings {
			for r := range alt.All() {
				if key := r.Key(); key != taints.Key && (!r.Overlaps(pool.Get(key)) || !r.Overlaps(node(key, registered, typ, o))) {
					byPod[i] = append(byPod[i], r)
				}
			}
			if len(byPool[i])+len(byPod[i]) == 0 {
				return Exclusion{}, false
			}
			conflicts += len(byPod[i])
		}
		if fewest < 0 || conflicts < fewest {
			fewest, best = conflicts, merge(byPool, byPod)
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

// merge returns the requirements that are in every list, or else all of them.
func merge(byPool, byPod [][]requirements.Requirement) Exclusion {
	if common := (Exclusion{Pool: inEach(byPool), Pod: inEach(byPod)}); len(common.Pool)+len(common.Pod) > 0 {
		return common
	}
	return Exclusion{Pool: inAny(byPool), Pod: inAny(byPod), Together: true}
}

func inEach(lists [][]requirements.Requirement) []requirements.Requirement {
	return slices.DeleteFunc(inAny(lists), func(r requirements.Requirement) bool {
		return slices.ContainsFunc(lists, func(list []requirements.Requirement) bool { return !slices.ContainsFunc(list, r.Equal) })
	})
}

// inAny returns the requirements of all lists in the order of their keys.
func inAny(lists [][]requirements.Requirement) []requirements.Requirement {
	out := slices.SortedFunc(slices.Values(slices.Concat(lists...)), func(a, b requirements.Requirement) int { return strings.Compare(a.Key(), b.Key()) })
	return slices.CompactFunc(out, requirements.Requirement.Equal)
}

// String names the requirements: "the pool's a in (1) and the pod's b in (2)".
func (e Exclusion) String() string {
	var by []string
	for _, r := range e.Pool {
		by = append(by, "the pool's "+r.String())
	}
	for _, r := range e.Pod {
		by = append(by, "the pod's "+r.String())
	}
	text := strings.Join(by, " and ")
	if e.Together {
		return "its offerings, because none has both " + text
	}
	return text
}
