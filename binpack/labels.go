package binpack

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/joinery-sdk/joinery/binpack/internal/tags"
	"github.com/joinery-sdk/joinery/requirements"
)

// labelIndex holds, for one key that some item mentions, what each offering and node provides.
// These are numbers of distinct requirements. So a requirement of an item is compared once with
// each distinct one, not with each offering.
type labelIndex struct {
	key       string
	distinct  []requirements.Requirement
	several   []bool // by number: the requirement allows several values
	numbers   map[string]int32
	buffer    []byte
	offerings [][]int32 // by type and offering; nil if all offerings of the type have the number in types
	types     []int32   // by type
	nodes     []int32
	open      bool // some offering, together with its type, leaves the key open
}

func (x *labelIndex) intern(r requirements.Requirement) int32 {
	x.buffer = r.AppendKey(x.buffer[:0])
	id, ok := x.numbers[string(x.buffer)]
	if !ok {
		_, single := r.Single()
		id = int32(len(x.distinct))
		x.numbers[string(x.buffer)] = id
		x.distinct = append(x.distinct, r)
		x.several = append(x.several, !single && !r.Equal(requirements.DoesNotExist(x.key)) && !r.IsImpossible())
	}
	return id
}

func indexLabels(p *Problem, key string) *labelIndex {
	x := &labelIndex{key: key, numbers: map[string]int32{}}
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
			id := x.types[t]
			if o.Provides.Has(key) {
				if x.offerings[t] == nil {
					x.offerings[t] = slices.Repeat([]int32{id}, len(typ.Offerings))
				}
				r := o.Provides.Get(key)
				if typ.Provides.Has(key) && !r.Subset(base) {
					r = r.Intersect(base)
				}
				id = x.intern(r)
				x.offerings[t][j] = id
			}
			x.open = x.open || x.several[id]
		}
	}
	x.nodes = make([]int32, len(p.Nodes))
	for n, node := range p.Nodes {
		x.nodes[n] = x.intern(said(node.Provides))
	}
	return x
}

// labelAnswers caches which types and nodes satisfy which requirements. It is safe for concurrent
// use.
type labelAnswers struct {
	mu       sync.Mutex
	problem  *Problem // its items are ignored
	none     variant  // requires nothing
	index    map[string]*labelIndex
	profiles map[string]answered // by the text of the requirements
}

// answered is a profile, and the keys that it mentions and that some offering leaves open.
type answered struct {
	profile
	keys requirements.Keys
}

func newLabelAnswers(p *Problem) *labelAnswers {
	return &labelAnswers{problem: p, none: consistent(p), index: map[string]*labelIndex{}, profiles: map[string]answered{}}
}

// profile compares the requirements with all types and nodes; key is their text.
func (l *labelAnswers) profile(key []byte, alts requirements.Alternatives) answered {
	l.mu.Lock()
	defer l.mu.Unlock()
	out, ok := l.profiles[string(key)]
	if ok {
		return out
	}
	var open []string
	for name := range alts.Keys().All() {
		if l.index[name] == nil {
			l.index[name] = indexLabels(l.problem, name)
		}
		if l.index[name].open {
			open = append(open, name)
		}
	}
	out = l.compile(alts, requirements.KeysOf(open...))
	l.profiles[string(key)] = out
	return out
}

// masks returns, by type, the offerings that satisfy a set. Some profile must mention its keys.
func (l *labelAnswers) masks(s requirements.Set) []uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.variant(s).masks
}

// compileProfiles compares the requirements of items with all types and nodes. It returns false if
// it was stopped.
func (in *Instance) compileProfiles(stop *atomic.Bool) bool {
	p := &in.problem
	seen := make(map[string]int32, 64)
	in.profiles, in.profile = nil, make([]int32, len(p.Items))
	in.open = openKeys{sets: []requirements.Set{{}}}
	var key []byte
	for i := range p.Items {
		if i%compileEvery == compileEvery-1 && stop != nil && stop.Load() {
			return false
		}
		key = p.Items[i].Requires.AppendKey(key[:0])
		id, ok := seen[string(key)]
		if !ok {
			id = int32(len(in.profiles))
			seen[string(key)] = id
			a := in.labels.profile(key, p.Items[i].Requires)
			own := slices.Clone(a.profile)
			for k := range own {
				own[k].open = intern(&in.open.sets, own[k].asks)
			}
			in.profiles = append(in.profiles, own)
			in.open.keys = in.open.keys.Union(a.keys)
		}
		in.profile[i] = id
	}
	return true
}

// consistent returns the offerings and nodes whose labels do not contradict each other. No item
// goes to the others.
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

func (l *labelAnswers) compile(alts requirements.Alternatives, open requirements.Keys) answered {
	var out profile
	for s := range alts.All() {
		v := l.variant(s)
		v.asks = s.Restrict(open)
		switch {
		case !v.asks.IsAnything():
			out = append(out, v)
		case len(out) == 0 || !out[0].asks.IsAnything():
			out = slices.Insert(out, 0, v)
		default:
			for t := range v.masks {
				out[0].masks[t] |= v.masks[t]
			}
			for w := range v.nodes {
				out[0].nodes[w] |= v.nodes[w]
			}
		}
	}
	return answered{out, open}
}

