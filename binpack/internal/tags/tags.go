// Package tags counts what keeps items apart in one bin: how many copies have a tag, and how many
// may.
package tags

import (
	"math"
	"slices"
)

// NoLimit is the limit of a tag that has none.
const NoLimit int32 = math.MaxInt32

// State is one tag in a bin: how many copies have it, and the lowest limit in the bin. For an item,
// type or node, Count is how often it adds the tag, and Limit is the limit that it brings. These
// lists are sorted by tag.
type State struct {
	Tag   int32
	Count int32
	Limit int32
}

// With returns the states with one for the tag, and its position.
func With(states []State, tag int32) ([]State, int) {
	at := slices.IndexFunc(states, func(s State) bool { return s.Tag == tag })
	if at < 0 {
		return append(states, State{tag, 0, NoLimit}), len(states)
	}
	return states, at
}

// Admitted returns how many copies of an item with these tags the bin admits, at most want.
func Admitted(state, tags []State, want int) int {
	for _, own := range tags {
		count, limit := Lookup(state, own.Tag)
		if limit = min(limit, own.Limit); own.Count > 0 && limit != NoLimit {
			want = min(want, int(max(0, limit-count)/own.Count))
		}
		if count > own.Limit {
			return 0
		}
	}
	return want
}

// Lookup returns how many copies in a bin have the tag, and the limit on it there.
func Lookup(state []State, tag int32) (count, limit int32) {
	for i := range state {
		if state[i].Tag == tag {
			return state[i].Count, state[i].Limit
		}
	}
	return 0, NoLimit
}

// Add records k copies of an item with these tags.
func Add(state, tags []State, k int) []State {
	at := 0
	for _, own := range tags {
		state, at = With(state, own.Tag)
		s := &state[at]
		s.Count = int32(min(int64(s.Count)+int64(own.Count)*int64(k), int64(NoLimit))) // above every limit
		s.Limit = min(s.Limit, own.Limit)
	}
	return state
}
