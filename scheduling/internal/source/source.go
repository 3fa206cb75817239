// Package source says which requirements on the nodes of a pod come from elsewhere than the pod:
// from constraints of the caller, from volumes, or from a choice of the caller.
package source

import (
	"slices"
	"strconv"
	"strings"

	"github.com/joinery-sdk/joinery/requirements"
)

// Source is something other than the pod that restricts its nodes.
type Source struct {
	// Who names the source with its verb, such as `constraint "licences" requires`.
	Who string
	// Nodes is what it allows.
	Nodes requirements.Alternatives
	// Otherwise is what it allows if an earlier source is left out. The zero value means Nodes.
	Otherwise requirements.Alternatives
}

// Added returns the source of an answer to the argument required. Its text leaves out the
// requirements that the answer repeats from the argument. If the answer is within the argument, the
// source may have narrowed the argument itself. Then Otherwise only has what surely is its own.
func Added(who string, required, answer requirements.Alternatives) Source {
	out := Source{Who: who, Nodes: answer}
	narrowed := answer.Subset(required)
	if narrowed {
		out.Otherwise = requirements.AnyOf(requirements.Set{})
	}
	if required.Len() != 1 || answer.Len() != 1 {
		return out
	}
	var own, surely requirements.Builder
	for r := range answer.At(0).All() {
		before := required.At(0).Get(r.Key())
		if !required.At(0).Has(r.Key()) || !before.Equal(r) {
			own.Add(r)
			surely.Add(r.Union(before.Complement()))
		}
	}
	if set, err := own.Set(); err == nil {
		out.Nodes = requirements.AnyOf(set)
	}
	if set, err := surely.Set(); err == nil && narrowed {
		out.Otherwise = requirements.AnyOf(set)
	}
	return out
}

// Blame returns a text for each reason that names the sources without which the reason would be
// another one. The text is empty if the reason does not depend on the sources. own is what the pod
// itself requires, and reasons returns the reasons for any requirements, always equally many. If
// several sources each suffice for a reason, the first of them is named.
func Blame(own requirements.Alternatives, sources []Source, reasons func(requirements.Alternatives) []string) []string {
	if len(sources) == 0 {
		return nil
	}
	with := func(counts func(i int) bool) []string {
		required, all := own, true
		for i, s := range sources {
			switch {
			case !counts(i):
				all = false
			case !all && !s.Otherwise.IsZero():
				required = required.Intersect(s.Otherwise)
			default:
				required = required.Intersect(s.Nodes)
			}
		}
		return reasons(required)
	}
	actual := with(func(int) bool { return true })
	named := make([][]int, len(actual))
	for out := range sources {
		for k, text := range with(func(i int) bool { return i != out }) {
			if text != actual[k] {
				named[k] = append(named[k], out)
			}
		}
	}
	if len(sources) > 1 {
		for n := len(sources) - 1; n >= 0 && slices.ContainsFunc(named, func(by []int) bool { return len(by) == 0 }); n-- {
			for k, text := range with(func(i int) bool { return i < n }) {
				if text != actual[k] && len(named[k]) == 0 {
					named[k] = []int{n}
				}
			}
		}
	}
	out := make([]string, len(actual))
	for k, by := range named {
		for _, i := range by {
			out[k] += "; " + sources[i].Who + " " + sources[i].Nodes.String()
		}
	}
	return out
}

// Blamed is [Blame] for one reason.
func Blamed(own requirements.Alternatives, sources []Source, reason func(requirements.Alternatives) string) string {
	return strings.Join(Blame(own, sources, func(r requirements.Alternatives) []string { return []string{reason(r)} }), "")
}

// Places returns a text that identifies which of their labels the shapes keep: of has the ids of the
// labels of each shape, and suits says which ids remain.
func Places(shapes []int, of [][]int32, suits []bool) string {
	var text []byte
	for _, i := range shapes {
		text = strconv.AppendInt(append(text, ' '), int64(i), 10)
		for _, id := range of[i] {
			if suits[id] {
				text = strconv.AppendInt(append(text, '/'), int64(id), 10)
			}
		}
	}
	return string(text)
}