func (l *labelAnswers) variant(s requirements.Set) variant {
	v := variant{masks: slices.Clone(l.none.masks), nodes: slices.Clone(l.none.nodes)}
	for r := range s.All() {
		x := l.index[r.Key()]
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
		for n, id := range x.nodes {
			if !ok[id] {
				v.nodes[n/64] &^= 1 << (n % 64)
			}
		}
	}
	return v
}

// openStates numbers the states of the open keys of bins, so repeated narrowing costs one map
// look-up.
type openStates struct {
	sets  []requirements.Set  // sets[0] allows anything
	masks [][]uint64          // by state and type: the offerings whose open labels can still take values that the state allows
	next  map[narrowing]int32 // the next state; -1 = impossible
}

// narrowing is a state and an index into openKeys.sets that narrows it.
type narrowing struct{ state, ask int32 }

func (o *openStates) narrow(in *Instance, state, ask int32) int32 {
	key := narrowing{state, ask}
	next, ok := o.next[key]
	if ok {
		return next
	}
	next = -1
	if s, err := o.sets[state].Intersect(in.open.sets[ask]); err == nil {
		if next = intern(&o.sets, s); len(o.masks) < len(o.sets) {
			o.masks = append(o.masks, in.labels.masks(s))
		}
	}
	o.next[key] = next
	return next
}

// intern returns the position of the set. A new set is appended.
func intern(sets *[]requirements.Set, s requirements.Set) int32 {
	if i := slices.IndexFunc(*sets, s.Equal); i >= 0 {
		return int32(i)
	}
	*sets = append(*sets, s)
	return int32(len(*sets) - 1)
}

// narrow applies what a variant requires of the open keys to a bin's state, and drops the offerings
// that cannot follow. The mask is 0 if none can.
func (f *filler) narrow(t, state int32, v *variant, mask uint64) (int32, uint64) {
	next := f.states.narrow(f.in, state, v.open)
	if next < 0 {
		return state, 0
	}
	return next, mask & f.states.masks[next][t]
}

// Labels returns what is certain of the labels of a bin with these shares: those of the type and
// offering, narrowed by what the items require of open keys. A key that stays open keeps its set of
// values. An item with several alternatives takes the first that is compatible with the other
// items. If there are too many combinations to search, it takes one that agrees with [Bin.Labels].
// The result is impossible if the bin cannot hold the shares.
func (in *Instance) Labels(b Bin) requirements.Set {
	c := in.split.in(Choice{b.Type, b.Offering})
	b.Type, b.Offering = c.Type, c.Offering
	if !in.sells(c) || slices.ContainsFunc(b.Shares, func(s Share) bool { return s.Item < 0 || s.Item >= len(in.problem.Items) }) {
		return requirements.Impossible()
	}
	typ := &in.problem.Types[b.Type]
	set, err := typ.Provides.Intersect(typ.Offerings[b.Offering].Provides)
	if err != nil {
		return requirements.Impossible()
	}
	return in.narrowed(in.closed(set), b).Restrict(set.Keys()) // without those that closed added
}

// narrowed returns labels, which closed made, narrowed by the items of the bin. It is impossible if
// the bin cannot hold them.
func (in *Instance) narrowed(labels requirements.Set, b Bin) requirements.Set {
	out, ok, decided := in.chooseAlternatives(labels, b.Shares)
	if !decided {
		out, ok = in.confirmed(labels, b.Labels, b.Shares)
	}
	if !ok {
		return requirements.Impossible()
	}
	return out
}

// confirmed narrows the labels by those that a bin claims. It reports whether each item has an
// alternative that all of them satisfy.
func (in *Instance) confirmed(labels, claimed requirements.Set, shares []Share) (requirements.Set, bool) {
	narrowed, err := labels.Intersect(claimed)
	if err != nil {
		return labels, false
	}
	return narrowed, !slices.ContainsFunc(shares, func(s Share) bool {
		options, free := in.asks(narrowed, in.problem.Items[s.Item].Requires)
		return !free && !slices.ContainsFunc(options, narrowed.Subset)
	})
}

// closed returns the labels with each open key that they do not mention marked as absent.
func (in *Instance) closed(labels requirements.Set) requirements.Set {
	if in.open.keys.Len() == 0 || labels.IsImpossible() {
		return labels
	}
	var b requirements.Builder
	b.AddSet(labels)
	for key := range in.open.keys.All() {
		if !labels.Has(key) {
			b.Add(requirements.DoesNotExist(key))
		}
	}
	out, _ := b.Set() // new keys cannot conflict
	return out
}

