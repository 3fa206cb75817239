package bruteforce

import "slices"

// State is the pods on the nodes at one moment.
type State struct {
	m     *Model
	sites []int   // of each node
	pods  [][]int // by node and kind
}

// Start returns the state before the first bind: all existing nodes and the bought ones, which are
// indexes of offers.
func (m *Model) Start(bought ...int) *State {
	st := &State{m: m}
	for i := range m.nodes {
		st.add(i)
	}
	for _, o := range bought {
		st.add(m.nodes + o)
	}
	return st
}

func (st *State) add(site int) {
	st.sites = append(st.sites, site)
	st.pods = append(st.pods, slices.Clone(st.m.sites[site].running))
}

// Kind returns the kind of a pod of the model, by namespace/name.
func (m *Model) Kind(pod string) int { return m.kind[pod] }

// Bind binds a pod of the kind to node n.
func (st *State) Bind(kind, n int) { st.pods[n][kind]++ }

// domain is the value of a topology key on node n; -1 if it has none.
func (st *State) domain(n, key int) int {
	x := &st.m.sites[st.sites[n]]
	if x.hostname == key {
		return fresh + 1 + n
	}
	return x.domain[key]
}

// Refuses returns a filter that refuses to bind a pod of the kind to node n, or "" if none does.
func (st *State) Refuses(kind, n int) Filter {
	x := &st.m.sites[st.sites[n]]
	for _, f := range [...]struct {
		name    Filter
		accepts func() bool
	}{
		{NodeAffinity, func() bool { return x.affine[kind] }},
		{TaintToleration, func() bool { return x.tolerated[kind] }},
		{NodeResourcesFit, func() bool { return st.m.fits(x, st.pods[n], kind) }},
		{NodePorts, func() bool { return st.portsFree(kind, n) }},
		{PodTopologySpread, func() bool { return st.spreads(kind, n) }},
		{InterPodAffinity, func() bool { return st.apart(kind, n) && st.near(kind, n) }},
		{Tied, func() bool { return x.tied[kind] }},
	} {
		if f.name != st.m.Off && !f.accepts() {
			return f.name
		}
	}
	return ""
}

func (st *State) portsFree(kind, n int) bool {
	for k, count := range st.pods[n] {
		if count > 0 && st.m.kinds[kind].conflicts[k] {
			return false
		}
	}
	return true
}

// spreads is PodTopologySpread: in every constraint, the pods of the node's domain and the pod
// itself may exceed those of the emptiest domain by maxSkew. With fewer domains than minDomains,
// the emptiest has none.
func (st *State) spreads(kind, n int) bool {
	k := &st.m.kinds[kind]
	for c := range k.spreads {
		s := &k.spreads[c]
		at := st.domain(n, s.key)
		if at < 0 {
			return false
		}
		domains, counts := make([]int, 0, 24), make([]int, 0, 24)
		count := func(domain, pods int) {
			for i := range domains {
				if domains[i] == domain {
					counts[i] += pods
					return
				}
			}
			domains, counts = append(domains, domain), append(counts, pods)
		}
		for i, site := range st.sites {
			if st.m.counts(kind, c, &st.m.sites[site]) {
				count(st.domain(i, s.key), st.matching(&s.term, i))
			}
		}
		if st.m.Counting == ForSale || st.m.Counting == ForSaleButZones && !s.zones {
			for _, d := range s.forSale {
				count(d, 0)
			}
		}
		least, here := 0, 0
		if len(domains) >= s.minDomains && len(domains) > 0 {
			least = slices.Min(counts)
		}
		for i := range domains {
			if domains[i] == at {
				here = counts[i]
			}
		}
		if here+s.self-least > s.maxSkew {
			return false
		}
	}
	return true
}

// matching is the number of pods on a node that the term matches.
func (st *State) matching(t *term, n int) (sum int) {
	for k, count := range st.pods[n] {
		if t.matches[k] {
			sum += count
		}
	}
	return sum
}

// apart is anti-affinity: neither the pod nor one that is there may keep away from the other.
func (st *State) apart(kind, n int) bool {
	for i := range st.sites {
		for t := range st.m.kinds[kind].anti {
			term := &st.m.kinds[kind].anti[t]
			if d := st.domain(n, term.key); d >= 0 && st.domain(i, term.key) == d && st.matching(term, i) > 0 {
				return false
			}
		}
		for k, count := range st.pods[i] {
			if count == 0 {
				continue
			}
			for t := range st.m.kinds[k].anti {
				term := &st.m.kinds[k].anti[t]
				if d := st.domain(n, term.key); d >= 0 && st.domain(i, term.key) == d && term.matches[kind] {
					return false
				}
			}
		}
	}
	return true
}

// near is affinity: in the node's domain of every term there must be a pod that all terms match.
// The first pod of a group needs none: no pod matches anywhere, and the pod matches its own terms.
func (st *State) near(kind, n int) bool {
	k := &st.m.kinds[kind]
	if len(k.affinity) == 0 {
		return true
	}
	matchesAll := func(other int) bool {
		return !slices.ContainsFunc(k.affinity, func(t term) bool { return !t.matches[other] })
	}
	met, some := make([]bool, len(k.affinity)), false
	for i := range st.sites {
		for other, count := range st.pods[i] {
			if count == 0 || !matchesAll(other) {
				continue
			}
			for t := range k.affinity {
				if d := st.domain(i, k.affinity[t].key); d >= 0 {
					some = true
					met[t] = met[t] || d == st.domain(n, k.affinity[t].key)
				}
			}
		}
	}
	for t := range k.affinity {
		if st.domain(n, k.affinity[t].key) < 0 {
			return false
		}
	}
	return !slices.Contains(met, false) || !some && matchesAll(kind)
}
