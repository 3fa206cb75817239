package volume

import "slices"

// SharedClaim is an unbound claim that several pods use. Its volume is made in the zone of the first pod, so all must be in one zone.
type SharedClaim struct {
	// Claim is its namespace/name.
	Claim string
	// Consumers are the positions of its users, ascending.
	Consumers []int
}

// Shared lists the unbound claims that several pods use, in the order of their first users; needs are those of [Index.Assign]. Ephemeral
// volumes are never shared.
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
		return len(s.Consumers) == 1 && (c.Count <= 1 || c.ephemeral(s.Claim))
	})
}

// ephemeral reports whether the claim is of an ephemeral volume.
func (c Consumer) ephemeral(key string) bool {
	for i := range c.Pod.Spec.Volumes {
		if v := &c.Pod.Spec.Volumes[i]; v.Ephemeral != nil && c.Pod.Namespace+"/"+claimName(c.Pod, v) == key {
			return true
		}
	}
	return false
}
