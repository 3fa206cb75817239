package exclusion

import (
	"cmp"
	"slices"
	"strings"

	"github.com/joinery-sdk/joinery/instancetypes"
	"github.com/joinery-sdk/joinery/requirements"
)

// Ranking says how far the instance types of a pool are from suiting pods with some requirements.
// It depends on labels only, so pods of all sizes share it. It takes time in proportion to the
// offerings of the pool, and is safe for concurrent use.
type Ranking struct {
	// Excluded are the types of which every offering is excluded that can be bought. The type
	// with the fewest violated requirements of the pod comes first, then that with the fewest of the
	// pool, then the cheapest, then the first by name.
	Excluded []int32
	// ByPool is the first type of the catalogue that only requirements of the pool exclude; -1 if
	// there is none.
	ByPool int
	// Unsold are the types of which some offering is not excluded, but cannot be bought, in the order
	// of the catalogue; see [Ranking.Suitable].
	Unsold []int32

	required         requirements.Alternatives
	pool, registered requirements.Set
	asked            requirements.Keys
	types            []instancetypes.InstanceType
}

// Rank ranks the types of a pool for pods with some requirements. pool is what the pool requires, and
// registered also has all other labels of its nodes.
func Rank(required requirements.Alternatives, pool, registered requirements.Set, types []instancetypes.InstanceType) *Ranking {
	r := &Ranking{ByPool: -1, required: required, pool: pool, registered: registered, asked: required.Keys().Union(pool.Keys()), types: types}
	type rank struct {
		pod, pool int // violated requirements
		price     float64
	}
	ranks := make([]rank, len(types))
	for i := range types {
		price, sold := types[i].LeastPrice(requirements.Set{})
		by, excluded := r.of(i, true)
		if excluded || !sold {
			if _, never := r.of(i, false); !never {
				r.Unsold = append(r.Unsold, int32(i))
			}
		}
		if excluded {
			ranks[i].pod, ranks[i].pool = by.Count()
			ranks[i].price = price
			r.Excluded = append(r.Excluded, int32(i))
			if r.ByPool < 0 && ranks[i].pod == 0 {
				r.ByPool = i
			}
		}
	}
	slices.SortStableFunc(r.Excluded, func(i, k int32) int {
		a, b := ranks[i], ranks[k]
		return cmp.Or(cmp.Compare(a.pod, b.pod), cmp.Compare(a.pool, b.pool), cmp.Compare(a.price, b.price), strings.Compare(types[i].Name, types[k].Name))
	})
	return r
}

// Of returns what excludes the pods from a type that can be bought.
func (r *Ranking) Of(i int) Exclusion {
	by, _ := r.of(i, true)
	return by
}

// Suitable returns the offerings of a type that are not excluded.
func (r *Ranking) Suitable(i int) []instancetypes.Offering {
	typ := &r.types[i]
	return slices.DeleteFunc(slices.Clone(typ.Offerings), func(o instancetypes.Offering) bool {
		labels := o.Requirements.Restrict(r.asked)
		_, excluded := of(r.required, r.pool, r.registered, typ.Requirements, []requirements.Set{labels})
		return excluded || !typ.Requirements.Overlaps(labels)
	})
}

func (r *Ranking) of(i int, available bool) (Exclusion, bool) {
	typ := &r.types[i]
	return of(r.required, r.pool, r.registered, typ.Requirements, offerings(typ, r.asked, available))
}
