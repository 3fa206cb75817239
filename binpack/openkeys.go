package binpack

import (
	"math/bits"

	"github.com/joinery-sdk/joinery/requirements"
)

// openStates numbers what the items of bins have made of the open keys, so that narrowing twice costs one map look-up.
type openStates struct {
	sets []requirements.Set // sets[0] is anything
	next map[[2]int32]int32 // state and what is asked of it to the next state, -1 = impossible
}

func (o *openStates) narrow(in *Instance, state, ask int32) int32 {
	key := [2]int32{state, ask}
	if next, ok := o.next[key]; ok {
		return next
	}
	next := int32(-1)
	if s, err := o.sets[state].Intersect(in.open.sets[ask]); err == nil {
		next = -2
		for i, known := range o.sets {
			if known.Equal(s) {
				next = int32(i)
				break
			}
		}
		if next == -2 {
			next = int32(len(o.sets))
			o.sets = append(o.sets, s)
		}
	}
	o.next[key] = next
	return next
}

// narrow applies what a variant asks of the open keys to a bin's state, and drops the offerings that cannot follow. The
// mask is 0 when none can.
func (f *filler) narrow(t, state int32, v *variant, mask uint64) (int32, uint64) {
	next := f.states.narrow(f.in, state, v.open)
	if next < 0 {
		return state, 0
	}
	if next == state {
		return state, mask
	}
	return next, f.in.followers(t, f.states.sets[next], mask)
}

// followers keeps the offerings of the mask whose open labels can still take values that s allows.
func (in *Instance) followers(t int32, s requirements.Set, mask uint64) uint64 {
	typ := &in.problem.Types[t]
	for rest := mask; rest != 0; rest &= rest - 1 {
		j := bits.TrailingZeros64(rest)
		if !in.canFollow(typ, &typ.Offerings[j], s) {
			mask &^= 1 << j
		}
	}
	return mask
}

func (in *Instance) canFollow(typ *Type, o *Offering, s requirements.Set) bool {
	for r := range s.All() {
		if o.Provides.Has(r.Key()) {
			r = r.Intersect(o.Provides.Get(r.Key()))
		}
		if typ.Provides.Has(r.Key()) {
			r = r.Intersect(typ.Provides.Get(r.Key()))
		} else if !o.Provides.Has(r.Key()) {
			if !r.AllowsAbsent() {
				return false
			}
			continue
		}
		if r.IsImpossible() {
			return false
		}
	}
	return true
}

// Labels is what is certain of the labels of a bin once it holds these shares: the type's and the offering's, narrowed
// by what the items ask of open keys. An open key that is still free keeps its set of values.
func (in *Instance) Labels(b Bin) requirements.Set {
	typ := &in.problem.Types[b.Type]
	set, err := typ.Provides.Intersect(typ.Offerings[b.Offering].Provides)
	if err != nil {
		return requirements.Impossible()
	}
	for _, share := range b.Shares {
		if next, ok := in.narrowTo(set, in.problem.Items[share.Item].Requires); ok {
			set = next
		}
	}
	return set
}

// narrowTo applies the first alternative that a bin with these labels satisfies, those that leave open keys alone first.
func (in *Instance) narrowTo(set requirements.Set, alts requirements.Alternatives) (requirements.Set, bool) {
	for alt := range alts.All() {
		if alt.Restrict(in.open.keys).IsAnything() && alt.Compatible(set, requirements.Keys{}) {
			return set, true
		}
	}
	for alt := range alts.All() {
		asked := alt.Restrict(in.open.keys)
		if asked.IsAnything() || !alt.Compatible(set, requirements.Keys{}) {
			continue
		}
		if next, err := set.Intersect(asked); err == nil {
			return next, true
		}
	}
	return set, false
}