// chooseAlternatives chooses an alternative for each share, such that a bin with these labels (made
// by closed) satisfies all of them. It takes the first choice in lexical order, with alternatives
// without open keys first. An item with only one remaining alternative narrows the labels at once
// (unit propagation: M. Davis, G. Logemann, D. Loveland, 1962). The number of combinations may be
// exponential, so the result stays undecided after maxNarrowings.
func (in *Instance) chooseAlternatives(labels requirements.Set, shares []Share) (out requirements.Set, ok, decided bool) {
	var asked [][]requirements.Set
	for _, s := range shares {
		options, free := in.asks(labels, in.problem.Items[s.Item].Requires)
		if !free {
			asked = append(asked, options)
		}
	}
	c := chooser{left: maxNarrowings}
	out, ok = c.choose(labels, asked)
	return out, ok, ok || c.left > 0
}

// chooser chooses one of the options of each item.
type chooser struct{ left int } // narrowings

func (c *chooser) choose(labels requirements.Set, asked [][]requirements.Set) (requirements.Set, bool) {
	for changed := true; changed; {
		changed = false
		var several [][]requirements.Set
		for _, options := range asked {
			var still []requirements.Set
			var next requirements.Set // by the last option that is possible
			for _, option := range options {
				if n, err := labels.Intersect(option); err == nil {
					still, next = append(still, option), n
				}
			}
			if c.left -= len(options); c.left <= 0 {
				return labels, false
			}
			switch len(still) {
			case 0:
				return labels, false
			case 1:
				changed = changed || !labels.Equal(next)
				labels = next
			default:
				several = append(several, still)
			}
		}
		asked = several
	}
	if len(asked) == 0 {
		return labels, true
	}
	for _, option := range asked[0] {
		next, _ := labels.Intersect(option)
		if out, ok := c.choose(next, asked[1:]); ok || c.left <= 0 {
			return out, ok
		}
	}
	return labels, false
}

// asks returns what each alternative that is compatible with the labels requires of open keys; free
// means that one of them requires nothing.
func (in *Instance) asks(labels requirements.Set, alts requirements.Alternatives) (options []requirements.Set, free bool) {
	for alt := range alts.All() {
		if !alt.Compatible(labels, requirements.Keys{}) {
			continue
		}
		if in.open.keys.Len() == 0 {
			return nil, true
		}
		open := alt.Restrict(in.open.keys)
		if open.IsAnything() {
			return nil, true
		}
		options = append(options, open)
	}
	return options, false
}

// split says which compiled types replace a type that has more offerings than a mask has bits.
// Callers see only their own types: layouts and choices are translated when they come in and go
// out. It is nil if no type is split.
type split []part

// part is a compiled type: the caller's type, the first of its offerings, and the first part of the
// type.
type part struct{ typ, offering, first int }

func splitTypes(p *Problem) ([]Type, split) {
	var out []Type
	var parts split
	for i, t := range p.Types {
		if t.Usage == nil {
			t.Usage = make([]int64, len(p.Pools[t.Pool].Limits))
		}
		all, first := t.Offerings, len(out)
		for from := 0; from == 0 || from < len(all); from += maxOfferings {
			t.Offerings = all[from:min(from+maxOfferings, len(all))]
			out, parts = append(out, t), append(parts, part{i, from, first})
		}
	}
	if len(out) == len(p.Types) {
		parts = nil
	}
	return out, parts
}

// in returns the compiled choice for a caller's choice. A choice that does not exist gets the type
// -1.
func (s split) in(c Choice) Choice {
	if s == nil || c.Type < 0 || c.Offering < 0 {
		return c
	}
	for k, x := range s {
		if x.typ == c.Type && x.first == k {
			if at := k + c.Offering/maxOfferings; at < len(s) && s[at].typ == c.Type {
				return Choice{at, c.Offering % maxOfferings}
			}
		}
	}
	return Choice{-1, c.Offering}
}

// out returns the caller's choice for a compiled one.
func (s split) out(c Choice) Choice {
	if s == nil {
		return c
	}
	return Choice{s[c.Type].typ, s[c.Type].offering + c.Offering}
}

// layout returns the layout with each choice translated.
func (s split) layout(l Layout, by func(Choice) Choice) Layout {
	if s == nil {
		return l
	}
	bins := make([]Bin, len(l.Bins))
	for i, b := range l.Bins {
		c := by(Choice{b.Type, b.Offering})
		b.Type, b.Offering = c.Type, c.Offering
		bins[i] = b
	}
	l.Bins = bins
	return l
}

func (in *Instance) compileTags() {
	p := &in.problem
	in.tags = map[string]int32{}
	in.typeTags = make([][]tags.State, len(p.Types))
	for t, typ := range p.Types {
		in.typeTags[t] = in.tagsOf(typ.Tags, typ.Limits)
	}
	in.nodeTags = make([][]tags.State, len(p.Nodes))
	for n, node := range p.Nodes {
		in.nodeTags[n] = in.tagsOf(node.Tags, node.Limits)
	}
}
