package requirements

import (
	"iter"
	"maps"
	"slices"
)

// Keys is a set of label keys, for example those that a node yet to be bought leaves open. The zero
// value is empty. It is an immutable value, safe for concurrent use.
type Keys struct {
	sorted []string
}

// KeysOf returns the set of the given keys. Their order and duplicates do not matter.
func KeysOf(keys ...string) Keys {
	sorted := slices.Clone(keys)
	slices.Sort(sorted)
	return Keys{slices.Compact(sorted)}
}

// Contains reports whether key is in the set. It allocates nothing and costs O(log n).
func (k Keys) Contains(key string) bool {
	_, ok := slices.BinarySearch(k.sorted, key)
	return ok
}

// All yields the keys in order.
func (k Keys) All() iter.Seq[string] { return slices.Values(k.sorted) }

// Len returns the number of keys.
func (k Keys) Len() int { return len(k.sorted) }

// Union returns the keys that are in either set.
func (k Keys) Union(o Keys) Keys {
	if !slices.ContainsFunc(o.sorted, func(key string) bool { return !k.Contains(key) }) {
		return k
	}
	return Keys{mergeLists(k.sorted, o.sorted)}
}

// Aliases maps other names of a label to the key in use. An alias is a deprecated key, or a key
// under which an agent repeats the value of another label. The zero value maps nothing. It is an
// immutable value. Callers pass the aliases to use; there is no global list.
type Aliases struct {
	to map[string]string // never written after construction
}

// NewAliases returns the aliases of a map from alias to key in use, which it copies.
func NewAliases(oldToNew map[string]string) Aliases { return Aliases{maps.Clone(oldToNew)} }

// KubernetesAliases returns the deprecated keys that clusters still carry: the beta keys of
// architecture, operating system, instance type, zone and region, and Karpenter's older name for a
// node's pool.
func KubernetesAliases() Aliases {
	return Aliases{map[string]string{
		"beta.kubernetes.io/arch":                  "kubernetes.io/arch",
		"beta.kubernetes.io/os":                    "kubernetes.io/os",
		"beta.kubernetes.io/instance-type":         "node.kubernetes.io/instance-type",
		"failure-domain.beta.kubernetes.io/zone":   "topology.kubernetes.io/zone",
		"failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
		"karpenter.sh/provisioner-name":            "karpenter.sh/nodepool",
	}}
}

// AgentAliases returns the keys to which a node's agents copy the value of another label. The
// kubelet and the cloud's node controller set the beta keys beside those in use. CSI drivers set
// the zone under keys of their own, and their volumes ask for those keys.
func AgentAliases() Aliases {
	const zone = "topology.kubernetes.io/zone"
	out := maps.Clone(KubernetesAliases().to)
	delete(out, "karpenter.sh/provisioner-name")
	for _, key := range []string{
		"topology.ebs.csi.aws.com/zone", "topology.disk.csi.azure.com/zone", "topology.gke.io/zone",
		"topology.diskplugin.csi.alibabacloud.com/zone", "topology.cinder.csi.openstack.org/zone",
	} {
		out[key] = zone
	}
	return Aliases{out}
}

// And returns the aliases of both. If both map a key, that of o is used.
func (a Aliases) And(o Aliases) Aliases {
	out := maps.Clone(o.to)
	if out == nil {
		out = map[string]string{}
	}
	for k, to := range a.to {
		if _, both := out[k]; !both {
			out[k] = to
		}
	}
	return Aliases{out}
}

// Keys returns the keys that are aliases.
func (a Aliases) Keys() Keys { return KeysOf(slices.Collect(maps.Keys(a.to))...) }

// Among returns those aliases that are themselves in keys.
func (a Aliases) Among(keys Keys) Aliases {
	out := map[string]string{}
	for k, to := range a.to {
		if keys.Contains(k) {
			out[k] = to
		}
	}
	return Aliases{out}
}

// Both returns s with constraints under both names: if s constrains a key in use, each alias of it
// gets the same constraint, unless s already constrains that alias.
func (a Aliases) Both(s Set) Set {
	if s.impossible || len(a.to) == 0 {
		return s
	}
	var b Builder
	b.AddSet(s)
	for k, to := range a.to { // the builder sorts
		if s.Has(to) && !s.Has(k) {
			r := s.Get(to)
			r.key = k
			b.Add(r)
		}
	}
	out, _ := b.Set() // the keys are new
	return out
}

// Key returns the key in use for k. That is k itself unless k is an alias.
func (a Aliases) Key(k string) string {
	if to, ok := a.to[k]; ok {
		return to
	}
	return k
}

// Set returns s with its aliases renamed. Where s constrains both an alias and its key in use, the
// result has the intersection of the two. If they contradict each other, the set is [Impossible]
// and the error is that of [Builder.Set].
func (a Aliases) Set(s Set) (Set, error) {
	if !a.renames(s) {
		return s, nil
	}
	var b Builder
	for _, r := range s.reqs {
		r.key = a.Key(r.key)
		b.Add(r)
	}
	return b.Set()
}

func (a Aliases) renames(s Set) bool {
	return !s.impossible && slices.ContainsFunc(s.reqs, func(r Requirement) bool { return a.Key(r.key) != r.key })
}

// Alternatives renames the aliases in each set, and drops the sets that become impossible.
func (a Aliases) Alternatives(alts Alternatives) Alternatives {
	if !slices.ContainsFunc(alts.sets, a.renames) {
		return alts
	}
	out := make([]Set, 0, len(alts.sets))
	for _, s := range alts.sets {
		renamed, _ := a.Set(s) // an impossible set is dropped by AnyOf
		out = append(out, renamed)
	}
	return AnyOf(out...)
}

// Labels returns a copy of labels with the key in use added for each alias, unless that key is
// there already. The alias itself stays, since selectors may name either.
func (a Aliases) Labels(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		if to, ok := a.to[k]; ok {
			if _, both := out[to]; !both {
				out[to] = labels[k]
			}
		}
	}
	return out
}
