package volume

import "slices"

// SharedClaim is a claim whose volume is yet to be made and that more than one pod waits for. The volume comes to be
// where the first of them goes, so all must go to one zone.
type SharedClaim struct {
	// Claim is its namespace/name.
	Claim string
	// Consumers are those that use it, by position, in order.
	Consumers []int
}

// Shared lists the claims that pods share before their volume is made, in the order in which they are first met; needs
// are what [Index.Assign] gave for the consumers. Ephemeral volumes are never shared: each pod has a claim of its own.
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

// ephemeral reports whether the claim is one that each pod has for itself.
func (c Consumer) ephemeral(key string) bool {
	for i := range c.Pod.Spec.Volumes {
		if v := &c.Pod.Spec.Volumes[i]; v.Ephemeral != nil && c.Pod.Namespace+"/"+claimName(c.Pod, v) == key {
			return true
		}
	}
	return false
}
