package volume

import "slices"

// SharedClaim is an unbound claim that several pods may use. Its volume is made in the zone of the
// first pod, so all must be in one zone.
type SharedClaim struct {
	// Claim is its namespace/name.
	Claim string
	// Consumers are the positions of its users, ascending.
	Consumers []int
}

// Shared returns the unbound claims that pods may share, even those with only one user, in the
// order of their first users. needs are those of [Index.Assign]. Ephemeral volumes are never
// shared.
func Shared(consumers []Consumer, needs []Need) []SharedClaim {
	var out []SharedClaim
	at := map[string]int{}
	for i := range needs {
		for _, key := range needs[i].Unbound {
			k, ok := at[key]
			if !ok {
				k = len(out)
				at[key] = k
				out = append(out, SharedClaim{Claim: key})
			}
			out[k].Consumers = append(out[k].Consumers, i)
		}
	}
	return slices.DeleteFunc(out, func(s SharedClaim) bool {
		c := consumers[s.Consumers[0]]
		ephemeral := func(u use) bool { return u.ephemeral && u.key == s.Claim }
		return len(s.Consumers) == 1 && slices.ContainsFunc(new(Index).uses(c.Pod), ephemeral)
	})
}
