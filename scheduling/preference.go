package scheduling

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joinery-sdk/joinery/requirements"
)

// PreferenceKind says what sort of soft constraint a [Preference] is.
type PreferenceKind string

// The kinds of soft constraints, in the order in which they are given up.
const (
	PreferSpread  PreferenceKind = "ScheduleAnyway spread"
	PreferPods    PreferenceKind = "preferred pod (anti-)affinity"
	PreferNodes   PreferenceKind = "preferred node affinity"
	PreferNoTaint PreferenceKind = "PreferNoSchedule taint"
)

func (k PreferenceKind) rank() int {
	return slices.Index([]PreferenceKind{PreferSpread, PreferPods, PreferNodes, PreferNoTaint}, k)
}

// Preference is a soft constraint of a class. All of a class's preferences are tried as if they were hard; pods that
// find no place so give them up one at a time: first spreads, then pod affinity, then node affinity, then soft taints;
// within a kind the lightest first, and of equals the one that the manifest lists last.
type Preference struct {
	Kind   PreferenceKind
	Weight int32
	// Text says it in words.
	Text string

	index int // into Class.Preferred, topology.spreads or topology.terms
}

// collectPreferences lists the soft constraints of the class in the order of giving them up.
func (p *Problem) collectPreferences(c *Class) {
	for i, s := range c.topology.spreads {
		if !s.hard {
			g := p.groups.all[s.group]
			c.soft = append(c.soft, Preference{PreferSpread, 0, fmt.Sprintf("spread over %s with skew %d", g.key, s.maxSkew), i})
		}
	}
	for i, t := range c.topology.terms {
		if !t.hard {
			word := "near"
			if t.anti {
				word = "away from"
			}
			g := p.groups.all[t.group]
			c.soft = append(c.soft, Preference{PreferPods, t.weight, fmt.Sprintf("%s pods %s by %s", word, g.selector, g.key), i})
		}
	}
	for i, n := range c.Preferred {
		c.soft = append(c.soft, Preference{PreferNodes, n.Weight, n.Nodes.String(), i})
	}
	for i := range c.softOK {
		if c.hardOK[i] && !c.softOK[i] {
			c.soft = append(c.soft, Preference{PreferNoTaint, 0, "nodes without soft taints", 0})
			break
		}
	}
	slices.SortStableFunc(c.soft, comparePreferences)
}

// stage is a class with its first given-up preferences gone: what is asked of nodes, and which constraints hold.
type stage struct {
	required requirements.Alternatives // with preferred nodes and taints
	spreads  []spread
	terms    []term
}

// stageOf works out the class with its first n preferences given up.
func (p *Problem) stageOf(c *Class, n int) stage {
	out := stage{required: c.Required}
	kept := map[PreferenceKind]map[int]bool{}
	for _, s := range c.soft[n:] {
		if kept[s.Kind] == nil {
			kept[s.Kind] = map[int]bool{}
		}
		kept[s.Kind][s.index] = true
		if s.Kind == PreferNodes {
			out.required = out.required.Intersect(requirements.AnyOf(c.Preferred[s.index].Nodes))
		}
	}
	for i, s := range c.topology.spreads {
		if s.hard || kept[PreferSpread][i] {
			out.spreads = append(out.spreads, s)
		}
	}
	for i, t := range c.topology.terms {
		if t.hard || kept[PreferPods][i] {
			out.terms = append(out.terms, t)
		}
	}
	ok := c.hardOK
	if kept[PreferNoTaint] != nil {
		ok = c.softOK
	}
	if slices.Contains(ok, false) {
		var values []string
		for i, fine := range ok {
			if fine {
				values = append(values, taintValue(i))
			}
		}
		out.required = out.required.Intersect(requirements.AnyOf(requirements.MustOf(requirements.NotIn(taintKey), allowedTaints(values))))
	}
	return out
}

// allowedTaints is the requirement of one of the given taint sets; with none it can be met by no node.
func allowedTaints(values []string) requirements.Requirement {
	if len(values) == 0 {
		return requirements.In(taintKey, "none is tolerated")
	}
	return requirements.In(taintKey, values...)
}

// onHostname reports whether a constraint acts within one node.
func (p *Problem) onHostname(g int) bool { return p.groups.all[g].key == corev1.LabelHostname }
