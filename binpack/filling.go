package binpack

import (
	"fmt"
	"maps"
	"slices"

	"github.com/joinery-sdk/joinery/binpack/internal/relax"
)

// Filling is a layout in the making. Every change is made as far as the rules of the problem allow, so [Filling.Layout] passes
// [Instance.Check] at any moment: a [Strategy] that uses one can't break a rule. Only the order of pools by weight is left to the caller.
// It is not safe for concurrent use.
type Filling struct{ f *filler }

// NewFilling returns a filling that holds nothing.
func (in *Instance) NewFilling() *Filling { return &Filling{newFiller(in, nil)} }

// Copy returns an equal filling, such as one to go back to.
func (x *Filling) Copy() *Filling {
	f := *x.f
	f.Watch = new(relax.Watch)
	f.left, f.want, f.spare = slices.Clone(f.left), slices.Clone(f.want), nil
	f.nodeIndex, f.binIndex = freeIndex{}, freeIndex{}
	f.diverse = slices.Clone(f.diverse)
	for i := range f.diverse {
		f.diverse[i] = slices.Clone(f.diverse[i])
	}
	f.states = openStates{slices.Clone(f.states.sets), slices.Clone(f.states.masks), maps.Clone(f.states.next)}
	f.nodes, f.bins = slices.Clone(f.nodes), slices.Clone(f.bins)
	for _, list := range [][]bin{f.nodes, f.bins} {
		for i := range list {
			list[i] = f.copyOf(&list[i])
		}
	}
	return &Filling{&f}
}

// Missing returns how many copies of the item have no place yet.
func (x *Filling) Missing(item int) int { return x.f.want[item] }

// Bins returns the number of new bins.
func (x *Filling) Bins() int { return len(x.f.bins) }

// Open buys a bin for up to count copies of the item, as one more after the others, and returns how many it holds. If that is none, no bin
// is bought. It is an error if there is no such choice.
func (x *Filling) Open(c Choice, item, count int) (held int, err error) {
	f, in := x.f, x.f.in
	own := in.split.in(c)
	if own.Type < 0 || own.Type >= len(in.problem.Types) || own.Offering < 0 || own.Offering >= len(in.problem.Types[own.Type].Offerings) {
		return 0, fmt.Errorf("binpack: there is no offering %d of type %d", c.Offering, c.Type)
	}
	t, mask := int32(own.Type), uint64(1)<<own.Offering
	if mask &= f.affordable(t); mask == 0 {
		return 0, nil
	}
	b := f.newBin(t, mask)
	f.charge(t, own.Offering, 1)
	if held = x.put(&b, item, count); held == 0 {
		f.charge(t, own.Offering, -1)
		return 0, nil
	}
	f.bins = append(f.bins, b)
	return held, nil
}

// Add puts up to count copies of the item into a new bin, and returns how many it takes.
func (x *Filling) Add(bin, item, count int) int { return x.put(&x.f.bins[bin], item, count) }

// AddToNode puts up to count copies of the item into an existing node, and returns how many it takes.
func (x *Filling) AddToNode(node, item, count int) int {
	return x.put(&x.f.nodes[node], item, count)
}

func (x *Filling) put(b *bin, item, count int) int {
	if count = min(count, x.f.want[item]); count <= 0 {
		return 0
	}
	k, v, mask, open := x.f.admit(b, item, count)
	if k == 0 {
		return 0
	}
	x.f.place(b, item, k, v, mask, open)
	return k
}

// Remove gives a new bin back. Its items are missing again, and the bins after it move up by one.
func (x *Filling) Remove(bin int) {
	x.f.withdraw(&x.f.bins[bin])
	x.f.bins = slices.Delete(x.f.bins, bin, bin+1)
}

// Clear empties an existing node. Its new items are missing again.
func (x *Filling) Clear(node int) {
	x.f.withdraw(&x.f.nodes[node])
	x.f.nodes[node] = x.f.emptyNode(node)
}

// Layout returns what goes where. Each bin is the cheapest choice that holds its contents, which may be another than it was opened as.
func (x *Filling) Layout() Layout {
	return x.f.in.split.layout(x.Copy().f.finish(), x.f.in.split.out)
}
