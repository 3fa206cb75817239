package nodekind

import "github.com/joinery-sdk/joinery/requirements"

// mostParts is the most parts of a pool.
const mostParts = 16

// Parts divides the labels of a pool's nodes by labels that the pool leaves open and no type has, as
// isOpen says. Each of the sets then holds of all nodes of a part or of none. A set that would make
// more than mostParts parts divides nothing, so it may hold of some nodes of a part.
func Parts(labels, pool requirements.Set, isOpen func(key string) bool, sets []requirements.Set) []requirements.Set {
	parts := []requirements.Set{labels}
	for _, set := range sets {
		for q := range set.All() {
			if !pool.Has(q.Key()) || !isOpen(q.Key()) {
				continue
			}
			var divided []requirements.Set
			for _, part := range parts {
				if !part.Has(q.Key()) { // no pod asks about it
					part, _ = part.Intersect(requirements.MustOf(pool.Get(q.Key())))
				}
				for _, side := range []requirements.Requirement{q, q.Complement()} {
					if both, err := part.Intersect(requirements.MustOf(side)); err == nil && !both.IsImpossible() {
						divided = append(divided, both)
					}
				}
			}
			if len(divided) <= mostParts {
				parts = divided
			}
		}
	}
	return parts
}
