package binpack

import (
	"math/bits"
	"slices"

	"github.com/joinery-sdk/joinery/requirements"
)

// labelIndex holds, for one key that some item mentions, what each offering and node says of it, as numbers of distinct
// requirements. A requirement of an item is then compared once with each distinct one, not with each offering.
type labelIndex struct {
	key       string
	distinct  []requirements.Requirement
	byText    map[string]int32
	offerings [][]int32 // by type and offering; nil where one number serves for all offerings of the type
	types     []int32   // that number
	nodes     []int32
	open      bool // some offering leaves the value open
}

func (x *labelIndex) intern(r requirements.Requirement) int32 {
	text, single := r.Single()
	if !single {
		text = "\x00" + r.String() // no label value starts with NUL
	}
	id, ok := x.byText[text]
	if !ok {
		id = int32(len(x.distinct))
		x.byText[text] = id
		x.distinct = append(x.distinct, r)
	}
	return id
}

func (in *Instance) indexLabels(key string) *labelIndex {
	p := &in.problem
	x := &labelIndex{key: key, byText: map[string]int32{}}
	absent := requirements.DoesNotExist(key)
	said := func(s requirements.Set) requirements.Requirement {
		if s.Has(key) {
			return s.Get(key)
		}
		return absent
	}
	x.types = make([]int32, len(p.Types))
	x.offerings = make([][]int32, len(p.Types))
	for t, typ := range p.Types {
		base := said(typ.Provides)
		x.types[t] = x.intern(base)
		for j, o := range typ.Offerings {
			if !o.Provides.Has(key) {
				continue
			}
			if x.offerings[t] == nil {
				x.offerings[t] = make([]int32, len(typ.Offerings))
				for i := range x.offerings[t] {
					x.offerings[t][i] = x.types[t]
				}
			}
			r := o.Provides.Get(key)
			if typ.Provides.Has(key) && !r.Subset(base) {
				r = r.Intersect(base)
			}
			x.offerings[t][j] = x.intern(r)
		}
	}
	x.nodes = make([]int32, len(p.Nodes))
	for n, node := range p.Nodes {
		x.nodes[n] = x.intern(said(node.Provides))
	}
	x.open = x.leavesOpen(p.Types)
	return x
}

// leavesOpen reports whether some offering, type and offering taken together, has more than one value for the key.
func (x *labelIndex) leavesOpen(types []Type) bool {
	absent := requirements.DoesNotExist(x.key)
	several := make([]bool, len(x.distinct))
	for i, r := range x.distinct {
		_, single := r.Single()
		several[i] = !single && !r.Equal(absent) && !r.IsImpossible()
	}
	for t := range types {
		if x.offerings[t] == nil && len(types[t].Offerings) > 0 && several[x.types[t]] {
			return true
		}
		for _, id := range x.offerings[t] {
			if several[id] {
				return true
			}
		}
	}
	return false
}

func (in *Instance) compileProfiles() {
	p := &in.problem
	var mentioned []string
	for _, it := range p.Items {
		for s := range it.Requires.All() {
			for r := range s.All() {
				mentioned = append(mentioned, r.Key())
			}
		}
	}
	keys := requirements.KeysOf(mentioned...)
	index := make(map[string]*labelIndex, keys.Len())
	var open []string
	for key := range keys.All() {
		index[key] = in.indexLabels(key)
		if index[key].open {
			open = append(open, key)
		}
	}
	in.consistent = consistent(p)
	in.open = openKeys{keys: requirements.KeysOf(open...), sets: []requirements.Set{{}}}

	seen := map[string]int32{}
	in.profile = make([]int32, len(p.Items))
	for i, it := range p.Items {
		text := it.Requires.String()
		id, ok := seen[text]
		if !ok {
			id = int32(len(in.profiles))
			seen[text] = id
			in.profiles = append(in.profiles, in.compileProfile(it.Requires, index))
		}
		in.profile[i] = id
	}
}

// consistent is the offerings and nodes that do not contradict themselves; nothing goes to the others.
func consistent(p *Problem) variant {
	v := variant{masks: make([]uint64, len(p.Types)), nodes: make([]uint64, (len(p.Nodes)+63)/64)}
	for t, typ := range p.Types {
		for j, o := range typ.Offerings {
			if typ.Provides.Overlaps(o.Provides) {
				v.masks[t] |= 1 << j
			}
		}
	}
	for n, node := range p.Nodes {
		if !node.Provides.IsImpossible() {
			v.nodes[n/64] |= 1 << (n % 64)
		}
	}
	return v
}

func (in *Instance) compileProfile(alts requirements.Alternatives, index map[string]*labelIndex) profile {
	var narrowing []variant
	var merged *variant
	for s := range alts.All() {
		v := in.compileVariant(s, index)
		v.open = in.open.intern(s.Restrict(in.open.keys))
		switch {
		case v.open != 0:
			narrowing = append(narrowing, v)
		case merged == nil:
			merged = &v
		default:
			for t := range merged.masks {
				merged.masks[t] |= v.masks[t]
			}
			for w := range merged.nodes {
				merged.nodes[w] |= v.nodes[w]
			}
		}
	}
	if merged == nil {
		return profile{narrowing}
	}
	return profile{append([]variant{*merged}, narrowing...)}
}

func (in *Instance) compileVariant(s requirements.Set, index map[string]*labelIndex) variant {
	p := &in.problem
	v := variant{masks: slices.Clone(in.consistent.masks), nodes: slices.Clone(in.consistent.nodes)}
	for r := range s.All() {
		x := index[r.Key()]
		ok := make([]bool, len(x.distinct))
		for i, d := range x.distinct {
			ok[i] = r.Overlaps(d)
		}
		for t := range v.masks {
			if x.offerings[t] == nil {
				if !ok[x.types[t]] {
					v.masks[t] = 0
				}
				continue
			}
			for rest := v.masks[t]; rest != 0; rest &= rest - 1 {
				if j := bits.TrailingZeros64(rest); !ok[x.offerings[t][j]] {
					v.masks[t] &^= 1 << j
				}
			}
		}
		for n := range p.Nodes {
			if !ok[x.nodes[n]] {
				v.nodes[n/64] &^= 1 << (n % 64)
			}
		}
	}
	return v
}
